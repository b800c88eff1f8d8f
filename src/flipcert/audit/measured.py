"""After how many checks each prediction is proven: as ``certify`` says, for every number of checks."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flipcert.audit.checks import Units, trusting
from flipcert.audit.held_rows import each_piece
from flipcert.classifiers.certified_by_weights import CertifiedByWeights
from flipcert.engine.watch import Watcher, current_watcher, watched_by
from flipcert.flips.against import rows_against
from flipcert.flips.whole_rows import WholeRows
from flipcert.labels.labels import Labels
from flipcert.results.certificates import Certificates


def proven_after(
    model: Any, X: ArrayLike, order: NDArray[np.int64], units: Units, budget: int, start: Certificates
) -> NDArray[np.bool_]:
    """Whether each point is proven at ``budget`` after the first k checks, of shape (n_order + 1, n_points).

    ``start`` is what ``certify`` says before any check.
    """
    if isinstance(model, CertifiedByWeights):
        first = _first_proven(model, X, order, units, budget, start)
        return np.arange(order.size + 1)[:, None] >= first
    # Bounds of an ensemble need not grow with every check, so it is asked after each.
    proven = np.empty((order.size + 1, len(start)), np.bool_)
    proven[0] = start.radius >= budget
    watcher = current_watcher()
    watcher.begin(order.size, "checks")
    for k in range(1, order.size + 1):
        with watched_by(Watcher()):
            own = trusting(model, units.after(order[:k])).certify(X, threat=units.threat.name)
        proven[k] = own.radius >= budget
        watcher.advance(1)
    return proven


def _first_proven(
    model: CertifiedByWeights,
    X: ArrayLike,
    order: NDArray[np.int64],
    units: Units,
    budget: int,
    start: Certificates,
) -> NDArray[np.int64]:
    """The fewest checks of an order that prove each point; one more than there are where they do not.

    Radii of one model are exact, and whoever may change fewer labels has fewer attacks: what is proven stays proven, so
    that the number is found by bisection.
    """
    linear, rows = model._asked(X)
    never = order.size + 1
    first = np.where(start.radius >= budget, 0, never)
    labels_after = lru_cache(maxsize=64)(lambda k: units.after(order[:k]))
    watcher = current_watcher()
    missing = np.flatnonzero(first == never)
    watcher.begin(missing.size, "points")

    def of_piece(own: NDArray[np.int64], weights: NDArray[Any], offset: NDArray[np.float64]) -> Any:
        def is_proven(places: NDArray[np.int64], k: int) -> NDArray[np.bool_]:
            return _proven(weights[places], labels_after(k), offset[places], units, budget)

        low, high = np.zeros(own.size, np.int64), np.full(own.size, never)
        every = np.arange(own.size)
        if order.size:
            high[is_proven(every, order.size)] = order.size
        while (unsure := every[(high - low > 1) & (high < never)]).size:
            middle = (low + high) // 2
            for k in np.unique(middle[unsure]).tolist():
                places = unsure[middle[unsure] == k]
                proven = is_proven(places, k)
                high[places[proven]], low[places[~proven]] = k, k
        return own, high

    for own, high in each_piece(linear, rows, missing, of_piece):
        first[own] = high
        watcher.advance(own.size)
    return first


def _proven(
    weights: NDArray[Any], labels: Labels, offset: NDArray[np.float64], units: Units, budget: int
) -> NDArray[np.bool_]:
    """Which rows withstand a budget, or all that there is left to attack."""
    radius = rows_against(units.threat, WholeRows(weights, labels, offset), labels, offset).radii().cost - 1
    return radius >= min(budget, units.threat.useful(labels))

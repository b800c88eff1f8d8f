"""How long the parts of a certificate take: forming weights, flip costs from below and from above, aggregation."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.ensemble import PartitionEnsemble
from flipcert.ensemble.votes import change_costs
from flipcert.flips._reach import LOWER, UPPER


def time_parts(model: PartitionEnsemble, X: NDArray[Any]) -> dict[str, float]:
    """Seconds for one test point, on all cores: ``weights`` with votes, costs ``lower`` and ``upper``, ``aggregation``.

    All N x K costs are taken, as published; :meth:`PartitionEnsemble.certify` settles only those that decide.
    """

    def costs(kind: int) -> list[Any]:
        return model._map("all_costs", X, kind, None)

    # Compiled and warm.
    ballots = costs(LOWER)
    weights = _seconds(lambda: model.predict(X))
    lower, upper = (_seconds(lambda kind=kind: costs(kind)) for kind in (LOWER, UPPER))  # type: ignore[misc]
    votes, lower_costs = (np.concatenate([getattr(b, name) for b in ballots]) for name in ("votes", "lower"))
    aggregation = _seconds(lambda: change_costs(votes, lower_costs))
    n = X.shape[0]
    return {
        "timed_points": n,
        "seconds_weights": weights / n,
        "seconds_lower": max(lower - weights, 0.0) / n,
        "seconds_upper": max(upper - weights, 0.0) / n,
        "seconds_aggregation": aggregation / n,
    }


def _seconds(action: Callable[[], Any]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start

"""How long a certificate takes, and its parts: kernel, weights, flip costs from below and from above, aggregation."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.ensemble import PartitionEnsemble
from flipcert.ensemble.votes.radius import change_costs
from flipcert.flips._jit.reach import LOWER, UPPER
from flipcert.kernels.stored import StoredKernel


def time_parts(model: PartitionEnsemble, X: NDArray[Any]) -> dict[str, float]:
    """Seconds for one test point, on all cores, compiled and warm.

    ``certify`` is all that :meth:`PartitionEnsemble.certify` does, which settles only the costs that decide. Its parts,
    with all N x K costs taken one by one as published: ``weights`` with votes, costs ``lower`` and ``upper``,
    ``aggregation``. A stored kernel, which is computed once for all models, has its own entry.
    """

    def costs(kind: int) -> list[Any]:
        return model._map("all_costs", X, kind, None)

    n = X.shape[0]
    ballots = costs(LOWER)
    for warm in (model.certify, model.predict):
        warm(X[: n // 8])
    certify = _seconds(lambda: model.certify(X))
    weights = _seconds(lambda: model.predict(X))
    lower, upper = (_seconds(lambda kind=kind: costs(kind)) for kind in (LOWER, UPPER))  # type: ignore[misc]
    votes, lower_costs = (np.concatenate([getattr(b, name) for b in ballots]) for name in ("votes", "lower"))
    aggregation = _seconds(lambda: change_costs(votes, lower_costs))
    return {
        "timed_points": n,
        "timed_kernel": _kernel_seconds(model.estimator.kernel, X),
        "timed_certify": certify / n,
        "timed_weights": weights / n,
        "timed_lower": max(lower - weights, 0.0) / n,
        "timed_upper": max(upper - weights, 0.0) / n,
        "timed_aggregation": aggregation / n,
    }


def _kernel_seconds(kernel: Any, X: NDArray[Any]) -> float:
    """Seconds to compute a row of a stored kernel; any other is a part of the weights."""
    if not isinstance(kernel, StoredKernel):
        return 0.0
    return _seconds(lambda: kernel.compute(X)) / X.shape[0]


def _seconds(action: Callable[[], Any]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start

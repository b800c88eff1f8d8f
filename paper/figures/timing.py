"""How long a certificate takes, and its parts: kernel, weights, flip costs from below and from above, aggregation."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

import flipcert


def time_parts(model: flipcert.PartitionEnsemble, X: NDArray[Any]) -> dict[str, float]:
    """Seconds for one test point, on all cores, compiled and warm.

    ``certify`` is all that :meth:`PartitionEnsemble.certify` does, which settles only the costs that decide. Its parts,
    with all N x K costs taken one by one as published: ``weights`` with votes, costs ``lower`` and ``upper``,
    ``aggregation``. A stored kernel, which is computed once for all models, has its own entry.
    """
    n = X.shape[0]
    votes, costs = model.voter_costs(X)
    for warm in (model.certify, model.predict):
        warm(X[: n // 8])
    certify = _seconds(lambda: model.certify(X))
    weights = _seconds(lambda: model.predict(X))
    lower, upper = (_seconds(lambda bound=bound: model.voter_costs(X, bound)) for bound in ("lower", "upper"))  # type: ignore[misc]
    aggregation = _seconds(lambda: flipcert.ensemble_radius(votes, costs))
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
    if not isinstance(kernel, flipcert.kernels.StoredKernel):
        return 0.0
    return _seconds(lambda: kernel.compute(X)) / X.shape[0]


def _seconds(action: Callable[[], Any]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start

"""The integer program that says exactly how many points one attack changes, as LabelCert has it; for HiGHS."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array


def most_changed(
    weights: NDArray[np.float64], labels: NDArray[np.int64], n_classes: int, budget: int, time_limit: float
) -> tuple[int, int]:
    """Points that one attack within the budget changes: as many as the best solution has, and the bound.

    Variables are relabellings, "class c beats the prediction of point t", and "point t is changed".
    """
    n_points, n = weights.shape
    scores = weights @ np.eye(n_classes)[labels]
    first = scores.argmax(axis=1)
    moves = [(i, c) for i in range(n) for c in range(n_classes) if c != labels[i]]
    sample, to = np.array(moves).T
    pairs = [(t, c) for t in range(n_points) for c in range(n_classes) if c != first[t]]
    n_moves, n_pairs = len(moves), len(pairs)
    rows: list[Any] = []
    columns: list[Any] = []
    values: list[Any] = []
    upper: list[float] = []

    def add(column: Any, value: Any, limit: float) -> None:
        column, value = np.broadcast_arrays(column, value)
        rows.append(np.full(column.size, len(upper)))
        columns.append(column)
        values.append(value.astype(np.float64))
        upper.append(limit)

    add(np.arange(n_moves), 1.0, budget)
    for i in range(n):
        add(np.flatnonzero(sample == i), 1.0, 1.0)
    for place, (t, c) in enumerate(pairs):
        own, a = labels[sample], first[t]
        signs = (own == a).astype(int) - (own == c) - (to == a) + (to == c)
        closes = weights[t, sample] * signs
        gap = scores[t, a] - scores[t, c]
        least = np.sort([min(0.0, closes[sample == i].min()) for i in range(n)])[:budget].sum()
        # Not closed by the relabellings, not beaten: gap - closed <= (gap - least) (1 - beaten).
        add(
            np.append(np.arange(n_moves), n_moves + place),
            np.append(-closes, gap - least),
            -least,
        )
        add(np.append(np.arange(n_moves), n_moves + place), np.append(-np.clip(closes, 0.0, gap), gap), 0.0)
    for t in range(n_points):
        beaten = [n_moves + place for place, (point, _) in enumerate(pairs) if point == t]
        add(np.array([n_moves + n_pairs + t, *beaten]), np.array([1.0] + [-1.0] * len(beaten)), 0.0)
    size = n_moves + n_pairs + n_points
    matrix = coo_array(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=(len(upper), size)
    )
    goal = np.zeros(size)
    goal[n_moves + n_pairs :] = -1.0
    whole = np.ones(size)
    whole[n_moves + n_pairs :] = 0
    result = milp(
        goal,
        constraints=LinearConstraint(matrix.tocsr(), -np.inf, np.array(upper)),
        bounds=Bounds(0, 1),
        integrality=whole,
        options={"time_limit": time_limit, "mip_rel_gap": 0.0},
    )
    found = 0 if result.x is None else round(-result.fun)
    bound = n_points if result.mip_dual_bound is None else int(np.floor(-result.mip_dual_bound + 1e-6))
    return found, min(bound, n_points)

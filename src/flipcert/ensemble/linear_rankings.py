"""Rankings of one label-linear voter by its exact scores, and what it costs to change them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.ensemble._jit.ranking import rank_rows, reverse, reversing_rows
from flipcert.flips._jit.ladder import new_ladder
from flipcert.flips.rows import IntegerRow
from flipcert.labels.labels import Labels


def exact_rankings(weights: NDArray[Any], labels: Labels) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Class indices of each row, highest score first, ties to the smaller index, and how close two scores come."""
    n_rows, no_offset = weights.shape[0], np.zeros(labels.n_classes)
    rankings = np.zeros((n_rows, labels.n_classes), np.int64)
    closest, decided = np.zeros(n_rows), np.zeros(n_rows, np.bool_)
    ladder = new_ladder(labels.n_labels, labels.n_classes)
    rank_rows(weights, labels.coded, no_offset, ladder, rankings, closest, decided)
    for t in np.flatnonzero(~decided).tolist():
        row = IntegerRow(weights[t], labels, no_offset)
        rankings[t] = sorted(range(labels.n_classes), key=lambda c, scores=row.scores: (-scores[c], c))  # type: ignore[misc]
        closest[t] = min(map(row.as_float, -np.diff(row.scores[rankings[t]])), default=np.inf)
    return rankings, closest


def reversing_costs(
    weights: NDArray[Any], labels: Labels, rivals: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Flips after which each class scores higher than the rival of the row, and by how much that is decided: exact."""
    n_rows, no_offset = weights.shape[0], np.zeros(labels.n_classes)
    costs, margin = np.zeros((n_rows, labels.n_classes), np.int64), np.zeros((n_rows, labels.n_classes))
    decided = np.zeros(n_rows, np.bool_)
    ladder = new_ladder(labels.n_labels, labels.n_classes)
    reversing_rows(weights, labels.coded, no_offset, ladder, rivals, labels.unreachable, costs, margin, decided)
    for t in np.flatnonzero(~decided).tolist():
        row = IntegerRow(weights[t], labels, no_offset)
        exact = np.zeros(labels.n_classes, object)
        row.run(reverse, int(rivals[t]), 0, labels.unreachable, costs[t], exact)
        margin[t] = [row.as_float(own) for own in exact]
    return costs, margin.min(axis=1)

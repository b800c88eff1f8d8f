"""Weights formed the plain way, in double precision: what the fast path is checked against."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import Features


def svm_weights(train: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.float64]:
    """Weights of a small-C SVM with the linear NTK, up to a factor that changes no comparison."""
    return rows.astype(np.float64) @ train.T.astype(np.float64)


def ridge_weights(train: NDArray[Any], rows: NDArray[Any], reg: float) -> NDArray[np.float64]:
    """Weights of kernel ridge regression with the linear NTK of one hidden layer, 2 <x, z> / d."""
    scale = np.sqrt(2 / train.shape[1])
    inputs, points = train.astype(np.float64) * scale, rows.astype(np.float64) * scale
    n, d = inputs.shape
    if n <= d:
        return np.linalg.solve(inputs @ inputs.T + reg * np.eye(n), inputs @ points.T).T
    return np.linalg.solve(inputs.T @ inputs + reg * np.eye(d), points.T).T @ inputs.T


def ensemble_weights(
    features: Features, partition: NDArray[Any], rows: NDArray[Any], reg: float | None
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Members of each partition and their weights for some rows; an SVM if ``reg`` is None."""
    for number in range(partition.max() + 1):
        members = np.flatnonzero(partition == number)
        train = features.train[members]
        yield members, svm_weights(train, rows) if reg is None else ridge_weights(train, rows, reg)


def fewest_row_changes(
    weights: NDArray[np.float64], labels: NDArray[Any], n_classes: int, threat: str, new: float
) -> int:
    """Fewest deletions, insertions, replacements or edits that change a prediction, by a full sort for every class."""
    scores = np.bincount(labels, weights, n_classes)
    first, n_rows = int(scores.argmax()), labels.size
    costs = []
    for c in np.delete(np.arange(n_classes), first):
        open_by = weights * (1.0 * (labels == first) - (labels == c))  # what each row holds open of the gap
        added = np.full(n_rows, new)
        gains = {
            "deletions": np.maximum(open_by, 0.0),
            "insertions": added,
            "replacements": np.maximum(open_by + new, 0.0),
            "edits": np.concatenate([2.0 * open_by, added]),
        }[threat]
        closed = np.cumsum(np.sort(gains)[::-1])
        costs.append(int(np.searchsorted(closed, scores[first] - scores[c])) + 1)
    return min(*costs, n_rows + 1)

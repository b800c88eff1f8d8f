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

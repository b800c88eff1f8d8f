"""Weights of a model once more, in plain NumPy and to rounding: from its kernel, its equations or its distances."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from flipcert.classifiers import KernelSVM, LabelSpreading, WeightedNeighbors
from flipcert.engine.mapped import row_pieces
from flipcert.engine.sparse import dense
from flipcert.kernels.base import Kernel, as_kernel
from flipcert.runs.plain_spreading import spread_plainly

# Training rows whose weights, or equations, are looked at.
_SOME = 1000


def weights_are_right(
    base: Any, X: NDArray[Any], x: NDArray[Any], weights: NDArray[Any], precision: str
) -> NDArray[np.bool_]:
    """Whether each row of weights is that of a model for test inputs x, up to the unit that it counts in.

    Parameters
    ----------
    base : KernelSVM, KernelRidge, WeightedNeighbors, LabelSpreading or SmoothedLinear
        The model; not fitted.
    X : ndarray of shape (n_samples, n_features)
        Its training inputs.
    x : ndarray of shape (n_rows, n_features)
        Test inputs.
    weights : ndarray of shape (n_rows, n_samples)
        What it makes of them.
    precision : str
        Type of the least precise numbers on the way.
    """
    tolerance = np.sqrt(float(np.finfo(precision).eps))
    x = dense(x)
    some = np.linspace(0, X.shape[0] - 1, min(X.shape[0], _SOME)).astype(np.int64)
    if isinstance(base, WeightedNeighbors):
        return np.array([_are_neighbors(base, X, *row, tolerance) for row in zip(x, weights, strict=True)])
    if isinstance(base, LabelSpreading):
        wanted = spread_plainly(X, x, base.n_neighbors, base.alpha)
        return np.asarray((np.abs(weights - wanted) <= tolerance * wanted.max(axis=1, keepdims=True)).all(axis=1))
    kernel = as_kernel(base.kernel)
    wanted, own = _plain_kernel(kernel, x, X[some]), weights[:, some].astype(np.float64)
    if isinstance(base, KernelSVM):
        scale = np.sum(wanted * own, axis=1, keepdims=True) / np.maximum(np.sum(own**2, axis=1, keepdims=True), 1e-300)
        error, size = np.abs(scale * own - wanted), np.abs(wanted).max(axis=1, keepdims=True)
        return np.asarray(((error <= tolerance * size) & (scale >= 0)).all(axis=1))
    # Ridge regression: (Q + reg I) w = Q(:, t).
    rows = _plain_kernel(kernel, X[some], X)
    found = weights @ rows.T + base.reg * own
    size = np.abs(weights) @ np.abs(rows).T + base.reg * np.abs(own) + np.abs(wanted)
    tolerance *= 1 + np.sqrt(np.abs(rows).max() / base.reg)  # how much the system magnifies rounding
    # Where terms cancel to zero, what is left is the rounding of the largest ones, in this row or in the weights.
    size = np.maximum(size, tolerance * size.max(axis=1, keepdims=True))
    return np.asarray((np.abs(found - wanted) <= tolerance * size).all(axis=1))


def _plain_kernel(kernel: Kernel, X: Any, Z: Any) -> NDArray[np.float64]:
    """The kernel of dense copies of the inputs; of sparse ones, some rows at a time."""
    if not issparse(X) and not issparse(Z):
        return kernel(X, Z).astype(np.float64)
    values = np.empty((X.shape[0], Z.shape[0]))
    for place, rows in row_pieces(X):
        for others, inputs in row_pieces(Z):
            values[place, others] = kernel(rows, inputs)
    return values


def _are_neighbors(
    base: WeightedNeighbors, X: NDArray[Any], x: NDArray[Any], weights: NDArray[Any], tolerance: float
) -> bool:
    """Whether the nearest inputs have weight, as much as they should, and no others have; ties may go either way."""
    squares = [((rows.astype(np.float64) - x.astype(np.float64)) ** 2).sum(axis=1) for _, rows in row_pieces(X)]
    distance = np.sqrt(np.concatenate(squares))
    border = np.sort(distance)[(base.n_neighbors or distance.size) - 1]
    inside, outside = distance < border * (1 - tolerance), distance > border * (1 + tolerance)
    if base.weights == "distance" and distance.min() > 0:
        weights = weights * distance
    elif base.weights == "distance":
        inside = distance == 0
        outside = ~inside
    largest = float(weights.max())
    full = weights[inside] >= (1 - tolerance) * largest
    return bool(largest > 0 and np.all(full) and np.all(weights[outside] == 0))

"""What a label-linear model would say of each training row, had it been fitted without that row: no refits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.blocks import map_rows
from flipcert.engine.sparse import dense
from flipcert.engine.watch import current_watcher
from flipcert.linear.kernel_rows import KernelRows
from flipcert.linear.nearest import NearestWeights
from flipcert.linear.product import ProductWeights
from flipcert.linear.ridge_features import RidgeWeights
from flipcert.linear.solved_system import SolvedSystem
from flipcert.linear.sparse_ridge import SparseRidge
from flipcert.linear.weights import Weights

# What is left of a sample that a ridge regression interpolates is lost in rounding; no smaller number is divided by.
_LEAST = 1e-12


def knows_left_out(weights: Weights) -> bool:
    """Whether it is known what becomes of the weights when a row is left out."""
    return type(weights) in (RidgeWeights, SolvedSystem, SparseRidge, ProductWeights, KernelRows, NearestWeights)


def scores_without_own(
    weights: Weights, X: NDArray[Any], targets: NDArray[np.float64], n_jobs: int | None
) -> NDArray[np.float64]:
    r"""Scores of each training row by the model without it, of shape (n_rows, n_classes), in the unit of users.

    ``targets`` are what rows are fitted to: one for the class of a row, or shares of several. A kernel mean loses the
    row's own weight. The scores of a ridge regression, :math:`\hat Y = H Y`, become
    :math:`(\hat Y_i - H_{ii} Y_i) / (1 - H_{ii})`. Another row takes the place of a neighbour.
    """
    if isinstance(weights, ProductWeights):
        scores, own = _by_product(weights, X, targets, n_jobs)
    elif isinstance(weights, NearestWeights):
        return _without_neighbour(weights, targets, n_jobs)
    else:
        scores, own = _by_blocks(weights, X, targets, n_jobs)
    scores -= own[:, None] * targets
    if isinstance(weights, RidgeWeights | SolvedSystem | SparseRidge):
        scores /= np.maximum(1.0 - own, _LEAST)[:, None]
    return weights.in_unit_of_users(scores, None)


def _by_product(
    weights: ProductWeights, X: NDArray[Any], targets: NDArray[np.float64], n_jobs: int | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scores of all rows and their weights on themselves; factors are summed by class, so no weights are formed."""
    right = weights.product.right
    width = 8 * (right.shape[1] + targets.shape[1])
    sums = map_rows(lambda rows: targets[rows].T @ dense(right[rows]).astype(np.float64), X.shape[0], width, n_jobs)
    by_class = np.sum(sums, axis=0)

    def of_rows(rows: slice) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        left = weights.features(np.ascontiguousarray(dense(X[rows]))).astype(np.float64)
        return left @ by_class.T, np.einsum("ij,ij->i", left, dense(right[rows]), dtype=np.float64)

    parts = map_rows(_advancing(of_rows, X.shape[0]), X.shape[0], 2 * width, n_jobs)
    return np.concatenate([scores for scores, _ in parts]), np.concatenate([own for _, own in parts])


def _by_blocks(
    weights: Weights, X: NDArray[Any], targets: NDArray[np.float64], n_jobs: int | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The same from rows of weights, some at a time."""

    def of_rows(rows: slice) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        features = weights.features(np.ascontiguousarray(dense(X[rows])))
        formed = np.empty((features.shape[0], weights.n_samples), weights.dtype)
        weights.form(features, formed)
        own = formed[np.arange(formed.shape[0]), np.arange(rows.start, rows.stop)].astype(np.float64)
        return formed @ targets, own

    parts = map_rows(_advancing(of_rows, X.shape[0]), X.shape[0], weights.bytes_per_row, n_jobs)
    return np.concatenate([scores for scores, _ in parts]), np.concatenate([own for _, own in parts])


def _without_neighbour(
    weights: NearestWeights, targets: NDArray[np.float64], n_jobs: int | None
) -> NDArray[np.float64]:
    """Scores by the nearest other rows."""

    def of_rows(rows: slice) -> NDArray[np.float64]:
        formed = np.empty((rows.stop - rows.start, weights.n_samples), weights.dtype)
        weights.form_without_own(rows, formed)
        return weights.in_unit_of_users(formed @ targets, formed)

    # Distances and shares take as much again as the weights, in double precision.
    width = weights.bytes_per_row + 24 * weights.n_samples
    n_rows = weights.n_samples
    return np.concatenate(map_rows(_advancing(of_rows, n_rows), n_rows, width, n_jobs))


def _advancing(function: Any, n_rows: int) -> Any:
    """The function, telling whoever looks on how far it is."""
    watcher = current_watcher()
    watcher.begin(n_rows, "labels")

    def advancing(rows: slice) -> Any:
        found = function(rows)
        watcher.advance(rows.stop - rows.start)
        return found

    return advancing

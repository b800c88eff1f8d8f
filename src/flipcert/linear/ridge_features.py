"""Ridge regression on finite features: what turns the features of a test point into weights of the training samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from flipcert.engine.blocks import map_threads
from flipcert.engine.magnitude import finite_sum
from flipcert.engine.mapped import empty_like, give_back, row_pieces
from flipcert.engine.rounding import Factor, products_vanish, row_norms
from flipcert.kernels.base import Kernel
from flipcert.linear.product import Product, ProductWeights

# Rows and columns that are widened to double precision at a time.
_ROWS, _COLUMNS = 4096, 128


def weight_map(features: NDArray[Any], reg: float, n_jobs: int | None) -> tuple[NDArray[Any], float]:
    r"""R with weights :math:`w(t) = R \phi(t)`, and the largest row sum of magnitudes of the system that was solved.

    :math:`R = (\Phi \Phi^\top + \lambda I)^{-1} \Phi = \Phi (\Phi^\top \Phi + \lambda I)^{-1}`: whichever system is
    smaller, in double precision. Neither depends on the number of threads.
    """
    n_samples, n_features = features.shape
    if n_samples <= n_features:
        wide = features.astype(np.float64, copy=False)
        with np.errstate(over="ignore", invalid="ignore"):
            system = wide @ wide.T
        spread = largest_row(system)
        system[np.diag_indices_from(system)] += reg
        solved = cho_solve(cho_factor(system, lower=True, overwrite_a=True), wide)
        with np.errstate(over="ignore", under="ignore"):  # told when the weights are used
            return solved.astype(features.dtype), spread
    system = _gram(features, n_jobs)
    spread = largest_row(system)
    system[np.diag_indices_from(system)] += reg
    # The inverse once, because products with it run in parallel and solves, which hold the interpreter lock, do not.
    inverse = cho_solve(cho_factor(system, lower=True, overwrite_a=True), np.eye(n_features))
    result = empty_like(features)

    def multiply(start: int) -> None:
        rows, to = features[start : start + _ROWS], result[start : start + _ROWS]
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):  # told when the weights are used
            to[:] = rows.astype(np.float64, copy=False) @ inverse
        give_back(rows)
        give_back(to)

    map_threads(multiply, range(0, n_samples, _ROWS), n_jobs)
    return result, spread


def largest_row(system: NDArray[np.float64]) -> float:
    """Largest sum of magnitudes in a row; Overflow if it is not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        return finite_sum(np.abs(system).sum(axis=1).max())


def _gram(features: NDArray[Any], n_jobs: int | None) -> NDArray[np.float64]:
    """Inner products of the features with one another: the lower triangle by columns, then mirrored."""
    n_samples, n_features = features.shape
    gram = np.zeros((n_features, n_features))

    def columns(start: int) -> None:
        stop = start + _COLUMNS
        for row in range(0, n_samples, _ROWS):
            rows = features[row : row + _ROWS]
            wide = rows[:, start:].astype(np.float64, copy=False)
            with np.errstate(over="ignore", invalid="ignore"):
                gram[start:, start:stop] += wide.T @ wide[:, :_COLUMNS]
            give_back(rows)

    map_threads(columns, range(0, n_features, _COLUMNS), n_jobs)
    return np.tril(gram) + np.tril(gram, -1).T


def vanished_columns(features: NDArray[Any], right: NDArray[Any]) -> NDArray[np.bool_]:
    """Features of which nothing is left in R, though some sample has them: a large regularisation took all bits."""
    gone = np.ones(features.shape[1], np.bool_)
    for _, rows in row_pieces(right):
        gone &= ~rows.any(axis=0)
    held = np.zeros(features.shape[1], np.bool_)
    for _, rows in row_pieces(features) if gone.any() else ():
        held |= rows.any(axis=0)
    return gone & held


class RidgeWeights(ProductWeights):
    """Weights of a ridge regression on finite features: one product with the features of a test point.

    Parameters
    ----------
    kernel : Kernel
        Whose features they are.
    X : ndarray of shape (n_samples, n_features)
        Training inputs.
    reg : float
        Regularisation.
    n_jobs : int or None
        Threads of the solution.
    """

    def __init__(self, kernel: Kernel, X: NDArray[Any], reg: float, n_jobs: int | None) -> None:
        features = kernel.map_features(X)
        right, spread = weight_map(features, reg, n_jobs)
        error = error_of_solution(spread / reg, min(right.shape), right.dtype)
        super().__init__(Product.of(right, kernel, error, vanished_columns(features, right)), X.dtype, X)
        self._kernel = kernel
        self._reg = reg

    def why(self, X: NDArray[Any], small: bool) -> str:
        """The kernel, or else the regularisation."""
        assert self.X is not None
        right = Factor.of(self._kernel.map_features(self.X))
        return why_of_ridge(self._kernel, X, self.X, right, self._reg, small)


def error_of_solution(spread: float, size: int, dtype: np.dtype[Any]) -> float:
    """Error of the solution of a system of this size, beside itself; ``spread`` tells how far its scales differ."""
    unit = float(np.finfo(np.float64).eps) / 2
    with np.errstate(over="ignore"):
        return float(unit * np.sqrt(size) * (spread + 1.0) + float(np.finfo(dtype).eps) / 2)


def why_of_ridge(kernel: Kernel, X: NDArray[Any], train: Any, right: Factor, reg: float, small: bool) -> str:
    """Say what makes weights out of range: the kernel of X with training inputs, whose features are R, or else reg."""
    left = kernel.features(X)
    with np.errstate(over="ignore"):
        too_large = not row_norms(left).max() * right.largest_norm <= np.finfo(left.dtype).max
    out_of_range = products_vanish(left, [right]).any() if small else too_large
    return kernel.why(X, train, small) if out_of_range else why_of_regularisation(reg, small)


def why_of_regularisation(reg: float, small: bool) -> str:
    """Say that the regularisation makes weights so small, or so large, that they are out of range."""
    size, other = ("large", "smaller") if small else ("small", "larger")
    return f"reg={reg:g} is too {size} beside the kernel of the inputs; take a {other} reg, or rescale the features"

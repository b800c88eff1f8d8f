"""Ridge regression on sparse features, fewer than there are samples: the system is solved for each test point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from flipcert.engine.magnitude import refuse_underflow, smallest_whole
from flipcert.engine.mapped import row_pieces
from flipcert.engine.memory import available_memory
from flipcert.engine.sparse import SparseRows, canonical
from flipcert.kernels.base import Kernel
from flipcert.linear.product import Product
from flipcert.linear.ridge_features import error_of_solution, largest_row, why_of_ridge
from flipcert.linear.weights import Weights

# Matrices of the size of the system that are there while it is solved.
_COPIES = 3


class SparseRidge(Weights):
    r"""Weights :math:`w(t) = \Phi \, (\Phi^\top \Phi + \lambda I)^{-1} \phi(t)`, taken from the right.

    Dense features are better multiplied with the inverse once, at the side of the training samples. Here that would
    fill all zeros, so the inverse is applied to the features of test points.

    Parameters
    ----------
    kernel : Kernel
        Whose features they are.
    X : sparse matrix of shape (n_samples, n_features)
        Training inputs.
    reg : float
        Regularisation.
    """

    comes_in_tiles = True

    def __init__(self, kernel: Kernel, X: Any, reg: float) -> None:
        self._kernel = kernel
        self._X = SparseRows(X)
        self._reg = reg
        self.n_samples, self.dtype = X.shape[0], X.dtype
        features = kernel.map_features(X)
        gram = _gram(features)
        spread = largest_row(gram)
        gram[np.diag_indices_from(gram)] += reg
        factor = cho_factor(gram, lower=True, overwrite_a=True)
        self._inverse = cho_solve(factor, np.eye(features.shape[1]), overwrite_b=True)
        error = error_of_solution(spread / reg, features.shape[1], X.dtype)
        self._product = Product.of(SparseRows(features), error=error)

    def features(self, X: NDArray[Any]) -> NDArray[Any]:
        """The solution for the features of each row."""
        own = self._kernel.features(X)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):  # told when the weights are used
            solved = (own.astype(np.float64, copy=False) @ self._inverse).astype(self.dtype)
        lost = own.any(axis=1) & (np.abs(solved).max(axis=1) < smallest_whole(self.dtype))
        refuse_underflow(lost, filled_up=True)
        return solved

    def form(self, X: NDArray[Any], out: NDArray[Any]) -> None:
        """Write the weights of all training samples for each row of X to ``out``."""
        self._product.weights(X, out)

    def tile_writer(self, X: NDArray[Any]) -> Callable[[slice, NDArray[Any]], None]:
        """What writes the weights of a range of samples for each row of X to an array."""
        return self._product.tile_writer(X)

    def rounding(self, X: NDArray[Any], formed: NDArray[Any] | None) -> NDArray[np.float64]:
        """By how much rounding could move each row of weights."""
        return self._product.rounding(X)[:, 0]

    def lost(self, X: NDArray[Any], sizes: Callable[[], NDArray[Any]]) -> NDArray[np.bool_]:
        """Rows whose weights underflow."""
        return self._product.lost(X)

    def why(self, X: NDArray[Any], small: bool) -> str:
        """The kernel, or else the regularisation."""
        return why_of_ridge(self._kernel, X, self._X, self._product.factors[0], self._reg, small)


def _gram(features: Any) -> NDArray[np.float64]:
    """Inner products of the features with one another, in double precision."""
    size = features.shape[1]
    needed, available = 8.0 * _COPIES * size**2, available_memory()
    if needed > available:
        raise ValueError(
            f"the system of {size} features needs {needed / 1e9:.1f} GB of memory, but {available / 1e9:.1f} GB are "
            "available; use PartitionEnsemble, or KernelSVM, which solves no system."
        )
    columns = canonical(features.T.tocsr().astype(np.float64))
    others, gram = SparseRows(columns), np.empty((size, size))
    with np.errstate(over="ignore", invalid="ignore"):
        for place, rows in row_pieces(columns):
            others.multiply(rows, gram[place])
    return gram

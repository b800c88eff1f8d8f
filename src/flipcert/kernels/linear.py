"""The inner product."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.rounding import Factor, products_vanish, row_norms
from flipcert.engine.sparse import SparseRows, write_product
from flipcert.kernels.base import Bounded, Kernel
from flipcert.kernels.norms import product_rounding, rounded_up
from flipcert.kernels.sparse import any_sparse, sparse_kernel
from flipcert.labels.validation import check_inputs


class Linear(Kernel):
    """Inner product: ``k(x, z) = <x, z>``.

    See Also
    --------
    NTK : Of a wide network.

    Examples
    --------
    >>> import numpy as np
    >>> from flipcert.kernels import Linear
    >>> Linear()(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[11.]])
    """

    takes_sparse = True

    def __call__(self, X: NDArray[Any], Z: NDArray[Any] | None = None) -> NDArray[Any]:
        """Kernel matrix of X with Z."""
        if any_sparse(X, Z):
            return sparse_kernel(self, X, Z)
        left = check_inputs(X, sparse=True)
        return left @ (left if Z is None else check_inputs(Z, sparse=True)).T

    def write(self, X: NDArray[Any], Z: Any, out: NDArray[Any]) -> None:
        """Write the kernel matrix of X with Z to ``out``."""
        with np.errstate(over="ignore", invalid="ignore"):  # whoever uses the kernel refuses what overflowed
            write_product(X, Z, out)

    def diag(self, X: NDArray[Any]) -> NDArray[Any]:
        """Squared norm of each row."""
        inputs = check_inputs(X, sparse=True)
        if any_sparse(inputs):
            return SparseRows(inputs).squares.astype(inputs.dtype)
        return np.einsum("ij,ij->i", inputs, inputs)

    def lost(self, X: NDArray[Any], train: Factor, sizes: NDArray[Any]) -> NDArray[np.bool_]:
        """Rows whose products all underflow."""
        return products_vanish(X, [train])

    @property
    def bounded_by(self) -> Bounded:
        """An inner product is at most the product of the norms."""
        return Bounded.NORM

    def largest(self, X: NDArray[Any], max_norm: float | None) -> NDArray[np.float64]:
        """Cauchy-Schwarz, reached by the longest input of the same direction."""
        assert max_norm is not None, "checked before"
        with np.errstate(over="ignore"):
            products = row_norms(X) * max_norm
        return rounded_up(products, X, product_rounding(X.shape[1], X.dtype), constant=False)

    def n_features(self, n_inputs: int) -> int:
        """As many features as inputs."""
        return n_inputs

    def features(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the inputs themselves."""
        return check_inputs(X, sparse=True)

    def product_scale(self, n_inputs: int) -> float:
        """The kernel is the inner product."""
        return 1.0

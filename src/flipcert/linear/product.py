"""Weights that are one matrix product with the inputs, or with their features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.mapped import give_back, joined
from flipcert.engine.rounding import Factor, product_errors, products_vanish, row_norms
from flipcert.engine.sparse import write_product
from flipcert.engine.tiles import write_tiles
from flipcert.kernels.base import Kernel
from flipcert.linear.weights import Weights


@dataclass
class Product:
    r"""Weights :math:`W(X) = \phi(X) R^\top` of one model, or of several one after the other.

    One product for all base classifiers of an ensemble is much faster than one for each.

    Attributes
    ----------
    right : ndarray or SparseRows of shape (n_samples, n_features)
        R: training inputs, or what a ridge regression makes of them.
    kernel : Kernel or None
        Whose feature map :math:`\phi` is; None for the inputs themselves.
    factors : list of Factor
        What the rounding of the product needs to know about each model's part of R.
    errors : ndarray
        By how much rounding of R itself could move the weights of each model, for inputs of norm one.
    """

    right: Any
    kernel: Kernel | None
    factors: list[Factor]
    errors: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        right: Any,
        kernel: Kernel | None = None,
        error: float = 0.0,
        vanished: NDArray[np.bool_] | None = None,
        n_jobs: int | None = 1,
    ) -> Product:
        """Weights of one model; ``error`` is that of R beside its size.

        Columns of R that ``vanished`` are zero for want of smaller numbers only.
        """
        factor = Factor.of(right, n_jobs)
        if vanished is not None and vanished.any():
            factor = replace(factor, vanished=vanished)
        return cls(right, kernel, [factor], np.array([error * factor.frobenius]))

    @classmethod
    def join(cls, products: list[Product]) -> Product:
        """One product for several models with the same features, which then share its memory."""
        right = joined([own.right for own in products])
        begin = 0
        for own in products:
            size = own.right.shape[0]
            own.right = right[begin : begin + size]
            begin += size
        factors = [factor for own in products for factor in own.factors]
        return cls(right, products[0].kernel, factors, np.concatenate([own.errors for own in products]))

    def features(self, X: NDArray[Any]) -> NDArray[Any]:
        """The left factor for rows of X, which the methods below take."""
        return X if self.kernel is None else self.kernel.features(X)

    def weights(self, left: NDArray[Any], out: NDArray[Any]) -> NDArray[Any]:
        """Write the weights of each row to ``out``."""
        write_tiles(self.tile_writer(left), out)
        return out

    def tile_writer(self, left: NDArray[Any]) -> Callable[[slice, NDArray[Any]], None]:
        """What writes the weights of a range of samples for each row to an array."""

        def write(samples: slice, out: NDArray[Any]) -> None:
            right = self.right[samples]
            with np.errstate(over="ignore", invalid="ignore"):  # whoever uses the weights refuses what overflowed
                write_product(left, right, out)
            give_back(right)

        return write

    def rounding(self, left: NDArray[Any]) -> NDArray[np.float64]:
        """How far rounding could move each row of weights of each model (see ``flipcert.engine.rounding``)."""
        return product_errors(left, self.factors) + row_norms(left)[:, None] * self.errors

    def lost(self, left: NDArray[Any]) -> NDArray[np.bool_]:
        """Rows whose weights underflow, all of them or all those of one model."""
        return products_vanish(left, self.factors)


class ProductWeights(Weights):
    """Weights of one model that are one product.

    Parameters
    ----------
    product : Product
        Of one model.
    dtype : dtype
        Type of the inputs, which the weights have too.
    X : ndarray or None
        Training inputs, where the product is one with features of a kernel.
    unit : float or None
        What users see scores multiplied by, if it is left out of the product.
    comes_in_tiles : bool
        Whether parts of a row may be formed; some uses need all of it.
    """

    product: Product

    def __init__(
        self,
        product: Product,
        dtype: np.dtype[Any],
        X: NDArray[Any] | None = None,
        unit: float | None = None,
        comes_in_tiles: bool = True,
    ) -> None:
        self.product = product
        self.X = X
        self.unit = unit
        self.comes_in_tiles = comes_in_tiles
        self.n_samples, self.dtype = product.right.shape[0], dtype

    def features(self, X: NDArray[Any]) -> NDArray[Any]:
        """The left factor of the product."""
        return self.product.features(X)

    def form(self, X: NDArray[Any], out: NDArray[Any]) -> None:
        """Write the weights of all training samples for each row of X to ``out``."""
        self.product.weights(X, out)

    def tile_writer(self, X: NDArray[Any]) -> Callable[[slice, NDArray[Any]], None]:
        """What writes the weights of a range of samples for each row of X to an array."""
        return self.product.tile_writer(X)

    def rounding(self, X: NDArray[Any], formed: NDArray[Any] | None) -> NDArray[np.float64]:
        """By how much rounding could move each row of weights."""
        return self.product.rounding(X)[:, 0]

    def lost(self, X: NDArray[Any], sizes: Callable[[], NDArray[Any]]) -> NDArray[np.bool_]:
        """Rows whose weights underflow."""
        return self.product.lost(X)

    def why(self, X: NDArray[Any], small: bool) -> str:
        """The kernel, if there is one, or else the features."""
        kernel = self.product.kernel
        return super().why(X, small) if kernel is None or self.X is None else kernel.why(X, self.X, small)

    def in_unit_of_users(self, scores: NDArray[np.float64], formed: NDArray[Any] | None) -> NDArray[np.float64]:
        """Scores times what was left out of the product."""
        return scores if self.unit is None else scores * self.unit

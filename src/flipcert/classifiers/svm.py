"""Kernel support vector machines with small C."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from flipcert.classifiers.kernel_weights import KernelClassifier
from flipcert.engine.blocks import map_blocks
from flipcert.engine.buffers import Buffers
from flipcert.engine.magnitude import BY_FEATURES, finite_sum, told_with
from flipcert.engine.mapped import row_pieces
from flipcert.engine.tiles import tiles, write_tiles
from flipcert.labels.validation import check_number
from flipcert.linear.product import Product


class KernelSVM(KernelClassifier):
    r"""Soft-margin kernel SVM without bias, one class against the rest, in the small-C regime.

    If :math:`C \max_i \sum_j |Q_{ij}| \le 1` over the training kernel Q, every dual variable equals C whatever the
    labels are. The score of class c is then :math:`\sum_i Q(t, x_i) [y_i = c]` up to a constant, so the prediction does
    not depend on C and :meth:`certify` is exact. With a neural tangent kernel this is an infinitely wide network
    trained on the hinge loss.

    Parameters
    ----------
    kernel : None, str, kernel object or callable, default=None
        ``None`` is :class:`flipcert.kernels.NTK`; also a name, such as "linear" or "rbf", "precomputed", any
        scikit-learn kernel or callable ``k(X, Z)``.
    C : "auto" or float, default="auto"
        "auto" takes any C small enough. A number is checked against ``C_max_`` and refused if larger.
    classes : array-like, optional
        The whole label space, a set. Give it where you know it: read from ``y`` by default, it is in the hands of an
        attacker, who can remove a class by flipping all its labels, and no certificate goes beyond that.
    n_jobs : int, optional
        Threads; all cores by default.

    Attributes
    ----------
    classes_ : ndarray
        The label space, sorted; ties go to the class that comes first.
    C_max_ : float
        The largest C of the small-C regime, :math:`1 / \max_i \sum_j |Q_{ij}|`, computed when first asked for.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import flipcert
    >>> X, y = load_iris(return_X_y=True)
    >>> model = flipcert.KernelSVM(kernel="rbf").fit(X[::2], y[::2])
    >>> model.certify(X[1::2]).radius[:5]
    array([10, 10,  9, 10, 10])
    """

    def __init__(
        self,
        kernel: Any = None,
        C: float | str = "auto",
        classes: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.classes = classes
        self.n_jobs = n_jobs

    def _fit_inputs(self, X: NDArray[Any]) -> None:
        self._fit_kernel(X)
        self.__dict__.pop("_largest_row_sum", None)
        # A kernel that only scales inner products leaves all comparisons as they are: its weights can go unscaled, so
        # that whole numbers stay whole and ties stay ties.
        self._scale = None if self._kernel is None else self._kernel.product_scale(X.shape[1])
        self._inner_product: Product | None = None
        if self._scale is not None:
            self._inner_product = Product.of(self.X_fit_)
        elif self._kernel is not None and self._kernel.n_features(X.shape[1]) is not None:
            self._inner_product = Product.of(self._kernel.map_features(self.X_fit_), self._kernel)
        if isinstance(self.C, str) and self.C == "auto":
            return
        C = check_number(self.C, 'C, if not "auto",')
        # Row sums are rounded; a C that is too large only by that much is at the threshold, not above it.
        rounding = X.shape[0] * float(np.finfo(np.float64).eps)
        if C * self._largest_row_sum > 1 + rounding:
            raise ValueError(
                f"C={self.C:g} is above the small-C threshold C_max_={self.C_max_:.6g} of this training set, where "
                'the certificate ends; use C="auto" or a smaller C.'
            )

    @property
    def C_max_(self) -> float:
        """The largest C for which the labels cannot change the dual variables."""
        check_is_fitted(self)
        return 1.0 / self._largest_row_sum if self._largest_row_sum > 0 else np.inf

    @cached_property
    def _largest_row_sum(self) -> float:
        """Largest sum of magnitudes in a row of the training kernel, without ever holding the matrix."""
        with told_with(lambda small: KernelClassifier._why(self, self.X_fit_, small)):
            return finite_sum(self._add_up_rows(self.X_fit_))

    def _add_up_rows(self, X: NDArray[Any]) -> float:
        if (
            self._kernel is not None
            and self._kernel.n_features(X.shape[1]) is not None
            and all(np.all(rows >= 0) for _, rows in row_pieces(X))
        ):
            # Kernels of inputs that are not negative are not negative either: a row sum is one product.
            parts = [self._kernel.features(rows).sum(axis=0, dtype=np.float64) for _, rows in row_pieces(X)]
            with np.errstate(over="ignore", invalid="ignore"):
                total = np.sum(parts, axis=0)
                return max(float((self._kernel.features(rows) @ total).max()) for _, rows in row_pieces(X))
        grid = tiles(X.shape[0])
        buffers = Buffers()

        def largest(block: NDArray[Any], n_rows: int) -> float:
            sums = np.zeros(block.shape[0])
            # Of single precision, small scales would leave nothing.
            write = self._kernel_writer(block) if self._scale is None else self._tile_writer(block)
            for samples in grid:
                with buffers.borrow((block.shape[0], samples.stop - samples.start), X.dtype) as rows:
                    write(samples, rows)
                    with np.errstate(over="ignore", invalid="ignore"):
                        sums += np.abs(rows, out=rows).sum(axis=1, dtype=np.float64)
            return float(sums[:n_rows].max())

        row_sum = max(map_blocks(largest, X, grid[0].stop * X.dtype.itemsize, self.n_jobs))
        buffers.close()
        return row_sum if self._scale is None else row_sum * self._scale

    @property
    def _product(self) -> Product | None:
        return self._inner_product

    def _weights(self, X: NDArray[Any], out: NDArray[Any]) -> None:
        write_tiles(self._tile_writer(X), out)

    @property
    def _comes_in_tiles(self) -> bool:
        return True

    def _tile_writer(self, X: NDArray[Any]) -> Callable[[slice, NDArray[Any]], None]:
        return self._kernel_writer(X) if self._inner_product is None else self._inner_product.tile_writer(X)

    def _rounding(self, X: NDArray[Any], weights: NDArray[Any] | None) -> NDArray[np.float64]:
        return self._kernel_rounding(X) if self._inner_product is None else self._inner_product.rounding(X)[:, 0]

    def _why(self, X: NDArray[Any], small: bool) -> str:
        return BY_FEATURES if self._scale is not None else super()._why(X, small)

    def _shown_scores(self, scores: NDArray[np.float64], weights: NDArray[Any] | None) -> NDArray[np.float64]:
        return scores if self._scale is None else scores * self._scale

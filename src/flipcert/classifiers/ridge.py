"""Kernel ridge regression on one-hot labels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError

from flipcert.classifiers.kernel_weights import KernelClassifier
from flipcert.classifiers.ridge_features import vanished_columns, weight_map
from flipcert.engine.cholesky import Cholesky, triangle_bytes
from flipcert.engine.magnitude import finite_sum, smallest_whole, told_with
from flipcert.engine.memory import available_memory
from flipcert.engine.rounding import Factor, products_vanish, row_norms
from flipcert.engine.tiles import write_tiles
from flipcert.labels.validation import check_number
from flipcert.linear.product import Product

# Beyond the system itself: blocks of test rows, and what else runs on the machine.
_SPARE = 1.1


class KernelRidge(KernelClassifier):
    r"""Kernel ridge regression on one-hot labels; the largest output is the prediction.

    The weights are :math:`w(t) = (Q + \lambda I)^{-1} Q(:, t)` and never see a label, so :meth:`certify` is exact.
    Where the kernel has finite features :math:`\Phi`, fewer than there are samples, the same weights come from
    :math:`w(t) = \Phi (\Phi^\top \Phi + \lambda I)^{-1} \phi(t)`, a much smaller system. With a neural tangent kernel
    this is an infinitely wide network trained on regularised squared loss.

    Parameters
    ----------
    kernel : None, str, kernel object or callable, default=None
        ``None`` is :class:`flipcert.kernels.NTK`; also a name, such as "linear" or "rbf", "precomputed", any
        scikit-learn kernel or callable ``k(X, Z)``.
    reg : float, default=1.0
        Regularisation :math:`\lambda`, positive.
    classes : array-like, optional
        The whole label space, a set. Give it where you know it: read from ``y`` by default, it is in the hands of an
        attacker, who can remove a class by flipping all its labels, and no certificate goes beyond that.
    n_jobs : int, optional
        Threads; all cores by default.

    Attributes
    ----------
    classes_ : ndarray
        The label space, sorted; ties go to the class that comes first.
    solver_ : {"dual", "primal"}
        Whether the system of the samples or that of the features was solved.
    precision_ : {"float64", "float32"}
        In which precision: single only where the memory has no room for double (4 n² bytes for n samples).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import flipcert
    >>> X, y = load_iris(return_X_y=True)
    >>> model = flipcert.KernelRidge(kernel="rbf", reg=0.1).fit(X[::2], y[::2])
    >>> model.certify(X[1::2]).radius[:5]
    array([3, 3, 2, 7, 3])
    """

    def __init__(
        self,
        kernel: Any = None,
        reg: float = 1.0,
        classes: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.reg = reg
        self.classes = classes
        self.n_jobs = n_jobs

    def _fit_inputs(self, X: NDArray[Any]) -> None:
        reg = check_number(self.reg, "reg")
        self._fit_kernel(X)
        n_features = None if self._kernel is None else self._kernel.n_features(X.shape[1])
        self.solver_ = "dual" if n_features is None or n_features >= X.shape[0] else "primal"
        # The system of an earlier fit would take the room for this one.
        self.__dict__.pop("_cholesky", None)
        self._features_product: Product | None = None
        try:
            with told_with(lambda small: KernelClassifier._why(self, X, small)):
                if n_features is None:
                    self._fit_dual(X, reg)
                else:
                    self._fit_features(reg)
        except LinAlgError:
            raise ValueError(
                f"the kernel matrix plus reg={reg:g} is not positive definite; the kernel is not positive "
                "semi-definite on this data, or reg is too small for its precision: raise reg."
            ) from None

    def _fit_features(self, reg: float) -> None:
        """Weights as one product with the features of a test point."""
        assert self._kernel is not None
        self.precision_ = "float64"
        features = self._kernel.map_features(self.X_fit_)
        right, spread = weight_map(features, reg, self.n_jobs)
        unit = float(np.finfo(np.float64).eps) / 2
        with np.errstate(over="ignore"):
            error = unit * np.sqrt(min(right.shape)) * (spread / reg + 1.0) + float(np.finfo(right.dtype).eps) / 2
        self._features_product = Product.of(right, self._kernel, error, vanished_columns(features, right))

    def _fit_dual(self, X: NDArray[Any], reg: float) -> None:
        self.precision_ = _widest_precision(X.shape[0])
        self._cholesky = Cholesky(X.shape[0], self.precision_)
        tile = _symmetric_tile(X) if self._kernel is None else self._kernel_tile
        self._spread = finite_sum(self._cholesky.fill(tile, self.n_jobs).max())
        self._cholesky.factorise(reg, self.n_jobs)

    def _kernel_tile(self, rows: slice, columns: slice) -> NDArray[Any]:
        """A tile of the training kernel; on the diagonal, the kernel is told that it sees the same inputs twice."""
        assert self._kernel is not None
        X = self.X_fit_
        return self._kernel(X[rows]) if rows == columns else self._kernel(X[rows], X[columns])

    @property
    def _product(self) -> Product | None:
        return self._features_product

    @property
    def _comes_in_tiles(self) -> bool:
        return self._features_product is not None

    def _tile_writer(self, X: NDArray[Any]) -> Callable[[slice, NDArray[Any]], None]:
        assert self._features_product is not None
        return self._features_product.tile_writer(X)

    def _weights(self, X: NDArray[Any], out: NDArray[Any]) -> None:
        if self._features_product is not None:
            self._features_product.weights(X, out)
            return
        write_tiles(self._kernel_writer(X), out)
        rows = out if out.dtype == self.precision_ else out.astype(self.precision_)
        self._cholesky.solve(rows)
        if rows is not out:
            out[:] = rows

    def _lost(self, X: NDArray[Any], sizes: Callable[[], NDArray[Any]]) -> NDArray[np.bool_]:
        """Rows whose kernel underflowed, and those that the regularisation made as small; zeros were zeros before."""
        lost = super()._lost(X, sizes)
        if self._features_product is not None:
            return lost
        least = max(smallest_whole(self._dtype), smallest_whole(self.precision_))
        for t in np.flatnonzero(~lost & (sizes() < least)):
            lost[t] = self._kernel_row(X[t : t + 1]).any()
        return lost

    def _why(self, X: NDArray[Any], small: bool) -> str:
        """The kernel, or else the regularisation."""
        if self._kernel_is_out_of_range(X, small):
            return super()._why(X, small)
        size, other = ("large", "smaller") if small else ("small", "larger")
        advice = f"take a {other} reg, or rescale the features"
        return f"reg={self.reg:g} is too {size} beside the kernel of the inputs; {advice}"

    def _kernel_is_out_of_range(self, X: NDArray[Any], small: bool) -> bool:
        """Whether the kernel of some row with the training inputs is, before any system is solved."""
        if self._features_product is not None:
            assert self._kernel is not None
            left, right = self._kernel.features(X), Factor.of(self._kernel.map_features(self.X_fit_))
            if small:
                return bool(products_vanish(left, [right]).any())
            with np.errstate(over="ignore"):
                return not row_norms(left).max() * right.largest_norm <= np.finfo(left.dtype).max
        for t in range(X.shape[0]):
            largest = np.abs(self._kernel_row(X[t : t + 1])).max(axis=1)
            if not np.isfinite(largest).all() or (
                small and super()._lost(X[t : t + 1], partial(np.copy, largest)).any()
            ):
                return True
        return False

    def _kernel_row(self, row: NDArray[Any]) -> NDArray[Any]:
        """The kernel of one row with all training inputs."""
        return row if self._kernel is None else self._kernel(row, self.X_fit_)

    def _bytes_per_row(self) -> int:
        # Where a system is solved in another precision than that of the weights, both are there at the same time.
        other = 0 if self._features_product is not None or self._dtype == self.precision_ else self._labels.n_labels
        return super()._bytes_per_row() + other * np.dtype(self.precision_).itemsize

    def _rounding(self, X: NDArray[Any], weights: NDArray[Any] | None) -> NDArray[np.float64]:
        """Rounding of the kernel rows, magnified by the solve at most 1/reg times, and that of the solve itself."""
        if self._features_product is not None:
            return self._features_product.rounding(X)[:, 0]
        assert weights is not None
        condition = (self._spread + self.reg) / self.reg
        unit = float(np.finfo(self.precision_).eps) / 2
        sizes = np.sqrt(np.einsum("ij,ij->i", weights, weights, dtype=np.float64))
        solve = unit * condition * np.sqrt(weights.shape[1]) * sizes
        stored = float(np.finfo(weights.dtype).eps) / 2 * np.sqrt(weights.shape[1]) * sizes
        with np.errstate(over="ignore"):  # then all of them are sensitive
            return self._kernel_rounding(X) / self.reg + solve + stored


def _symmetric_tile(kernel: NDArray[Any]) -> Callable[[slice, slice], NDArray[Any]]:
    """Tiles of a matrix given as numbers, each compared with its mirror image."""
    tolerance = 1e-8 * max(kernel.max(), -kernel.min())

    def tile(rows: slice, columns: slice) -> NDArray[Any]:
        values = kernel[rows, columns]
        if not np.allclose(values, kernel[columns, rows].T, rtol=1e-5, atol=tolerance):
            raise ValueError('X must be symmetric with kernel="precomputed" (the kernel of the training set).')
        return values

    return tile


def _widest_precision(n_samples: int) -> str:
    """Double precision if the system of the samples fits the memory, else single."""
    if n_samples <= 1024:
        return "float64"  # a few megabytes; asking takes longer than a small fit
    available = available_memory()
    for precision in ("float64", "float32"):
        needed = _SPARE * triangle_bytes(n_samples, precision)
        if needed <= available:
            return precision
    raise ValueError(
        f"the kernel of {n_samples} samples needs {needed / 1e9:.1f} GB of memory in single precision, but "
        f"{available / 1e9:.1f} GB are available; use PartitionEnsemble or a kernel with finite features."
    )

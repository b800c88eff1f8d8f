"""Rows of a kernel matrix: how alike test inputs are to all training inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from flipcert.engine.blocks import map_blocks
from flipcert.engine.buffers import Buffers
from flipcert.engine.magnitude import finite_sum, told_with
from flipcert.engine.mapped import give_back, row_pieces
from flipcert.engine.rounding import Factor
from flipcert.engine.sparse import reason_for, training_rows
from flipcert.engine.tiles import tiles, write_tiles
from flipcert.kernels.base import Kernel, as_kernel
from flipcert.linear.product import Product, ProductWeights
from flipcert.linear.weights import Weights

PRECOMPUTED = "precomputed"


def is_precomputed(kernel: Any) -> bool:
    """Whether ``kernel=`` says that inputs are rows of a kernel matrix already."""
    return isinstance(kernel, str) and kernel == PRECOMPUTED


def is_own_kernel(kernel: Kernel) -> bool:
    """Whether a kernel is one of this package; who derives another from it may compute something else."""
    return type(kernel).__module__.startswith("flipcert.kernels.")


def ready_kernel(kernel: Any, X: NDArray[Any]) -> Kernel | None:
    """The kernel that ``kernel=`` of an estimator names, for these training inputs; None if they are its matrix."""
    if not is_precomputed(kernel):
        return as_kernel(kernel)
    if X.shape[0] != X.shape[1]:
        raise ValueError(
            f'X must be square with kernel="precomputed" (the kernel of the training set with itself); '
            f"got shape {X.shape}."
        )
    return None


def why_of_kernel(kernel: Kernel | None, train: NDArray[Any], X: NDArray[Any], small: bool) -> str:
    """Say what makes the kernel of rows of X with training inputs so small, or so large, that it is out of range."""
    if kernel is None:
        return "values of the kernel are beyond the range of their type; rescale the kernel"
    others = training_rows(train)
    return reason_for(lambda rows, small: kernel.why(rows, others, small), X, small)


class KernelRows(Weights):
    """Weights that are the kernel of a test input with each training input.

    Parameters
    ----------
    kernel : Kernel or None
        None if test inputs are rows of the kernel matrix.
    X : ndarray of shape (n_samples, n_features)
        Training inputs.
    """

    comes_in_tiles = True

    def __init__(self, kernel: Kernel | None, X: NDArray[Any]) -> None:
        self.kernel = kernel
        self.X = training_rows(X)
        self.n_samples, self.dtype = X.shape[0], X.dtype
        # What the rounding of a kernel with the training inputs depends on; products know it themselves.
        self._train: Factor | None = None
        if kernel is not None and (kernel.n_features(X.shape[1]) is None or issparse(X)):
            self._train = kernel.factor(self.X)

    def form(self, X: NDArray[Any], out: NDArray[Any]) -> None:
        """Write the kernel of each row of X with all training inputs to ``out``."""
        write_tiles(self.tile_writer(X), out)

    def tile_writer(self, X: NDArray[Any]) -> Callable[[slice, NDArray[Any]], None]:
        """What writes the kernel of each row of X with a range of training inputs to an array."""

        def write(samples: slice, out: NDArray[Any]) -> None:
            if self.kernel is None:
                out[:] = X[:, samples]
                return
            inputs = self.X[samples]
            # Compiled kernels would be compiled again for parts of arrays.
            whole = out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)
            self.kernel.write(X, inputs, whole)
            give_back(inputs)
            if whole is not out:
                out[:] = whole

        return write

    def rounding(self, X: NDArray[Any], formed: NDArray[Any] | None = None) -> NDArray[np.float64]:
        """By how much rounding could move each row of the kernel; a kernel given as numbers is what it is."""
        if self.kernel is None:
            return np.zeros(X.shape[0])
        assert self._train is not None
        return self.kernel.rounding(X, self._train)

    def lost(self, X: NDArray[Any], sizes: Callable[[], NDArray[Any]]) -> NDArray[np.bool_]:
        """Rows of the kernel that underflowed."""
        if self.kernel is None or self._train is None:
            return super().lost(X, sizes)
        return self.kernel.lost(X, self._train, sizes())

    def why(self, X: NDArray[Any], small: bool) -> str:
        """What in the kernel makes its values so small, or so large."""
        return why_of_kernel(self.kernel, self.X, X, small)


def svm_weights(kernel: Kernel | None, X: NDArray[Any], n_jobs: int | None = 1) -> ProductWeights | KernelRows:
    """Weights of an SVM whose dual variables are all equal: the kernel, as one product if it is one."""
    if kernel is not None and (scale := kernel.product_scale(X.shape[1])) is not None:
        # A kernel that only scales inner products leaves all comparisons as they are: its weights can go unscaled, so
        # that whole numbers stay whole and ties stay ties.
        return ProductWeights(Product.of(training_rows(X), n_jobs=n_jobs), X.dtype, unit=scale)
    if kernel is not None and kernel.n_features(X.shape[1]) is not None:
        product = Product.of(training_rows(kernel.map_features(X)), kernel, n_jobs=n_jobs)
        return ProductWeights(product, X.dtype, training_rows(X))
    return KernelRows(kernel, X)


def largest_row_sum(kernel: Kernel | None, X: NDArray[Any], n_jobs: int | None) -> float:
    """Largest sum of magnitudes in a row of the training kernel, without ever holding the matrix."""
    with told_with(partial(why_of_kernel, kernel, X, X)):
        return finite_sum(_largest_row_sum(kernel, X, n_jobs))


def _largest_row_sum(kernel: Kernel | None, X: NDArray[Any], n_jobs: int | None) -> float:
    has_features = kernel is not None and kernel.n_features(X.shape[1]) is not None
    if kernel is not None and has_features and (total := _sum_of_features(kernel, X)) is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            return max(float((kernel.features(rows) @ total).max()) for rows in _some_rows(X))
    grid = tiles(X.shape[0])
    # Of single precision, small scales would leave nothing.
    scale = None if kernel is None else kernel.product_scale(X.shape[1])
    rows_of = KernelRows(kernel, X) if scale is None and not has_features else svm_weights(kernel, X)
    buffers = Buffers()

    def largest(block: NDArray[Any], n_rows: int) -> float:
        sums = np.zeros(block.shape[0])
        write = rows_of.tile_writer(rows_of.features(block))
        for samples in grid:
            with buffers.borrow((block.shape[0], samples.stop - samples.start), X.dtype) as rows:
                write(samples, rows)
                with np.errstate(over="ignore", invalid="ignore"):
                    sums += np.abs(rows, out=rows).sum(axis=1, dtype=np.float64)
        return float(sums[:n_rows].max())

    row_sum = max(map_blocks(largest, X, grid[0].stop * X.dtype.itemsize, n_jobs))
    buffers.close()
    return row_sum if scale is None else row_sum * scale


def _sum_of_features(kernel: Kernel, X: NDArray[Any]) -> NDArray[np.float64] | None:
    """Sum of the features of all rows, if none is negative: then no kernel is, and a row sum is one product."""
    total: NDArray[np.float64] = np.zeros(())
    for rows in _some_rows(X):
        features: Any = kernel.features(rows)
        if not np.all((features.data if issparse(features) else features) >= 0):
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            total = total + np.asarray(features.sum(axis=0, dtype=np.float64)).reshape(-1)
    return total


def _some_rows(X: Any) -> Iterator[Any]:
    """Rows of the training inputs, some at a time; sparse ones all together, as they are."""
    yield from [X] if issparse(X) else (rows for _, rows in row_pieces(X))

"""A kernel that was computed once and is read from a file, for models that differ in everything but their kernel."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from flipcert.engine.blocks import map_blocks
from flipcert.engine.files import UNFINISHED
from flipcert.engine.mapped import reserve
from flipcert.engine.rounding import Factor
from flipcert.engine.watch import Watcher, current_watcher
from flipcert.kernels.base import Kernel

# Bytes up to which the kernel of the training rows with each other is stored as well; only ridge regression needs it.
LARGEST_TRAINING_KERNEL = 2**32


class StoredKernel(Kernel):
    """The kernel of given rows, which are known to it by their numbers.

    Estimators are fitted on :attr:`train_rows` instead of the training inputs, and certify :attr:`test_rows`. Row
    numbers say nothing about the content that partitions go by, so an ensemble is given its ``partition`` by
    :func:`flipcert.assign_partitions`.

    Parameters
    ----------
    kernel : Kernel
        The kernel to compute.
    X_train, X_test : ndarray
        The rows.
    path : str or path-like
        File that the values are kept in; one that is there already is used again.
    n_jobs : int, optional
        Threads; all cores by default.

    See Also
    --------
    Kernel : What all kernels share.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_digits
    >>> import flipcert
    >>> from flipcert.kernels import NTK, StoredKernel
    >>> X, y = load_digits(return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kernel = StoredKernel(NTK(activation="relu"), X[::2], X[1::2], f"{folder}/kernel.npy")
    ...     for reg in (0.1, 10.0):
    ...         model = flipcert.KernelRidge(kernel, reg=reg).fit(kernel.train_rows, y[::2])
    ...         print(model.certify(kernel.test_rows).radius[:4])
    [4 2 1 2]
    [10  6  4  5]
    """

    def __init__(
        self,
        kernel: Kernel,
        X_train: NDArray[Any],
        X_test: NDArray[Any],
        path: str | os.PathLike[str],
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.X_train = X_train
        self.X_test = X_test
        self.path = path
        self.n_jobs = n_jobs

    def __sklearn_clone__(self) -> StoredKernel:
        return self

    def load(self) -> None:
        """Compute the values now, unless they are there."""
        assert self._values is not None

    @property
    def train_rows(self) -> NDArray[Any]:
        """Numbers of the training rows, as inputs of an estimator."""
        return self._numbers(0, self.X_train.shape[0])

    @property
    def test_rows(self) -> NDArray[Any]:
        """Numbers of the test rows."""
        return self._numbers(self.X_train.shape[0], self.X_train.shape[0] + self.X_test.shape[0])

    def __call__(self, X: NDArray[Any], Z: NDArray[Any] | None = None) -> NDArray[Any]:
        """Kernel matrix of rows given by number."""
        if Z is None and not self._holds_training_kernel and self._in_training(X):
            return self.kernel(self.X_train[_whole(X)])
        other = X if Z is None else Z
        values = np.empty((X.shape[0], other.shape[0]), self.X_train.dtype)
        self.write(X, other, values)
        return values

    def write(self, X: NDArray[Any], Z: NDArray[Any], out: NDArray[Any]) -> None:
        """Write the kernel of rows X with training rows Z to ``out``."""
        rows, columns = _whole(X), _whole(Z)
        if not self._holds_training_kernel:
            if self._in_training(X):
                self.kernel.write(self.X_train[rows], self.X_train[columns], out)
                return
            rows = rows - self.X_train.shape[0]
        first, last = int(rows[0]), int(rows[-1]) + 1
        if np.array_equal(rows, np.arange(first, last)):
            # Twice as fast, and other threads go on meanwhile.
            np.take(self._values[first:last], columns, axis=1, out=out, mode="clip")
        else:
            out[:] = self._values[rows[:, None], columns]

    def diag(self, X: NDArray[Any]) -> NDArray[Any]:
        """Kernel of each row with itself."""
        return self.kernel.diag(self._inputs(X))

    def rounding(self, X: NDArray[Any], train: Factor) -> NDArray[np.float64]:
        """Rounding of the kernel that was computed."""
        numbers, n_train = _whole(X), self.X_train.shape[0]
        if np.any(numbers < n_train):
            return self.kernel.rounding(self._inputs(X), train)
        # Each model of an ensemble asks, and has its share of what all training rows come to.
        whole = self._train.frobenius
        share = train.frobenius / whole if 0 < whole < np.inf else 1.0
        return share * self._test_rounding[numbers - n_train]

    def lost(self, X: NDArray[Any], train: Factor, sizes: NDArray[Any]) -> NDArray[np.bool_]:
        """What was lost of the kernel that was computed."""
        return self.kernel.lost(self._inputs(X), train, sizes)

    def why(self, X: NDArray[Any], Z: NDArray[Any], small: bool) -> str:
        """What the kernel that was computed says."""
        return self.kernel.why(self._inputs(X), self._inputs(Z), small)

    def factor(self, Z: NDArray[Any]) -> Factor:
        """Training inputs behind the numbers."""
        return self.kernel.factor(self._inputs(Z))

    @cached_property
    def _test_rounding(self) -> NDArray[np.float64]:
        """Rounding of all test rows, with all training rows."""
        return self.kernel.rounding(self.X_test, self._train)

    @cached_property
    def _train(self) -> Factor:
        return self.kernel.factor(self.X_train)

    @cached_property
    def _values(self) -> NDArray[Any]:
        """The stored values, computed if they are not there."""
        if not os.path.exists(self.path):
            self._store()
        return np.asarray(np.load(self.path, mmap_mode="r"))

    def _store(self) -> None:
        """Compute all values, block by block, into a file that takes its name when it is complete."""
        n_train, dtype = self.X_train.shape[0], self.X_train.dtype
        numbers = self.test_rows
        if self._holds_training_kernel:
            numbers = np.concatenate([self.train_rows, numbers])
        unfinished = f"{os.fspath(self.path)}{UNFINISHED}"
        folder = os.path.dirname(os.path.abspath(unfinished))
        values = np.lib.format.open_memmap(unfinished, mode="w+", dtype=dtype, shape=(numbers.shape[0], n_train))
        try:
            with open(unfinished, "r+b") as file:
                reserve(file, os.path.getsize(unfinished), folder, "keep the kernel in another folder")
        except ValueError:
            os.unlink(unfinished)
            raise

        def store(start: int, rows: NDArray[Any]) -> None:
            values[start : start + rows.shape[0]] = rows

        self.compute(numbers, current_watcher().progress("rows of the kernel"), store)
        values.flush()
        os.replace(unfinished, self.path)

    def compute(
        self,
        numbers: NDArray[Any],
        watcher: Watcher | None = None,
        consume: Callable[[int, NDArray[Any]], None] | None = None,
    ) -> list[NDArray[Any]]:
        """Compute rows, given by number, anew: blocks of them, unless ``consume(start, rows)`` takes each."""
        bytes_per_row = self.X_train.shape[0] * self.X_train.dtype.itemsize
        return map_blocks(self._rows, numbers, bytes_per_row, self.n_jobs, watcher, consume)

    def _rows(self, block: NDArray[Any], n_rows: int) -> NDArray[Any]:
        """Rows of the kernel, given by number, with all training rows."""
        rows = np.empty((block.shape[0], self.X_train.shape[0]), self.X_train.dtype)
        inputs = self._inputs(block)
        self.kernel.write(inputs, self.X_train, rows)
        own = _whole(block[:n_rows])
        same = own < self.X_train.shape[0]
        # The kernel of a row with itself is known better than from a product.
        rows[np.flatnonzero(same), own[same]] = self.kernel.diag(inputs[:n_rows][same])
        return rows[:n_rows]

    @property
    def _holds_training_kernel(self) -> bool:
        return self.X_train.shape[0] ** 2 * self.X_train.dtype.itemsize <= LARGEST_TRAINING_KERNEL

    def _in_training(self, X: NDArray[Any]) -> bool:
        return X.shape[0] > 0 and X[0, 0] < self.X_train.shape[0]

    def _inputs(self, X: NDArray[Any]) -> NDArray[Any]:
        """The inputs that numbers stand for, all of the training set or all of the test set, or both."""
        numbers, n_train = _whole(X), self.X_train.shape[0]
        inputs = np.empty((numbers.size, self.X_train.shape[1]), self.X_train.dtype)
        same = numbers < n_train
        inputs[same] = self.X_train[numbers[same]]
        inputs[~same] = self.X_test[numbers[~same] - n_train]
        return inputs

    def _numbers(self, start: int, stop: int) -> NDArray[Any]:
        for name, own in (("X_train", self.X_train), ("X_test", self.X_test)):
            if issparse(own):
                raise TypeError(
                    f"{name} must be dense to store its kernel; got a sparse {type(own).__name__}. Pass "
                    f"{name}.toarray(), or give models the kernel itself."
                )
        # Numbers of the precision of the inputs, so that weights have it as well.
        return np.arange(start, stop, dtype=np.int64).astype(self.X_train.dtype)[:, None]


def _whole(X: NDArray[Any]) -> NDArray[np.int64]:
    return X[:, 0].astype(np.int64)

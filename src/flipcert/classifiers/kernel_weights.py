"""What kernel classifiers share: training inputs, a kernel (given, by name or precomputed), rows of its matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags

from flipcert.classifiers.label_linear import LabelLinearClassifier
from flipcert.engine.mapped import give_back
from flipcert.engine.rounding import Factor
from flipcert.kernels.base import Kernel, as_kernel


class KernelClassifier(LabelLinearClassifier):
    """A label-linear classifier whose weights come from a kernel."""

    kernel: Any

    def __sklearn_tags__(self) -> Tags:
        """Tell cross-validation to slice both axes of a precomputed kernel."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        return tags

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _fit_kernel(self, X: NDArray[Any]) -> None:
        """Keep the training inputs and make the kernel ready."""
        if self._precomputed and X.shape[0] != X.shape[1]:
            raise ValueError(
                f'X must be square with kernel="precomputed" (the kernel of the training set with itself); '
                f"got shape {X.shape}."
            )
        self.X_fit_ = X
        self._kernel: Kernel | None = None if self._precomputed else as_kernel(self.kernel)
        # What the rounding of a kernel with the training inputs depends on; products know it themselves.
        self._train: Factor | None = None
        if self._kernel is not None and self._kernel.n_features(X.shape[1]) is None:
            self._train = self._kernel.factor(X)

    def _kernel_writer(self, X: NDArray[Any]) -> Callable[[slice, NDArray[Any]], None]:
        """What writes the kernel of each row of X with a range of training inputs to an array."""

        def write(samples: slice, out: NDArray[Any]) -> None:
            if self._kernel is None:
                out[:] = X[:, samples]
                return
            inputs = self.X_fit_[samples]
            # Compiled kernels would be compiled again for parts of arrays.
            whole = out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)
            self._kernel.write(X, inputs, whole)
            give_back(inputs)
            if whole is not out:
                out[:] = whole

        return write

    def _lost(self, X: NDArray[Any], sizes: Callable[[], NDArray[Any]]) -> NDArray[np.bool_]:
        if self._product is not None:
            return self._product.lost(X)
        if self._kernel is None or self._train is None:
            return super()._lost(X, sizes)
        return self._kernel.lost(X, self._train, sizes())

    def _why(self, X: NDArray[Any], small: bool) -> str:
        if self._kernel is None:
            return "values of the kernel are beyond the range of their type; rescale the kernel"
        return self._kernel.why(X, self.X_fit_, small)

    def _kernel_rounding(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """By how much rounding could move each row of the kernel; a kernel given as numbers is what it is."""
        if self._kernel is None:
            return np.zeros(X.shape[0])
        assert self._train is not None
        return self._kernel.rounding(X, self._train)

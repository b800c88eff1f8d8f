"""What all kernels share, and how a user's ``kernel=`` becomes one."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Callable
from enum import Enum
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from flipcert.engine.magnitude import BY_FEATURES, smallest_whole
from flipcert.engine.mapped import is_large, mapped_rows
from flipcert.engine.rounding import Factor
from flipcert.kernels.norms import onto_sphere


class Bounded(Enum):
    """By what it is known how large the kernel of a test input with any other input can be."""

    ITSELF = "itself"
    NORM = "norm"
    NOTHING = "nothing"


class Kernel(BaseEstimator):  # type: ignore[misc]
    """A positive semi-definite function of two inputs, with parameters that a grid search can set.

    See Also
    --------
    RBF : A small one, as an example.

    Examples
    --------
    >>> import numpy as np
    >>> from flipcert.kernels import Kernel
    >>> class Laplace(Kernel):
    ...     def __call__(self, X, Z=None):
    ...         Z = X if Z is None else Z
    ...         return np.exp(-np.abs(X[:, None] - Z[None]).sum(axis=2))
    >>> import flipcert
    >>> X, y = np.array([[0.0], [1.0], [4.0], [5.0], [6.0]]), [0, 0, 1, 1, 1]
    >>> flipcert.KernelRidge(Laplace(), reg=10.0, classes=[0, 1]).fit(X, y).certify([[5.0]]).radius
    array([0])
    """

    # Whether training inputs may be ``SparseRows``, which only products are known with.
    takes_sparse: ClassVar[bool] = False

    def validate(self) -> None:
        """Raise ValueError if a parameter makes no sense."""

    @property
    def bounded_by(self) -> Bounded:
        """What bounds the kernel of an input with all others: itself, their norm, or nothing that is known."""
        return Bounded.NOTHING

    def largest(self, X: NDArray[Any], max_norm: float | None) -> NDArray[np.float64]:
        """Bound the magnitude of the kernel of each row with any input of at most this norm, as it is computed."""
        raise AttributeError(f"{self!r} has no bound that is known.")

    def most_alike(self, X: NDArray[Any], max_norm: float | None) -> NDArray[Any]:
        """For each row an input, of at most this norm, with which its kernel is as large as is known to be possible."""
        assert max_norm is not None, "checked before"
        return onto_sphere(X, max_norm)

    def product_scale(self, n_inputs: int) -> float | None:
        """The factor that turns inner products into the kernel, if that is all it does."""
        return None

    @abstractmethod
    def __call__(self, X: NDArray[Any], Z: NDArray[Any] | None = None) -> NDArray[Any]:
        """Kernel matrix of shape (n_x, n_z), of the inputs' own precision; Z=None means X against itself."""

    def write(self, X: NDArray[Any], Z: Any, out: NDArray[Any]) -> None:
        """Write the kernel matrix of X with Z to ``out``; a kernel that can do so without a second matrix should.

        Z is an array or, where the kernel takes sparse inputs, ``SparseRows``.
        """
        out[:] = self(X, Z)

    @abstractmethod
    def diag(self, X: NDArray[Any]) -> NDArray[Any]:
        """Kernel of each row with itself."""

    def n_features(self, n_inputs: int) -> int | None:
        """Length of the feature map for inputs of this width; None if it is not finite."""
        return None

    def features(self, X: NDArray[Any]) -> NDArray[Any]:
        """Rows whose inner products are the kernel."""
        raise AttributeError(f"{self!r} has no finite feature map.")

    def map_features(self, X: NDArray[Any]) -> NDArray[Any]:
        """The features of a training set; in a scratch file, if the training set is larger than memory."""
        few = X[:1]
        if not is_large(X) or (own := self.features(few)) is few:
            return self.features(X)
        return mapped_rows(self.features, X, own.shape[1], own.dtype)

    def factor(self, Z: NDArray[Any]) -> Factor:
        """All that rounding depends on in training inputs Z."""
        return Factor.of(Z)

    def rounding(self, X: NDArray[Any], train: Factor) -> NDArray[np.float64]:
        """Estimate by how much rounding could move each row of ``kernel(X, Z)`` (see ``flipcert.engine.rounding``)."""
        return train.product_error(X)

    def lost(self, X: NDArray[Any], train: Factor, sizes: NDArray[Any]) -> NDArray[np.bool_]:
        """Rows of ``kernel(X, Z)`` that underflowed; ``sizes`` tells how large each row is."""
        return np.zeros(X.shape[0], np.bool_)

    def why(self, X: NDArray[Any], Z: NDArray[Any], small: bool) -> str:
        """Say what makes ``kernel(X, Z)`` so small, or so large, that it is out of range, and what to do about it."""
        return BY_FEATURES


class CallableKernel(Kernel):
    """A user's function ``k(X, Z)``."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, X: NDArray[Any], Z: NDArray[Any] | None = None) -> NDArray[Any]:
        """Call the function and check what comes back."""
        other = X if Z is None else Z
        values = np.asarray(self.function(X, other))
        if values.dtype.kind not in "fiub":
            raise ValueError(f"kernel returned values of type {values.dtype}; they must be real numbers.")
        if values.shape != (X.shape[0], other.shape[0]):
            raise ValueError(
                f"kernel returned an array of shape {values.shape}; it must return (n_x, n_z) = "
                f"{(X.shape[0], other.shape[0])}."
            )
        values = np.ascontiguousarray(values, X.dtype)
        if not np.all(np.isfinite(values)):
            raise ValueError(f"kernel returned {values[~np.isfinite(values)][0]}; its values must be finite.")
        return values

    def diag(self, X: NDArray[Any]) -> NDArray[Any]:
        """Kernel of each row with itself, one row at a time."""
        return np.array([self(row[None])[0, 0] for row in X], dtype=X.dtype)

    def rounding(self, X: NDArray[Any], train: Factor) -> NDArray[np.float64]:
        """Assume that the values err like a sum of as many terms as there are features."""
        typical = np.sqrt(np.abs(self.diag(X).astype(np.float64)))
        estimate = train.unit * np.sqrt(train.shape[0] * train.shape[1]) * typical * max(1.0, float(typical.max()))
        # Where all values are next to zero, nobody knows whether they underflowed.
        return np.maximum(estimate, smallest_whole(X.dtype))

    def why(self, X: NDArray[Any], Z: NDArray[Any], small: bool) -> str:
        """Only its author knows."""
        return "values of the kernel function are beyond the range of their type; rescale them, or the features"


def as_kernel(kernel: Any) -> Kernel:
    """Turn ``kernel=`` of an estimator into a kernel."""
    from flipcert.kernels import NAMED

    if kernel is None:
        return NAMED["ntk"]()
    if isinstance(kernel, Kernel):
        kernel.validate()
        # As it is now: who changes its parameters later must not change models that were fitted with it.
        return clone(kernel)
    named = {name: kind for name, kind in NAMED.items() if not _needs_parameters(kind)}
    if isinstance(kernel, str) and kernel in named:
        return named[kernel]()
    if callable(kernel):
        return CallableKernel(kernel)
    names = ", ".join(repr(name) for name in [*named, "precomputed"])
    raise ValueError(f"kernel must be None, one of {names}, a kernel object or a callable; got {kernel!r}.")


def _needs_parameters(kind: type[Kernel]) -> bool:
    return any(parameter.default is parameter.empty for parameter in inspect.signature(kind).parameters.values())

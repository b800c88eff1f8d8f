"""The Gaussian kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.engine._jit.sparse import squares_in_order
from flipcert.engine.magnitude import BY_FEATURES, smallest_whole
from flipcert.engine.rounding import Factor, quantum, row_norms, squares_are_exact
from flipcert.engine.sparse import SparseRows
from flipcert.kernels.base import Bounded, Kernel
from flipcert.kernels.norms import norm_rounding, onto_sphere, product_rounding
from flipcert.kernels.sparse import any_sparse, sparse_kernel
from flipcert.labels.validation import check_inputs, check_number


class RBF(Kernel):
    r"""Gaussian kernel: :math:`k(x, z) = \exp(-\gamma \|x - z\|^2)`.

    Parameters
    ----------
    gamma : float, optional
        Inverse squared width; one over the number of features by default.

    See Also
    --------
    Linear : Inner products.

    Examples
    --------
    >>> import numpy as np
    >>> from flipcert.kernels import RBF
    >>> RBF(gamma=1.0)(np.array([[0.0]]), np.array([[0.0], [1.0]])).round(4)
    array([[1.    , 0.3679]])
    """

    takes_sparse = True

    def __init__(self, gamma: float | None = None) -> None:
        self.gamma = gamma

    def __call__(self, X: NDArray[Any], Z: NDArray[Any] | None = None) -> NDArray[Any]:
        """Kernel matrix of X with Z."""
        from sklearn.metrics.pairwise import rbf_kernel  # loads much that other kernels do not need

        if any_sparse(X, Z):
            return sparse_kernel(self, X, Z)
        inputs = check_inputs(X, sparse=True)
        other = None if Z is None else check_inputs(Z, sparse=True)
        # Inputs that are infinitely far from others are like none of them, unless nobody knows how far they are.
        with np.errstate(over="ignore", invalid="ignore"):
            values = np.ascontiguousarray(rbf_kernel(inputs, other, gamma=self._scale(inputs)), inputs.dtype)
        self._refuse_unknown(values, inputs)
        return values

    def write(self, X: NDArray[Any], Z: Any, out: NDArray[Any]) -> None:
        """Write the kernel matrix of X with Z to ``out``."""
        if not isinstance(Z, SparseRows):
            super().write(X, Z, out)
            return
        # In double precision, as scikit-learn measures distances; those of equal inputs are zero to the last bit.
        inputs = X.astype(np.float64, copy=False)
        distances = out if out.dtype == np.float64 and out.flags.c_contiguous else np.empty(out.shape)
        with np.errstate(over="ignore", invalid="ignore"):
            Z.multiply(inputs, distances)
            distances *= -2.0
            distances += squares_in_order(inputs)[:, None]
            distances += Z.squares
            if distances is not out:
                out[:] = distances
            np.maximum(out, 0.0, out=out)
            out *= -self._scale(X)
        np.exp(out, out=out)
        self._refuse_unknown(out, X)

    def _refuse_unknown(self, values: NDArray[Any], X: NDArray[Any]) -> None:
        """Raise ValueError if nobody knows how far some inputs are from others."""
        if not np.isnan(values).any():
            return
        if np.isfinite(row_norms(X).max() ** 2):
            raise ValueError(f"gamma must not be so large that it overflows {X.dtype}; got {self._scale(X)!r}.")
        raise ValueError("squared distances of the inputs overflowed; rescale the features.")

    def validate(self) -> None:
        """Check gamma."""
        if self.gamma is not None:
            check_number(self.gamma, "gamma")

    def diag(self, X: NDArray[Any]) -> NDArray[Any]:
        """One for every row."""
        inputs = check_inputs(X, sparse=True)
        return np.ones(inputs.shape[0], inputs.dtype)

    @property
    def bounded_by(self) -> Bounded:
        """No input is more like another than that itself."""
        return Bounded.ITSELF

    def largest(self, X: NDArray[Any], max_norm: float | None) -> NDArray[np.float64]:
        """One, as an input is as like itself as can be; less, where it is longer than inputs may be."""
        if max_norm is None:
            return np.ones(X.shape[0])
        norms, longest = row_norms(X), max_norm * (1.0 + norm_rounding(X.shape[1], X.dtype))
        with np.errstate(over="ignore", invalid="ignore"):
            away = np.maximum(norms * (1.0 - norm_rounding(X.shape[1], np.float64)) - longest, 0.0)
            unsure = 4.0 * product_rounding(X.shape[1] + 8, X.dtype) * (norms + longest) ** 2
            bound = np.exp(self._scale(X) * (unsure - away**2)) * (1.0 + 8.0 * float(np.finfo(X.dtype).eps))
        return np.where((away > 0.0) & (bound < 1.0), bound, 1.0)

    def most_alike(self, X: NDArray[Any], max_norm: float | None) -> NDArray[Any]:
        """The input itself, or what is nearest to it among those of the largest norm."""
        if max_norm is None:
            return X
        return np.where((row_norms(X) <= max_norm)[:, None], X, onto_sphere(X, max_norm))

    def rounding(self, X: NDArray[Any], train: Factor) -> NDArray[np.float64]:
        """Rounding of the squared distances, which are sums of products too."""
        exact = (train.product_error(X) == 0.0) & squares_are_exact(row_norms(X), quantum(X))
        exact &= bool(squares_are_exact(train.largest_norm, train.quantum))
        distance_error = train.unit * np.sqrt(train.shape[1]) * (row_norms(X) + train.largest_norm) ** 2
        return np.where(exact, 0.0, self._scale(X) * distance_error * np.sqrt(train.shape[0]))

    def lost(self, X: NDArray[Any], train: Factor, sizes: NDArray[Any]) -> NDArray[np.bool_]:
        """Rows so far from all training inputs that their exponentials vanish."""
        return np.asarray(sizes < smallest_whole(X.dtype))

    def why(self, X: NDArray[Any], Z: NDArray[Any], small: bool) -> str:
        """Too large a gamma, or inputs too far apart for it."""
        if not small:
            return BY_FEATURES
        return (
            f"gamma={self._scale(X):g} times the squared distances of the inputs is so large that all exponentials "
            "vanish; take a smaller gamma, or rescale the features"
        )

    def _scale(self, X: NDArray[Any]) -> float:
        return 1.0 / X.shape[1] if self.gamma is None else check_number(self.gamma, "gamma")

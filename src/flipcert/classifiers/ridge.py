"""Kernel ridge regression on one-hot labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from flipcert.classifiers.kernel_weights import KernelClassifier
from flipcert.validation import check_number


class KernelRidge(KernelClassifier):
    r"""Kernel ridge regression on one-hot labels; the largest output is the prediction.

    The weights are :math:`w(t) = (Q + \lambda I)^{-1} Q(:, t)` and never see a label, so :meth:`certify` is exact.
    Where the kernel has finite features :math:`\Phi`, fewer than there are samples, the same weights come from
    :math:`w(t) = \Phi (\Phi^\top \Phi + \lambda I)^{-1} \phi(t)`, a much smaller system. With a neural tangent kernel
    this is an infinitely wide network trained on regularised squared loss.

    Parameters
    ----------
    kernel : None, str, kernel object or callable, default=None
        ``None`` is :class:`flipcert.kernels.NTK`; also "ntk", "linear", "rbf", "precomputed", any scikit-learn kernel
        or callable ``k(X, Z)``.
    reg : float, default=1.0
        Regularisation :math:`\lambda`, positive.
    classes : array-like, optional
        The whole label space, if it has classes that ``y`` may lack. It is a set: order is ignored.
    n_jobs : int, optional
        Threads; all cores by default.

    Attributes
    ----------
    classes_ : ndarray
        The label space, sorted; ties go to the class that comes first.
    solver_ : {"dual", "primal"}
        Whether the system of the samples or that of the features was solved.

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
        if self.solver_ == "primal":
            assert self._kernel is not None
            self._features = self._kernel.features(X)
            wide = self._features.astype(np.float64, copy=False)
            system = wide.T @ wide
        else:
            system = self._dual_system(X)
        self._spread = float(np.abs(system).sum(axis=1).max())
        if not np.isfinite(self._spread):
            raise ValueError("the kernel of the training set overflowed; rescale the features.")
        system[np.diag_indices_from(system)] += reg
        try:
            self._factor = cho_factor(system, lower=True, overwrite_a=True)
        except LinAlgError:
            raise ValueError(
                f"the kernel matrix plus reg={reg:g} is not positive definite; the kernel is not positive "
                "semi-definite on this data, or reg is too small for its precision: raise reg."
            ) from None

    def _dual_system(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Training kernel in double precision, symmetric to the last bit."""
        values = X if self._kernel is None else self._kernel(X)
        system = np.array(values, np.float64, order="F")
        if self._kernel is None and not np.allclose(system, system.T, rtol=1e-5, atol=1e-8 * np.abs(system).max()):
            raise ValueError('X must be symmetric with kernel="precomputed" (the kernel of the training set).')
        return system

    def _weights(self, X: NDArray[Any]) -> NDArray[Any]:
        if self.solver_ == "primal":
            assert self._kernel is not None
            features = self._kernel.features(X).astype(np.float64, copy=False)
            coefficients = cho_solve(self._factor, features.T).T
            return coefficients.astype(self._dtype) @ self._features.T
        rows = self._kernel_rows(X).astype(np.float64, copy=False)
        return np.ascontiguousarray(cho_solve(self._factor, rows.T).T, self._dtype)

    def _rounding(self, X: NDArray[Any], weights: NDArray[Any]) -> NDArray[np.float64]:
        """Rounding of the kernel rows, magnified by the solve at most 1/reg times, and that of the solve itself."""
        condition = (self._spread + self.reg) / self.reg
        unit = float(np.finfo(np.float64).eps) / 2
        sizes = np.sqrt(np.einsum("ij,ij->i", weights, weights, dtype=np.float64))
        solve = unit * condition * np.sqrt(self._factor[0].shape[0]) * sizes
        stored = float(np.finfo(weights.dtype).eps) / 2 * np.sqrt(self._factor[0].shape[0]) * sizes
        return self._kernel_rounding(X) / self.reg + solve + stored

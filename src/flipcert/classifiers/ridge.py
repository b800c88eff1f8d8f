"""Kernel ridge regression on one-hot labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from flipcert.classifiers.kernel_weights import KernelClassifier
from flipcert.classifiers.product import Product
from flipcert.classifiers.ridge_features import largest_row_sum, weight_map
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
        self._features_product: Product | None = None
        try:
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
        right, spread = weight_map(self._kernel.features(self.X_fit_), reg, self.n_jobs)
        unit = float(np.finfo(np.float64).eps) / 2
        error = unit * np.sqrt(min(right.shape)) * (spread + reg) / reg + float(np.finfo(right.dtype).eps) / 2
        self._features_product = Product.of(right, self._kernel, error)

    def _fit_dual(self, X: NDArray[Any], reg: float) -> None:
        values = X if self._kernel is None else self._kernel(X)
        system = np.array(values, np.float64, order="F")
        if self._kernel is None and not np.allclose(system, system.T, rtol=1e-5, atol=1e-8 * np.abs(system).max()):
            raise ValueError('X must be symmetric with kernel="precomputed" (the kernel of the training set).')
        self._spread = largest_row_sum(system)
        system[np.diag_indices_from(system)] += reg
        self._factor = cho_factor(system, lower=True, overwrite_a=True)

    @property
    def _product(self) -> Product | None:
        return self._features_product

    def _weights(self, X: NDArray[Any], out: NDArray[Any]) -> None:
        if self._features_product is not None:
            self._features_product.weights(X, out)
            return
        self._kernel_rows(X, out)
        out[:] = cho_solve(self._factor, out.T.astype(np.float64)).T

    def _rounding(self, X: NDArray[Any], weights: NDArray[Any]) -> NDArray[np.float64]:
        """Rounding of the kernel rows, magnified by the solve at most 1/reg times, and that of the solve itself."""
        if self._features_product is not None:
            return self._features_product.rounding(X)[:, 0]
        condition = (self._spread + self.reg) / self.reg
        unit = float(np.finfo(np.float64).eps) / 2
        sizes = np.sqrt(np.einsum("ij,ij->i", weights, weights, dtype=np.float64))
        solve = unit * condition * np.sqrt(self._factor[0].shape[0]) * sizes
        stored = float(np.finfo(weights.dtype).eps) / 2 * np.sqrt(self._factor[0].shape[0]) * sizes
        return self._kernel_rounding(X) / self.reg + solve + stored

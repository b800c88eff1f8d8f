"""Kernel ridge regression on one-hot labels."""

from __future__ import annotations

from functools import partial
from typing import Any

from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError
from scipy.sparse import issparse

from flipcert.classifiers.kernel_classifier import KernelClassifier
from flipcert.engine.magnitude import told_with
from flipcert.labels.validation import check_number
from flipcert.linear.kernel_rows import KernelRows, why_of_kernel
from flipcert.linear.ridge_features import RidgeWeights
from flipcert.linear.solved_system import SolvedSystem
from flipcert.linear.sparse_ridge import SparseRidge
from flipcert.linear.weights import Weights


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
        attacker, who can remove one of three or more classes by flipping all its labels: certificates end there.
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

    See Also
    --------
    KernelSVM : The kernel mean, also certified against rows that come and go.
    LabelSpreading : Labels that flow along a graph of neighbours.
    PartitionEnsemble : A vote over parts of the training set.

    References
    ----------
    Mohgaonkar, Gosch, Sabanayagam, Ghoshdastidar and Günnemann, *Exact Certification of Neural Networks and
    Partition Aggregation Ensembles Against Label Poisoning*, 2026.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import flipcert
    >>> X, y = load_iris(return_X_y=True)
    >>> model = flipcert.KernelRidge(kernel="rbf", reg=0.1).fit(X[::2], y[::2])
    >>> model.certify(X[1::2]).radius[:5]
    array([3, 3, 2, 7, 3])
    """

    _why_rows_must_stay = "the weights of all samples change when a row comes or goes"

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

    def _make_weights(self, X: NDArray[Any]) -> Weights:
        reg = check_number(self.reg, "reg")
        self._fit_kernel(X)
        n_features = None if self._kernel is None else self._kernel.n_features(X.shape[1])
        self.solver_ = "dual" if n_features is None or n_features >= X.shape[0] else "primal"
        # The kernel is what can be out of range before a system is solved.
        try:
            with told_with(partial(why_of_kernel, self._kernel, X, X)):
                if self._kernel is not None and n_features is not None and not (issparse(X) and self.solver_ == "dual"):
                    self.precision_ = "float64"
                    if issparse(X):
                        return SparseRidge(self._kernel, X, reg)
                    return RidgeWeights(self._kernel, X, reg, self.n_jobs)
                solved = SolvedSystem(KernelRows(self._kernel, X), reg, self.n_jobs)
        except LinAlgError:
            raise ValueError(
                f"the kernel matrix plus reg={reg:g} is not positive definite; the kernel is not positive "
                "semi-definite on this data, or reg is too small for its precision: raise reg."
            ) from None
        self.precision_ = solved.precision
        return solved

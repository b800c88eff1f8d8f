"""Kernel support vector machines with small C."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from flipcert.classifiers.kernel_classifier import KernelClassifier
from flipcert.labels.threats import Threat
from flipcert.labels.training_set import TrainingSet
from flipcert.labels.validation import check_number
from flipcert.linear.insertions import Insertions
from flipcert.linear.kernel_rows import largest_row_sum, svm_weights
from flipcert.linear.weights import Weights


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
        attacker, who can remove one of three or more classes by flipping all its labels: certificates end there.
    n_jobs : int, optional
        Threads; all cores by default.
    max_norm : float, optional
        The largest norm that an input may have, of the training set or of a row that an attacker adds: the threats
        "insertions", "replacements" and "edits" need it with kernels that grow with their inputs, "linear" and NTK. A
        training input that is longer is refused.

    Attributes
    ----------
    classes_ : ndarray
        The label space, sorted; ties go to the class that comes first.
    C_max_ : float
        The largest C of the small-C regime, :math:`1 / \max_i \sum_j |Q_{ij}|`, computed when first asked for.

    See Also
    --------
    KernelRidge : As exact, and mostly more accurate.
    MilpSVM : Any C, on small training sets.

    References
    ----------
    Mohgaonkar, Gosch, Sabanayagam, Ghoshdastidar and Günnemann, *Exact Certification of Neural Networks and
    Partition Aggregation Ensembles Against Label Poisoning*, 2026.

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
        max_norm: float | None = None,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.classes = classes
        self.n_jobs = n_jobs
        self.max_norm = max_norm

    def _check_parameters(self) -> None:
        if self.max_norm is not None:
            check_number(self.max_norm, "max_norm")

    def _fit(self, training: TrainingSet) -> None:
        super()._fit(training)
        insertions = Insertions(
            self._kernel,
            self.X_fit_,
            None if self.max_norm is None else float(self.max_norm),
            None if self._takes_any_C else float(self.C),
        )
        insertions.refuse_long_inputs()
        self.label_linear_ = replace(self.label_linear_, insertions=insertions)

    def _refusal(self, threat: Threat) -> str | None:
        if not threat.changes_rows:
            return super()._refusal(threat)
        assert self.label_linear_.insertions is not None, "fitted"
        return self.label_linear_.insertions.refusal(threat)

    @property
    def _takes_any_C(self) -> bool:
        return isinstance(self.C, str) and self.C == "auto"

    def _make_weights(self, X: NDArray[Any]) -> Weights:
        self._fit_kernel(X)
        self.__dict__.pop("_largest_row_sum", None)
        if not self._takes_any_C:
            C = check_number(self.C, 'C, if not "auto",')
            # Row sums are rounded; a C that is too large only by that much is at the threshold, not above it.
            rounding = X.shape[0] * float(np.finfo(np.float64).eps)
            if C * self._largest_row_sum > 1 + rounding:
                raise ValueError(
                    f"C={self.C:g} is above the small-C threshold C_max_={self._threshold:.6g} of this training set, "
                    'where the certificate ends; use C="auto" or a smaller C.'
                )
        return svm_weights(self._kernel, X, self.n_jobs)

    @property
    def C_max_(self) -> float:
        """The largest C for which the labels cannot change the dual variables."""
        check_is_fitted(self)
        return self._threshold

    @property
    def _threshold(self) -> float:
        return 1.0 / self._largest_row_sum if self._largest_row_sum > 0 else np.inf

    @cached_property
    def _largest_row_sum(self) -> float:
        return largest_row_sum(self._kernel, self.X_fit_, self.n_jobs)

"""Any verifier that answers "is this prediction robust at r flips?", as a classifier with certificates."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from flipcert.classifiers.certified_by_costs import CertifiedByCosts
from flipcert.labels.encoding import class_indices, predicted_indices, refuse_other_classes
from flipcert.labels.steps import prefix_of_final_step, require_classifier, takes_a_kernel_matrix
from flipcert.labels.training_set import TrainingSet
from flipcert.labels.validation import check_integers
from flipcert.results.flip_costs import FlipCosts

IsRobust = Callable[[Any, NDArray[Any], int], ArrayLike]


def _has_scores(model: FixedBudget) -> bool:
    """Whether the classifier ranks the classes."""
    estimator = getattr(model, "estimator_", model.estimator)
    return hasattr(estimator, "decision_function") or hasattr(estimator, "predict_proba")


class FixedBudget(CertifiedByCosts):
    """A classifier with a verifier that answers for a fixed number of flips.

    The largest number of flips that is proven harmless is searched by doubling and bisection. Since the verifier does
    not say which class an attack leads to, the answer stands for every class. In a :class:`flipcert.PartitionEnsemble`
    each base classifier is verified on its own partition.

    Parameters
    ----------
    estimator : estimator
        Any deterministic scikit-learn classifier.
    is_robust : callable
        ``is_robust(model, X, n_flips)`` with the fitted classifier returns one bool for each row of X: True only if it
        is proven that no change of at most ``n_flips`` training labels, to whatever classes, changes the prediction.
        False claims nothing. Every True is relied upon; one at r flips counts for fewer as well.
    max_flips : int, optional
        Where the search ends; the number of training labels by default.
    classes : array-like, optional
        The whole label space, a set. Give it where you know it: read from ``y`` by default, it is in the hands of an
        attacker, who can remove one of three or more classes by flipping all its labels: certificates end there.

    Attributes
    ----------
    classes_ : ndarray
        The label space, sorted.
    estimator_ : estimator
        The fitted classifier. If all labels are the same, one that always predicts this class, with radius 0, unless
        the classifier has a parameter ``classes`` to be told of the others.

    See Also
    --------
    LabelLinearClassifier : Weights of your own, where scores are linear in the labels.

    Examples
    --------
    Among k nearest neighbours a flip closes the lead of the first class by two votes at most:

    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> import flipcert
    >>> def is_robust(model, X, n_flips):
    ...     votes = np.sort(model.predict_proba(X) * model.n_neighbors, axis=1).round()
    ...     return votes[:, -1] - votes[:, -2] > 2 * n_flips
    >>> X, y = load_iris(return_X_y=True)
    >>> model = flipcert.FixedBudget(KNeighborsClassifier(15), is_robust).fit(X[::2], y[::2])
    >>> model.certify(X[1::2]).radius[25:30]
    array([4, 6, 5, 6, 6])
    """

    _why_rows_must_stay = "a function that was asked about labels says nothing about rows that come or go"

    def __init__(
        self,
        estimator: Any,
        is_robust: IsRobust,
        max_flips: int | None = None,
        classes: ArrayLike | None = None,
    ) -> None:
        self.estimator = estimator
        self.is_robust = is_robust
        self.max_flips = max_flips
        self.classes = classes

    def __sklearn_tags__(self) -> Tags:
        """Tell cross-validation whether the classifier takes a precomputed kernel."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = takes_a_kernel_matrix(self.estimator)
        return tags

    def _check_parameters(self) -> None:
        require_classifier(self.estimator, "SVC()")
        if not callable(self.is_robust):
            raise ValueError(f"is_robust must be a function of (model, X, n_flips); got {self.is_robust!r}.")

    def _fit(self, training: TrainingSet) -> None:
        if self.max_flips is not None:
            most = int(check_integers(self.max_flips, "max_flips", minimum=0, ndim=0))
            if most > self._labels.n_labels:
                raise ValueError(f"max_flips={most} is above the number of training labels, {self._labels.n_labels}.")
        self.estimator_ = self._fitted(training.inputs, training.targets, training.trusted)

    def _fitted(self, X: NDArray[Any], y: NDArray[Any], mask: NDArray[np.bool_] | None) -> Any:
        model = clone(self.estimator)
        refuse_other_classes(model, self.classes_, "FixedBudget")
        classes = f"{prefix_of_final_step(model)}classes"
        if classes in model.get_params():
            model.set_params(**{classes: self.classes_})
        elif np.unique(y).size == 1:
            from sklearn.dummy import DummyClassifier

            return DummyClassifier(strategy="most_frequent").fit(X, y)
        takes_mask = "trusted" in inspect.signature(model.fit).parameters
        return model.fit(X, y, **({"trusted": mask} if takes_mask else {}))

    def _scores(self, X: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        rows = self._check_test(X)
        return self._scores_of(rows), self._predicted(rows)

    def _winners(self, X: ArrayLike) -> NDArray[np.int64]:
        return self._predicted(self._check_test(X))

    @available_if(_has_scores)  # type: ignore[untyped-decorator]
    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Class scores of the classifier, or its probabilities; for two classes the second minus the first.

        Parameters
        ----------
        X : array-like of shape (n_test, n_features)
            Test inputs.

        Returns
        -------
        ndarray of shape (n_test, n_classes) or (n_test,)

        Examples
        --------
        >>> from sklearn.neighbors import KNeighborsClassifier
        >>> import flipcert
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 0, 0, 1, 1]
        >>> def is_robust(model, X, n_flips):
        ...     return [False] * len(X)
        >>> model = flipcert.FixedBudget(KNeighborsClassifier(5), is_robust)
        >>> model.fit(X, y).decision_function([[0.5]]).round(3)
        array([-0.6])
        """
        return super().decision_function(X)

    # Verifiers may take their time.
    _rows_together = 64

    def _known_costs(self, X: ArrayLike, exact: bool) -> FlipCosts:
        rows = self._check_test(X)
        prediction = self._predicted(rows)
        proven = self._search(rows)
        # Proven for all labels there are to flip: nothing changes the prediction.
        cost = np.where(proven < self._labels.n_movable, proven + 1, self._labels.unreachable)
        lower = np.repeat(cost[:, None], self.classes_.size, axis=1)
        np.put_along_axis(lower, prediction[:, None], 0, axis=1)
        return FlipCosts.proven(prediction, lower, self._labels.n_labels)

    def _search(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        """Largest number of flips that is proven harmless for each row: first doubled, then bisected."""
        most = self._labels.n_movable if self.max_flips is None else min(self._labels.n_movable, self.max_flips)
        proven = np.zeros(rows.shape[0], np.int64)
        if len(self.estimator_.classes_) == 1:
            return proven
        failed = np.full(rows.shape[0], most + 1)
        while True:
            next_up = np.where(failed > most, np.clip(2 * proven, 1, most), (proven + failed) // 2)
            still_open = (proven < most) & (next_up > proven)
            if not still_open.any():
                return proven
            # The cheapest question first; the rows that share it are asked together.
            n_flips = int(next_up[still_open].min())
            asked = np.flatnonzero(still_open & (next_up == n_flips))
            answer = self._ask(rows[asked], n_flips)
            proven[asked[answer]] = n_flips
            failed[asked[~answer]] = n_flips

    def _ask(self, rows: NDArray[Any], n_flips: int) -> NDArray[np.bool_]:
        answer = np.asarray(self.is_robust(self.estimator_, rows, n_flips))
        if answer.ndim == 0 and rows.shape[0] == 1:
            answer = answer[None]
        if answer.shape != (rows.shape[0],) or answer.dtype != np.bool_:
            raise ValueError(
                f"is_robust must return one bool for each of the {rows.shape[0]} rows; got shape {answer.shape} of "
                f"type {answer.dtype}."
            )
        return answer

    def _check_test(self, X: ArrayLike) -> NDArray[Any]:
        check_is_fitted(self)
        return validate_data(self, X, reset=False, dtype=[np.float64, np.float32], order="C")

    def _predicted(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        return predicted_indices(
            self.estimator_, rows, self.classes_, "give all that it may predict to FixedBudget as classes"
        )

    def _scores_of(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """Scores of all classes; those that the training labels lack come last."""
        if hasattr(self.estimator_, "decision_function"):
            own = np.asarray(self.estimator_.decision_function(rows), np.float64)
            own = np.stack([-own / 2, own / 2], axis=1) if own.ndim == 1 else own
        else:
            own = self.estimator_.predict_proba(rows)
        scores = np.full((rows.shape[0], self.classes_.size), -np.inf)
        name = type(self.estimator_).__name__
        complaint = f"{name} has the class {{label}}, which is none of {{classes}}; give it to FixedBudget as classes."
        scores[:, class_indices(np.asarray(self.estimator_.classes_), self.classes_, complaint)] = own
        return scores

    def _runner_up(self, X: ArrayLike, prediction: NDArray[np.int64]) -> NDArray[np.int64]:
        others = np.where(prediction == 0, 1, 0)
        if not _has_scores(self):
            return others  # no ranking: whichever class comes first
        scores = self._scores_of(self._check_test(X))
        np.put_along_axis(scores, prediction[:, None], -np.inf, axis=1)
        best = scores.argmax(axis=1)
        return np.where(best == prediction, others, best)

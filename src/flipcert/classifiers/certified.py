"""What all estimators of flipcert have in common: what they take, and what they answer in the user's labels."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from flipcert.classifiers.description import describe
from flipcert.labels.annotations import Annotations
from flipcert.labels.labels import Labels
from flipcert.labels.own_methods import require_proven
from flipcert.labels.threats import SOURCES, Threat, check_threat
from flipcert.labels.training_set import TrainingSet, read_training_set
from flipcert.labels.validation import check_choice, check_flag, check_number
from flipcert.linear.model import LabelLinearModel
from flipcert.results.certificates import Certificates
from flipcert.results.collective_certificate import CollectiveCertificate
from flipcert.results.columns import certificates_of_blocks
from flipcert.results.witness import Witness, in_user_labels


class CertifiedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of all estimators. A subclass answers the questions below in class indices; here they are asked."""

    classes: ArrayLike | None
    classes_: NDArray[Any]
    _labels: Labels
    _has_annotations: bool
    _description: dict[str, Any]

    # Types that inputs may have, the others become the first; and whether fit keeps a copy of them.
    _input_types: ClassVar[Sequence[DTypeLike]] = (np.float64, np.float32)
    _copies_inputs: ClassVar[bool] = False

    # Why nothing is proven where rows come or go, in words that end a sentence.
    _why_rows_must_stay: ClassVar[str] = "nothing is proven about fits on other rows"

    def _check_parameters(self) -> None:
        """Refuse parameters that make no sense whatever the training set is."""

    @abstractmethod
    def _fit(self, training: TrainingSet) -> None:
        """Fit on a training set that was checked; ``classes_`` is there."""

    @abstractmethod
    def _scores(self, X: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Scores of all classes, and the class of each row."""

    def _winners(self, X: ArrayLike) -> NDArray[np.int64]:
        """The class of each row."""
        return self._scores(X)[1]

    @abstractmethod
    def _flip_costs(self, X: ArrayLike, threat: Threat, bound: str, time_limit: float) -> NDArray[np.int64]:
        """Costs of all classes, in units of the threat."""

    @abstractmethod
    def _certify(self, X: ArrayLike, threat: Threat, exact: bool, time_limit: float) -> list[Certificates]:
        """Certificates against a threat, block by block."""

    @abstractmethod
    def _attacks(self, X: ArrayLike, threat: Threat, exact: bool, time_limit: float) -> list[Witness | None]:
        """The smallest known attack on each row."""

    def _label_linear(self, X: ArrayLike) -> tuple[LabelLinearModel, NDArray[Any]] | None:
        """The label-linear model whose predictions these are, and rows as it takes them; None where there is none."""
        return None

    def _refusal(self, threat: Threat) -> str | None:
        """Why nothing is proven against a threat, in words that end a sentence; None where there are proofs."""
        if threat.changes_rows:
            return self._why_rows_must_stay
        if threat is SOURCES and self._labels.sources is None:
            return "nobody said who gave the labels; pass one id a label to fit(X, y, source=...), or to Annotations"
        return None

    def _refusal_of_annotations(self) -> str | None:
        """Why rows cannot have several labels, in words that end a sentence; None where they can."""
        return f"{type(self).__name__} is fitted to one label a row, and nothing is proven about means of labels"

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | Annotations,
        trusted: ArrayLike | None = None,
        source: ArrayLike | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training inputs, trusted; sparse ones for those models that say they take them. They, their preprocessing
            and every hyper-parameter must have been chosen without the labels under attack, or the certificate is void.
        y : array-like of shape (n_samples,), or Annotations
            Training labels of any type; :class:`flipcert.Annotations` are several a row, for label-linear models and
            ensembles of them.
        trusted : array-like of bool of shape (n_samples,), optional
            Labels that an attacker cannot flip.
        source : array-like of shape (n_samples,), optional
            Who gave each label: an annotator, a vendor, a batch; any ids, strings or numbers. ``threat="sources"``
            counts these.

        Returns
        -------
        self

        Examples
        --------
        The third label is known to be right, so no attack flips it:

        >>> import flipcert
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 0, 0, 1, 1]
        >>> model = flipcert.WeightedNeighbors(5, classes=[0, 1])
        >>> model.fit(X, y).certify([[0.5]]).radius
        array([1])
        >>> trusted = [False, False, True, False, False, False]
        >>> (witness,) = model.fit(X, y, trusted=trusted).worst_flips([[0.5]])
        >>> witness.indices
        array([0, 1])
        """
        return self._fit_to(X, y, trusted, source)

    def _fit_to(
        self,
        X: ArrayLike,
        y: ArrayLike | Annotations,
        trusted: ArrayLike | None = None,
        source: ArrayLike | None = None,
        checked: bool = False,
    ) -> Self:
        """``fit``; inputs and labels that were ``checked`` with others are taken as they are."""
        # Whoever is refused is not fitted, whatever was before.
        self.__dict__.pop("_description", None)
        self._check_parameters()
        if isinstance(y, Annotations) and (reason := self._refusal_of_annotations()) is not None:
            raise ValueError(f"y must hold one label for each row of X; got Annotations, but {reason}.")
        types, copies = self._input_types, self._copies_inputs
        training = read_training_set(self, X, y, trusted, source, dtype=types, copy=copies, checked=checked)
        self.classes_, self._labels = training.classes, training.labels
        self._has_annotations = training.annotations is not None
        self._fit(training)
        self._description = describe(self)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return "_description" in vars(self)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class of each row.

        Parameters
        ----------
        X : array-like of shape (n_test, n_features)
            Test inputs.

        Returns
        -------
        ndarray of shape (n_test,)

        Examples
        --------
        >>> import flipcert
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 0, 0, 1, 1]
        >>> model = flipcert.WeightedNeighbors(5, classes=[0, 1]).fit(X, y)
        >>> model.predict([[0.5], [4.5]])
        array([0, 0])
        """
        winners = self._winners(X)
        return self.classes_[winners]

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Scores, or votes, of all classes; for two classes the second minus the first.

        Parameters
        ----------
        X : array-like of shape (n_test, n_features)
            Test inputs.

        Returns
        -------
        ndarray of shape (n_test, n_classes) or (n_test,)

        Examples
        --------
        >>> import flipcert
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 0, 0, 1, 1]
        >>> model = flipcert.WeightedNeighbors(5, classes=[0, 1]).fit(X, y)
        >>> model.decision_function([[0.5], [4.5]])
        array([-0.6, -0.2])
        """
        scores, _ = self._scores(X)
        return scores[:, 1] - scores[:, 0] if self.classes_.size == 2 else scores

    def flip_costs(
        self, X: ArrayLike, bound: str = "lower", time_limit: float = 60.0, threat: str = "flips"
    ) -> NDArray[np.int64]:
        """Fewest label flips after which each class is predicted (see :func:`flipcert.flip_costs`).

        Parameters
        ----------
        X : array-like of shape (n_test, n_features)
            Test inputs.
        bound : {"lower", "upper", "exact"}, default="lower"
            Proven from below, reached by an attack, or both; :class:`flipcert.UnsolvedError` if they differ.
        time_limit : float, default=60.0
            Seconds for one integer program (``bound="exact"`` only).
        threat : str, default="flips"
            As in :meth:`certify`: what a cost counts instead of flips.

        Returns
        -------
        ndarray of int64 of shape (n_test, n_classes)
            0 for the class predicted now; one more than there are training labels (or sources) where nothing leads to
            the class, or, with ``bound="upper"``, where no attack is known.

        Examples
        --------
        >>> import flipcert
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 0, 0, 1, 1]
        >>> model = flipcert.WeightedNeighbors(5, classes=[0, 1]).fit(X, y)
        >>> model.flip_costs([[0.5], [4.5]])
        array([[0, 2],
               [0, 1]])
        """
        check_number(time_limit, "time_limit")
        check_choice(bound, "bound", ("lower", "upper", "exact"))
        return self._flip_costs(X, self._proven_threat(threat), bound, time_limit)

    def certify(
        self, X: ArrayLike, threat: str = "flips", exact: bool = False, time_limit: float = 60.0
    ) -> Certificates:
        """Certify each prediction: how many label flips it withstands.

        Parameters
        ----------
        X : array-like of shape (n_test, n_features)
            Test inputs.
        threat : {"flips", "sources", "deletions", "insertions", "replacements", "edits"}, default="flips"
            What an attacker does to the training set, and what the radius counts: changes labels, holds all labels of
            some sources, deletes, inserts or replaces rows, or any of flips, deletions and insertions.
        exact : bool, default=False
            Solve integer programs where bounds leave the radius of an ensemble open. A single model is as exact as it
            can be either way.
        time_limit : float, default=60.0
            Seconds for one integer program; a cost that is not solved in time stays a bound.

        Returns
        -------
        Certificates

        Examples
        --------
        >>> import flipcert
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 0, 0, 1, 1]
        >>> model = flipcert.WeightedNeighbors(5, classes=[0, 1]).fit(X, y)
        >>> model.certify([[0.5], [4.5]]).radius
        array([1, 0])
        """
        asked = self._proven_threat(threat)
        check_flag(exact, "exact")
        check_number(time_limit, "time_limit")
        blocks = self._certify(X, asked, exact, time_limit)
        return certificates_of_blocks(blocks, self.classes_, self._description, asked.useful(self._labels))

    def worst_flips(
        self, X: ArrayLike, threat: str = "flips", exact: bool = False, time_limit: float = 60.0
    ) -> list[Witness | None]:
        """Label flips that change each prediction: the smallest known attack, ``radius_upper + 1`` flips.

        Parameters
        ----------
        X : array-like of shape (n_test, n_features)
            Test inputs.
        threat, exact, time_limit
            As in :meth:`certify`.

        Returns
        -------
        list of Witness or None
            ``witness.indices`` into the training set and ``witness.labels`` to put there, most influential first; which
            ``sources`` did that, and which rows are ``deleted`` and ``inserted``. None where no attack is known, or
            none exists.

        Examples
        --------
        >>> import flipcert
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 0, 0, 1, 1]
        >>> model = flipcert.WeightedNeighbors(5, classes=[0, 1]).fit(X, y)
        >>> (witness,) = model.worst_flips([[0.5]])
        >>> len(witness), model.fit(X, witness.apply(y)).predict([[0.5]])
        (2, array([1]))
        """
        asked = self._proven_threat(threat)
        check_flag(exact, "exact")
        check_number(time_limit, "time_limit")
        witnesses = self._attacks(X, asked, exact, time_limit)
        return [in_user_labels(witness, self.classes_, self._labels) for witness in witnesses]

    def certify_collectively(
        self,
        X: ArrayLike,
        flips: ArrayLike,
        y: ArrayLike | None = None,
        threat: str = "flips",
        time_limit: float = 60.0,
    ) -> CollectiveCertificate:
        """Certify all predictions together: how many of them one attack can change.

        Parameters
        ----------
        X : array-like of shape (n_test, n_features)
            Test inputs.
        flips : int or array-like of int
            How many labels, or other units of the threat, an attacker may change in all.
        y : array-like of shape (n_test,), default=None
            True labels. Then only predictions that are right count; without them all do.
        threat : str, default="flips"
            As in :meth:`certify`.
        time_limit : float, default=60.0
            Seconds for all budgets, beyond certifying point by point. What is proven and found until then stands.

        Returns
        -------
        CollectiveCertificate

        Examples
        --------
        >>> import flipcert
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 0, 0, 1, 1]
        >>> model = flipcert.WeightedNeighbors(5, classes=[0, 1]).fit(X, y)
        >>> model.certify_collectively([[0.5], [4.5]], [1, 2]).changed_at_most
        array([1, 2])
        """
        from flipcert.collective import certify_collectively

        return certify_collectively(self, X, flips, y, threat, time_limit)

    def _proven_threat(self, threat: str) -> Threat:
        """The threat of this name; a ValueError if there is none, or no proof for this model."""
        require_proven(self, "certify")
        asked = check_threat(threat)
        check_is_fitted(self)
        reason = self._refusal(asked)
        if self._has_annotations and asked.changes_rows:
            reason = "rows have several labels each, and nothing is proven about such rows coming or going"
        if reason is not None:
            raise ValueError(f'threat="{threat}" is refused by {type(self).__name__}: {reason}.')
        return asked

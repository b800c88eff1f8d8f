"""What is known about the flips that lead a classifier to each class, however it was found out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from flipcert.engine.blocks import watched_blocks
from flipcert.engine.watch import current_watcher
from flipcert.exceptions import CertificateError
from flipcert.flips.costs import require_closed
from flipcert.flips.label_space import NAME_THE_SPACE
from flipcert.labels.encoding import predicted_indices
from flipcert.labels.labels import Labels
from flipcert.labels.validation import check_choice, check_integers
from flipcert.results.certificates import Certificates
from flipcert.results.columns import certificates_of_blocks
from flipcert.results.witness import Witness, classes_after, in_user_labels


def no_attack(row: int, target: int) -> Witness:
    """Stands for attacks where none is known."""
    raise CertificateError(f"no attack on class {target} is known for row {row}; please report this.")


@dataclass
class Appraisal:
    """Bounds on the flip costs of some rows, in class indices.

    Attributes
    ----------
    prediction : ndarray of shape (rows,)
    lower, upper : ndarray of int64 of shape (rows, classes)
        Proven from below, and of attacks that are known; more than there are labels where no labelling leads to a
        class, or no attack is known. 0 for the class predicted now.
    sensitive : ndarray of bool of shape (rows,)
        Whether rounding might change the prediction or a cost.
    attack : callable
        ``attack(row, target)``: the flips behind an upper cost.
    """

    prediction: NDArray[np.int64]
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    sensitive: NDArray[np.bool_]
    attack: Callable[[int, int], Witness] = field(default=no_attack)

    def __getstate__(self) -> dict[str, Any]:
        # Attacks may hold on to all that they were found with: they stay where that is.
        return vars(self) | {"attack": no_attack}

    @classmethod
    def of_costs(cls, prediction: NDArray[np.int64], lower: NDArray[np.int64], n_labels: int) -> Appraisal:
        """Proven costs without attacks."""
        upper = np.full(lower.shape, n_labels + 1)
        np.put_along_axis(upper, prediction[:, None], 0, axis=1)
        return cls(prediction, lower, upper, np.zeros(prediction.size, np.bool_))

    def in_label_space(self, labels: Labels) -> Appraisal:
        """What of it is left if the label space is read from the labels.

        Whatever enters a classifier with the number of its classes changes with the label space: no cost is proven
        beyond that of removing another class, and no attack is known to work that leaves no label of some class.
        """
        fewest = int(labels.flips_to_empty.min())
        if labels.space_is_fixed or max(self.lower.max(), self.upper.max()) < fewest:
            return self
        upper = self.upper.copy()
        for t, c in np.argwhere((upper >= fewest) & (upper <= labels.n_labels)).tolist():
            if not classes_after(self.attack(t, c), labels).all():
                upper[t, c] = labels.unreachable
        lower = np.minimum(self.lower, labels.flips_to_remove_another)
        np.put_along_axis(lower, self.prediction[:, None], 0, axis=1)
        return replace(self, lower=lower, upper=upper)

    def cheapest(self, n_labels: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Lower and upper cost of changing each prediction, and the class it goes to then (-1: none is known)."""
        lower, upper = self.lower.copy(), self.upper.copy()
        for costs in (lower, upper):
            np.put_along_axis(costs, self.prediction[:, None], n_labels + 1, axis=1)
        proven, known = (np.minimum(costs.min(axis=1), n_labels + 1) for costs in (lower, upper))
        target = np.where(
            known <= n_labels, upper.argmin(axis=1), np.where(proven <= n_labels, lower.argmin(axis=1), -1)
        )
        return proven, known, target


class AppraisedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of classifiers that certify through an :class:`Appraisal`.

    A subclass says what is known about flip costs (``_appraise``) and which class comes second (``_runner_up``); it
    keeps ``classes_``, ``_labels`` and ``_description``.
    """

    classes_: NDArray[Any]
    _labels: Labels
    _description: dict[str, Any]

    @abstractmethod
    def _appraise(self, X: ArrayLike, exact: bool = False) -> Appraisal:
        """Check the inputs and bound their flip costs; ``exact`` asks for as much as can be had, class by class."""

    def _appraise_cheapest(self, X: ArrayLike) -> Appraisal:
        """The same where only the cheapest change of prediction matters."""
        return self._appraise(X)

    @abstractmethod
    def _check_test(self, X: ArrayLike) -> NDArray[Any]:
        """Test inputs, validated."""

    @abstractmethod
    def _runner_up(self, X: ArrayLike, prediction: NDArray[np.int64]) -> NDArray[np.int64]:
        """Class with the second highest score."""

    def flip_costs(self, X: ArrayLike, bound: str = "lower", time_limit: float = 60.0) -> NDArray[np.int64]:
        """Fewest label flips after which each class is predicted.

        Parameters
        ----------
        X : array-like of shape (n_test, n_features)
            Test inputs.
        bound : {"lower", "upper", "exact"}, default="lower"
            Proven from below, reached by an attack, or both; :class:`flipcert.UnsolvedError` if they differ.
        time_limit
            For label-linear classifiers; this one does what it can either way.

        Returns
        -------
        ndarray of int64 of shape (n_test, n_classes)
            0 for the class predicted now; one more than there are training labels where no labelling leads to the
            class, or, with ``bound="upper"``, where no attack is known.
        """
        check_choice(bound, "bound", ("lower", "upper", "exact"))
        appraisal = self._appraise(X, exact=bound != "lower").in_label_space(self._labels)
        if bound == "exact":
            how_to_close = self._how_to_close if self._labels.space_is_fixed else self._how_to_close + NAME_THE_SPACE
            require_closed(appraisal.lower, appraisal.upper, self.classes_, how_to_close)
        return appraisal.upper if bound == "upper" else appraisal.lower

    _how_to_close = ""

    def certify(self, X: ArrayLike, exact: bool = False, time_limit: float = 60.0) -> Certificates:
        """Certify each prediction: how many label flips it withstands.

        Parameters
        ----------
        X : array-like of shape (n_test, n_features)
            Test inputs.
        exact, time_limit
            For ensembles; this classifier does what it can either way.

        Returns
        -------
        Certificates
        """
        rows = self._check_test(X)
        blocks = watched_blocks(self._certify_rows, rows, self._rows_together, current_watcher())
        return certificates_of_blocks(blocks, self.classes_, self._description)

    # Rows that are certified at a time, and kept if someone watches; None takes all at once.
    _rows_together: int | None = None

    def _certify_rows(self, rows: NDArray[Any]) -> Certificates:
        """Certificates of some rows, in class indices."""
        appraisal = self._appraise_cheapest(rows).in_label_space(self._labels)
        lower, upper, target = appraisal.cheapest(self._labels.n_labels)
        return Certificates(
            prediction=appraisal.prediction,
            radius=lower - 1,
            radius_upper=upper - 1,
            blackbox_radius=None,
            runner_up=self._runner_up(rows, appraisal.prediction),
            target=np.ma.masked_less(target, 0),
            rounding_sensitive=appraisal.sensitive,
            n_labels=self._labels.n_labels,
            n_attackable=self._labels.n_movable,
        )

    def worst_flips(self, X: ArrayLike, exact: bool = False, time_limit: float = 60.0) -> list[Witness | None]:
        """Label flips that change each prediction: the smallest known attack, ``radius_upper + 1`` flips.

        Parameters
        ----------
        X : array-like of shape (n_test, n_features)
            Test inputs.
        exact, time_limit
            As in :meth:`certify`.

        Returns
        -------
        list of Witness or None
            ``witness.indices`` into the training set and ``witness.labels`` to put there. None where no attack is
            known.
        """
        appraisal = self._appraise_cheapest(X).in_label_space(self._labels)
        _, upper, target = appraisal.cheapest(self._labels.n_labels)
        return [
            in_user_labels(appraisal.attack(t, int(c)), self.classes_) if cost <= self._labels.n_labels else None
            for t, (cost, c) in enumerate(zip(upper, target, strict=True))
        ]


def appraise(model: Any, X: NDArray[Any], exact: bool) -> Appraisal:
    """Ask a fitted model what its votes cost: one of ours, or any that answers ``flip_costs(X, bound="lower")``."""
    if hasattr(model, "_appraise"):
        own: Appraisal = model._appraise(X, exact=exact)
        return own
    prediction = predicted_indices(model, X, model.classes_, "it must keep to its own classes_")
    name = f"flip_costs of {type(model).__name__}"
    # However large, unreachable is unreachable.
    lower = check_integers(np.minimum(model.flip_costs(X, bound="lower"), 2**62), name, minimum=0, ndim=2)
    if lower.shape != (X.shape[0], model.classes_.size):
        raise ValueError(f"{name} must have shape {(X.shape[0], model.classes_.size)}; got {lower.shape}.")
    return Appraisal.of_costs(prediction, lower, n_labels=2**62)

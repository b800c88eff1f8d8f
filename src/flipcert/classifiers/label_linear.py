"""Classifiers whose scores are linear in the training labels, and therefore certified exactly."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from flipcert.classifiers.description import describe
from flipcert.engine.blocks import one_blas_thread
from flipcert.engine.watch import current_watcher
from flipcert.flips._jit.reach import BEST, LOWER, UPPER
from flipcert.flips.label_space import NAME_THE_SPACE, open_costs
from flipcert.labels.encoding import class_indices
from flipcert.labels.threats import check_threat
from flipcert.labels.training_set import read_training_set
from flipcert.labels.validation import check_choice, check_number
from flipcert.linear.model import Block, LabelLinearModel
from flipcert.linear.weights import Weights
from flipcert.results.certificates import Certificates
from flipcert.results.columns import certificates_of_blocks
from flipcert.results.flip_costs import FlipCosts
from flipcert.results.witness import Witness, in_user_labels

_KINDS = {"lower": LOWER, "upper": UPPER, "exact": BEST}


class LabelLinearClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Base of classifiers with scores :math:`s_c(t) = \sum_i w_i(t) [y_i = c]`, ties to the smaller class.

    A subclass says how training inputs become weights (``_make_weights``); labels never enter there. A fitted one holds
    its model, a value that answers everything, as ``label_linear_``.
    """

    classes: ArrayLike | None
    n_jobs: int | None
    classes_: NDArray[Any]
    label_linear_: LabelLinearModel

    # Whether flip costs are other than weights tell. An ensemble then asks for them.
    has_costs_of_its_own: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "flip_costs" in vars(cls):
            cls.has_costs_of_its_own = True

    @abstractmethod
    def _make_weights(self, X: NDArray[Any]) -> Weights:
        """How inputs become weights, from the training inputs alone."""

    def _check_label_space(self, n_classes: int, is_fixed: bool) -> None:
        """Refuse parameters that do not go with so many classes; ``is_fixed`` tells whether they were given."""

    def fit(self, X: ArrayLike, y: ArrayLike, trusted: ArrayLike | None = None) -> LabelLinearClassifier:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training inputs, trusted. They, their preprocessing and every hyper-parameter must have been chosen
            without the labels under attack, or the certificate is void.
        y : array-like of shape (n_samples,)
            Training labels of any type.
        trusted : array-like of bool of shape (n_samples,), optional
            Labels that an attacker cannot flip.

        Returns
        -------
        self
        """
        training = read_training_set(self, X, y, trusted)
        self.classes_, labels = training.classes, training.labels
        self._check_label_space(labels.n_classes, labels.space_is_fixed)
        # What an earlier fit holds would take the room for this one.
        self.__dict__.pop("label_linear_", None)
        with one_blas_thread:
            self.label_linear_ = LabelLinearModel(labels, self._make_weights(training.inputs))
        self._description = describe(self)
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class of each row.

        Parameters
        ----------
        X : array-like of shape (n_test, n_features)
            Test inputs.

        Returns
        -------
        ndarray of shape (n_test,)
        """
        model, rows = self._asked(X)
        _, winners = model.scores(rows)
        return self.classes_[winners]

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Class scores; for two classes the second score minus the first.

        Parameters
        ----------
        X : array-like of shape (n_test, n_features)
            Test inputs.

        Returns
        -------
        ndarray of shape (n_test, n_classes) or (n_test,)
        """
        model, rows = self._asked(X)
        scores, _ = model.scores(rows)
        return scores[:, 1] - scores[:, 0] if self.classes_.size == 2 else scores

    def flip_costs(self, X: ArrayLike, bound: str = "lower", time_limit: float = 60.0) -> NDArray[np.int64]:
        """Fewest label flips after which each class is predicted (see :func:`flipcert.flip_costs`).

        Parameters
        ----------
        X : array-like of shape (n_test, n_features)
            Test inputs.
        bound : {"lower", "upper", "exact"}, default="lower"
            Proven from below, reached by an attack, or both.
        time_limit : float, default=60.0
            Seconds for one integer program (``bound="exact"`` only).

        Returns
        -------
        ndarray of int64 of shape (n_test, n_classes)
        """
        check_number(time_limit, "time_limit")
        kind = _KINDS[check_choice(bound, "bound", tuple(_KINDS))]
        model, rows = self._asked(X)

        def in_label_space(block: Block, costs: FlipCosts) -> FlipCosts:
            return open_costs(costs, model.held_rows(block), model.labels)

        costs = model.costs(rows, kind, time_limit if bound == "exact" else None, in_label_space)
        return costs.of_bound(bound, self.classes_, NAME_THE_SPACE)

    def certify(
        self, X: ArrayLike, threat: str = "flips", exact: bool = False, time_limit: float = 60.0
    ) -> Certificates:
        """Certify each prediction: how many label flips it withstands.

        The radius of one label-linear model is exact for any weights.

        Parameters
        ----------
        X : array-like of shape (n_test, n_features)
            Test inputs.
        threat : {"flips"}, default="flips"
            What an attacker does to the training set.
        exact, time_limit
            For ensembles; a single model is exact either way.

        Returns
        -------
        Certificates
        """
        check_threat(threat, self)
        model, rows = self._asked(X)
        blocks = model.radii(rows, current_watcher())
        return certificates_of_blocks(blocks, self.classes_, self._description)

    def worst_flips(
        self, X: ArrayLike, threat: str = "flips", exact: bool = False, time_limit: float = 60.0
    ) -> list[Witness | None]:
        """Smallest set of label flips that changes each prediction.

        Parameters
        ----------
        X : array-like of shape (n_test, n_features)
            Test inputs.
        threat : {"flips"}, default="flips"
            What an attacker does to the training set.
        exact, time_limit
            For ensembles; a single model is exact either way.

        Returns
        -------
        list of Witness or None
            ``witness.indices`` into the training set and ``witness.labels`` to put there, ``radius + 1`` of them, most
            influential first. None where no labelling changes the prediction.
        """
        check_threat(threat, self)
        model, rows = self._asked(X)
        witnesses = model.witnesses(rows, current_watcher().progress("attacks"))
        return [in_user_labels(witness, self.classes_) for witness in witnesses]

    def replay(self, X: ArrayLike, witness: Witness) -> NDArray[np.float64]:
        """Class scores of one point while the flips of a witness are made, one after the other.

        Parameters
        ----------
        X : array-like of shape (1, n_features)
            The point.
        witness : Witness
            Flips to make.

        Returns
        -------
        ndarray of shape (n_flips + 1, n_classes)
            Scores before the first flip and after each.
        """
        model, rows = self._asked(X)
        complaint = "witness holds the label {label}, which is none of the classes {classes}."
        codes = class_indices(np.asarray(witness.labels), self.classes_, complaint)
        return model.replay(rows, Witness(witness.indices, codes))

    def _asked(self, X: ArrayLike) -> tuple[LabelLinearModel, NDArray[Any]]:
        """The fitted model and test inputs as it takes them."""
        check_is_fitted(self)
        model = replace(self.label_linear_, n_jobs=self.n_jobs)
        return model, validate_data(self, X, reset=False, dtype=[model.weights.dtype], order="C")

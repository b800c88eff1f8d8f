"""Classifiers whose scores are linear in the training labels, and therefore certified exactly."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from flipcert.classifiers.certified import CertifiedClassifier
from flipcert.engine.blocks import one_blas_thread
from flipcert.engine.watch import current_watcher
from flipcert.flips.costs import KINDS
from flipcert.flips.label_space import NAME_THE_SPACE, open_costs
from flipcert.labels.encoding import class_indices
from flipcert.labels.threats import SOURCES, Threat
from flipcert.labels.training_set import TrainingSet, read_test_inputs
from flipcert.linear.class_sums import ClassSums
from flipcert.linear.model import Block, LabelLinearModel
from flipcert.linear.shared_rows import shared_weights
from flipcert.linear.weights import Weights
from flipcert.results.certificates import Certificates
from flipcert.results.flip_costs import FlipCosts
from flipcert.results.witness import Witness

# Seconds for one integer program that closes the bounds on a cost.
_TIME_LIMIT = 60.0


class CertifiedByWeights(CertifiedClassifier):
    r"""Base of classifiers with scores :math:`s_c(t) = \sum_i w_i(t) [y_i = c]`, ties to the smaller class.

    A subclass says how training inputs become weights (``_make_weights``); labels never enter there. A fitted one holds
    its model, a value that answers everything, as ``label_linear_``.
    """

    n_jobs: int | None
    label_linear_: LabelLinearModel

    # Whether flip costs are other than weights tell. An ensemble then asks for them.
    has_costs_of_its_own: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not vars(cls).keys().isdisjoint(("flip_costs", "_flip_costs")):
            cls.has_costs_of_its_own = True

    @abstractmethod
    def _make_weights(self, X: NDArray[Any]) -> Weights:
        """How inputs become weights, from the training inputs alone."""

    def _check_label_space(self, n_classes: int, is_fixed: bool) -> None:
        """Refuse parameters that do not go with so many classes; ``is_fixed`` tells whether they were given."""

    def _fit(self, training: TrainingSet) -> None:
        labels = training.labels
        self._check_label_space(labels.n_classes, labels.space_is_fixed)
        # What an earlier fit holds would take the room for this one.
        self.__dict__.pop("label_linear_", None)
        with one_blas_thread:
            weights = self._make_weights(training.inputs)
        if training.annotations is not None:
            weights = shared_weights(weights, training.annotations.row, training.annotations.share)
        self.label_linear_ = LabelLinearModel(labels, weights, class_sums=ClassSums.of(labels, weights))

    def _refusal_of_annotations(self) -> str | None:
        return super()._refusal_of_annotations() if self.has_costs_of_its_own else None

    def _label_linear(self, X: ArrayLike) -> tuple[LabelLinearModel, NDArray[Any]] | None:
        return None if self.has_costs_of_its_own else self._asked(X)

    def _scores(self, X: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        model, rows = self._asked(X)
        return model.scores(rows)

    def _winners(self, X: ArrayLike) -> NDArray[np.int64]:
        model, rows = self._asked(X)
        return model.predictions(rows)

    def _flip_costs(self, X: ArrayLike, threat: Threat, bound: str, time_limit: float) -> NDArray[np.int64]:
        model, rows = self._asked(X)

        def in_label_space(block: Block, costs: FlipCosts) -> FlipCosts:
            return open_costs(costs, model.held_rows(block, threat), model.labels, threat)

        limit = time_limit if bound == "exact" else None
        costs = model.costs(rows, KINDS[bound, "best"], limit, in_label_space, threat)
        return costs.of_bound(bound, self.classes_, NAME_THE_SPACE)

    def _certify(self, X: ArrayLike, threat: Threat, exact: bool, time_limit: float) -> list[Certificates]:
        model, rows = self._asked(X)
        return model.radii(rows, current_watcher(), threat)

    def _attacks(self, X: ArrayLike, threat: Threat, exact: bool, time_limit: float) -> list[Witness | None]:
        model, rows = self._asked(X)
        return model.witnesses(rows, current_watcher().progress("attacks"), threat)

    def costs_and_attacks(self, X: ArrayLike, exact: bool = False, threat: str = "flips") -> FlipCosts:
        """Flip costs in class indices with the attacks behind them, as an ensemble asks its base classifiers for them.

        Parameters
        ----------
        X : array-like of shape (n_test, n_features)
            Test inputs.
        exact : bool, default=False
            Close bounds that differ by integer programs.
        threat : str, default="flips"
            What costs count, as in :meth:`certify`.

        Returns
        -------
        FlipCosts
            As if the label space were fixed.
        """
        asked = self._proven_threat(threat)
        model, rows = self._asked(X)
        return model.costs(rows, time_limit=_TIME_LIMIT if exact else None, threat=asked)

    def source_powers(self, X: ArrayLike) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]:
        """How much each source of labels could do alone.

        Parameters
        ----------
        X : array-like of shape (n_test, n_features)
            Test inputs.

        Returns
        -------
        ids : ndarray of shape (n_sources,)
            The sources, as they were named in ``fit``.
        labels : ndarray of int64 of shape (n_sources,)
            Number of their labels, trusted ones included.
        points : ndarray of int64 of shape (n_sources,)
            Number of rows of X whose prediction each could change alone: exact.

        Examples
        --------
        >>> import flipcert
        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
        >>> model = flipcert.KernelSVM(kernel="rbf").fit(X, y, source=["Ann", "Ann", "Bob", "Cem"])
        >>> model.source_powers([[0.0], [1.4], [3.0]])
        (array(['Ann', 'Bob', 'Cem'], dtype='<U3'), array([2, 1, 1]), array([2, 0, 1]))
        """
        self._proven_threat(SOURCES.name)
        model, rows = self._asked(X)
        sources = model.labels.sources
        assert sources is not None, "refused otherwise"
        return sources.ids, sources.sizes, model.powers(rows, current_watcher().progress("sources"))

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

        Examples
        --------
        >>> import flipcert
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 0, 0, 1, 1]
        >>> model = flipcert.WeightedNeighbors(5, classes=[0, 1]).fit(X, y)
        >>> (witness,) = model.worst_flips([[0.5]])
        >>> model.replay([[0.5]], witness)
        array([[0.8, 0.2],
               [0.6, 0.4],
               [0.4, 0.6]])
        """
        if witness.deleted.size or witness.inserted_labels.size:
            raise ValueError(
                f"witness deletes {witness.deleted.size} rows and inserts {witness.inserted_labels.size}, but replay "
                "makes flips only; fit again on witness.apply_inputs(X) and witness.apply(y)."
            )
        model, rows = self._asked(X)
        complaint = "witness holds the label {label}, which is none of the classes {classes}."
        codes = class_indices(np.asarray(witness.labels), self.classes_, complaint)
        return model.replay(rows, Witness(witness.indices, codes))

    def _asked(self, X: ArrayLike) -> tuple[LabelLinearModel, NDArray[Any]]:
        """The fitted model and test inputs as it takes them."""
        check_is_fitted(self)
        model = replace(self.label_linear_, n_jobs=self.n_jobs)
        return model, read_test_inputs(self, X, [model.weights.dtype])

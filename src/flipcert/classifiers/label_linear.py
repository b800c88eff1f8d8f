"""Classifiers whose scores are linear in the training labels, and therefore certified exactly."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from flipcert.classifiers.description import describe
from flipcert.engine.blocks import (
    SMALLEST_BLOCK,
    block_rows,
    filled,
    join,
    map_blocks,
    one_blas_thread,
    watched_blocks,
)
from flipcert.engine.buffers import Buffers
from flipcert.engine.magnitude import BY_FEATURES, refuse_underflow, told_with
from flipcert.engine.rounding import SAFETY
from flipcert.engine.tiles import tiles
from flipcert.engine.watch import Watcher, current_watcher
from flipcert.flips._jit.reach import BEST, LOWER, UPPER
from flipcert.flips.costs import Costs, close_gaps, cost_block, require_closed
from flipcert.flips.label_space import NAME_THE_SPACE, in_label_space, open_costs
from flipcert.flips.passes import Tiles
from flipcert.flips.streamed_rows import StreamedRows
from flipcert.flips.whole_rows import Rows, WholeRows
from flipcert.labels.encoding import class_indices
from flipcert.labels.training_set import read_training_set
from flipcert.labels.validation import check_choice, check_number
from flipcert.linear.product import Product
from flipcert.results.certificates import Certificates
from flipcert.results.columns import certificates_of_blocks
from flipcert.results.witness import Witness, in_user_labels


class LabelLinearClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Base of classifiers with scores :math:`s_c(t) = \sum_i w_i(t) [y_i = c]`, ties to the smaller class.

    A subclass says how training inputs become weights (``_fit_inputs``, ``_weights``); labels never enter there.
    """

    classes: ArrayLike | None
    n_jobs: int | None

    @abstractmethod
    def _fit_inputs(self, X: NDArray[Any]) -> None:
        """Prepare the weights from the training inputs alone."""

    @abstractmethod
    def _weights(self, X: NDArray[Any], out: NDArray[Any]) -> None:
        """Write the weights of all training samples for each row of X to ``out``."""

    @abstractmethod
    def _rounding(self, X: NDArray[Any], weights: NDArray[Any] | None) -> NDArray[np.float64]:
        """Estimate by how much another rounding could move each row of weights (see ``flipcert.engine.rounding``).

        Weights that come in tiles are not there.
        """

    def _lost(self, X: NDArray[Any], sizes: Callable[[], NDArray[Any]]) -> NDArray[np.bool_]:
        """Rows whose weights underflowed; ``sizes()`` tells how large each row of them is."""
        return np.zeros(X.shape[0], np.bool_)

    def _why(self, X: NDArray[Any], small: bool) -> str:
        """Say what makes weights of rows of X so small, or so large, that they are out of range, and what to do."""
        return BY_FEATURES

    @property
    def _product(self) -> Product | None:
        """The weights as one product with the inputs or their features, if that is what they are."""
        return None

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
        self.classes_, self._labels = training.classes, training.labels
        inputs = training.inputs
        self._dtype = inputs.dtype
        with one_blas_thread, told_with(lambda small: self._why(inputs, small)):
            self._fit_inputs(inputs)
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
        parts = self._map_rows(X, lambda _, rows: rows.scores()[1])
        return self.classes_[np.concatenate(parts)]

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

        def shown(_: Any, rows: Rows) -> NDArray[np.float64]:
            return self._shown_scores(rows.scores()[0], rows.weights)

        scores = np.concatenate(self._map_rows(X, shown))
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
        kind = {"lower": LOWER, "upper": UPPER, "exact": BEST}[
            check_choice(bound, "bound", ("lower", "upper", "exact"))
        ]

        def costs_of(_: Any, weights: NDArray[Any]) -> Costs:
            offset = self._no_offset(weights)
            costs = cost_block(weights, self._labels, offset, kind)
            if bound == "exact":
                close_gaps(costs, weights, self._labels, offset, time_limit)
            return open_costs(costs, self._whole_rows(weights), self._labels)

        costs: Costs = join(self._map_weights(X, costs_of))
        if bound == "exact":
            require_closed(costs.lower, costs.upper, self.classes_, NAME_THE_SPACE)
        return costs.lower if bound == "lower" else costs.upper

    def certify(self, X: ArrayLike, exact: bool = False, time_limit: float = 60.0) -> Certificates:
        """Certify each prediction: how many label flips it withstands.

        The radius of one label-linear model is exact for any weights.

        Parameters
        ----------
        X : array-like of shape (n_test, n_features)
            Test inputs.
        exact, time_limit
            For ensembles; a single model is exact either way.

        Returns
        -------
        Certificates
        """
        blocks = self._map_rows(X, self._certify_block, watcher=current_watcher())
        return certificates_of_blocks(blocks, self.classes_, self._description)

    def _certify_block(self, X: NDArray[Any], rows: Rows) -> Certificates:
        """Exact radii of one block of rows, in class indices."""
        radii = rows.radii()
        tolerance = SAFETY * self._rounding(X, rows.weights)
        return Certificates(
            prediction=radii.prediction,
            radius=radii.cost - 1,
            radius_upper=radii.cost - 1,
            blackbox_radius=None,
            runner_up=radii.runner_up,
            target=np.ma.masked_less(radii.target, 0),
            rounding_sensitive=(tolerance > 0) & (radii.margin <= tolerance),
            n_labels=self._labels.n_labels,
            n_attackable=self._labels.n_movable,
        )

    def worst_flips(self, X: ArrayLike, exact: bool = False, time_limit: float = 60.0) -> list[Witness | None]:
        """Smallest set of label flips that changes each prediction.

        Parameters
        ----------
        X : array-like of shape (n_test, n_features)
            Test inputs.
        exact, time_limit
            For ensembles; a single model is exact either way.

        Returns
        -------
        list of Witness or None
            ``witness.indices`` into the training set and ``witness.labels`` to put there, ``radius + 1`` of them, most
            influential first. None where no labelling changes the prediction.
        """
        parts = self._map_rows(X, lambda _, rows: rows.witnesses(), watcher=current_watcher().progress("attacks"))
        return [in_user_labels(witness, self.classes_) for part in parts for witness in part]

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

        def scores_and_weights(_: Any, rows: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            scores, _ = rows.scores()
            moved = rows.at(witness.indices).astype(np.float64)
            # Both in the unit that users see, which is a factor.
            return self._shown_scores(scores, rows.weights)[0], self._shown_scores(moved, rows.weights)[0]

        ((scores, moved),) = self._map_rows(X, scores_and_weights)
        complaint = "witness holds the label {label}, which is none of the classes {classes}."
        codes = class_indices(np.asarray(witness.labels), self.classes_, complaint)
        path = np.zeros((len(witness) + 1, self.classes_.size))
        path[0] = scores
        steps = np.arange(1, len(witness) + 1)
        path[steps, codes] += moved
        path[steps, self._labels.codes[witness.indices]] -= moved
        return path.cumsum(axis=0)

    def _map_rows(
        self, X: ArrayLike, function: Callable[[NDArray[Any], Rows], Any], watcher: Watcher | None = None
    ) -> list[Any]:
        """Call ``function`` on each block of rows; where their weights are too many to be held, they come in tiles."""
        check_is_fitted(self)
        labels = self._labels
        grid = tiles(labels.n_labels)
        if len(grid) == 1 or block_rows(1, self._bytes_per_row()) == SMALLEST_BLOCK or not self._comes_in_tiles:
            return self._map_weights(X, lambda rows, weights: function(rows, self._whole_rows(weights)), watcher)
        rows = self._check_test(X)
        height = block_rows(rows.shape[0], grid[0].stop * np.dtype(self._dtype).itemsize)

        def block(block: NDArray[Any]) -> Any:
            with one_blas_thread:
                write = self._tile_writer(filled(block, height))
            form = Tiles(write, height, block.shape[0], labels.n_labels, np.dtype(self._dtype), self.n_jobs)
            offset = self._no_offset(block)
            streamed = StreamedRows(form, labels, offset)
            refuse_underflow(self._lost(block, streamed.totals))
            return function(block, in_label_space(streamed, labels, offset))

        with told_with(lambda small: self._why(rows, small)):
            return watched_blocks(block, rows, height, watcher or Watcher())

    def _whole_rows(self, weights: NDArray[Any]) -> Rows:
        offset = self._no_offset(weights)
        return in_label_space(WholeRows(weights, self._labels, offset), self._labels, offset)

    @property
    def _comes_in_tiles(self) -> bool:
        """Whether the weights of some training samples can be formed without those of the others."""
        return False

    def _tile_writer(self, X: NDArray[Any]) -> Callable[[slice, NDArray[Any]], None]:
        """Where weights come in tiles: what writes those of some training samples, for each row of X, to an array."""
        raise TypeError(f"{type(self).__name__} forms the weights of all training samples at once.")

    def _map_weights(
        self,
        X: ArrayLike,
        function: Callable[[NDArray[Any], NDArray[Any]], Any],
        watcher: Watcher | None = None,
    ) -> list[Any]:
        """Call ``function`` on each block of rows and all its weights."""
        rows = self._check_test(X)
        buffers = Buffers()

        def block(block: NDArray[Any], n_rows: int) -> Any:
            with buffers.borrow((block.shape[0], self._labels.n_labels), self._dtype) as weights:
                self._weights(block, weights)
                refuse_underflow(self._lost(block[:n_rows], lambda: np.abs(weights[:n_rows]).max(axis=1)))
                return function(block[:n_rows], weights[:n_rows])

        try:
            with told_with(lambda small: self._why(rows, small)):
                return map_blocks(block, rows, self._bytes_per_row(), self.n_jobs, watcher)
        finally:
            buffers.close()

    def _check_test(self, X: ArrayLike) -> NDArray[Any]:
        check_is_fitted(self)
        return validate_data(self, X, reset=False, dtype=[self._dtype], order="C")

    def _bytes_per_row(self) -> int:
        return self._labels.n_labels * np.dtype(self._dtype).itemsize

    def _shown_scores(self, scores: NDArray[np.float64], weights: NDArray[Any] | None) -> NDArray[np.float64]:
        """Scores in the unit that users see."""
        return scores

    def _no_offset(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        return np.zeros((rows.shape[0], self._labels.n_classes))

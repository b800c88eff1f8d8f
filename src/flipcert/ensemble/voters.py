"""Base classifiers of a partition ensemble: how each is fitted, votes, and what is known about changing its vote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline

from flipcert.classifiers.label_linear import LabelLinearClassifier
from flipcert.ensemble.ballots import Gap
from flipcert.flips.witness import Witness
from flipcert.label_free import require_label_free


@dataclass
class Ballot:
    """Votes of one base classifier for a block of rows, with bounds on the cost of changing them."""

    votes: NDArray[np.int64]
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    unsteady_vote: NDArray[np.bool_]
    unsteady_cost: NDArray[np.bool_]


class Voter:
    """A fitted base classifier, whatever its kind, seen as a voter over class indices."""

    def __init__(
        self, estimator: Any, members: NDArray[np.int64], classes: NDArray[Any], n_labels: int, movable: bool
    ) -> None:
        self.estimator = estimator
        self.members = members  # its training samples, as rows of the whole training set
        self.classes = classes
        self.n_labels = n_labels
        self.movable = movable  # whether it has a label that can be flipped

    def vote(self, X: NDArray[Any], n_rows: int) -> NDArray[np.int64]:
        """Votes for the first rows of a block."""
        return np.searchsorted(self.classes, self.estimator.predict(X)[:n_rows])

    def cast(self, X: NDArray[Any], n_rows: int) -> Ballot:
        """Votes and costs for the first rows of a block; without flip costs, one flip may do anything."""
        votes = self.vote(X, n_rows)
        lower = np.full((n_rows, self.classes.size), 1 if self.movable else self.n_labels + 1, np.int64)
        lower[np.arange(n_rows), votes] = 0
        unknown = np.full_like(lower, self.n_labels + 1)
        unknown[np.arange(n_rows), votes] = 0
        steady = np.zeros(lower.shape, np.bool_)
        return Ballot(votes, lower, unknown, steady[:, 0], steady)

    def witnesses(self, X: NDArray[Any], wanted: list[tuple[int, int]], time_limit: float | None) -> list[Witness]:
        """For each wanted (row, class) the flips that turn the vote, as rows of the whole training set."""
        raise AssertionError("an attack on a voter without flip costs is never planned")

    def exact_costs(self, X: NDArray[Any], gaps: list[Gap], time_limit: float) -> list[int | None]:
        """For each (row, class, lower, upper) the exact cost; None where it is not known or time runs out."""
        return [None] * len(gaps)


class LabelLinearVoter(Voter):
    """A label-linear base classifier: costs, attacks and exact costs are all known."""

    def vote(self, X: NDArray[Any], n_rows: int) -> NDArray[np.int64]:
        """Votes for the first rows of a block."""
        return self._model._block_votes(self._inputs(X), n_rows)

    def cast(self, X: NDArray[Any], n_rows: int) -> Ballot:
        """Votes and flip costs for the first rows of a block."""
        costs, tolerance = self._model._block_costs(self._inputs(X), n_rows)
        rounded = (tolerance > 0)[:, None]
        return Ballot(
            votes=costs.prediction,
            lower=self._lifted(costs.lower),
            upper=self._lifted(costs.upper),
            unsteady_vote=rounded[:, 0] & (costs.lead <= tolerance),
            unsteady_cost=rounded & (costs.margin <= tolerance[:, None]),
        )

    def witnesses(self, X: NDArray[Any], wanted: list[tuple[int, int]], time_limit: float | None) -> list[Witness]:
        """For each wanted (row, class) the flips that turn the vote; smallest ones if there is a time limit."""
        found = self._model._block_witnesses(self._inputs(X), wanted, time_limit)
        return [Witness(self.members[witness.indices], witness.labels) for witness in found]

    def exact_costs(self, X: NDArray[Any], gaps: list[Gap], time_limit: float) -> list[int | None]:
        """For each (row, class, lower, upper) the exact cost; None where time runs out."""
        own_limit = self.members.size + 1
        own_gaps = [(t, c, lower, min(upper, own_limit)) for t, c, lower, upper in gaps]
        costs = self._model._block_exact_costs(self._inputs(X), own_gaps, time_limit)
        return [self.n_labels + 1 if cost == own_limit else cost for cost in costs]

    def _lifted(self, costs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Unreachable is counted in labels of the whole training set, not of the partition."""
        return np.where(costs > self.members.size, self.n_labels + 1, costs)

    @property
    def _model(self) -> LabelLinearClassifier:
        model = self.estimator.steps[-1][1] if isinstance(self.estimator, Pipeline) else self.estimator
        assert isinstance(model, LabelLinearClassifier)
        return model

    def _inputs(self, X: NDArray[Any]) -> NDArray[Any]:
        """Rows as the label-linear model sees them, in its own precision."""
        if isinstance(self.estimator, Pipeline) and len(self.estimator.steps) > 1:
            X = self.estimator[:-1].transform(X)
        return np.ascontiguousarray(X, self._model._dtype)


class ConstantVote(BaseEstimator):  # type: ignore[misc]
    """Stands for a classifier whose partition has one class only: it votes for that class."""

    def __init__(self, label: Any = None) -> None:
        self.label = label

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        """Vote for the one class."""
        return np.repeat(np.asarray([self.label]), X.shape[0])


def is_white_box(estimator: Any) -> bool:
    """Whether flip costs of the estimator are known: one of ours, alone or after label-free transformers."""
    if isinstance(estimator, Pipeline):
        try:
            require_label_free(estimator)
        except ValueError:
            return False
        return is_white_box(estimator.steps[-1][1])
    return isinstance(estimator, LabelLinearClassifier)


def fit_voter(
    estimator: Any,
    number: int,
    X: NDArray[Any],
    y: NDArray[Any],
    classes: NDArray[Any],
    members: NDArray[np.int64],
    trusted: NDArray[np.bool_] | None,
    n_labels: int,
) -> Voter:
    """Fit a copy of the estimator on one partition."""
    movable = trusted is None or not bool(trusted.all())
    model = clone(estimator)
    if is_white_box(estimator):
        step = f"{model.steps[-1][0]}__" if isinstance(model, Pipeline) else ""
        model.set_params(**{f"{step}classes": classes, f"{step}n_jobs": 1})
        try:
            model.fit(X, y, **{f"{step}trusted": trusted})
        except ValueError as error:
            raise ValueError(f"partition {number} could not be fitted: {error}") from error
        return LabelLinearVoter(model, members, classes, n_labels, movable)
    if np.unique(y).size == 1:
        return Voter(ConstantVote(y[0]), members, classes, n_labels, movable)
    model.set_params(**_seeds(model, number))
    return Voter(model.fit(X, y), members, classes, n_labels, movable)


def _seeds(model: Any, number: int) -> dict[str, int]:
    """Seeds for whatever is random in the estimator: a vote that changes by itself proves nothing."""
    seeds = {}
    for name, value in model.get_params(deep=True).items():
        if name == "random_state" or name.endswith("__random_state"):
            if isinstance(value, (np.random.RandomState, np.random.Generator)):
                raise ValueError(
                    f"{name} of the base estimator is a {type(value).__name__}, so its votes would change from fit to "
                    "fit; give a whole number, or None for the number of the partition."
                )
            if value is None:
                seeds[name] = number
    return seeds

"""Base classifiers of a partition ensemble: how each is fitted, and what it is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline

from flipcert.classifiers.label_linear import LabelLinearClassifier
from flipcert.label_free import require_label_free


@dataclass
class Voter:
    """A fitted base classifier.

    Attributes
    ----------
    estimator : estimator
    members : ndarray
        Its training samples, as rows of the whole training set.
    can_turn : bool
        Whether it has a label that can be flipped.
    """

    estimator: Any
    members: NDArray[np.int64]
    can_turn: bool

    @property
    def model(self) -> LabelLinearClassifier:
        """The label-linear classifier that a white-box estimator is, or ends in."""
        model = self.estimator.steps[-1][1] if isinstance(self.estimator, Pipeline) else self.estimator
        assert isinstance(model, LabelLinearClassifier)
        return model

    def model_inputs(self, X: NDArray[Any]) -> NDArray[Any]:
        """Rows as that classifier sees them, in its own precision."""
        if self.transforms:
            X = self.estimator[:-1].transform(X)
        return np.ascontiguousarray(X, self.model._dtype)

    @property
    def transforms(self) -> bool:
        """Whether a transformer comes before the classifier."""
        return isinstance(self.estimator, Pipeline) and len(self.estimator.steps) > 1


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
) -> Voter:
    """Fit a copy of the estimator on one partition."""
    can_turn = trusted is None or not bool(trusted.all())
    model = clone(estimator)
    if is_white_box(estimator):
        step = f"{model.steps[-1][0]}__" if isinstance(model, Pipeline) else ""
        model.set_params(**{f"{step}classes": classes, f"{step}n_jobs": 1})
        try:
            model.fit(X, y, **{f"{step}trusted": trusted})
        except ValueError as error:
            raise ValueError(f"partition {number} could not be fitted: {error}") from error
        return Voter(model, members, can_turn)
    if np.unique(y).size == 1:
        return Voter(ConstantVote(y[0]), members, can_turn)
    model.set_params(**_seeds(model, number))
    return Voter(model.fit(X, y), members, can_turn)


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

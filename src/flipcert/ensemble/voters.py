"""Base classifiers of a partition ensemble: how each is fitted, and what it is given."""

from __future__ import annotations

import inspect
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
    def model(self) -> Any:
        """The classifier that the estimator is, or ends in."""
        return final_step(self.estimator)

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


def final_step(estimator: Any) -> Any:
    """The classifier at the end of a pipeline, or the estimator itself."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def is_white_box(estimator: Any) -> bool:
    """Whether the estimator tells its flip costs, alone or after label-free transformers."""
    if isinstance(estimator, Pipeline):
        try:
            require_label_free(estimator)
        except ValueError:
            return False
        return is_white_box(estimator.steps[-1][1])
    return callable(getattr(estimator, "flip_costs", None))


def is_label_linear(estimator: Any) -> bool:
    """Whether flip costs follow from the weights alone; a classifier with costs of its own is asked for them."""
    model = final_step(estimator)
    return isinstance(model, LabelLinearClassifier) and type(model).flip_costs is LabelLinearClassifier.flip_costs


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
        _fit_white_box(model, number, X, y, classes, trusted)
        return Voter(model, members, can_turn)
    if np.unique(y).size == 1:
        return Voter(ConstantVote(y[0]), members, can_turn)
    model.set_params(**_seeds(model, number))
    return Voter(model.fit(X, y), members, can_turn)


def _fit_white_box(
    model: Any,
    number: int,
    X: NDArray[Any],
    y: NDArray[Any],
    classes: NDArray[Any],
    trusted: NDArray[np.bool_] | None,
) -> None:
    """Fit a classifier that tells its flip costs, with all that it wants to know of."""
    step = f"{model.steps[-1][0]}__" if isinstance(model, Pipeline) else ""
    known = model.get_params()
    wanted = {f"{step}classes": classes, f"{step}n_jobs": 1, **_seeds(model, number)}
    model.set_params(**{name: value for name, value in wanted.items() if name in known})
    # Costs that were proven without the mask hold with it: it only ties an attacker's hands.
    takes_mask = "trusted" in inspect.signature(final_step(model).fit).parameters
    try:
        model.fit(X, y, **({f"{step}trusted": trusted} if takes_mask else {}))
    except ValueError as error:
        raise ValueError(f"partition {number} could not be fitted: {error}") from error
    classifier = final_step(model)
    if classifier.classes_.size != classes.size:
        raise ValueError(
            f"partition {number} has {classifier.classes_.size} of the {classes.size} classes, and "
            f"{type(classifier).__name__} has no parameter classes to tell it of the others, which its flip costs have "
            "to cover."
        )


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

"""Base classifiers of a partition ensemble: how each is fitted, and what it is given."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator, clone

from flipcert.classifiers.certified_by_weights import CertifiedByWeights
from flipcert.engine.sparse import dense
from flipcert.ensemble.parts import Part
from flipcert.ensemble.turns import takes_turns, turn
from flipcert.labels.annotations import Annotations
from flipcert.labels.encoding import predicted_indices, refuse_other_classes
from flipcert.labels.known_transformers import is_label_free
from flipcert.labels.own_methods import require_proven
from flipcert.labels.randomness import chances
from flipcert.labels.steps import final_step, inputs_of_final_step, pipelines_of, prefix_of_final_step, transforms
from flipcert.linear.model import LabelLinearModel


@dataclass
class Voter:
    """A fitted base classifier.

    Attributes
    ----------
    estimator : estimator
    members : ndarray
        Its training labels, as places in the whole training set.
    can_turn : bool
        Whether it has a label that can be flipped.
    rows : ndarray
        The rows that its labels are about; the same places, unless rows have several labels.
    is_sparse : bool
        Whether it was fitted on sparse inputs.
    """

    estimator: Any
    members: NDArray[np.int64]
    can_turn: bool
    rows: NDArray[np.int64]
    is_sparse: bool = False

    @property
    def model(self) -> Any:
        """The classifier that the estimator is, or ends in."""
        return final_step(self.estimator)

    @property
    def label_linear(self) -> LabelLinearModel:
        """The weights and labels that a label-linear classifier is."""
        model: LabelLinearModel = self.model.label_linear_
        return model

    def model_inputs(self, X: NDArray[Any]) -> NDArray[Any]:
        """Rows as a label-linear classifier sees them, in its own precision."""
        inputs = dense(inputs_of_final_step(self.estimator, self.seen(X)))
        return np.ascontiguousarray(inputs, self.label_linear.weights.dtype)

    def seen(self, X: NDArray[Any]) -> Any:
        """Rows of a block in the form that the estimator was fitted on."""
        return csr_array(X) if self.is_sparse and not issparse(X) else X

    @property
    def transforms(self) -> bool:
        """Whether a transformer comes before the classifier."""
        return transforms(self.estimator)


class ConstantVote(BaseEstimator):  # type: ignore[misc]
    """Stands for a classifier whose partition has one class only, or no sample: it votes for one class."""

    def __init__(self, label: Any = None) -> None:
        self.label = label

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        """Vote for the one class."""
        return np.repeat(np.asarray([self.label]), X.shape[0])


def is_white_box(estimator: Any) -> bool:
    """Whether the estimator tells its flip costs, alone or after transformers that are known to be label-free.

    After others it is any classifier: all of a pipeline is fitted on one partition, so that a flip moves one vote.
    """
    tells_costs = callable(getattr(final_step(estimator), "flip_costs", None))
    return tells_costs and all(is_label_free(pipeline) for pipeline in pipelines_of(estimator))


def is_label_linear(estimator: Any) -> bool:
    """Whether flip costs follow from the weights alone; a classifier with costs of its own is asked for them."""
    model = final_step(estimator)
    return is_white_box(estimator) and isinstance(model, CertifiedByWeights) and not model.has_costs_of_its_own


def vote(estimator: Any, X: NDArray[Any], classes: NDArray[Any], n_rows: int | None = None) -> NDArray[np.int64]:
    """Class indices that a base classifier votes for."""
    remedy = "a vote needs a class: have it predict these only, or name all in classes of PartitionEnsemble"
    return predicted_indices(estimator, X, classes, remedy, n_rows)


def check_base(estimator: Any, classes: NDArray[Any]) -> None:
    """Refuse a base classifier that has another label space, proves nothing, or votes by chance."""
    refuse_other_classes(estimator, classes, "PartitionEnsemble")
    seeded = clone(estimator)
    _seed(seeded, _unseeded(seeded), 0)
    chance = next(chances(seeded), None)
    if chance is not None:
        # A vote that changes by itself proves nothing.
        raise ValueError(
            f"{chance.parameter} of the base estimator is {chance.value}, so its votes would change from fit to fit; "
            f"{chance.remedy}."
        )
    if is_white_box(estimator):
        require_proven(final_step(estimator), "flip_costs")


@dataclass(frozen=True, eq=False)
class VoterFit:
    """Fits a copy of a checked estimator on one partition; what all copies have in common is found once.

    Attributes
    ----------
    estimator : estimator
    classes : ndarray
        The label space.
    unseeded : sequence of str
        Parameters of the estimator that the number of the partition becomes.
    takes_turns : bool
        Whether fits must not run beside each other.
    """

    estimator: Any
    classes: NDArray[Any]
    unseeded: Sequence[str]
    takes_turns: bool

    @classmethod
    def of(cls, estimator: Any, classes: NDArray[Any]) -> VoterFit:
        """Look at a copy, which knows of no earlier fit."""
        model = clone(estimator)
        return cls(estimator, classes, _unseeded(model), takes_turns(model))

    def __call__(self, part: Part) -> Voter:
        """Fit one voter; one without samples votes for the first class."""
        members, rows, y = part.members.values, part.rows.values, part.targets.values
        trusted = None if part.trusted is None else part.trusted.values
        can_turn = bool(members.size) and (trusted is None or not bool(trusted.all()))
        if members.size == 0:
            return Voter(ConstantVote(self.classes[0]), members, can_turn, rows)
        model = clone(self.estimator)
        _seed(model, self.unseeded, part.number)
        if is_white_box(self.estimator):
            with turn(self.takes_turns):
                _fit_white_box(model, part, y, self.classes, trusted)
            return Voter(model, members, can_turn, rows, issparse(part.inputs.values))
        if np.unique(y).size == 1:
            return Voter(ConstantVote(y[0]), members, can_turn, rows)
        with turn(self.takes_turns):
            return Voter(model.fit(part.inputs.values, y), members, can_turn, rows, issparse(part.inputs.values))


def _fit_white_box(
    model: Any, part: Part, y: NDArray[Any], classes: NDArray[Any], trusted: NDArray[np.bool_] | None
) -> None:
    """Fit a classifier that tells its flip costs, with all that it wants to know of."""
    number = part.number
    step = prefix_of_final_step(model)
    if isinstance(own := final_step(model), CertifiedByWeights):
        # A user's class may have an __init__ without them.
        own.classes, own.n_jobs = classes, 1
    else:
        known = model.get_params()
        wanted = {f"{step}classes": classes, f"{step}n_jobs": 1}
        model.set_params(**{name: value for name, value in wanted.items() if name in known})
    # Costs that were proven without the mask hold with it: it only ties an attacker's hands. Who is not told of sources
    # is asked for flips.
    told = {"trusted": trusted} if part.sources is None else {"trusted": trusted, "source": part.sources.values}
    kind: Any = type(final_step(model))
    taken = _parameters_of_fit(kind)
    labels: NDArray[Any] | Annotations = y
    if part.annotations is not None:
        labels, told = part.annotations, {}
    inputs = part.inputs.values
    try:
        if labels is y and _are_as_fit_takes_them(inputs, model):
            model._fit_to(inputs, y, **told, checked=True)
        else:
            model.fit(inputs, labels, **{f"{step}{name}": own for name, own in told.items() if name in taken})
    except ValueError as error:
        raise ValueError(f"partition {number} could not be fitted: {error}") from error
    classifier = final_step(model)
    if len(classifier.classes_) != classes.size:
        raise ValueError(
            f"partition {number} has {len(classifier.classes_)} of the {classes.size} classes, and "
            f"{type(classifier).__name__} has no parameter classes to tell it of the others, which its flip costs have "
            "to cover."
        )
    named = np.asarray(classifier.classes_).tolist()
    if named != classes.tolist():
        raise ValueError(
            f"{type(classifier).__name__} has classes_={named}, but its flip costs have to be "
            f"those of {classes.tolist()}, in this order."
        )


@cache
def _parameters_of_fit(kind: Any) -> frozenset[str]:
    """What ``fit`` of a class of classifiers takes."""
    return frozenset(inspect.signature(kind.fit).parameters)


def _are_as_fit_takes_them(inputs: Any, model: Any) -> bool:
    """Whether inputs that an ensemble has checked need no second look: ``fit`` of the model would leave them alone."""
    return (
        isinstance(model, CertifiedByWeights)
        and type(model).fit is CertifiedByWeights.fit
        and isinstance(inputs, np.ndarray)
        and inputs.dtype in model._input_types
        and inputs.flags.c_contiguous
        and not model._copies_inputs
    )


def _unseeded(model: Any) -> list[str]:
    """Whatever is random in the estimator and has no seed."""
    parameters = model.get_params(deep=True).items()
    return [name for name, value in parameters if f"__{name}".endswith("__random_state") and value is None]


def _seed(model: Any, unseeded: Sequence[str], number: int) -> None:
    """Seed such parameters."""
    if unseeded:
        model.set_params(**dict.fromkeys(unseeded, number))

"""What one voter tells about the costs of its vote, in units of a threat."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.classifiers.certified import CertifiedClassifier
from flipcert.classifiers.certified_by_costs import costs_of, tells_other_costs
from flipcert.ensemble.voters import ConstantVote, Voter, vote
from flipcert.flips.source_costs import costs_in_sources
from flipcert.labels.labels import Labels
from flipcert.labels.threats import EDITS, FLIPS, REPLACEMENTS, SOURCES, Threat
from flipcert.results.flip_costs import FlipCosts


def costs_of_vote(
    voter: Voter, labels: Labels, classes: NDArray[Any], X: NDArray[Any], threat: Threat, exact: bool
) -> FlipCosts:
    """Costs of turning one voter to each class; ``labels`` are its own, X is what its classifier takes."""
    model = voter.model
    if isinstance(model, ConstantVote):
        return _one_unit(vote(model, X, classes), classes.size, labels, threat)
    if threat is FLIPS:
        return costs_of(model, X, exact)
    # A replacement is a row that goes and one that comes, anywhere: both are among the edits.
    asked = EDITS if threat is REPLACEMENTS else threat
    if _answers(voter, asked):
        told: FlipCosts = model.costs_and_attacks(X, exact=exact, threat=asked.name)
        return told
    if threat is SOURCES:
        return costs_in_sources(costs_of(model, X, exact), labels)
    return _one_unit(vote(model, X, classes), classes.size, labels, threat)


def _answers(voter: Voter, threat: Threat) -> bool:
    """Whether a classifier knows costs in units of the threat."""
    model = voter.model
    if not isinstance(model, CertifiedClassifier) or not hasattr(model, "costs_and_attacks"):
        return False
    if tells_other_costs(type(model)) or (threat.changes_rows and voter.transforms):
        # A transformer that is fitted on the partition sees rows come and go.
        return False
    return model._refusal(threat) is None


def _one_unit(prediction: NDArray[np.int64], n_classes: int, labels: Labels, threat: Threat) -> FlipCosts:
    """Costs of a voter that one unit may turn to any class."""
    lower = np.ones((prediction.size, n_classes), np.int64)
    np.put_along_axis(lower, prediction[:, None], 0, axis=1)
    return FlipCosts.proven(prediction, lower, threat.limit(labels))

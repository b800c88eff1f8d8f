"""Votes on one row with their costs, and all voters, as compiled code takes them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from flipcert.engine.jit import compiled
from flipcert.labels.labels import Coded

# Upper cost of what has not been settled.
UNSETTLED = -1


class VoterColumns(NamedTuple):
    """All voters: voter i has the columns ``bounds[i]:bounds[i + 1]`` of a row of weights, and the labels there.

    ``can_turn`` says which voters have a label that can be flipped, ``any_fixed`` which have one that cannot.
    ``limit``, one more than there are labels in all, is the cost of what no labelling does.
    """

    codes: Any
    movable: Any
    bounds: Any
    can_turn: Any
    any_fixed: Any
    n_classes: Any
    limit: Any


class Ballot(NamedTuple):
    """Votes on one row, costs by class and voter, and what rounding could change; with room to work in.

    ``away`` is the cost of leaving the class voted for. ``unsteady`` marks costs that another rounding of the weights
    could change by one and, in the row of the class voted for, votes.
    """

    votes: Any
    lower: Any
    upper: Any
    away: Any
    unsteady: Any
    price: Any
    plan: Any


def new_ballots(count: int, n_voters: int, n_classes: int) -> Ballot:
    """Room for the votes on so many rows."""
    shape = (count, n_classes, n_voters)
    return Ballot(
        votes=np.zeros((count, n_voters), np.int64),
        lower=np.zeros(shape, np.int64),
        upper=np.full(shape, UNSETTLED, np.int64),
        away=np.zeros((count, n_voters), np.int64),
        unsteady=np.zeros(shape, np.bool_),
        price=np.zeros((n_classes, n_voters), np.int64),
        plan=np.zeros(n_voters, np.int64),
    )


def ballot_of(ballots: Ballot, t: int) -> Ballot:
    """The ballot of one row."""
    return Ballot(
        ballots.votes[t],
        ballots.lower[t],
        ballots.upper[t],
        ballots.away[t],
        ballots.unsteady[t],
        ballots.price,
        ballots.plan,
    )


@compiled
def labels_of(voters, i):
    """Labels of one voter."""
    begin, end = voters.bounds[i], voters.bounds[i + 1]
    return Coded(voters.codes[begin:end], voters.movable[begin:end], voters.any_fixed[i])

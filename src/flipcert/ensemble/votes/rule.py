"""What a rule has to tell that makes a winner of votes."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from flipcert.ensemble.votes.ballots import Ballots
from flipcert.labels.labels import Labels
from flipcert.labels.threats import FLIPS, Threat
from flipcert.results.certificates import Certificates


class Outcome(Protocol):
    """What votes and the costs of changing them prove."""

    def certify(self, ballots: Ballots) -> Certificates:
        """What votes and the costs of changing them prove (white-box)."""

    def changed_votes(self, ballots: Ballots) -> dict[int, NDArray[np.int64]]:
        """New votes of the cheapest known attack, for each row that has one."""

    def reach_costs(self, ballots: Ballots, bound: str, time_limit: float) -> NDArray[np.int64]:
        """Units that make each class win: bounds, or exact costs where the bounds on the voters are exact."""


class VoteRule(Outcome, Protocol):
    """How votes make a winner, and how many flips make another. All classes are indices."""

    def scores(self, votes: NDArray[np.int64], n_classes: int) -> NDArray[np.int64]:
        """What each class has got, one row a test point; the largest wins, ties to the smaller class."""

    def certify_votes(
        self, votes: NDArray[np.int64], can_turn: NDArray[np.bool_], labels: Labels, threat: Threat = FLIPS
    ) -> Certificates:
        """What the votes alone prove, if a unit of the threat may turn any voter that can turn (black-box)."""

"""All base classifiers of an ensemble together: what they vote, and what is known about changing that."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.magnitude import BY_FEATURES
from flipcert.ensemble.parts import labels_of_part
from flipcert.ensemble.voters import Voter
from flipcert.ensemble.votes.ballots import Ballots
from flipcert.ensemble.votes.rule import Outcome, VoteRule
from flipcert.ensemble.votes.shared_sources import SharedSources
from flipcert.labels.labels import Labels
from flipcert.labels.threats import EDITS, FLIPS, INSERTIONS, MOVES, REPLACEMENTS, SOURCES, Threat
from flipcert.results.certificates import Certificates
from flipcert.results.witness import Witness


class Electorate(ABC):
    """Voters over class indices. Every method takes a full block of rows, of which the first ``n_rows`` are meant."""

    def __init__(self, voters: list[Voter], labels: Labels, rule: VoteRule) -> None:
        self.voters = voters
        self.rule = rule
        self.labels = labels
        self.n_classes = labels.n_classes
        self.n_labels = labels.n_labels
        self.can_turn = np.array([voter.can_turn for voter in voters])
        # Who has no sample votes for the first class, and for another if that is removed from the label space.
        self.any_empty = any(voter.members.size == 0 for voter in voters)

    def spreads_voters(self, looks_for_attacks: bool) -> bool:
        """Whether work is spread over the cores voter by voter, not block by block."""
        return False

    def to_send(self, threat: Threat) -> Electorate:
        """All that is needed to answer questions about a threat, which may have to be sent to other machines."""
        return self

    def why(self, X: NDArray[Any], small: bool) -> str:
        """Say what makes weights of some voter so small, or so large, that they are out of range, and what to do."""
        return BY_FEATURES

    def release(self) -> None:  # noqa: B027  (most have none to give back)
        """Give up memory that was kept from block to block; called when a job ends."""

    @cached_property
    def parts(self) -> list[Labels]:
        """Labels of each voter, with their sources."""
        return [labels_of_part(self.labels, voter.members) for voter in self.voters]

    @cached_property
    def _sources(self) -> SharedSources:
        return SharedSources(self.labels, [voter.members for voter in self.voters])

    def parts_units(self, threat: Threat) -> bool:
        """Whether no unit of the threat reaches several voters; sources may."""
        return threat is not SOURCES or self._sources.apart

    def outcome(self, threat: Threat) -> Outcome:
        """What makes a proof of ballots: the rule, as long as no unit of the threat reaches several voters."""
        return self.rule if self.parts_units(threat) else self._sources

    def can_be_turned(self, threat: Threat) -> NDArray[np.bool_]:
        """Which voters an attacker can reach; new rows can go to any."""
        return np.ones(len(self.voters), np.bool_) if rows_come(threat) else self.can_turn

    @property
    @abstractmethod
    def bytes_per_row(self) -> int:
        """Memory that a row of a block takes."""

    @abstractmethod
    def votes(self, X: NDArray[Any], n_rows: int) -> NDArray[np.int64]:
        """Class index that each voter votes for."""

    def cast(self, X: NDArray[Any], n_rows: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Class index that each voter votes for, and whether rounding might change one of a row."""
        return self.votes(X, n_rows), np.zeros(n_rows, np.bool_)

    @abstractmethod
    def rankings(self, X: NDArray[Any], n_rows: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Class indices in the order of each voter, best first, and whether rounding might change those of a row."""

    def scores(self, X: NDArray[Any], n_rows: int) -> NDArray[np.int64]:
        """What each class has got, one row a test point; the largest wins, ties to the smaller class."""
        return self.rule.scores(self.votes(X, n_rows), self.n_classes)

    def certify(self, X: NDArray[Any], n_rows: int, threat: Threat, exact: bool, time_limit: float) -> Certificates:
        """Winner and radii of each row."""
        return self.outcome(threat).certify(self.ballots(X, n_rows, threat, exact, time_limit))

    @abstractmethod
    def ballots(self, X: NDArray[Any], n_rows: int, threat: Threat, exact: bool, time_limit: float) -> Ballots:
        """Votes and bounds on the cost of every change of a vote, equal ones if ``exact``."""

    def reach_costs(
        self, X: NDArray[Any], n_rows: int, threat: Threat, bound: str, time_limit: float
    ) -> NDArray[np.int64]:
        """Units that make each class win: bounds, or exact costs."""
        ballots = self.ballots(X, n_rows, threat, bound == "exact", time_limit)
        return self.outcome(threat).reach_costs(ballots, bound, time_limit)

    @abstractmethod
    def attacks(
        self, X: NDArray[Any], n_rows: int, threat: Threat, exact: bool, time_limit: float
    ) -> list[Witness | None]:
        """The attack behind the upper radius of each row."""

    def lifted(
        self, costs: NDArray[np.int64], i: int, threat: Threat = FLIPS, proven: bool = True
    ) -> NDArray[np.int64]:
        """Costs of one voter in a whole training set: what nothing does to it is unreachable there.

        Costs are ``proven`` from below, or known from attacks.
        """
        out_of_reach = costs > threat.limit(self.parts[i])
        if proven and rows_come(threat):
            # More rows can come than the partition has: so many are proven, not more.
            out_of_reach = np.zeros(costs.shape, np.bool_)
        elif not proven and threat is REPLACEMENTS:
            # Steps of which a replacement makes two need not come in pairs.
            out_of_reach = np.ones(costs.shape, np.bool_)
        if not self.can_be_turned(threat)[i]:
            out_of_reach = np.ones(costs.shape, np.bool_)
        return np.where(out_of_reach, threat.unreachable(self.labels), costs)

    def in_whole_set(self, i: int, witness: Witness) -> Witness:
        """An attack on one voter with rows and sources of the whole training set."""
        members, sources = self.voters[i].members, self.parts[i].sources
        return replace(
            witness,
            indices=members[witness.indices],
            deleted=members[witness.deleted],
            sources=witness.sources if sources is None else sources.ids[witness.sources],
        )


def rows_come(threat: Threat) -> bool:
    """Whether an attacker adds rows, which can go to any partition."""
    return threat in (INSERTIONS, REPLACEMENTS, EDITS)


def step_of(threat: Threat) -> Threat:
    """What reaches one voter: of a replacement, a row that goes or one that comes, anywhere."""
    return MOVES if threat is REPLACEMENTS else threat

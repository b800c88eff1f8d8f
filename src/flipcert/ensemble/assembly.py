"""Voters that share labels, or whose whole rankings count: Finite Aggregation, run-off elections, and both."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.ensemble._jit.outcome import (
    BLACKBOX_COST,
    LOWER_COST,
    N_COLUMNS,
    RUNNER_UP,
    SENSITIVE,
    TARGET,
    UPPER_COST,
    WINNER,
)
from flipcert.ensemble.black_box import BlackBox
from flipcert.ensemble.electorate import Electorate
from flipcert.ensemble.grey_box import GreyBox
from flipcert.ensemble.votes.ballots import Ballots, in_units
from flipcert.ensemble.votes.election import Election, RunOff, Standings
from flipcert.ensemble.votes.plurality import costs_in_label_space, proven_in_label_space
from flipcert.ensemble.votes.poll import Poll
from flipcert.ensemble.votes.reach import Buckets
from flipcert.ensemble.votes.table import certificates_of_table
from flipcert.ensemble.white_box import WhiteBox
from flipcert.labels.threats import FLIPS, Threat
from flipcert.results.certificates import Certificates
from flipcert.results.flip_costs import require_closed
from flipcert.results.witness import Witness


class Assembly(Electorate):
    """Base classifiers under an election that counts units, each of which may reach several of them.

    Parameters
    ----------
    voters : Electorate
        The base classifiers: their votes, rankings and costs.
    election : Election
        What makes a winner of votes, or of rankings.
    buckets : Buckets
        Which of them each training label reaches.
    """

    def __init__(self, voters: Electorate, election: Election, buckets: Buckets) -> None:
        super().__init__(voters.voters, voters.labels, voters.rule)
        self.inner = voters
        self._election = election
        self._buckets = buckets
        # Which voters have labels of each class.
        held = [np.bincount(own.codes, minlength=self.n_classes) > 0 for own in self.parts]
        self._holders = np.stack(held)

    def spreads_voters(self, looks_for_attacks: bool) -> bool:
        """As the base classifiers do."""
        return self.inner.spreads_voters(looks_for_attacks)

    def to_send(self, threat: Threat) -> Electorate:
        """All that is needed to answer questions."""
        slim = copy(self)
        slim.inner = self.inner.to_send(threat)
        slim.voters = slim.inner.voters
        return slim

    def why(self, X: NDArray[Any], small: bool) -> str:
        """What makes weights of some voter so small, or so large."""
        return self.inner.why(X, small)

    def release(self) -> None:
        """Give up memory that was kept from block to block."""
        self.inner.release()

    def parts_units(self, threat: Threat) -> bool:
        """Costs of single votes say too little here, whether or not a unit reaches several voters."""
        return False

    @property
    def bytes_per_row(self) -> int:
        """Memory of rankings and costs, beside what the base classifiers take."""
        return self.inner.bytes_per_row + 40 * len(self.voters) * (self.n_classes + 1)

    def votes(self, X: NDArray[Any], n_rows: int) -> NDArray[np.int64]:
        """Class index that each voter votes for."""
        return self.rankings(X, n_rows)[0][:, :, 0] if self._election.ranks else self.inner.votes(X, n_rows)

    def rankings(self, X: NDArray[Any], n_rows: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Class indices in the order of each voter, best first, and whether rounding might change those of a row."""
        return self.inner.rankings(X, n_rows)

    def scores(self, X: NDArray[Any], n_rows: int) -> NDArray[np.int64]:
        """What each class has got by the election."""
        return self._election.scores(self._cast(X, n_rows)[0], self.n_classes)

    def ballots(self, X: NDArray[Any], n_rows: int, threat: Threat, exact: bool, time_limit: float) -> Ballots:
        """Votes and bounds on the cost of every change of a single vote; those of several may not add up."""
        return self.inner.ballots(X, n_rows, threat, exact, time_limit)

    def certify(self, X: NDArray[Any], n_rows: int, threat: Threat, exact: bool, time_limit: float) -> Certificates:
        """Winner and certified radius of each row; no attack is known."""
        votes, poll = self._poll(X, n_rows, threat)
        proof = self._standings(votes, poll, every=False)
        blackbox = lower = proven_in_label_space(self._in_units(proof.cheapest, poll), poll)
        sensitive = poll.sensitive
        if self._knows_costs(threat):
            proof, ballots = self._standings_by_costs(X, n_rows, votes, time_limit, every=False)
            lower = np.maximum(blackbox, proven_in_label_space(proof.cheapest, ballots))
            sensitive = sensitive | ballots.sensitive
        table = np.zeros((n_rows, N_COLUMNS), np.int64)
        table[:, WINNER], table[:, RUNNER_UP], table[:, TARGET] = proof.winner, proof.second, proof.target
        table[:, LOWER_COST], table[:, BLACKBOX_COST], table[:, UPPER_COST] = lower, blackbox, poll.unreachable
        table[:, SENSITIVE] = sensitive
        return certificates_of_table(table, self.labels, threat)

    def reach_costs(
        self, X: NDArray[Any], n_rows: int, threat: Threat, bound: str, time_limit: float
    ) -> NDArray[np.int64]:
        """Units that make each class win: a bound from below, and no attack is known."""
        votes, poll = self._poll(X, n_rows, threat)
        standings = self._standings(votes, poll, every=True)
        upper = np.full((n_rows, self.n_classes), poll.unreachable)
        np.put_along_axis(upper, standings.winner[:, None], 0, axis=1)
        if bound == "upper":
            return upper
        lower = costs_in_label_space(poll, self._in_units(standings.costs, poll), "lower")
        if self._knows_costs(threat):
            by_costs, facts = self._standings_by_costs(X, n_rows, votes, time_limit, every=True)
            lower = np.maximum(lower, costs_in_label_space(facts, by_costs.costs, "lower"))
        if bound == "exact":
            require_closed(lower, upper, np.arange(self.n_classes), "")
        return lower

    def attacks(
        self, X: NDArray[Any], n_rows: int, threat: Threat, exact: bool, time_limit: float
    ) -> list[Witness | None]:
        """None is known."""
        return [None] * n_rows

    def _cast(self, X: NDArray[Any], n_rows: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Votes or rankings of all voters, and whether rounding might change those of a row."""
        return self.inner.rankings(X, n_rows) if self._election.ranks else self.inner.cast(X, n_rows)

    def _poll(self, X: NDArray[Any], n_rows: int, threat: Threat) -> tuple[NDArray[np.int64], Poll]:
        """Votes or rankings, and what they are about."""
        votes, sensitive = self._cast(X, n_rows)
        return votes, Poll(self.labels, self._are_steady(votes), sensitive, threat)

    def _are_steady(self, votes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether voters that are not touched vote as before even if a class is removed from the label space."""
        if isinstance(self.inner, GreyBox):
            # They were told of the label space: with a class of it removed, anything could be.
            return np.zeros(votes.shape[0], np.bool_)
        # Who is not touched has no label of a class that was removed; so no vote may be for a class without labels.
        first = votes[:, :, 0] if self._election.ranks else votes
        return np.asarray(self._holders[np.arange(first.shape[1]), first].all(axis=1))

    def _standings(self, votes: NDArray[np.int64], poll: Poll, every: bool) -> Standings:
        reach = self._buckets.reach(poll.threat)
        return self._election.standings(votes, self.n_classes, reach, poll.unreachable, every)

    def _in_units(self, costs: NDArray[np.int64], poll: Poll) -> NDArray[np.int64]:
        """Costs in units of the threat, of which a replacement reaches two buckets; what nothing does stays that."""
        return np.where(costs >= poll.unreachable, poll.unreachable, in_units(costs, poll.threat))

    def _knows_costs(self, threat: Threat) -> bool:
        """Whether costs of single voters add up and tell more than their rankings."""
        alone = self._buckets.users.shape[1] == 1
        return self._election.ranks and alone and threat is FLIPS and not isinstance(self.inner, BlackBox)

    def _standings_by_costs(
        self, X: NDArray[Any], n_rows: int, rankings: NDArray[np.int64], time_limit: float, every: bool
    ) -> tuple[Standings, Ballots]:
        """What rankings and the costs of changing them prove."""
        assert isinstance(self._election, RunOff), "checked before"
        ballots = self.inner.ballots(X, n_rows, FLIPS, False, time_limit)
        winner = self._election.scores(rankings, self.n_classes).argmax(axis=1)
        # Who votes for the winner has to be turned before it prefers anybody else to it.
        away = np.where(np.arange(self.n_classes) == winner[:, None, None], ballots.unreachable, ballots.lower)
        votes_for_it = rankings[:, :, 0] == winner[:, None]
        least = np.where(votes_for_it, away.min(axis=2), np.where(self.can_turn, 1, ballots.unreachable))
        reversing = np.repeat(least[:, :, None], self.n_classes, axis=2)
        if isinstance(self.inner, WhiteBox):
            exact, sensitive = self.inner.reversing_costs(X, n_rows, winner)
            reversing = np.maximum(reversing, exact)
            ballots.sensitive |= sensitive
        reach = self._buckets.reach(FLIPS)
        standings = self._election.standings_by_costs(
            rankings, ballots.lower, reversing, reach, ballots.unreachable, every
        )
        return standings, ballots

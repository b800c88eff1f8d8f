"""Label-linear base classifiers: flip costs and attacks are known, and the weights of all come from one product."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from flipcert.ensemble._jit.ballot import Ballot, VoterColumns, ballot_of, new_ballots
from flipcert.ensemble._jit.knapsack import LEAVES
from flipcert.ensemble._jit.outcome import LOWER_COST, N_COLUMNS, UPPER_COST
from flipcert.ensemble._jit.settle import TOGETHER, certify_rows, plan_below, settle, survey, vote_rows
from flipcert.ensemble.linear_votes import LinearVotes
from flipcert.ensemble.voters import Voter
from flipcert.ensemble.votes.rule import VoteRule
from flipcert.ensemble.votes.table import certificates_of_table
from flipcert.exceptions import CertificateError, UnsolvedError
from flipcert.flips._jit.ladder import UNDECIDED, Ladder, new_ladder
from flipcert.flips._jit.reach import BEST
from flipcert.flips.attack import attack_of_cost, change_predictions
from flipcert.flips.rows import IntegerRow
from flipcert.flips.solver import exact_cost
from flipcert.labels.labels import Labels
from flipcert.labels.threats import FLIPS, Threat
from flipcert.results.certificates import Certificates
from flipcert.results.witness import Witness


class WhiteBox(LinearVotes):
    """Voters with flip costs, of which only those are settled that the cheapest change of a vote uses."""

    def __init__(self, voters: list[Voter], labels: Labels, rule: VoteRule, pairwise: bool) -> None:
        super().__init__(voters, labels, rule, pairwise)
        self._voter_columns = self._columns_of_voters()

    def trusting(self, labels: Labels) -> Self:
        """The same voters, where other labels are trusted."""
        same = super().trusting(labels)
        same._voter_columns = same._columns_of_voters()
        return same

    def _columns_of_voters(self) -> VoterColumns:
        """Labels of all voters for compiled code."""
        return VoterColumns(
            codes=np.concatenate([labels.coded.codes for labels in self._labels]),
            movable=np.concatenate([labels.coded.movable for labels in self._labels]),
            bounds=self.weights.bounds,
            can_turn=self.can_turn,
            any_fixed=np.array([labels.coded.any_fixed for labels in self._labels]),
            n_classes=self.n_classes,
            limit=self.n_labels + 1,
        )

    def votes(self, X: NDArray[Any], n_rows: int) -> NDArray[np.int64]:
        """Class index that each voter votes for."""
        with self.weights.lent(X, n_rows) as (weights, _):
            votes = np.empty((n_rows, len(self.voters)), np.int64)
            vote_rows(weights, self._voter_columns, self._new_ladder(), votes)
            for t, i in np.argwhere(votes == UNDECIDED):
                votes[t, i] = self._integers(weights[t], i).prediction
        return votes

    def certify(self, X: NDArray[Any], n_rows: int, threat: Threat, exact: bool, time_limit: float) -> Certificates:
        """Winner and radii of each row."""
        if threat is not FLIPS:
            return super().certify(X, n_rows, threat, exact, time_limit)
        with self.weights.lent(X, n_rows) as (weights, tolerance):
            ladder = self._new_ladder()
            ballots = new_ballots(TOGETHER, len(self.voters), self.n_classes)
            table = np.empty((n_rows, N_COLUMNS), np.int64)
            undecided = np.empty(n_rows, np.bool_)
            certify_rows(weights, self._voter_columns, tolerance, ladder, ballots, table, undecided)
            for t in np.flatnonzero(undecided | (exact & (table[:, LOWER_COST] < table[:, UPPER_COST]))):
                self._settle_slowly(weights[t], tolerance[t], table[t], ladder, exact, time_limit)
            for t in np.flatnonzero(table[:, [LOWER_COST, UPPER_COST]].max(axis=1) >= self.labels.flips_to_empty.min()):
                if self._open.changes(weights[t], table[t]):
                    ballot = self._settle_slowly(weights[t], tolerance[t], table[t], ladder, exact, time_limit)
                    self._open.settle(
                        weights[t], ballot, table[t], partial(self._carry_out, ballot, weights[t], time_limit)
                    )
        return certificates_of_table(table, self.labels)

    def attacks(
        self, X: NDArray[Any], n_rows: int, threat: Threat, exact: bool, time_limit: float
    ) -> list[Witness | None]:
        """The attack behind the upper radius of each row."""
        if threat is not FLIPS:
            return super().attacks(X, n_rows, threat, exact, time_limit)
        witnesses: list[Witness | None] = []
        with self.weights.lent(X, n_rows) as (weights, tolerance):
            ladder = self._new_ladder()
            outcome = np.empty(N_COLUMNS, np.int64)
            for row, own_tolerance in zip(weights, tolerance, strict=True):
                ballot = self._settle_slowly(row, own_tolerance, outcome, ladder, exact, time_limit)
                carry_out = partial(self._carry_out, ballot, row, time_limit)
                witness = None
                if self._open.changes(row, outcome):
                    witness = self._open.settle(row, ballot, outcome, carry_out)
                if witness is None and outcome[UPPER_COST] <= self.n_labels:
                    witness = carry_out()
                witnesses.append(witness)
        return witnesses

    def _settle_slowly(
        self,
        row: NDArray[Any],
        tolerance: NDArray[np.float64],
        outcome: NDArray[np.int64],
        ladder: Ladder,
        exact: bool,
        time_limit: float,
    ) -> Ballot:
        """Outcome of one row, with integers for what doubles cannot decide and, if ``exact``, a solver."""
        ballots = new_ballots(1, len(self.voters), self.n_classes)
        survey(row[None], self._voter_columns, tolerance[None], ladder, ballots)
        ballot = ballot_of(ballots, 0)
        unsolved: set[tuple[int, int]] = set()
        while True:
            in_integers: set[int] = set()
            while (i := settle(row, self._voter_columns, ladder, ballot, outcome)) >= 0:
                if i in in_integers:
                    raise CertificateError("integers left a comparison undecided; please report this row.")
                in_integers.add(i)
                self._use_integers(ballot, row, i, tolerance[i])
            if not exact or outcome[LOWER_COST] == outcome[UPPER_COST]:
                return ballot
            target = plan_below(row, self._voter_columns, ladder, ballot)
            used = (ballot.plan == target) & (ballot.votes != target) & (ballot.lower[target] < ballot.upper[target])
            wanted = [i for i in np.flatnonzero(used).tolist() if (i, target) not in unsolved]
            if not wanted:
                settle(row, self._voter_columns, ladder, ballot, outcome)
                return ballot
            for i in wanted:
                if not self._solve(ballot, row, i, target, time_limit):
                    unsolved.add((i, target))

    def _use_integers(self, ballot: Ballot, row: NDArray[Any], i: int, tolerance: float) -> None:
        """Vote and costs of one voter in exact arithmetic."""
        integers = self._integers(row, i)
        costs = integers.costs(BEST)
        assert costs is not None, "integers decide everything"
        lower, upper, margin = costs
        vote = integers.prediction
        margin[vote] = integers.lead
        ballot.votes[i] = vote
        ballot.lower[:, i], ballot.upper[:, i] = self.lifted(lower, i), self.lifted(upper, i)
        ballot.away[i] = np.delete(ballot.lower[:, i], vote).min(initial=self.n_labels + 1)
        ballot.unsteady[:, i] = (tolerance > 0) & (margin <= tolerance)

    def _solve(self, ballot: Ballot, row: NDArray[Any], i: int, target: int, time_limit: float) -> bool:
        """Replace the bounds on one cost by the exact cost, if that is found in time."""
        most = self._labels[i].unreachable
        lower, upper = (min(int(bound[target, i]), most) for bound in (ballot.lower, ballot.upper))
        try:
            cost = exact_cost(self._integers(row, i), target, lower, upper, time_limit)
        except UnsolvedError:
            return False
        ballot.lower[target, i] = ballot.upper[target, i] = self.lifted(np.array(cost), i)
        return True

    def _carry_out(self, ballot: Ballot, row: NDArray[Any], time_limit: float) -> Witness:
        """The flips of a plan, as rows of the whole training set."""
        flips = []
        for i in np.flatnonzero(ballot.plan != ballot.votes).tolist():
            own, labels, to = row[self.weights.of(i)], self._labels[i], int(ballot.plan[i])
            if to == LEAVES:
                # Who leaves may have a choice; the outcome names the class that wins after this one.
                goals = [
                    c for c in range(self.n_classes) if c != ballot.votes[i] and ballot.upper[c, i] == ballot.away[i]
                ]
                to = goals[-1] if goals else LEAVES
            if to == LEAVES:
                (witness,) = change_predictions(own[None], labels, self._no_offset[None])
            else:
                cost = int(ballot.upper[to, i])
                witness = attack_of_cost(own, labels, self._no_offset, to, cost, time_limit)
            assert witness is not None
            flips.append(Witness(self.voters[i].members[witness.indices], witness.labels))
        return Witness.union(flips)

    def _integers(self, row: NDArray[Any], i: int) -> IntegerRow:
        return IntegerRow(row[self.weights.of(i)], self._labels[i], self._no_offset)

    def _new_ladder(self) -> Ladder:
        return new_ladder(int(np.diff(self.weights.bounds).max()), self.n_classes)

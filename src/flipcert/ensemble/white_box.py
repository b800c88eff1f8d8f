"""Label-linear base classifiers: flip costs and attacks are known, and the weights of all come from one product."""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.blocks import block_rows, filled, one_blas_thread
from flipcert.engine.buffers import Buffers
from flipcert.engine.magnitude import BY_FEATURES, refuse_underflow
from flipcert.engine.rounding import SAFETY
from flipcert.ensemble._jit.ballot import Ballot, VoterColumns, ballot_of, new_ballots
from flipcert.ensemble._jit.knapsack import LEAVES
from flipcert.ensemble._jit.outcome import LOWER_COST, N_COLUMNS, UPPER_COST
from flipcert.ensemble._jit.settle import TOGETHER, certify_rows, plan_below, settle, survey, vote_rows
from flipcert.ensemble.electorate import Electorate
from flipcert.ensemble.open_vote import OpenVote
from flipcert.ensemble.voters import Voter
from flipcert.ensemble.votes.ballots import Ballots
from flipcert.ensemble.votes.rule import VoteRule
from flipcert.ensemble.votes.table import certificates_of_table
from flipcert.exceptions import CertificateError, UnsolvedError
from flipcert.flips._jit.ladder import UNDECIDED, Ladder, new_ladder
from flipcert.flips._jit.reach import BEST
from flipcert.flips.attack import attack_of_cost, change_prediction
from flipcert.flips.costs import close_gaps, cost_block
from flipcert.flips.rows import IntegerRow
from flipcert.flips.solver import exact_cost
from flipcert.labels.labels import Labels
from flipcert.linear.product import Product
from flipcert.results.certificates import Certificates
from flipcert.results.witness import Witness


class WhiteBox(Electorate):
    """Voters with flip costs.

    The weights of a block are one array: the columns ``bounds[i]:bounds[i + 1]`` belong to voter i.
    """

    def __init__(self, voters: list[Voter], labels: Labels, rule: VoteRule, pairwise: bool) -> None:
        super().__init__(voters, labels, rule)
        self._pairwise = pairwise
        self._labels = [voter.label_linear.labels for voter in voters]
        self._dtype = np.result_type(*(voter.label_linear.weights.dtype for voter in voters))
        self._bounds = np.cumsum([0] + [labels.n_labels for labels in self._labels])
        self._voter_columns = VoterColumns(
            codes=np.concatenate([labels.coded.codes for labels in self._labels]),
            movable=np.concatenate([labels.coded.movable for labels in self._labels]),
            bounds=self._bounds,
            can_turn=self.can_turn,
            any_fixed=np.array([labels.coded.any_fixed for labels in self._labels]),
            n_classes=self.n_classes,
            limit=self.n_labels + 1,
        )
        self._open = OpenVote(labels, [voter.members for voter in voters], self._bounds)
        self._no_offset = np.zeros(self.n_classes)
        self._product = self._join_products()
        self._buffers = Buffers()

    def _join_products(self) -> Product | None:
        """One product for all voters, if each is one of the same inputs."""
        products = [None if voter.transforms else voter.label_linear.weights.product for voter in self.voters]
        return None if None in products else Product.join([product for product in products if product is not None])

    def to_send(self) -> WhiteBox:
        """All that answers questions: without the classifiers, if one product stands for them."""
        if self._product is None:
            return self
        slim = copy(self)
        slim.voters = [Voter(None, voter.members, voter.can_turn) for voter in self.voters]
        return slim

    def release(self) -> None:
        """Give up the memory of the weights."""
        self._buffers.close()

    @property
    def bytes_per_row(self) -> int:
        """Memory of the weights."""
        return int(self._bounds[-1]) * self._dtype.itemsize

    def votes(self, X: NDArray[Any], n_rows: int) -> NDArray[np.int64]:
        """Class index that each voter votes for."""
        with self._buffers.borrow((X.shape[0], int(self._bounds[-1])), self._dtype) as buffer:
            weights, _ = self._weigh(X, n_rows, buffer)
            votes = np.empty((n_rows, len(self.voters)), np.int64)
            vote_rows(weights, self._voter_columns, self._new_ladder(), votes)
            for t, i in np.argwhere(votes == UNDECIDED):
                votes[t, i] = self._integers(weights[t], i).prediction
        return votes

    def certify(self, X: NDArray[Any], n_rows: int, exact: bool, time_limit: float) -> Certificates:
        """Winner and radii of each row."""
        with self._buffers.borrow((X.shape[0], int(self._bounds[-1])), self._dtype) as buffer:
            weights, tolerance = self._weigh(X, n_rows, buffer)
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

    def ballots(self, X: NDArray[Any], n_rows: int, exact: bool, time_limit: float) -> Ballots:
        """Votes and bounds on the cost of every change of a vote, equal ones if ``exact``."""
        return self.all_costs(X, n_rows, BEST, time_limit if exact else None)

    def all_costs(self, X: NDArray[Any], n_rows: int, kind: int, time_limit: float | None) -> Ballots:
        """Votes and bounds of one kind on all costs; the gap between them is closed if there is time for that."""
        shape = (n_rows, len(self.voters))
        votes = np.empty(shape, np.int64)
        lower, upper = (np.empty((*shape, self.n_classes), np.int64) for _ in range(2))
        offset, sensitive = np.zeros((n_rows, self.n_classes)), np.zeros(n_rows, np.bool_)
        with self._buffers.borrow((X.shape[0], int(self._bounds[-1])), self._dtype) as buffer:
            weights, tolerance = self._weigh(X, n_rows, buffer)
            for i, labels in enumerate(self._labels):
                own = np.ascontiguousarray(weights[:, self._columns(i)])
                costs = cost_block(own, labels, offset, kind, tolerance[:, i])
                if time_limit is not None:
                    close_gaps(costs, own, labels, offset, time_limit)
                votes[:, i] = costs.prediction
                sensitive |= costs.sensitive
                lower[:, i], upper[:, i] = self._lifted(costs.lower, i), self._lifted(costs.upper, i)
            steady = np.array([self._open.is_steady(row) for row in weights])
        return Ballots(votes, lower, upper, self.can_turn, self.labels, steady, sensitive)

    def formed(self, X: NDArray[Any], rows: NDArray[np.int64]) -> list[NDArray[Any]]:
        """The very weights that a job on all of X uses for some of its rows: those of each voter.

        A product may round differently in another block, so whole blocks of the job are formed.
        """
        height = block_rows(X.shape[0], self.bytes_per_row)
        weights = np.empty((rows.size, int(self._bounds[-1])), self._dtype)
        for start in np.unique(rows // height * height).tolist():
            asked = np.flatnonzero((rows >= start) & (rows < start + height))
            block = filled(np.ascontiguousarray(X[start : start + height]), height)
            with one_blas_thread:
                formed, _ = self._weigh(block, height, np.empty((height, weights.shape[1]), self._dtype))
            weights[asked] = formed[rows[asked] - start]
        return [weights[:, self._columns(i)] for i in range(len(self.voters))]

    def attacks(self, X: NDArray[Any], n_rows: int, exact: bool, time_limit: float) -> list[Witness | None]:
        """The flips behind the upper radius of each row."""
        witnesses: list[Witness | None] = []
        with self._buffers.borrow((X.shape[0], int(self._bounds[-1])), self._dtype) as buffer:
            weights, tolerance = self._weigh(X, n_rows, buffer)
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

    def why(self, X: NDArray[Any], small: bool) -> str:
        """What in some voter makes weights so small, or so large."""
        for voter in self.voters:
            inputs = voter.model_inputs(X[:, voter.members] if self._pairwise else X)
            reason = voter.label_linear.weights.why(inputs, small)
            if reason != BY_FEATURES:
                return reason
        return BY_FEATURES

    def _weigh(self, X: NDArray[Any], n_rows: int, weights: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Weights of all voters in the given array, and how far rounding could move the sums of each row and voter."""
        if self._product is not None:
            features = self._product.features(X)
            refuse_underflow(self._product.lost(features[:n_rows]))
            self._product.weights(features, weights)
            return weights[:n_rows], SAFETY * self._product.rounding(features[:n_rows])
        tolerance = np.empty((n_rows, len(self.voters)))
        for i, voter in enumerate(self.voters):
            formed = voter.label_linear.weights
            inputs = formed.features(voter.model_inputs(X[:, voter.members] if self._pairwise else X))
            own = np.empty((X.shape[0], voter.members.size), formed.dtype)
            formed.form(inputs, own)
            refuse_underflow(formed.lost(inputs[:n_rows], partial(_largest_of_rows, own[:n_rows])))
            weights[:, self._columns(i)] = own
            tolerance[:, i] = SAFETY * formed.rounding(inputs[:n_rows], own[:n_rows])
        return weights[:n_rows], tolerance

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
        ballot.lower[:, i], ballot.upper[:, i] = self._lifted(lower, i), self._lifted(upper, i)
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
        ballot.lower[target, i] = ballot.upper[target, i] = self._lifted(np.array(cost), i)
        return True

    def _carry_out(self, ballot: Ballot, row: NDArray[Any], time_limit: float) -> Witness:
        """The flips of a plan, as rows of the whole training set."""
        flips = []
        for i in np.flatnonzero(ballot.plan != ballot.votes).tolist():
            own, labels, to = row[self._columns(i)], self._labels[i], int(ballot.plan[i])
            if to == LEAVES:
                # Who leaves may have a choice; the outcome names the class that wins after this one.
                goals = [
                    c for c in range(self.n_classes) if c != ballot.votes[i] and ballot.upper[c, i] == ballot.away[i]
                ]
                to = goals[-1] if goals else LEAVES
            if to == LEAVES:
                witness = change_prediction(own, labels, self._no_offset)
            else:
                cost = int(ballot.upper[to, i])
                witness = attack_of_cost(own, labels, self._no_offset, to, cost, time_limit)
            assert witness is not None
            flips.append(Witness(self.voters[i].members[witness.indices], witness.labels))
        return Witness.union(flips)

    def _lifted(self, costs: NDArray[np.int64], i: int) -> NDArray[np.int64]:
        """Unreachable is counted in labels of the whole training set, not of the partition."""
        return np.where(costs > self._labels[i].n_labels, self.n_labels + 1, costs)

    def _integers(self, row: NDArray[Any], i: int) -> IntegerRow:
        return IntegerRow(row[self._columns(i)], self._labels[i], self._no_offset)

    def _columns(self, i: int) -> slice:
        return slice(int(self._bounds[i]), int(self._bounds[i + 1]))

    def _new_ladder(self) -> Ladder:
        return new_ladder(int(np.diff(self._bounds).max()), self.n_classes)


def _largest_of_rows(weights: NDArray[Any]) -> NDArray[Any]:
    return np.abs(weights).max(axis=1)

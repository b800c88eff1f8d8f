"""Label-linear base classifiers: flip costs and attacks are known, and the weights of all come from one product."""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.buffers import Buffers
from flipcert.engine.magnitude import refuse_underflow
from flipcert.engine.rounding import SAFETY
from flipcert.ensemble._jit.knapsack import LEAVES
from flipcert.ensemble._jit.outcome import LOWER, N_COLUMNS, UPPER
from flipcert.ensemble._jit.settle import (
    TOGETHER,
    Roll,
    Slate,
    certify_rows,
    new_slates,
    plan_below,
    settle,
    slate_of,
    survey,
    vote_rows,
)
from flipcert.ensemble.ballots import Ballots
from flipcert.ensemble.electorate import Electorate, certificates_of_table
from flipcert.ensemble.open_vote import OpenVote
from flipcert.ensemble.voters import Voter
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

    def __init__(self, voters: list[Voter], labels: Labels, pairwise: bool) -> None:
        super().__init__(voters, labels)
        self._pairwise = pairwise
        self._labels = [voter.model._labels for voter in voters]
        self._dtype = np.result_type(*(voter.model._dtype for voter in voters))
        self._bounds = np.cumsum([0] + [labels.n_labels for labels in self._labels])
        self._roll = Roll(
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
        products = [None if voter.transforms else voter.model._product for voter in self.voters]
        return None if None in products else Product.join([product for product in products if product is not None])

    def without_ballast(self) -> WhiteBox:
        """The same without the classifiers, if the product stands for them."""
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
            vote_rows(weights, self._roll, self._new_ladder(), votes)
            for t, i in np.argwhere(votes == UNDECIDED):
                votes[t, i] = self._integers(weights[t], i).prediction
        return votes

    def certify(self, X: NDArray[Any], n_rows: int, exact: bool, time_limit: float) -> Certificates:
        """Winner and radii of each row."""
        with self._buffers.borrow((X.shape[0], int(self._bounds[-1])), self._dtype) as buffer:
            weights, tolerance = self._weigh(X, n_rows, buffer)
            ladder = self._new_ladder()
            slates = new_slates(TOGETHER, len(self.voters), self.n_classes)
            table = np.empty((n_rows, N_COLUMNS), np.int64)
            undecided = np.empty(n_rows, np.bool_)
            certify_rows(weights, self._roll, tolerance, ladder, slates, table, undecided)
            for t in np.flatnonzero(undecided | (exact & (table[:, LOWER] < table[:, UPPER]))):
                self._settle_slowly(weights[t], tolerance[t], table[t], ladder, exact, time_limit)
            for t in np.flatnonzero(table[:, [LOWER, UPPER]].max(axis=1) >= self.labels.flips_to_empty.min()):
                if self._open.changes(weights[t], table[t]):
                    slate = self._settle_slowly(weights[t], tolerance[t], table[t], ladder, exact, time_limit)
                    self._open.settle(
                        weights[t], slate, table[t], partial(self._carry_out, slate, weights[t], time_limit)
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
        offset = np.zeros((n_rows, self.n_classes))
        with self._buffers.borrow((X.shape[0], int(self._bounds[-1])), self._dtype) as buffer:
            weights, _ = self._weigh(X, n_rows, buffer)
            for i, labels in enumerate(self._labels):
                own = np.ascontiguousarray(weights[:, self._columns(i)])
                costs = cost_block(own, labels, offset, kind)
                if time_limit is not None:
                    close_gaps(costs, own, labels, offset, time_limit)
                votes[:, i] = costs.prediction
                lower[:, i], upper[:, i] = self._lifted(costs.lower, i), self._lifted(costs.upper, i)
            steady = np.array([self._open.is_steady(row) for row in weights])
        return Ballots(votes, lower, upper, self.labels, steady)

    def attacks(self, X: NDArray[Any], n_rows: int, exact: bool, time_limit: float) -> list[Witness | None]:
        """The flips behind the upper radius of each row."""
        witnesses: list[Witness | None] = []
        with self._buffers.borrow((X.shape[0], int(self._bounds[-1])), self._dtype) as buffer:
            weights, tolerance = self._weigh(X, n_rows, buffer)
            ladder = self._new_ladder()
            outcome = np.empty(N_COLUMNS, np.int64)
            for row, own_tolerance in zip(weights, tolerance, strict=True):
                slate = self._settle_slowly(row, own_tolerance, outcome, ladder, exact, time_limit)
                carry_out = partial(self._carry_out, slate, row, time_limit)
                witness = None
                if self._open.changes(row, outcome):
                    witness = self._open.settle(row, slate, outcome, carry_out)
                if witness is None and outcome[UPPER] <= self.n_labels:
                    witness = carry_out()
                witnesses.append(witness)
        return witnesses

    def _weigh(self, X: NDArray[Any], n_rows: int, weights: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Weights of all voters in the given array, and how far rounding could move the sums of each row and voter."""
        if self._product is not None:
            refuse_underflow(self._product.lost(X[:n_rows]))
            self._product.weights(X, weights)
            return weights[:n_rows], SAFETY * self._product.rounding(X[:n_rows])
        tolerance = np.empty((n_rows, len(self.voters)))
        for i, voter in enumerate(self.voters):
            inputs = voter.model_inputs(X[:, voter.members] if self._pairwise else X)
            own = np.empty((X.shape[0], voter.members.size), voter.model._dtype)
            voter.model._weights(inputs, own)
            refuse_underflow(voter.model._lost(inputs[:n_rows], lambda own=own: np.abs(own[:n_rows]).max(axis=1)))
            weights[:, self._columns(i)] = own
            tolerance[:, i] = SAFETY * voter.model._rounding(inputs[:n_rows], own[:n_rows])
        return weights[:n_rows], tolerance

    def _settle_slowly(
        self,
        row: NDArray[Any],
        tolerance: NDArray[np.float64],
        outcome: NDArray[np.int64],
        ladder: Ladder,
        exact: bool,
        time_limit: float,
    ) -> Slate:
        """Outcome of one row, with integers for what doubles cannot decide and, if ``exact``, a solver."""
        slates = new_slates(1, len(self.voters), self.n_classes)
        survey(row[None], self._roll, tolerance[None], ladder, slates)
        slate = slate_of(slates, 0)
        unsolved: set[tuple[int, int]] = set()
        while True:
            in_integers: set[int] = set()
            while (i := settle(row, self._roll, ladder, slate, outcome)) >= 0:
                if i in in_integers:
                    raise CertificateError("integers left a comparison undecided; please report this row.")
                in_integers.add(i)
                self._use_integers(slate, row, i, tolerance[i])
            if not exact or outcome[LOWER] == outcome[UPPER]:
                return slate
            target = plan_below(row, self._roll, ladder, slate)
            used = (slate.plan == target) & (slate.votes != target) & (slate.lower[target] < slate.upper[target])
            wanted = [i for i in np.flatnonzero(used).tolist() if (i, target) not in unsolved]
            if not wanted:
                settle(row, self._roll, ladder, slate, outcome)
                return slate
            for i in wanted:
                if not self._solve(slate, row, i, target, time_limit):
                    unsolved.add((i, target))

    def _use_integers(self, slate: Slate, row: NDArray[Any], i: int, tolerance: float) -> None:
        """Vote and costs of one voter in exact arithmetic."""
        integers = self._integers(row, i)
        costs = integers.costs(BEST)
        assert costs is not None, "integers decide everything"
        lower, upper, margin = costs
        vote = integers.prediction
        margin[vote] = integers.lead
        slate.votes[i] = vote
        slate.lower[:, i], slate.upper[:, i] = self._lifted(lower, i), self._lifted(upper, i)
        slate.away[i] = np.delete(slate.lower[:, i], vote).min(initial=self.n_labels + 1)
        slate.unsteady[:, i] = (tolerance > 0) & (margin <= tolerance)

    def _solve(self, slate: Slate, row: NDArray[Any], i: int, target: int, time_limit: float) -> bool:
        """Replace the bounds on one cost by the exact cost, if that is found in time."""
        most = self._labels[i].unreachable
        lower, upper = (min(int(bound[target, i]), most) for bound in (slate.lower, slate.upper))
        try:
            cost = exact_cost(self._integers(row, i), target, lower, upper, time_limit)
        except UnsolvedError:
            return False
        slate.lower[target, i] = slate.upper[target, i] = self._lifted(np.array(cost), i)
        return True

    def _carry_out(self, slate: Slate, row: NDArray[Any], time_limit: float) -> Witness:
        """The flips of a plan, as rows of the whole training set."""
        flips = []
        for i in np.flatnonzero(slate.plan != slate.votes).tolist():
            own, labels, to = row[self._columns(i)], self._labels[i], int(slate.plan[i])
            if to == LEAVES:
                # Who leaves may have a choice; the outcome names the class that wins after this one.
                goals = [c for c in range(self.n_classes) if c != slate.votes[i] and slate.upper[c, i] == slate.away[i]]
                to = goals[-1] if goals else LEAVES
            if to == LEAVES:
                witness = change_prediction(own, labels, self._no_offset)
            else:
                cost = int(slate.upper[to, i])
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

"""Base classifiers that say what their votes cost, whatever they are: their flip costs are known, nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.classifiers.appraisal import Appraisal, appraise
from flipcert.engine.blocks import map_tasks, map_threads
from flipcert.engine.cluster.engines import current_engine
from flipcert.ensemble._jit.knapsack import plan_rows
from flipcert.ensemble._jit.outcome import BLACKBOX, LOWER, N_COLUMNS, SENSITIVE, TARGET, UPPER, blackbox_rows
from flipcert.ensemble.ballots import Ballots
from flipcert.ensemble.electorate import Electorate, certificates_of_table
from flipcert.ensemble.voters import Voter, vote
from flipcert.ensemble.votes import change_costs
from flipcert.labels.labels import Labels
from flipcert.labels.steps import inputs_of_final_step
from flipcert.results.certificates import Certificates
from flipcert.results.witness import Witness


class GreyBox(Electorate):
    """Voters with a ``flip_costs`` method. Those of flipcert also tell attacks that they know."""

    def __init__(self, voters: list[Voter], classes: NDArray[Any], labels: Labels, pairwise: bool, n_jobs: int | None):
        super().__init__(voters, labels)
        self._classes = classes
        self._pairwise = pairwise
        self._n_jobs = n_jobs

    def spreads_voters(self, question: str) -> bool:
        """A vote may take seconds to appraise, and test points may be few; but attacks stay where they were found."""
        return question != "attacks" or current_engine() is None

    @property
    def bytes_per_row(self) -> int:
        """Memory of the costs, and of the weights that some voters keep for their attacks."""
        return 32 * len(self.voters) * self.n_classes + 8 * self.n_labels

    def votes(self, X: NDArray[Any], n_rows: int) -> NDArray[np.int64]:
        """Class index that each voter votes for."""
        return np.stack(self._ask(self._vote_of, X[:n_rows]), axis=1)

    def certify(self, X: NDArray[Any], n_rows: int, exact: bool, time_limit: float) -> Certificates:
        """Winner and radii of each row."""
        ballots, appraisals = self._collect(X[:n_rows], exact)
        limit = self.n_labels + 1
        table = np.zeros((n_rows, N_COLUMNS), np.int64)
        blackbox_rows(ballots.votes, self.can_turn, self.n_classes, limit, table)
        _, cost, overtaker = change_costs(ballots.votes, ballots.lower)
        table[:, LOWER] = np.minimum(cost, limit)
        table[:, TARGET] = np.where(cost < limit, overtaker, -1)
        rows, costs, _, after = self._plans(ballots)
        table[rows, UPPER] = costs
        table[rows, TARGET] = after
        # Voters were told of the label space: with a class of it removed, anything could be.
        smallest = int(self.labels.flips_to_remove.min())
        table[:, LOWER], table[:, BLACKBOX] = (np.minimum(table[:, own], smallest) for own in (LOWER, BLACKBOX))
        table[:, SENSITIVE] = np.any([appraisal.sensitive for appraisal in appraisals], axis=0)
        return certificates_of_table(table, self.labels)

    def ballots(self, X: NDArray[Any], n_rows: int, exact: bool, time_limit: float) -> Ballots:
        """Votes and bounds on the cost of every change of a vote."""
        return self._collect(X[:n_rows], exact)[0]

    def attacks(self, X: NDArray[Any], n_rows: int, exact: bool, time_limit: float) -> list[Witness | None]:
        """The flips behind the upper radius of each row."""
        ballots, appraisals = self._collect(X[:n_rows], exact, map_threads)
        witnesses: list[Witness | None] = [None] * n_rows
        rows, _, plans, _ = self._plans(ballots)
        for t, plan in zip(rows.tolist(), plans, strict=True):
            flips = []
            for i in np.flatnonzero(plan != ballots.votes[t]).tolist():
                own = appraisals[i].attack(t, int(plan[i]))
                flips.append(Witness(self.voters[i].members[own.indices], own.labels))
            witnesses[t] = Witness.union(flips)
        return witnesses

    def _plans(
        self, ballots: Ballots
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Rows on which an attack is known, its cost, the votes that it leads to, and who wins then."""
        winner, cost, overtaker = change_costs(ballots.votes, ballots.upper)
        # An attack that could leave no label of some class is not known to work.
        rows = np.flatnonzero(cost < self.labels.flips_to_empty.min())
        plans, after = np.empty((rows.size, len(self.voters)), np.int64), np.empty(rows.size, np.int64)
        plan_rows(ballots.votes, ballots.upper, winner, overtaker, rows, plans, after)
        return rows, cost[rows], plans, after

    def _collect(
        self, rows: NDArray[Any], exact: bool, spread: Callable[..., list[Any]] = map_tasks
    ) -> tuple[Ballots, list[Appraisal]]:
        """Votes and costs of all voters."""
        appraisals = self._ask(partial(self._appraisal_of, exact), rows, spread)
        votes = np.stack([appraisal.prediction for appraisal in appraisals], axis=1)
        lower, upper = (
            np.stack([self._lifted(getattr(own, side), i) for i, own in enumerate(appraisals)], axis=1)
            for side in ("lower", "upper")
        )
        # No vote changes without a flip, whatever a base classifier says.
        np.maximum(lower, 1, out=lower)
        for costs in (lower, upper):
            np.put_along_axis(costs, votes[:, :, None], 0, axis=2)
        return Ballots(votes, lower, upper, self.labels, steady=np.zeros(rows.shape[0], np.bool_)), appraisals

    def _lifted(self, costs: NDArray[np.int64], i: int) -> NDArray[np.int64]:
        """Unreachable is counted in labels of the whole training set; a voter without flippable labels stays."""
        out_of_reach = (costs > self.voters[i].members.size) | (not self.can_turn[i])
        return np.where(out_of_reach, self.n_labels + 1, costs)

    def _ask(
        self,
        question: Callable[[tuple[int, NDArray[Any]]], Any],
        rows: NDArray[Any],
        spread: Callable[..., list[Any]] = map_tasks,
    ) -> list[Any]:
        """Put a question about some rows to all voters. They are sent once, and asked by their number."""
        return spread(question, [(i, rows) for i in range(len(self.voters))], self._n_jobs)

    def _vote_of(self, asked: tuple[int, NDArray[Any]]) -> NDArray[np.int64]:
        voter, rows = self.voters[asked[0]], asked[1]
        return vote(voter.model, self._seen_by(voter, rows), self._classes)

    def _appraisal_of(self, exact: bool, asked: tuple[int, NDArray[Any]]) -> Appraisal:
        voter, rows = self.voters[asked[0]], asked[1]
        return appraise(voter.model, self._seen_by(voter, rows), exact)

    def _seen_by(self, voter: Voter, rows: NDArray[Any]) -> NDArray[Any]:
        """Rows as the voter's classifier takes them."""
        own = np.ascontiguousarray(rows[:, voter.members]) if self._pairwise else rows
        return inputs_of_final_step(voter.estimator, own)

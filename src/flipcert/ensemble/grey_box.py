"""Base classifiers that say what their votes cost, whatever they are: their flip costs are known, nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.blocks import map_tasks, map_threads
from flipcert.engine.cluster.engines import current_engine
from flipcert.ensemble.asking import costs_of_vote
from flipcert.ensemble.electorate import Electorate, rows_come
from flipcert.ensemble.ranking import rank
from flipcert.ensemble.voters import Voter, vote
from flipcert.ensemble.votes.ballots import Ballots
from flipcert.ensemble.votes.rule import VoteRule
from flipcert.labels.labels import Labels
from flipcert.labels.steps import inputs_of_final_step
from flipcert.labels.threats import Threat
from flipcert.results.flip_costs import FlipCosts
from flipcert.results.witness import Witness


class GreyBox(Electorate):
    """Voters with a ``flip_costs`` method. Those of flipcert also tell attacks that they know."""

    def __init__(
        self,
        voters: list[Voter],
        classes: NDArray[Any],
        labels: Labels,
        rule: VoteRule,
        pairwise: bool,
        n_jobs: int | None,
    ) -> None:
        super().__init__(voters, labels, rule)
        self._classes = classes
        self._pairwise = pairwise
        self._n_jobs = n_jobs

    def spreads_voters(self, looks_for_attacks: bool) -> bool:
        """What a vote costs may take seconds to find out, and points may be few; attacks stay where they were found."""
        return not looks_for_attacks or current_engine() is None

    @property
    def bytes_per_row(self) -> int:
        """Memory of the costs, and of the weights that some voters keep for their attacks."""
        return 32 * len(self.voters) * self.n_classes + 8 * self.n_labels

    def votes(self, X: NDArray[Any], n_rows: int) -> NDArray[np.int64]:
        """Class index that each voter votes for."""
        return np.stack(self._ask(self._vote_of, X[:n_rows]), axis=1)

    def rankings(self, X: NDArray[Any], n_rows: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Class indices in the order of each voter: what it votes for, which costs are about, then by its scores."""
        return np.stack(self._ask(self._ranking_of, X[:n_rows]), axis=1), np.zeros(n_rows, np.bool_)

    def ballots(self, X: NDArray[Any], n_rows: int, threat: Threat, exact: bool, time_limit: float) -> Ballots:
        """Votes and bounds on the cost of every change of a vote."""
        return self._collect(X, n_rows, threat, exact)[0]

    def attacks(
        self, X: NDArray[Any], n_rows: int, threat: Threat, exact: bool, time_limit: float
    ) -> list[Witness | None]:
        """The attack behind the upper radius of each row."""
        ballots, known = self._collect(X, n_rows, threat, exact, map_threads)
        witnesses: list[Witness | None] = [None] * n_rows
        for t, plan in self.outcome(threat).changed_votes(ballots).items():
            turned = np.flatnonzero(plan != ballots.votes[t]).tolist()
            witnesses[t] = Witness.union([self.in_whole_set(i, known[i].attack(t, int(plan[i]))) for i in turned])
        return witnesses

    def _collect(
        self,
        X: NDArray[Any],
        n_rows: int,
        threat: Threat,
        exact: bool,
        spread: Callable[..., list[Any]] = map_tasks,
    ) -> tuple[Ballots, list[FlipCosts]]:
        """Votes and costs of all voters."""
        known = self._ask(partial(self._costs_of, threat, exact), X[:n_rows], spread)
        votes = np.stack([own.prediction for own in known], axis=1)
        lower, upper = (
            np.stack([self.lifted(costs[i], i, threat, proven) for i in range(len(known))], axis=1)
            for costs, proven in (([own.lower for own in known], True), ([own.upper for own in known], False))
        )
        sensitive = np.any([own.sensitive for own in known], axis=0)
        if rows_come(threat):
            # What attacks insert was not made for a partition.
            upper[:] = threat.unreachable(self.labels)
        # No vote changes without a flip, whatever a base classifier says.
        np.maximum(lower, 1, out=lower)
        for costs in (lower, upper):
            np.put_along_axis(costs, votes[:, :, None], 0, axis=2)
        # Voters were told of the label space: with a class of it removed, anything could be.
        steady = np.zeros(n_rows, np.bool_)
        can_turn = self.can_be_turned(threat)
        return Ballots(votes, lower, upper, can_turn, self.labels, steady, sensitive, threat), known

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

    def _ranking_of(self, asked: tuple[int, NDArray[Any]]) -> NDArray[np.int64]:
        voter, rows = self.voters[asked[0]], asked[1]
        return rank(voter.model, self._seen_by(voter, rows), self._classes, first=self._vote_of(asked))

    def _costs_of(self, threat: Threat, exact: bool, asked: tuple[int, NDArray[Any]]) -> FlipCosts:
        i, rows = asked
        voter = self.voters[i]
        return costs_of_vote(voter, self.parts[i], self._classes, self._seen_by(voter, rows), threat, exact)

    def _seen_by(self, voter: Voter, rows: NDArray[Any]) -> NDArray[Any]:
        """Rows as the voter's classifier takes them."""
        own = np.ascontiguousarray(rows[:, voter.rows]) if self._pairwise else voter.seen(rows)
        return inputs_of_final_step(voter.estimator, own)

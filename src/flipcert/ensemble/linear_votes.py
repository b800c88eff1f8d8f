"""Votes of label-linear classifiers, with the costs of all changes in units of any threat."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from flipcert.ensemble.black_box import blackbox_ballots
from flipcert.ensemble.closing import close_plans
from flipcert.ensemble.colluding import Collusion
from flipcert.ensemble.electorate import Electorate, step_of
from flipcert.ensemble.linear_rankings import exact_rankings, reversing_costs
from flipcert.ensemble.open_vote import OpenVote
from flipcert.ensemble.placing import placed, room_for_placing
from flipcert.ensemble.voter_weights import VoterWeights
from flipcert.ensemble.voters import Voter
from flipcert.ensemble.votes.ballots import Ballots
from flipcert.ensemble.votes.rule import VoteRule
from flipcert.exceptions import CertificateError
from flipcert.flips._jit.reach import BEST
from flipcert.flips.against import attack_against, costs_against
from flipcert.flips.costs import score_block
from flipcert.flips.new_rows import NewRows
from flipcert.labels.labels import Labels
from flipcert.labels.threats import FLIPS, SOURCES, Threat
from flipcert.linear.insertions import Insertions
from flipcert.results.certificates import Certificates
from flipcert.results.witness import Witness


class LinearVotes(Electorate):
    """Voters that are label-linear: whatever is known of them follows from their weights."""

    def __init__(self, voters: list[Voter], labels: Labels, rule: VoteRule, pairwise: bool) -> None:
        super().__init__(voters, labels, rule)
        self.weights = VoterWeights(voters, pairwise)
        self._labels = self.weights.labels
        self._open = OpenVote(labels, [voter.members for voter in voters], self.weights.bounds)
        self._no_offset = np.zeros(self.n_classes)
        # What new rows weigh is known of classifiers that see rows as they are.
        self._insertions = [None if voter.transforms else voter.label_linear.insertions for voter in voters]

    def to_send(self, threat: Threat) -> Electorate:
        """All that answers questions: without the classifiers, if one product stands for them."""
        slim = copy(self)
        slim.weights = self.weights.slim()
        if not threat.changes_rows:
            slim._insertions = []
        if slim.weights is self.weights:
            return slim
        slim.voters = [Voter(None, voter.members, voter.can_turn, voter.rows) for voter in self.voters]
        return slim

    def trusting(self, labels: Labels) -> Self:
        """The same voters, where other labels are trusted: votes and weights are as they were."""
        same = copy(self)
        for known in ("parts", "_sources", "_collusion"):
            same.__dict__.pop(known, None)
        same.labels, movable = labels, labels.coded.movable
        same.voters = [replace(own, can_turn=bool(movable[own.members].any())) for own in self.voters]
        same.can_turn = np.array([voter.can_turn for voter in same.voters])
        same.weights = copy(self.weights)
        same.weights.labels = same._labels = [
            Labels.of(own.codes, own.n_classes, ~movable[voter.members], own.space_is_fixed, own.sources)
            for own, voter in zip(self._labels, self.voters, strict=True)
        ]
        same._open = OpenVote(labels, [voter.members for voter in same.voters], same.weights.bounds)
        return same

    def release(self) -> None:
        """Give up the memory of the weights."""
        self.weights.release()

    def why(self, X: NDArray[Any], small: bool) -> str:
        """What in some voter makes weights so small, or so large."""
        return self.weights.why(X, small)

    @property
    def bytes_per_row(self) -> int:
        """Memory of the weights."""
        return self.weights.bytes_per_row

    def certify(self, X: NDArray[Any], n_rows: int, threat: Threat, exact: bool, time_limit: float) -> Certificates:
        """Winner and radii of each row."""
        certificates = self.outcome(threat).certify(self._closed_ballots(X, n_rows, threat, exact, time_limit))
        if threat is not SOURCES or self.outcome(threat) is self.rule:
            return certificates
        upper, target = certificates.radius_upper.copy(), np.full(n_rows, -1)
        for t, found in enumerate(self._collusions(X, n_rows, certificates.prediction)):
            if found is not None:
                upper[t], target[t] = len(found[0]) - 1, found[1]
        if np.any(upper < certificates.radius):
            raise CertificateError("fewer sources than are certified change a vote; please report this block.")
        return replace(certificates, radius_upper=upper, target=np.ma.masked_less(target, 0))

    def _collusions(self, X: NDArray[Any], n_rows: int, winners: NDArray[np.int64]) -> list[tuple[Witness, int] | None]:
        """Attacks by sources that touch several partitions, and who wins then, where one is found."""
        with self.weights.lent(X, n_rows) as (weights, _):
            most = SOURCES.limit(self.labels)
            return [
                self._collusion.attack(row, int(winner), most) for row, winner in zip(weights, winners, strict=True)
            ]

    @cached_property
    def _collusion(self) -> Collusion:
        return Collusion(self.labels, self.parts, [voter.members for voter in self.voters])

    def ballots(self, X: NDArray[Any], n_rows: int, threat: Threat, exact: bool, time_limit: float) -> Ballots:
        """Votes and bounds on the cost of every change of a vote, equal ones if ``exact``."""
        if threat.changes_rows and not self._knows_new_rows(threat):
            return self._poll(X, n_rows, threat)
        return self.all_costs(X, n_rows, BEST, time_limit if exact else None, threat)

    def all_costs(
        self, X: NDArray[Any], n_rows: int, kind: int, time_limit: float | None, threat: Threat = FLIPS
    ) -> Ballots:
        """Votes and bounds of one kind on all costs; the gap between them is closed if there is time for that."""
        shape = (n_rows, len(self.voters))
        votes = np.empty(shape, np.int64)
        lower, upper = (np.empty((*shape, self.n_classes), np.int64) for _ in range(2))
        offset, sensitive = np.zeros((n_rows, self.n_classes)), np.zeros(n_rows, np.bool_)
        steps, new_rows = step_of(threat), self._new_rows(threat, X[:n_rows])
        with self.weights.lent(X, n_rows) as (weights, tolerance):
            for i, labels in enumerate(self._labels):
                own = np.ascontiguousarray(weights[:, self.weights.of(i)])
                new = self._of_voter(new_rows, i, threat)
                costs = costs_against(steps, own, labels, offset, kind, tolerance[:, i], time_limit, new)
                votes[:, i] = costs.prediction
                sensitive |= costs.sensitive
                lower[:, i] = self.lifted(costs.lower, i, threat, proven=True)
                upper[:, i] = self.lifted(costs.upper, i, threat, proven=False)
            # Who has no row left votes for the first class of whatever label space is left.
            steady = np.array([not threat.changes_rows and self._open.is_steady(row) for row in weights])
        return Ballots(votes, lower, upper, self.can_be_turned(threat), self.labels, steady, sensitive, threat)

    def attacks(
        self, X: NDArray[Any], n_rows: int, threat: Threat, exact: bool, time_limit: float
    ) -> list[Witness | None]:
        """The attacks on all voters that the cheapest known change of a vote turns."""
        if threat is SOURCES and self.outcome(threat) is not self.rule:
            winners = self.rule.scores(self.votes(X, n_rows), self.n_classes).argmax(axis=1)
            return [None if own is None else own[0] for own in self._collusions(X, n_rows, winners)]
        ballots = self._closed_ballots(X, n_rows, threat, exact, time_limit)
        plans = self.outcome(threat).changed_votes(ballots)
        witnesses: list[Witness | None] = [None] * n_rows
        if not plans:
            return witnesses
        new_rows = self._new_rows(threat, X[:n_rows])
        with self.weights.lent(X, n_rows) as (weights, _):
            for t, plan in plans.items():
                parts = []
                for i in np.flatnonzero(plan != ballots.votes[t]).tolist():
                    own, to = weights[t, self.weights.of(i)], int(plan[i])
                    cost = int(ballots.upper[t, i, to])
                    new = None if new_rows is None else self._of_voter(new_rows.of(slice(t, t + 1)), i, threat)
                    found = attack_against(threat, own, self._labels[i], self._no_offset, to, cost, time_limit, new)
                    if new is not None and found.inserted_labels.size:
                        found = self._placed(found, i, X[t], float(new.real[0]))
                    parts.append(self.in_whole_set(i, found))
                witnesses[t] = Witness.union(parts)
        return witnesses

    def _knows_new_rows(self, threat: Threat) -> bool:
        """Whether it is known what rows that come or go do to the weights of all voters."""
        return all(own is not None and own.refusal(step_of(threat)) is None for own in self._insertions)

    def _new_rows(self, threat: Threat, X: NDArray[Any]) -> NewRows | None:
        """What new rows weigh, the same for all voters; a little less for attacks, which have to place them."""
        if not threat.changes_rows:
            return None
        known: Insertions = self._insertions[0]  # type: ignore[assignment]
        new_rows = known.new_rows(step_of(threat), X)
        return replace(new_rows, real=new_rows.real * (1.0 - room_for_placing(X.dtype)))

    def _of_voter(self, new_rows: NewRows | None, i: int, threat: Threat) -> NewRows | None:
        """The same with how many operations one voter allows for."""
        if new_rows is None:
            return None
        known: Insertions = self._insertions[i]  # type: ignore[assignment]
        return replace(new_rows, within=known.within(step_of(threat)))

    def _placed(self, attack: Witness, i: int, point: NDArray[Any], needed: float) -> Witness:
        """The attack with inputs that really lie in the partition of a voter, and weigh what they have to."""
        known: Insertions = self._insertions[i]  # type: ignore[assignment]
        for row in placed(attack.inserted[0].astype(point.dtype), i, len(self.voters)):
            if known.weights_of(point[None], row[None])[0] > needed:
                return replace(attack, inserted=np.repeat(row[None], attack.inserted_labels.size, axis=0))
        raise CertificateError(f"no input next to the one that is best lies in partition {i}; please report this row.")

    def _poll(self, X: NDArray[Any], n_rows: int, threat: Threat) -> Ballots:
        """Votes, any of which one unit of the threat may turn."""
        votes, sensitive = self.cast(X, n_rows)
        # Who has no row left votes for the first class of whatever label space is left.
        return replace(blackbox_ballots(self, votes, threat, steady=False), sensitive=sensitive)

    def cast(self, X: NDArray[Any], n_rows: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Class index that each voter votes for, and whether rounding might change one of a row."""
        votes, offset = np.empty((n_rows, len(self.voters)), np.int64), np.zeros((n_rows, self.n_classes))
        sensitive = np.zeros(n_rows, np.bool_)
        with self.weights.lent(X, n_rows) as (weights, tolerance):
            for i, labels in enumerate(self._labels):
                own = np.ascontiguousarray(weights[:, self.weights.of(i)])
                scores, votes[:, i] = score_block(own, labels, offset)
                second, first = np.sort(scores, axis=1)[:, -2:].T
                sensitive |= (tolerance[:, i] > 0) & (first - second <= tolerance[:, i])
        return votes, sensitive

    def rankings(self, X: NDArray[Any], n_rows: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Class indices by the exact scores of each voter, best first, and whether rounding might change a row."""
        rankings = np.empty((n_rows, len(self.voters), self.n_classes), np.int64)
        sensitive = np.zeros(n_rows, np.bool_)
        with self.weights.lent(X, n_rows) as (weights, tolerance):
            for i, labels in enumerate(self._labels):
                own = np.ascontiguousarray(weights[:, self.weights.of(i)])
                rankings[:, i], closest = exact_rankings(own, labels)
                sensitive |= (tolerance[:, i] > 0) & (closest <= tolerance[:, i])
        return rankings, sensitive

    def reversing_costs(
        self, X: NDArray[Any], n_rows: int, rivals: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Flips that have each voter prefer each class to the rival of the row, and whether rounding might change any.

        Exact: the cheapest way to lift one class above one other.
        """
        costs = np.empty((n_rows, len(self.voters), self.n_classes), np.int64)
        sensitive = np.zeros(n_rows, np.bool_)
        with self.weights.lent(X, n_rows) as (weights, tolerance):
            for i, labels in enumerate(self._labels):
                own = np.ascontiguousarray(weights[:, self.weights.of(i)])
                found, margin = reversing_costs(own, labels, rivals)
                costs[:, i] = self.lifted(found, i)
                sensitive |= (tolerance[:, i] > 0) & (margin <= tolerance[:, i])
        return costs, sensitive

    def _closed_ballots(self, X: NDArray[Any], n_rows: int, threat: Threat, exact: bool, time_limit: float) -> Ballots:
        """Ballots with bounds; if ``exact``, those are solved that the cheapest change of a vote uses."""
        ballots = self.ballots(X, n_rows, threat, False, time_limit)
        if not exact or threat.changes_rows or self.outcome(threat) is not self.rule:
            return ballots
        with self.weights.lent(X, n_rows) as (weights, _):

            def solve(t: int, i: int, target: int) -> int:
                own, offset = weights[t : t + 1, self.weights.of(i)], self._no_offset[None]
                costs = costs_against(threat, own, self._labels[i], offset, BEST, None, time_limit)
                return int(self.lifted(costs.lower, i, threat, proven=True)[0, target])

            close_plans(ballots, solve)
        return ballots

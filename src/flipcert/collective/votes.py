"""One attack on points of a partition ensemble: what it can change at most, and what was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing

from flipcert.collective.ballot_effects import BallotEffects
from flipcert.collective.bound import changed_at_most
from flipcert.collective.effects import Columns
from flipcert.collective.facing import Facing
from flipcert.collective.linear import relabelled
from flipcert.collective.mixed import Mixed
from flipcert.collective.one_by_one import OneByOne
from flipcert.collective.search import Search
from flipcert.collective.vote_attack import VoteAttack
from flipcert.collective.vote_effects import VoteEffects
from flipcert.collective.vote_points import VotePoints
from flipcert.engine.blocks import block_rows, filled, map_threads, memory_budget
from flipcert.engine.clock import working_time
from flipcert.engine.watch import current_watcher
from flipcert.ensemble.black_box import BlackBox, blackbox_ballots
from flipcert.ensemble.electorate import Electorate
from flipcert.ensemble.partition_ensemble import PartitionEnsemble
from flipcert.ensemble.votes.ballots import Ballots
from flipcert.ensemble.white_box import WhiteBox
from flipcert.flips.costs import score_block
from flipcert.labels.encoding import class_indices
from flipcert.labels.labels import Labels
from flipcert.labels.threats import FLIPS, Threat
from flipcert.labels.training_set import read_test_inputs
from flipcert.results.certificates import Certificates
from flipcert.results.witness import Witness

# Part of the time that goes to proofs; attacks have the rest. And part of that for what costs of votes prove alone.
_FOR_PROOFS, _FOR_TURNS = 0.6, 0.4
# Points whose costs are asked for at once: between them there is a look at the clock.
_AT_ONCE = 256
# Numbers that an attack holds of votes, at most: points, voters and classes.
_ROOM = 2**25


class Poll(NamedTuple):
    """Votes on some points: who votes for what, what turning each voter costs at least, and whose votes are steady."""

    votes: NDArray[np.int64]
    costs: NDArray[np.int64]
    steady: NDArray[np.bool_]


class FacingVotes(Facing):
    """Points on which voters vote, none of whom shares a flip (or source) with another.

    Parameters
    ----------
    model : PartitionEnsemble
        The ensemble.
    X : array-like
        All test inputs.
    threat : Threat
        Flips, or sources each of which touches one partition.
    certificates : Certificates
        What is known of each point by itself.
    alone : OneByOne
        The same as attacks on one point.
    """

    def __init__(
        self, model: PartitionEnsemble, X: ArrayLike, threat: Threat, certificates: Certificates, alone: OneByOne
    ) -> None:
        self._model, self._X, self._threat = model, X, threat
        self._prediction = class_indices(
            certificates.prediction, model.classes_, "{label} is none of the classes {classes}."
        )
        self._radius_upper = certificates.radius_upper
        self._alone = alone
        self.replays = self._shares_flips
        self._rows = np.empty(0, np.int64)
        self._points: VotePoints | None = None
        # What the linear program of each budget would choose, and what was proven.
        self._favourites: dict[int, Columns] = {}
        self._proven: dict[int, int] = {}
        self._poll = Poll(np.empty((0, 0), np.int64), np.empty((0, 0, 0), np.int64), np.empty(0, np.bool_))

    def at_most(self, budgets: NDArray[np.int64], threatened: NDArray[np.bool_], deadline: float) -> NDArray[np.int64]:
        """The bounds of ``bound.py`` for voters that are turned, and for labels of label-linear ones."""
        if not threatened.any():
            return np.zeros(budgets.size, np.int64)
        now = working_time()
        until = now + _FOR_PROOFS * (deadline - now)
        rows = self._prepared(np.flatnonzero(threatened.any(axis=0)), until)
        bounded = np.stack([self._bounded(rows, own[rows], int(r)) for own, r in zip(threatened, budgets, strict=True)])
        # Of all others nothing is known.
        more = threatened.sum(axis=1) - bounded.sum(axis=1)
        best = dict(zip(budgets.tolist(), threatened.sum(axis=1).tolist(), strict=True))
        watcher = current_watcher()

        def told(budget: int, proven: int) -> None:
            proven += int(more[np.searchsorted(budgets, budget)])
            if proven < best[budget]:
                best[budget] = proven
                watcher.narrowed(budget, at_most=proven)

        turns: dict[int, Search] = {}
        for place, budget in enumerate(budgets.tolist()):
            effects = VoteEffects(self._poll.votes, self._poll.costs, budget)
            now = working_time()
            soon = now + _FOR_TURNS * (until - now) / (budgets.size - place)
            (turns[budget],) = changed_at_most(effects, budgets[[place]], bounded[[place]], soon, told)
            told(budget, turns[budget].at_most)
        if self._shares_flips and working_time() < until:
            points = self._points_of(rows)
            # Points that are not bounded have votes that mean nothing here, and no part in it.
            bounded &= (points.votes == self._poll.votes).all(axis=1)
            more = threatened.sum(axis=1) - bounded.sum(axis=1)
            ballots = BallotEffects(points, VoteEffects(self._poll.votes, self._poll.costs, int(budgets[-1])))

            def mixed(search: Search) -> Search | None:
                other = turns[search.budget]
                return Mixed(search, other, points.voter, until) if Mixed.begins(search, other) else None

            for search in changed_at_most(ballots, budgets, bounded, until, told, mixed):
                self._favourites[search.budget] = search.favourites
        self._proven |= best
        return np.array([best[budget] for budget in budgets.tolist()])

    def _points_of(self, rows: NDArray[np.int64]) -> VotePoints:
        """Weights of all voters on the rows whose votes are at hand."""
        if self._points is None:
            self._points = VotePoints(self._model.electorate_, self._inputs(), rows, self._model.n_jobs)
        return self._points

    def _inputs(self) -> NDArray[Any]:
        """All rows as voters take them."""
        model = self._model
        inputs: NDArray[Any] = read_test_inputs(model, self._X, [model.dtype_])
        return inputs

    def _bounded(self, rows: NDArray[np.int64], threatened: NDArray[np.bool_], budget: int) -> NDArray[np.bool_]:
        """Threatened points of which votes prove something."""
        winner = self._model.electorate_.rule.scores(self._poll.votes, self._model.classes_.size).argmax(axis=1)
        # In other blocks, products may round in another way; if that matters, anything may be.
        proven = threatened & (winner == self._prediction[rows])
        if budget >= self._threat.to_remove(self._model._labels).min():
            # Voters that nobody touches may vote otherwise once a class is gone.
            proven &= self._poll.steady
        return proven

    def _prepared(self, rows: NDArray[np.int64], until: float) -> NDArray[np.int64]:
        """Rows whose votes are at hand: those asked for, and maybe others that were asked for before."""
        if not np.isin(rows, self._rows).all():
            self._rows, self._poll, self._points = rows, self._polled(rows, until), None
        return self._rows

    def _polled(self, rows: NDArray[np.int64], until: float) -> Poll:
        """Votes, with the costs of as many points as there is time for; one unit may do anything to the others."""
        electorate, threat = self._model.electorate_, self._threat
        if isinstance(electorate, WhiteBox):
            return self._polled_in_blocks(electorate, rows, until)
        asked = _safe_indexing(self._X, rows)
        votes = self._model._votes(asked)
        is_black_box = isinstance(electorate, BlackBox)
        poll = _unknown(electorate, votes, threat, steady=is_black_box and not electorate.any_empty)

        def ballots(voters: Electorate, block: NDArray[Any], n_rows: int) -> Ballots:
            return voters.ballots(block, n_rows, threat, False, 0.0)

        for start in range(0, 0 if is_black_box else rows.size, _AT_ONCE):
            if working_time() > until:
                break
            places = np.arange(start, min(start + _AT_ONCE, rows.size))
            parts = self._model.ask(_safe_indexing(asked, places), ballots, threat=threat)
            same = (np.concatenate([part.votes for part in parts]) == votes[places]).all(axis=1)
            poll.costs[places[same]] = np.concatenate([part.lower for part in parts])[same]
            poll.steady[places[same]] = np.concatenate([part.steady for part in parts])[same]
        return poll

    def _polled_in_blocks(self, electorate: WhiteBox, rows: NDArray[np.int64], until: float) -> Poll:
        """The same from the very weights that a job on all rows uses: whole blocks of it are formed."""
        threat, inputs = self._threat, self._inputs()
        poll = _unknown(electorate, self._model._votes(self._X)[rows], threat, steady=False)
        height = block_rows(inputs.shape[0], electorate.bytes_per_row)

        def ballots(start: int) -> Ballots | None:
            if working_time() > until:
                return None
            block = inputs[start : start + height]
            return electorate.ballots(filled(block, height), block.shape[0], threat, False, 0.0)

        starts = np.unique(rows // height * height)
        for start, part in zip(starts, map_threads(ballots, starts.tolist(), self._model.n_jobs), strict=True):
            places = np.flatnonzero(rows // height * height == start)
            if part is not None:
                poll.costs[places] = part.lower[rows[places] - start]
                poll.steady[places] = part.steady[rows[places] - start]
        electorate.release()
        return poll

    def attacks(
        self,
        budgets: NDArray[np.int64],
        threatened: NDArray[np.bool_],
        deadline: float,
        alone: Sequence[Witness | None],
    ) -> list[Witness | None]:
        """Exchanges of labels of label-linear voters; of others, the smallest known attack on one threatened point."""
        if not self._shares_flips or not threatened.any():
            return [*alone]
        found: list[Witness | None] = []
        for place, budget in enumerate(budgets.tolist()):
            # A budget may do at least what a smaller one did.
            known = [own for own in (*found[-1:], alone[place]) if own is not None]
            until = working_time() + (deadline - working_time()) / (budgets.size - place)
            if budget == 0 or not threatened[place].any() or working_time() >= until:
                found.append(known[0] if known else None)
                continue
            points, own = self._attacked(threatened[place], until)
            column = np.empty(points.labels.n_labels, np.int64)
            column[points.members] = np.arange(column.size)
            starts = [Witness(column[own.indices], own.labels) for own in known]
            favourites = self._favourites.get(budget)
            if favourites is not None:
                starts.append(Witness(favourites.unit, favourites.option))
            # Weights may be so large or small that sums of them are not: then less is found.
            with np.errstate(all="ignore"):
                attack = VoteAttack(points, own, budget, until)
                found.append(attack.find(starts, self._proven.get(budget, own.size)))
        return found

    def _attacked(self, threatened: NDArray[np.bool_], until: float) -> tuple[VotePoints, NDArray[np.int64]]:
        """Points whose weights are held, and places of threatened ones: as many as there is room for, the nearest."""
        electorate, rows = self._model.electorate_, np.flatnonzero(threatened)
        size = min(
            _ROOM // (len(electorate.voters) * electorate.n_classes), memory_budget() // electorate.bytes_per_row
        )
        if rows.size > size:
            nearest = np.argsort(self._radius_upper[rows], kind="stable")[: max(1, size)]
            rows = np.sort(rows[nearest])
        if not np.isin(rows, self._rows).all() or self._rows.size > size:
            return VotePoints(electorate, self._inputs(), rows, self._model.n_jobs), np.arange(rows.size)
        return self._points_of(self._rows), np.searchsorted(self._rows, rows)

    @property
    def _shares_flips(self) -> bool:
        """Whether it is known what the same flips do to all points."""
        return isinstance(self._model.electorate_, WhiteBox) and self._threat is FLIPS

    def predictions_after(self, attack: Witness) -> NDArray[np.int64]:
        """Weights do not depend on labels: the same voters with other labels are what a new fit would be."""
        if not self._shares_flips:
            return self._alone.predictions_after(attack)
        labels, left = relabelled(self._model._labels, attack)

        def votes(voters: Electorate, block: NDArray[Any], n_rows: int) -> NDArray[np.int64]:
            assert isinstance(voters, WhiteBox)
            counts = np.zeros((n_rows, left.size), np.int64)
            offset = np.zeros(counts.shape)
            with voters.weights.lent(block, n_rows) as (weights, _):
                for i, voter in enumerate(voters.voters):
                    own = Labels.of(labels.codes[voter.members], left.size)
                    _, vote = score_block(np.ascontiguousarray(weights[:, voters.weights.of(i)]), own, offset)
                    counts[np.arange(n_rows), vote] += 1
            return counts.argmax(axis=1)

        return left[np.concatenate(self._model.ask(self._X, votes))]


def _unknown(electorate: Electorate, votes: NDArray[np.int64], threat: Threat, steady: bool) -> Poll:
    """Votes that one unit of a threat may turn to anything."""
    known = blackbox_ballots(electorate, votes, threat, steady)
    return Poll(votes, known.lower, known.steady)

"""Rows of weights too long to be held: passes over the training samples answer what a whole row would.

The first pass adds up scores and counts weights by size. The counts tell how large the weights are that close the gap
between the classes, and how many there are; the next pass picks just those, and they go on a ladder as ever. A ladder
that turns out too short is made longer by another pass; a row that doubles cannot decide gets exact scores by one more.
So memory depends on the budget and on the number of flips, not on the number of samples.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.blocks import map_threads, memory_budget
from flipcert.engine.tiles import tiles
from flipcert.exceptions import CertificateError
from flipcert.flips._jit.ladder import TRUNCATED, UNDECIDED, highest, leader, runner_up
from flipcert.flips._jit.reach import cheapest_change
from flipcert.flips._jit.sources import add_cells
from flipcert.flips._jit.stream import BITS_OF_EIGHTHS, N_SIZES
from flipcert.flips.chosen import Chosen, ChosenDoubles, ChosenIntegers, ExactSums, as_fixed
from flipcert.flips.costs import Radii
from flipcert.flips.passes import BATCH, Survey, Tiles, add_exactly, bytes_of_exact_sums, choose, survey
from flipcert.flips.rows import Row
from flipcert.labels.labels import Labels
from flipcert.results.witness import Witness

Answer = TypeVar("Answer")

# How much farther than the gap between the classes a ladder reaches, try by try; in the end it is the whole row.
_REACH = (1.25, 4.0, 16.0, np.inf)
# A ladder has at least so many rungs, however small the gap.
_FEWEST = 64
# Part of the memory budget for what a pass picks; bytes of a picked weight, twice, and of a rung.
_PART, _PICKED, _RUNG = 4, 32, 80
# The smallest weight of each size; those of the first octave stand for all that are smaller.
_OCTAVE = 1 << BITS_OF_EIGHTHS
_SMALLEST = np.ldexp(1.0 + np.arange(N_SIZES) % _OCTAVE / _OCTAVE, np.arange(N_SIZES) // _OCTAVE - 127)


class _Selection(NamedTuple):
    """Which weights of a row to pick: the class ahead, the floor, and at most how many there are above."""

    row: int
    first: int
    single: float
    most: int


class _Attack(NamedTuple):
    """Flips that change a prediction, the class that is predicted without them, and the weights of their samples."""

    witness: Witness
    first: int
    values: NDArray[Any]


class StreamedRows:
    """A block of rows, met tile by tile.

    Parameters
    ----------
    tiles : Tiles
        The weights.
    labels : Labels
        Training labels.
    offset : ndarray of shape (n_rows, n_classes)
        Label-independent part of the scores.
    """

    weights = None

    def __init__(self, tiles: Tiles, labels: Labels, offset: NDArray[np.float64]) -> None:
        self._tiles = tiles
        self._labels = labels
        self._offset = offset
        self._exact: dict[int, ExactSums] = {}

    def scores(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Scores (rounded) and predictions (exact)."""
        found = self._survey
        prediction = np.array([leader(own, slack) for own, slack in zip(found.scores, found.slack, strict=True)])
        undecided = np.flatnonzero(prediction == UNDECIDED).tolist()
        self._add_exactly(undecided)
        for t in undecided:
            exact = self._exact[t].scores
            prediction[t] = exact.index(max(exact))
        return found.scores, prediction

    def radii(self) -> Radii:
        """Exact cost of changing the prediction of each row."""

        def found(t: int, row: Row, _: Chosen, answer: tuple[int, int, int, Any]) -> tuple[Any, ...]:
            cost, first, winner, margin = answer
            return first, row.runner_up if self._labels.n_classes > 1 else first, cost, winner, row.as_float(margin)

        columns = zip(*self._changes(found), strict=True)
        prediction, second, cost, target = (np.array(next(columns), np.int64) for _ in range(4))
        return Radii(prediction, second, cost, target, np.array(next(columns), np.float64))

    def witnesses(self) -> list[Witness | None]:
        """Fewest flips that change the prediction of each row; None if nothing does."""

        def found(t: int, row: Row, chosen: Chosen, answer: tuple[int, int, int, Any]) -> _Attack | None:
            cost, first, winner, _ = answer
            if winner < 0:
                return None
            witness = row.recorded(cost)
            return _Attack(witness, first, chosen.values_of(witness.indices))

        attacks = self._changes(found)
        in_doubt = [t for t, own in enumerate(attacks) if own is not None and not self._works(t, own)]
        self._add_exactly(in_doubt)
        for t in in_doubt:
            self._replay_exactly(t, attacks[t])
        return [None if own is None else own.witness for own in attacks]

    def _works(self, t: int, attack: _Attack) -> bool:
        """Whether another class wins by more than rounding once the flips are made; False if in doubt."""
        after = self._survey.scores[t].copy()
        with np.errstate(over="ignore", invalid="ignore"):
            np.subtract.at(after, self._labels.codes[attack.witness.indices], attack.values)
            np.add.at(after, attack.witness.labels, attack.values)
        return bool(leader(after, self._survey.slack[t]) not in (UNDECIDED, attack.first))

    def _replay_exactly(self, t: int, attack: _Attack | None) -> None:
        """Raise CertificateError unless another class wins once the flips are made."""
        assert attack is not None
        scores = list(self._exact[t].scores)
        flips = zip(attack.witness.indices, attack.witness.labels, attack.values.tolist(), strict=True)
        for i, new, value in flips:
            scores[self._labels.codes[i]] -= as_fixed(value)
            scores[new] += as_fixed(value)
        if scores.index(max(scores)) == attack.first:
            raise CertificateError("a witness did not change the prediction when replayed; please report this row.")

    def totals(self) -> NDArray[np.float64]:
        """Sum of the magnitudes of all weights of each row."""
        return self._survey.total

    def cell_sums(
        self, rows: slice, of: NDArray[np.int64], n_cells: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Positive weights and magnitudes of negative ones of some rows, added up by the cell that each label is in."""
        shape = (rows.stop - rows.start, n_cells)
        plus, minus = np.zeros(shape), np.zeros(shape)
        # Sums of so many tiles are held at the same time.
        at_once = max(1, memory_budget() // _PART // (16 * BATCH * min(n_cells, tiles(self._tiles.n_samples)[0].stop)))
        for begin in range(0, shape[0], at_once):
            own = slice(begin, min(begin + at_once, shape[0]))
            asked = slice(rows.start + own.start, rows.start + own.stop)
            for local, above, below in self._tiles.map(partial(_cells_of_tile, of, asked)):
                # Rows that overflow here are added up again, exactly.
                with np.errstate(over="ignore"):
                    plus[own, local] += above
                    minus[own, local] += below
        return plus, minus

    def at(self, samples: NDArray[np.int64]) -> NDArray[Any]:
        """Weights of some training samples."""
        columns = np.empty((self._tiles.n_rows, samples.size), self._tiles.dtype)

        def pick(tile: slice, weights: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
            own = np.flatnonzero((samples >= tile.start) & (samples < tile.stop))
            return own, weights[:, samples[own] - tile.start]

        for own, values in self._tiles.map(pick):
            columns[:, own] = values
        return columns

    def row(self, t: int) -> NDArray[Any]:
        """All weights of one row."""
        return np.concatenate(list(self._tiles.map(lambda _, weights: weights[t].copy())))

    @cached_property
    def _survey(self) -> Survey:
        return survey(self._tiles, self._labels, self._offset)

    @cached_property
    def _sizes(self) -> NDArray[np.int64]:
        """Number of labels of each class."""
        return np.bincount(self._labels.codes, minlength=self._labels.n_classes)

    def _changes(self, found: Callable[[int, Row, Chosen, Any], Answer]) -> list[Answer]:
        """``found(t, row, chosen, answer)`` for each row and its cheapest change of prediction."""
        results: dict[int, Answer] = {}
        tries = dict.fromkeys(range(self._tiles.n_rows), 0)
        # Rows that need more than doubles with an error bound.
        undecided = {t for t in tries if not self._survey.slack[t] < np.inf}

        def decide(task: tuple[int, Chosen]) -> tuple[int, Answer | None]:
            t, chosen = task
            row = self._row(t, chosen, t in undecided)
            answer = row.run(cheapest_change, row.slack, self._labels.unreachable)
            return (answer[0], None) if answer[0] < 0 else (0, found(t, row, chosen, answer))

        while tries:
            self._add_exactly(sorted(undecided))
            for group in self._groups(tries):
                rows = [plan.row for plan in group]
                picked = choose(
                    self._tiles, self._labels, rows, [plan.first for plan in group], [plan.single for plan in group]
                )
                longest = max(chosen.samples.size for chosen in picked)
                at_once = max(1, memory_budget() // _PART // (_RUNG * (longest + 1)))
                tasks = list(zip(rows, picked, strict=True))
                for t, (state, result) in zip(
                    rows, map_threads(decide, tasks, self._tiles.n_jobs, at_once), strict=True
                ):
                    if state == TRUNCATED:
                        tries[t] += 1
                    elif state == UNDECIDED:
                        if t in undecided:
                            raise CertificateError("integers left a comparison undecided; please report this row.")
                        undecided.add(t)
                    else:
                        results[t] = result  # type: ignore[assignment]
                        del tries[t]
        return [results[t] for t in range(self._tiles.n_rows)]

    def _row(self, t: int, chosen: Chosen, exactly: bool) -> Row:
        """One row, in doubles with an error bound or in arithmetic that is exact."""
        if exactly and not self._exact[t].fit_doubles:
            return ChosenIntegers(chosen, self._labels, self._exact[t])
        slack = 0.0 if exactly else self._survey.slack[t]
        return ChosenDoubles(chosen, self._labels, self._survey.scores[t], slack)

    def _groups(self, tries: dict[int, int]) -> list[list[_Selection]]:
        """Rows whose picked weights fit the memory together."""
        groups: list[list[_Selection]] = []
        room = 0
        for t, attempt in tries.items():
            plan = self._plan(t, _REACH[attempt])
            if not groups or plan.most * _PICKED > room:
                groups.append([])
                room = memory_budget() // _PART
            groups[-1].append(plan)
            room -= plan.most * _PICKED
        return groups

    def _plan(self, t: int, reach: float) -> _Selection:
        """Choose weights that, by their sizes, close the gap to the second class ``reach`` times."""
        scores, (others, negative) = self._survey.scores[t], self._survey.counts[t]
        counts, first = others + negative, int(highest(scores))
        with np.errstate(over="ignore", invalid="ignore"):
            gap = scores[first] - scores[runner_up(scores, first)] if scores.size > 1 else 0.0
            closed = np.cumsum((counts * _SMALLEST)[::-1]) >= reach * gap
        enough = np.flatnonzero(closed & (np.cumsum(counts[::-1]) >= _FEWEST))
        size = counts.size - 1 - int(enough[0]) if enough.size and reach < np.inf else 0
        if size < _OCTAVE:
            return _Selection(t, first, 0.0, int(counts.sum()))
        # Just below the smallest of this size, so that all of them are above; half of that is an octave down, where
        # only labels of the class ahead are picked, and negative weights.
        octave = slice(size - _OCTAVE, size)
        most = counts[size:].sum() + negative[octave].sum() + min(others[octave].sum(), self._sizes[first])
        return _Selection(t, first, float(np.nextafter(_SMALLEST[size], 0.0)), int(most))

    def _add_exactly(self, rows: list[int]) -> None:
        """Exact scores of some rows, unless they are known."""
        missing = [t for t in rows if t not in self._exact]
        together = max(1, memory_budget() // _PART // bytes_of_exact_sums(self._labels.n_classes))
        for begin in range(0, len(missing), together):
            own = missing[begin : begin + together]
            sums = add_exactly(self._tiles, self._labels, self._offset, self._survey.total, own)
            self._exact.update(zip(own, sums, strict=True))


def _cells_of_tile(
    of: NDArray[np.int64], rows: slice, samples: slice, tile: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """The cells that a tile has labels of, and what it adds to each."""
    local, place = np.unique(of[samples], return_inverse=True)
    own = np.ascontiguousarray(tile[rows])
    plus, minus = (np.zeros((own.shape[0], local.size)) for _ in range(2))
    add_cells(own, place, plus, minus)
    return local, plus, minus

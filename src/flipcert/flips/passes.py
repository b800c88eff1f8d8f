"""Passes over the weights of a block of rows, tile by tile: what is collected for each row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from flipcert.engine._jit.bits import lowest_bit
from flipcert.engine.blocks import map_threads, memory_budget
from flipcert.engine.buffers import Buffers
from flipcert.engine.magnitude import refuse_overflow
from flipcert.engine.tiles import tiles
from flipcert.flips._jit import stream
from flipcert.flips._jit.ladder import multiples_are_exact, rounding_slack
from flipcert.flips.chosen import Chosen, ExactSums, as_fixed
from flipcert.labels.labels import Coded, Labels

Answer = TypeVar("Answer")

# Tiles whose results are held at the same time, to be put together in order.
BATCH = 16
# For each number of bytes: the type of the bits, those below the digits that make a size, sizes before the first one.
_FORMATS = {
    4: (np.int32, 23 - stream.BITS_OF_EIGHTHS, 0),
    8: (np.int64, 52 - stream.BITS_OF_EIGHTHS, 896 << stream.BITS_OF_EIGHTHS),
}


@dataclass(frozen=True)
class Tiles:
    """Weights of a block of rows, tile by tile.

    Attributes
    ----------
    write : callable
        ``write(samples, out)`` writes the weights of a range of training samples.
    height, n_rows : int
        Rows that are written, and how many of them, the first ones, are meant.
    n_samples : int
        Number of training samples.
    dtype : dtype
        Type of the weights.
    n_jobs : int or None
        Threads.
    """

    write: Callable[[slice, NDArray[Any]], None]
    height: int
    n_rows: int
    n_samples: int
    dtype: np.dtype[Any]
    n_jobs: int | None = None

    def map(self, function: Callable[[slice, NDArray[Any]], Answer]) -> Iterator[Answer]:
        """Results of ``function(samples, weights)`` of all tiles, in order whatever the number of threads."""
        grid = tiles(self.n_samples)
        buffers = Buffers()
        at_once = max(1, memory_budget() // (self.height * grid[0].stop * self.dtype.itemsize))

        def one(samples: slice) -> Answer:
            with buffers.borrow((self.height, samples.stop - samples.start), self.dtype) as weights:
                self.write(samples, weights)
                return function(samples, weights[: self.n_rows])

        try:
            for begin in range(0, len(grid), BATCH):
                yield from map_threads(one, grid[begin : begin + BATCH], self.n_jobs, at_once)
        finally:
            buffers.close()


@dataclass(frozen=True)
class Survey:
    """Of each row: scores, the sum of all magnitudes, the error bound of sums, and how many weights have which size.

    ``counts`` has one table for weights that are not negative, and one for those that are.
    """

    scores: NDArray[np.float64]
    total: NDArray[np.float64]
    slack: NDArray[np.float64]
    counts: NDArray[np.int64]


def survey(weights: Tiles, labels: Labels, offset: NDArray[np.float64]) -> Survey:
    """Add up scores and count weights by size."""
    shape, sizes = offset.shape, (offset.shape[0], 2 * stream.N_SIZES)
    integers, shift, base = _FORMATS[weights.dtype.itemsize]

    def one(samples: slice, tile: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        sums, total, counts = np.zeros(shape), np.zeros(shape[0]), np.zeros(sizes, np.int32)
        codes = labels.coded.codes[samples]
        stream.survey_tile(tile, tile.view(integers), shift, base, codes, sums, total, counts)
        return sums, total, counts

    sums, counts = np.zeros(shape), np.zeros(sizes, np.int64)
    n_tiles = 0
    # What overflows here is added up again, exactly.
    with np.errstate(over="ignore", invalid="ignore"):
        total = np.abs(offset).sum(axis=1)
        for own_sums, own_total, own_counts in weights.map(one):
            sums += own_sums
            total += own_total
            counts += own_counts
            n_tiles += 1
        scores = offset + sums
    # Two scores take one more addition for each tile.
    n_terms = weights.n_samples + 2 * n_tiles + shape[1] + 8
    slack = np.array([rounding_slack(own, n_terms) for own in total])
    return Survey(scores, total, slack, counts.reshape(shape[0], 2, stream.N_SIZES))


def choose(
    weights: Tiles, labels: Labels, rows: Sequence[int], first: Sequence[int], single: Sequence[float]
) -> list[Chosen]:
    """Pick the weights of some rows that are above their floors (see ``Chosen``)."""
    own, ahead, floors = np.array(rows), np.array(first), np.array(single)
    coded = labels.coded

    def one(samples: slice, tile: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]:
        tile = tile if own.size == tile.shape[0] else tile[own]
        labels = Coded(coded.codes[samples], coded.movable[samples], coded.any_fixed)
        sizes = np.zeros(own.size, np.int64)
        stream.count_chosen(tile, labels, ahead, floors, sizes)
        start = np.append(0, np.cumsum(sizes))
        numbers, values = np.empty(start[-1], np.int64), np.empty(start[-1], tile.dtype)
        stream.pick_chosen(tile, labels, ahead, floors, start, samples.start, numbers, values)
        return start, numbers, values

    parts = list(weights.map(one))
    return [
        Chosen(
            samples=np.concatenate([numbers[start[k] : start[k + 1]] for start, numbers, _ in parts]),
            values=np.concatenate([values[start[k] : start[k + 1]] for start, _, values in parts]),
            first=int(ahead[k]),
            single=float(floors[k]),
        )
        for k in range(own.size)
    ]


def add_exactly(
    weights: Tiles, labels: Labels, offset: NDArray[np.float64], total: NDArray[np.float64], rows: Sequence[int]
) -> list[ExactSums]:
    """Exact scores of some rows, given the sums of all their magnitudes."""
    shape = (len(rows), labels.n_classes, stream.N_LIMBS)

    def one(samples: slice, tile: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        limbs, lowest = np.zeros(shape, np.int64), np.empty(len(rows), np.int64)
        for k, t in enumerate(rows):
            refuse_overflow(tile[t])
            lowest[k] = stream.add_exactly(tile[t], labels.coded.codes[samples], limbs[k])
        return limbs, lowest

    limbs = np.zeros(shape, np.int64)
    lowest = np.array([lowest_bit(offset[t], 2000, -2000) for t in rows])
    for own_limbs, own_lowest in weights.map(one):
        limbs += own_limbs
        lowest = np.minimum(lowest, own_lowest)
    return [
        ExactSums(
            scores=[as_fixed(float(b)) + _number(own) for b, own in zip(offset[t], limbs[k], strict=True)],
            fit_doubles=bool(multiples_are_exact(lowest[k], total[t])),
        )
        for k, t in enumerate(rows)
    ]


def bytes_of_exact_sums(n_classes: int) -> int:
    """What a row takes while it is added up."""
    return n_classes * stream.N_LIMBS * 8 * (BATCH + 1)


def _number(limbs: NDArray[np.int64]) -> int:
    return sum(int(limb) << (32 * place) for place, limb in enumerate(limbs))

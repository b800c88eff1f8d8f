"""Passes over the weights of a block of rows, tile by tile: what is collected for each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.engine._jit.bits import lowest_bit
from flipcert.engine.magnitude import refuse_overflow
from flipcert.flips._jit import stream
from flipcert.flips._jit.ladder import multiples_are_exact, rounding_slack
from flipcert.flips.chosen import Chosen, ExactSums, as_fixed
from flipcert.flips.streamed_tiles import Tile, Tiles
from flipcert.labels.labels import Labels

# For each number of bytes: the type of the bits, those below the digits that make a size, sizes before the first one.
_FORMATS = {
    4: (np.int32, 23 - stream.BITS_OF_EIGHTHS, 0),
    8: (np.int64, 52 - stream.BITS_OF_EIGHTHS, 896 << stream.BITS_OF_EIGHTHS),
}


@dataclass(frozen=True)
class Survey:
    """Of each row: scores, the sum of all magnitudes, the error bound of sums, and how many weights have which size.

    ``counts`` has one table for weights that are not negative, and one for those that are.
    """

    scores: NDArray[np.float64]
    total: NDArray[np.float64]
    slack: NDArray[np.float64]
    counts: NDArray[np.int64]


def survey(weights: Tiles, offset: NDArray[np.float64]) -> Survey:
    """Add up scores and count weights by size."""
    shape, sizes = offset.shape, (offset.shape[0], 2 * stream.N_SIZES)
    sums, counts = np.zeros(shape), np.zeros(sizes, np.int64)
    n_tiles = 0
    # What overflows here is added up again, exactly.
    with np.errstate(over="ignore", invalid="ignore"):
        total = np.abs(offset).sum(axis=1)
        for own_sums, own_total, own_counts in weights.map(partial(_survey_tile, shape, sizes)):
            sums += own_sums
            total += own_total
            counts += own_counts
            n_tiles += 1
        scores = offset + sums
    # Two scores take one more addition for each tile.
    n_terms = weights.source.n_samples + 2 * n_tiles + shape[1] + 8
    slack = np.array([rounding_slack(own, n_terms) for own in total])
    return Survey(scores, total, slack, counts.reshape(shape[0], 2, stream.N_SIZES))


def _survey_tile(
    shape: tuple[int, int], sizes: tuple[int, int], tile: Tile
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int32]]:
    sums, total, counts = np.zeros(shape), np.zeros(shape[0]), np.zeros(sizes, np.int32)
    integers, shift, base = _FORMATS[tile.weights.dtype.itemsize]
    bits = tile.weights.view(integers)
    stream.survey_tile(tile.weights, bits, shift, base, tile.labels.codes, sums, total, counts)
    return sums, total, counts


def choose(weights: Tiles, rows: Sequence[int], first: Sequence[int], single: Sequence[float]) -> list[Chosen]:
    """Pick the weights of some rows that are above their floors (see ``Chosen``)."""
    own, ahead, floors = np.array(rows), np.array(first), np.array(single)
    parts = list(weights.map(partial(_pick_of_tile, own, ahead, floors)))
    return [
        Chosen(
            samples=np.concatenate([numbers[start[k] : start[k + 1]] for start, numbers, _ in parts]),
            values=np.concatenate([values[start[k] : start[k + 1]] for start, _, values in parts]),
            first=int(ahead[k]),
            single=float(floors[k]),
        )
        for k in range(own.size)
    ]


def _pick_of_tile(
    own: NDArray[np.int64], ahead: NDArray[np.int64], floors: NDArray[np.float64], tile: Tile
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]:
    """Where the picked weights of each row begin, their samples, and the weights."""
    weights = tile.weights if own.size == tile.weights.shape[0] else tile.weights[own]
    sizes = np.zeros(own.size, np.int64)
    stream.count_chosen(weights, tile.labels, ahead, floors, sizes)
    start = np.append(0, np.cumsum(sizes))
    numbers, values = np.empty(start[-1], np.int64), np.empty(start[-1], weights.dtype)
    stream.pick_chosen(weights, tile.labels, ahead, floors, start, tile.start, numbers, values)
    return start, numbers, values


def add_exactly(
    weights: Tiles, labels: Labels, offset: NDArray[np.float64], total: NDArray[np.float64], rows: Sequence[int]
) -> list[ExactSums]:
    """Exact scores of some rows, given the sums of all their magnitudes."""
    shape = (len(rows), labels.n_classes, stream.N_LIMBS)
    limbs = np.zeros(shape, np.int64)
    lowest = np.array([lowest_bit(offset[t], 2000, -2000) for t in rows])
    for own_limbs, own_lowest in weights.map(partial(_add_tile_exactly, list(rows), shape)):
        limbs += own_limbs
        lowest = np.minimum(lowest, own_lowest)
    return [
        ExactSums(
            scores=[as_fixed(float(b)) + _number(own) for b, own in zip(offset[t], limbs[k], strict=True)],
            fit_doubles=bool(multiples_are_exact(lowest[k], total[t])),
        )
        for k, t in enumerate(rows)
    ]


def _add_tile_exactly(
    rows: list[int], shape: tuple[int, ...], tile: Tile
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    limbs, lowest = np.zeros(shape, np.int64), np.empty(len(rows), np.int64)
    for k, t in enumerate(rows):
        refuse_overflow(tile.weights[t])
        lowest[k] = stream.add_exactly(tile.weights[t], tile.labels.codes, limbs[k])
    return limbs, lowest


def bytes_of_exact_sums(n_classes: int, held: int) -> int:
    """What a row takes while it is added up, results of so many tiles being held."""
    return n_classes * stream.N_LIMBS * 8 * (held + 1)


def _number(limbs: NDArray[np.int64]) -> int:
    return sum(int(limb) << (32 * place) for place, limb in enumerate(limbs))

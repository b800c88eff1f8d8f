"""Tables of what one sample adds to a Chernoff exponent, for every size that matters: computed once, then looked up.

With x = t |w|, a sample adds ``g(x) = log(near e^x + far e^-x + rest)``. The three numbers depend on whether its label
speaks for a pair of classes, against it, or is neither of the two. g is the cumulant generating function of a variable
in {1, -1, 0}: its slope lies in [-1, 1], and its second derivative is a variance.

Sizes are kept in bins, and a bin adds at most ``n g(c) + g'(c) S + sup g'' Q / 2`` for n samples, c its centre, S the
sum of the differences from c, Q that of their squares. Bins have eight parts an octave, and t runs over ``STEPS``
values an octave: as both are periodic, one table serves all sizes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from flipcert.classifiers.smoothing._jit.binned import HIGHEST, LOWEST, OCTAVES, PARTS, STEPS

# Sums of squares are positive, so a little more of them pays for their rounding.
_INFLATION = 1.0 + 2.0**-20
_PIECES = 16

Law = tuple[float, float, float]


class Curves(NamedTuple):
    """Tables by step of t, kind of sample and row; the last axis are the parts of all octaves, or the octaves.

    ``parts`` is for sizes in a bin, ``small`` for those below all bins, where c = 0 and sizes are in units of the end.
    ``gains`` are approximate, to search with.
    """

    parts: NDArray[np.float64]
    small: NDArray[np.float64]
    gains: NDArray[np.float64]


@lru_cache(maxsize=16)
def noise_curves(law: Law) -> Curves:
    """Tables for one law: the probability of a label itself, of each other one, and of all but two others."""
    keep, move, stay = law
    kinds = [(move, keep, stay), (keep, move, stay), (move, move, 1.0 - 2.0 * move)]
    octaves = np.arange(LOWEST - OCTAVES + 1, HIGHEST + 1)
    units = 2.0 ** (np.arange(STEPS) / STEPS)[:, None] * 2.0**octaves
    centres = 1.0 + (2.0 * np.arange(PARTS) + 1.0) / (2.0 * PARTS)
    half = 0.5 / PARTS
    at = units[:, :, None] * centres
    parts = np.empty((STEPS, 3, 4, octaves.size * PARTS))
    small = np.empty((STEPS, 3, 4, octaves.size))
    for kind, weights in enumerate(kinds):
        value, slope, bend = _curve(at, weights)
        most = _largest_bend(at - half * units[:, :, None], at + half * units[:, :, None], weights)
        scale = np.broadcast_to(units[:, :, None], at.shape)
        _fill(parts[:, kind], value, slope, bend, most, scale)
        value, slope, bend = _curve(np.zeros_like(units), weights)
        _fill(
            small[:, kind],
            np.zeros_like(units),
            slope,
            bend,
            _largest_bend(np.zeros_like(units), units, weights),
            units,
        )
    speaks, against, neither = (_curve(at, weights)[0] for weights in kinds)
    gains = np.stack([against - neither, against - speaks], axis=1).reshape(STEPS, 2, -1)
    return Curves(parts, small, gains)


def _fill(
    rows: NDArray[np.float64],
    value: NDArray[np.float64],
    slope: NDArray[np.float64],
    bend: NDArray[np.float64],
    most: NDArray[np.float64],
    scale: NDArray[np.float64],
) -> None:
    columns = (value, slope * scale, 0.5 * most * scale**2 * _INFLATION, 0.5 * (most - bend) * scale**2)
    for row, column in enumerate(columns):
        rows[:, row] = column.reshape(rows.shape[0], -1)


def _curve(
    x: NDArray[np.float64], weights: Law
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The function g and its first two derivatives, without differences of nearly equal numbers."""
    near, far, rest = weights
    e = np.exp(-x)
    total = near + far * e * e + rest * e
    up, down, level = near / total, far * e * e / total, rest * e / total
    return x + np.log(total), up - down, 4.0 * up * down + level * (up + down)


def _largest_bend(begin: NDArray[np.float64], end: NDArray[np.float64], weights: Law) -> NDArray[np.float64]:
    """A bound on g'' between two sizes, each pair of them by itself.

    The third cumulant of a variable in [-1, 1] is at most twice its variance: g'' changes by a factor of at most
    ``exp(2 d)`` over a distance d. And g'' is at most one, and at most four times the probability of not being 1, which
    falls with x.
    """
    near, far, rest = weights
    e = np.exp(-begin)
    not_up = (far * e * e + rest * e) / (near + far * e * e + rest * e)
    most = np.minimum(1.0, 4.0 * not_up)
    width = (end - begin) / _PIECES
    nearby = np.zeros_like(begin)
    for piece in range(_PIECES):
        nearby = np.maximum(nearby, _curve(begin + (piece + 0.5) * width, weights)[2])
    # Where pieces are long, variances between may be missed by a lot.
    return np.where(width < 1.0, np.minimum(most, nearby * np.exp(np.minimum(width, 1.0))), most)

"""Tiles of weights: what a pass over the training samples collects for each row. Compiled.

A row that is too long to be held is met tile by tile. One pass adds up scores and counts weights by size, another picks
those that matter for a ladder, a third adds up scores exactly.
"""

from __future__ import annotations

import math

import numpy as np

from flipcert.engine._jit.bits import lowest_bit
from flipcert.engine.jit import compiled
from flipcert.flips._jit.select import sum_of_magnitudes

# Sizes are counted in eighths of octaves from 2**-127 to 2**128, the range of single precision; others at the ends.
BITS_OF_EIGHTHS = 3
N_SIZES = 256 << BITS_OF_EIGHTHS

# An exact sum is a row of whole numbers, each counting 2**32 times as much as the one before; the first, 2**LOWEST.
LOWEST = -1126
N_LIMBS = 68
_LIMB = (1 << 32) - 1


@compiled
def survey_tile(weights, bits, shift, base, codes, sums, totals, counts):
    """Add up scores and magnitudes of each row, and count weights by size, negative ones behind all others.

    ``bits`` are the weights as stored, whose exponent and first digits, moved by ``shift`` and ``base``, are the size.
    """
    # Without the sign; the range of sizes lies in the middle of that of the format.
    all_digits = 2 * base + N_SIZES - 1
    for t in range(weights.shape[0]):
        row, own_sums, own_counts = weights[t], sums[t], counts[t]
        for i in range(row.size):
            own_sums[codes[i]] += row[i]
            size = ((bits[t, i] >> shift) & all_digits) - base
            own_counts[max(0, min(size, N_SIZES - 1)) + (N_SIZES if row[i] < 0.0 else 0)] += 1
        totals[t] = sum_of_magnitudes(row)


@compiled
def _clears(weight, code, first, single):
    """Whether a weight is above the floor that ``_select`` lays for its group."""
    floor = single / 2.0 if weight < 0.0 or code == first else single
    return abs(weight) > floor


@compiled
def count_chosen(weights, labels, first, single, sizes):
    """How many weights of each row are above their floors."""
    codes, movable = labels.codes, labels.movable
    for t in range(weights.shape[0]):
        row = weights[t]
        size = 0
        for i in range(row.size):
            weight = np.float64(row[i])
            if abs(weight) > single[t] / 2.0 and movable[i] and _clears(weight, codes[i], first[t], single[t]):
                size += 1
        sizes[t] = size


@compiled
def pick_chosen(weights, labels, first, single, start, begin, samples, values):
    """Note these weights and their samples, row after row; the tile begins with sample ``begin``."""
    codes, movable = labels.codes, labels.movable
    for t in range(weights.shape[0]):
        row = weights[t]
        to = start[t]
        for i in range(row.size):
            weight = np.float64(row[i])
            if abs(weight) > single[t] / 2.0 and movable[i] and _clears(weight, codes[i], first[t], single[t]):
                samples[to] = begin + i
                values[to] = row[i]
                to += 1


@compiled
def add_exactly(row, codes, limbs):
    """Add finite weights to the exact sums of their classes; returns the lowest bit of them all (2000 if all are zero).

    A limb may take 2**30 weights before it overflows.
    """
    for i in range(row.size):
        if row[i] != 0.0:
            mantissa, exponent = math.frexp(abs(np.float64(row[i])))
            digits = np.int64(mantissa * 2.0**53)
            position = np.int64(exponent) - 53 - LOWEST
            limb, shift = position >> 5, position & 31
            low, high = (digits & _LIMB) << shift, (digits >> 32) << shift
            sign = 1 if row[i] > 0.0 else -1
            own = limbs[codes[i]]
            own[limb] += sign * (low & _LIMB)
            own[limb + 1] += sign * ((low >> 32) + (high & _LIMB))
            own[limb + 2] += sign * (high >> 32)
    return lowest_bit(row, 2000, -2000)

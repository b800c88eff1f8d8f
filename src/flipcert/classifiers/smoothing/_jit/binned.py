"""Chernoff exponents of all pairs of classes from weights in bins: proven upper bounds by table. Compiled.

See ``smoothing/noise_curves.py``. Weights are scaled by a power of two so that the largest is in [1, 2). Values of t
are numbered: number i is ``2 ** (LOWEST + i / STEPS)`` for the scaled weights, so that its octave says where in
the tables the bins begin, and the rest which table.

The constants stand here, not beside the tables, because a change in this file is what has compiled code made again.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from flipcert.engine.jit import compiled, compiled_in_any_order

# Parts of an octave of sizes, and octaves below the largest weight that have bins; all that is smaller shares one.
PARTS, OCTAVES = 8, 6
N_BINS = PARTS * OCTAVES + 1
# Values of t an octave.
STEPS = 32
# Octaves of t times the largest weight.
LOWEST, HIGHEST = -27, 24
FOR, AGAINST, NEITHER = range(3)
# Rows of a curve: what counts, sums and sums of squares are multiplied by; what is lost by taking sup g'' for g''(c).
VALUE, SLOPE, BEND, LOSS = range(4)
# Gains of a flip: from neither to against, and from for to against.
ONCE, TWICE = range(2)
LOG_HALF = np.log(0.5)
UNIT = 2.0**-53
N_TIMES = STEPS * (HIGHEST - LOWEST)
_MOMENTS = 3 * N_BINS
# Sizes beyond these leave no room to scale them; nothing is claimed about such rows.
_LARGEST = 2.0**1000
_COARSE = STEPS // 2
# By so much more than estimated a bound may be above the truth before a flip is lost.
HOPE = 1.25
# The first three bits of the mantissa and the exponent are what is above this bit.
_MANTISSA_BELOW_PART = 49


class Bins(NamedTuple):
    """Room for a row of weights in bins, and for its exponents.

    ``moments[2 c]`` has count, sum and sum of squares in each bin for samples of class c that speak for the pair (of
    the predicted class and positive, or of another and negative), ``moments[2 c + 1]`` for those against it;
    ``merged[c]`` is both. ``places`` is the bin of each sample. ``values[i, c]`` is the exponent of class c at the t
    of number i, where ``known[i]``.
    """

    sizes: Any
    places: Any
    moments: Any
    merged: Any
    values: Any
    known: Any
    curve: Any
    loss: Any


def new_bins(n_samples: int, n_classes: int) -> Bins:
    """Room for rows of so many samples."""
    return Bins(
        sizes=np.empty(n_samples),
        places=np.empty(n_samples, np.int64),
        moments=np.empty((2 * n_classes, _MOMENTS)),
        merged=np.empty((n_classes, _MOMENTS)),
        values=np.empty((N_TIMES, n_classes)),
        known=np.empty(N_TIMES, np.bool_),
        curve=np.empty((3, _MOMENTS)),
        loss=np.empty((3, _MOMENTS)),
    )


@compiled
def fill(bins, weights, codes, first):
    """Put a row into bins; returns the scale and the sum of scaled sizes, or zeros if there is nothing to say."""
    largest = _magnitudes(weights, bins.sizes)
    bins.known[:] = False
    if not 1.0 / _LARGEST < largest < _LARGEST:
        return 0.0, 0.0
    scale = math.ldexp(1.0, 1 - math.frexp(largest)[1])
    total = _scaled(bins.sizes, scale)
    bits = bins.sizes.view(np.int64)
    smallest = (1023 - (OCTAVES - 1)) * PARTS - 1
    centres, units = np.zeros(N_BINS), np.full(N_BINS, 2.0 ** (OCTAVES - 1))
    for b in range(1, N_BINS):
        octave = (b - 1) // PARTS - (OCTAVES - 1)
        units[b] = 2.0 ** (-octave)
        centres[b] = (1.0 + (2 * ((b - 1) % PARTS) + 1) / (2.0 * PARTS)) / units[b]
    moments = bins.moments
    moments[:] = 0.0
    for i in range(weights.size):
        b = max((bits[i] >> _MANTISSA_BELOW_PART) - smallest, 0)
        # Both the difference and the power of two are exact.
        u = (bins.sizes[i] - centres[b]) * units[b]
        group = 2 * codes[i] + ((weights[i] > 0.0) != (codes[i] == first))
        bins.places[i] = b
        moments[group, b] += 1.0
        moments[group, N_BINS + b] += u
        moments[group, 2 * N_BINS + b] += u * u
    for c in range(bins.merged.shape[0]):
        for k in range(_MOMENTS):
            bins.merged[c, k] = moments[2 * c, k] + moments[2 * c + 1, k]
    return scale, total


@compiled_in_any_order
def _magnitudes(weights, sizes):
    """Sizes of the weights; returns the largest."""
    largest = 0.0
    for i in range(weights.size):
        sizes[i] = abs(np.float64(weights[i]))
        largest = max(largest, sizes[i])
    return largest


@compiled_in_any_order
def _scaled(sizes, scale):
    """Scale the sizes; returns their sum."""
    total = 0.0
    for i in range(sizes.size):
        sizes[i] *= scale
        total += sizes[i]
    return total


@compiled
def time_of(number):
    """The t of a number, for scaled weights."""
    return 2.0 ** ((number % STEPS) / STEPS) * 2.0 ** (number // STEPS + LOWEST)


@compiled
def rounding(n_samples, distance, move):
    """What rounding does at most to a sum of exponents, distance being the sum of all t |w|.

    A term errs by a few units in the last place of its size, of one and of log(move); sums of n terms by n units.
    """
    return 8.0 * UNIT * (n_samples + 512.0) * (2.0 * distance + n_samples * (1.0 - np.log(move)))


@compiled
def evaluate(bins, curves, first, total, move, number):
    """Fill in the exponents of all pairs at the t of one number, rounded up."""
    if bins.known[number]:
        return
    bins.known[number] = True
    octave, step = number // STEPS, number % STEPS
    curve = bins.curve
    for kind in range(3):
        for row in range(3):
            _lay_out(curves, step, kind, row, octave, curve[kind], row * N_BINS)
    n_classes = bins.merged.shape[0]
    slack = rounding(bins.sizes.size, time_of(number) * total, move)
    _add_up(bins.moments, bins.merged, curve, bins.values[number], first, slack, n_classes)


@compiled
def _lay_out(curves, step, kind, row, octave, out, begin):
    """One row of the tables as the bins need it."""
    out[begin] = curves.small[step, kind, row, octave]
    parts = curves.parts[step, kind, row]
    start = octave * PARTS
    for b in range(1, N_BINS):
        out[begin + b] = parts[start + b - 1]


@compiled
def _add_up(moments, merged, curve, values, first, slack, n_classes):
    """Exponents of all pairs: samples of the two classes as such, all others as of neither."""
    neither_in_all = 0.0
    for c in range(n_classes):
        neither = _dot(merged[c], curve[NEITHER])
        own = _dot(moments[2 * c], curve[FOR]) + _dot(moments[2 * c + 1], curve[AGAINST])
        neither_in_all += neither
        values[c] = own - neither
    for c in range(n_classes):
        if c != first:
            values[c] += neither_in_all + values[first] + slack
    values[first] = 0.0


@compiled_in_any_order
def _dot(a, b):
    total = 0.0
    for k in range(_MOMENTS):
        total += a[k] * b[k]
    return total


@compiled
def loss_of(bins, curves, first, c, number):
    """About how much the exponent of one pair is above the truth, for bins."""
    octave, step = number // STEPS, number % STEPS
    loss = bins.loss
    loss[:] = 0.0
    for kind in range(3):
        _lay_out(curves, step, kind, LOSS, octave, loss[kind], 2 * N_BINS)
    total = 0.0
    for k in range(bins.merged.shape[0]):
        if k == c or k == first:
            total += _dot(bins.moments[2 * k], loss[FOR]) + _dot(bins.moments[2 * k + 1], loss[AGAINST])
        else:
            total += _dot(bins.merged[k], loss[NEITHER])
    return total


@compiled
def search(bins, curves, first, total, move, best):
    """Number of the t with the smallest exponent of each pair, -1 where none is below zero.

    Exponents are convex in t: half an octave at a time until all of them rise, then closer around the best of each.
    """
    n_classes = bins.merged.shape[0]
    best[:] = -1
    # No exponent falls faster than by the sum of all weights: until here none is below log(1/2).
    begin = int(np.floor(STEPS * (np.log2(-LOG_HALF / total) - LOWEST)))
    number = min(max(begin, 0), N_TIMES - 1)
    lowest = np.zeros(n_classes)
    previous = np.full(n_classes, np.inf)
    falling = True
    while falling and number < N_TIMES:
        evaluate(bins, curves, first, total, move, number)
        falling = False
        for c in range(n_classes):
            if c != first:
                value = bins.values[number, c]
                falling |= value < previous[c]
                previous[c] = value
                if value < lowest[c]:
                    lowest[c] = value
                    best[c] = number
        number += _COARSE
    for c in range(n_classes):
        if best[c] >= 0:
            step = _COARSE // 2
            while step > 0:
                at = best[c]
                for near in (max(at - step, 0), min(at + step, N_TIMES - 1)):
                    evaluate(bins, curves, first, total, move, near)
                    if bins.values[near, c] < bins.values[best[c], c]:
                        best[c] = near
                step //= 2


@compiled
def chernoff_rows(weights, codes, first, curves, move, bins, log_p, hope, times):
    """Chernoff bounds of a block of rows, what they could be at best, and about where."""
    best = np.empty(log_p.shape[1], np.int64)
    for t in range(weights.shape[0]):
        log_p[t] = 0.0
        hope[t] = 0.0
        times[t] = 0.0
        scale, total = fill(bins, weights[t], codes, first[t])
        if total > 0.0:
            search(bins, curves, first[t], total, move, best)
            for c in range(best.size):
                if best[c] >= 0:
                    log_p[t, c] = bins.values[best[c], c]
                    depth, shift = _vertex(bins, curves, first[t], total, move, c, best[c])
                    loss = loss_of(bins, curves, first[t], c, best[c])
                    hope[t, c] = log_p[t, c] - HOPE * (depth + loss)
                    times[t, c] = time_of(best[c]) * 2.0 ** (shift / STEPS) * scale


@compiled
def _vertex(bins, curves, first, total, move, c, number):
    """How far below a value the parabola through it and its neighbours goes, and how many steps away."""
    if number == 0 or number == N_TIMES - 1:
        return 0.0, 0.0
    for near in (number - 1, number + 1):
        evaluate(bins, curves, first, total, move, near)
    left, here, right = bins.values[number - 1, c], bins.values[number, c], bins.values[number + 1, c]
    bend = left - 2.0 * here + right
    if not bend > 0.0:
        return 0.0, 0.0
    shift = min(max(0.5 * (left - right) / bend, -1.0), 1.0)
    return 0.125 * (left - right) ** 2 / bend, shift

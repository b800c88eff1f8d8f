"""From a row of weights to a ladder: scores, how deep the ladder has to reach, and its rungs in order. Compiled.

Sorting a whole row would cost many times the product that formed it. The flips that matter close a known gap between
two scores, so a histogram of a sample of the weights tells how large they have to be; only larger ones are taken and
sorted. The guess need not be right: an algorithm that runs past the end says so.
"""

from __future__ import annotations

import numpy as np

from flipcert.engine._jit.sort import sort_pairs
from flipcert.engine.jit import compiled, compiled_in_any_order
from flipcert.flips._jit.ladder import (
    BINS,
    BUCKETS,
    CHOSEN,
    DEEPEST,
    FLOOR,
    GAINS,
    GROUP,
    INDEX,
    LARGEST_TOTAL,
    MOST_BUCKETS,
    N_BINS,
    SPARE,
    TOPS,
    VALUE,
    index_groups,
)

# Rows up to this length go on the ladder as a whole.
SHORT = 64
# Of rows up to this length a few largest gains are picked without a ladder, of those with negative weights up to SHORT.
PICKED = 512
# The largest weight of every strip is noted, so that strips without a rung are never looked at again.
STRIP = 64
# Strips of gains to pick are shorter: one is looked through again for every gain it gave.
_FEWER = 16
# Histograms look at this many weights at least, and at one of this many at least.
_SAMPLE = 128
_SPARSEST = 16
_RUN = 8
# Up to this many rungs are sorted by insertion at once.
_FEW = 24
# Buckets with more rungs than this are not worth sorting by insertion.
_CROWDED = 48
# A rung's group takes this many bits beside its sample while they are sorted.
_GROUP_BITS = 24


@compiled
def score_row(row, labels, offset, scores, ladder):
    """Add up the class scores.

    Returns the sum of all magnitudes that went into the scores, the largest weight (infinity if sums may overflow),
    and whether a movable weight is negative.
    """
    codes = labels.codes
    sums = ladder.numbers[GAINS]
    n_classes = scores.size
    for c in range(2 * n_classes):
        sums[c] = 0.0
    # Two sums a class in turn, because a single one would often wait for itself.
    pairs = row.size // 2
    for i in range(pairs):
        sums[2 * codes[2 * i]] += row[2 * i]
        sums[2 * codes[2 * i + 1] + 1] += row[2 * i + 1]
    if row.size & 1:
        sums[2 * codes[row.size - 1]] += row[row.size - 1]
    total = sum_of_magnitudes(row)
    for c in range(n_classes):
        scores[c] = offset[c] + (sums[2 * c] + sums[2 * c + 1])
        total += abs(offset[c])
    if not total < LARGEST_TOTAL:
        return total, np.inf, True
    largest = _note_tops(row, ladder.numbers[TOPS])
    negative = False
    if labels.any_fixed:
        for i in range(row.size):
            negative |= labels.movable[i] and row[i] < 0.0
    else:
        for i in range(row.size):
            negative |= row[i] < 0.0
    return total, largest, negative


@compiled_in_any_order
def sum_of_magnitudes(row):
    """Sum of all magnitudes of a row."""
    total = 0.0
    for i in range(row.size):
        total += np.float64(abs(row[i]))
    return total


@compiled_in_any_order
def _note_tops(row, tops):
    """Note the largest magnitude of every strip; return the largest of all."""
    zero = row[0] - row[0]
    n_full = row.size // STRIP
    for strip in range(n_full):
        top = zero
        for i in range(STRIP):
            top = max(top, abs(row[STRIP * strip + i]))
        tops[strip] = top
    top = zero
    for i in range(STRIP * n_full, row.size):
        top = max(top, abs(row[i]))
    tops[n_full] = top
    largest = 0.0
    for strip in range(n_full + 1):
        largest = max(largest, tops[strip])
    return largest


@compiled
def build(ladder, row, labels, first, reach, largest, n_classes):
    """Put the movable weights of a scored row on the ladder, down to where they close ``reach`` (a guess)."""
    _set_floors(ladder, row, labels, first, np.inf if row.size <= SHORT else reach, largest, n_classes)
    fill(ladder, row, labels, n_classes)


@compiled
def build_chosen(ladder, row, labels, first, single, n_classes):
    """Put weights on the ladder that were picked from a longer row by these very floors (``flips._stream``)."""
    ladder.numbers[TOPS, 0] = 0.0
    if row.size > 0:
        _note_tops(row, ladder.numbers[TOPS])
    _lay_floors(ladder, first, single, n_classes)
    fill(ladder, row, labels, n_classes)


@compiled
def prepare_gains(ladder, row, labels, first):
    """Note what each weight of a row closes of a gap to the first class, and strip by strip; return how many gains.

    For rows too short for a ladder to pay: their largest gains are picked out one by one (``next_gain``). A negative
    weight closes twice as much for its own class as for the others: that is a gain of its own, behind those of all
    weights, and ``rungs[CHOSEN]`` tells whose.
    """
    gain, tops, owner = ladder.numbers[SPARE], ladder.numbers[BINS], ladder.rungs[CHOSEN]
    size = row.size
    for i in range(row.size):
        weight = np.float64(row[i]) if labels.movable[i] else 0.0
        if labels.codes[i] == first:
            gain[i] = 2.0 * max(weight, 0.0)
        else:
            gain[i] = abs(weight)
            if weight < 0.0:
                gain[size] = -2.0 * weight
                owner[size] = labels.codes[i]
                size += 1
    for strip in range((size + _FEWER - 1) // _FEWER):
        top = 0.0
        for i in range(_FEWER * strip, min(_FEWER * (strip + 1), size)):
            top = max(top, gain[i])
        tops[strip] = top
    return size


@compiled
def next_gain(gain, tops, size):
    """Take the largest gain out; return it and its place."""
    best = 0
    for strip in range(1, (size + _FEWER - 1) // _FEWER):
        if tops[strip] > tops[best]:
            best = strip
    largest = tops[best]
    place = -1
    top = 0.0
    for i in range(_FEWER * best, min(_FEWER * (best + 1), size)):
        if place < 0 and gain[i] == largest:
            place = i
        else:
            top = max(top, gain[i])
    tops[best] = top
    gain[place] = 0.0
    return largest, place


@compiled
def _set_floors(ladder, row, labels, first, reach, largest, n_classes):
    """Guess how small the weights may be that close a gap of ``reach`` between the first class and another.

    Positive weights of the first class close the gap twice, and so may negative ones of any class: they are needed
    down to half the size of the others. Floors of zero ask for the whole row.
    """
    bins, floor = ladder.numbers[BINS], ladder.numbers[FLOOR]
    for g in range(2 * n_classes):
        floor[g] = 0.0
    ladder.numbers[DEEPEST, 0] = 0.0
    # Bins too narrow or too wide for a double tell nothing.
    if not (reach < np.inf and 1e-300 < largest < 1e300):
        return
    n_bins = N_BINS if row.size > 16 * _SAMPLE else N_BINS // 4
    for b in range(n_bins):
        bins[b] = 0.0
    scale = (n_bins - 1) / (2.0 * largest)
    stride = max(1, min(row.size // _SAMPLE, _SPARSEST))
    # Short runs, far apart: one at a time they would come from as many lines of the cache.
    for begin in range(0, row.size, _RUN * stride):
        for i in range(begin, min(begin + _RUN, row.size)):
            weight = abs(np.float64(row[i]))
            if labels.codes[i] == first:
                weight = 2.0 * weight if row[i] > 0 else 0.0
            bins[int(weight * scale)] += weight
    closed = 0.0
    level = n_bins - 1
    while level > 0 and closed * stride < reach:
        closed += bins[level]
        level -= 1
    # one bin of margin: the sample is only a sample
    single = max(0.0, (level - 1) / scale) if closed * stride >= reach else 0.0
    _lay_floors(ladder, first, single, n_classes)


@compiled
def _lay_floors(ladder, first, single, n_classes):
    """Note how small weights may be that close the gap between the first class and another once."""
    floor = ladder.numbers[FLOOR]
    for g in range(2 * n_classes):
        floor[g] = single / 2.0 if g == 2 * first or g & 1 else single
    ladder.numbers[DEEPEST, 0] = single


@compiled
def fill(ladder, row, labels, n_classes):
    """Put the movable weights above their floors on the ladder."""
    codes, movable = labels.codes, labels.movable
    tops, floor = ladder.numbers[TOPS], ladder.numbers[FLOOR]
    # Unsorted first, in working space that only matters later; sample and group in one number, to move less.
    value, tag = ladder.numbers[SPARE], ladder.rungs[CHOSEN]
    size = 0
    lowest, largest = np.inf, 0.0
    lowest_floor = ladder.numbers[DEEPEST, 0] / 2.0
    for strip in range(row.size // STRIP + 1):
        if tops[strip] > lowest_floor:
            for i in range(STRIP * strip, min(STRIP * (strip + 1), row.size)):
                weight = abs(np.float64(row[i]))
                if weight > lowest_floor and movable[i]:
                    group = 2 * np.int64(codes[i]) + (1 if row[i] < 0 else 0)
                    if weight > floor[group]:
                        value[size] = weight
                        tag[size] = i << _GROUP_BITS | group
                        lowest = min(lowest, weight)
                        largest = max(largest, weight)
                        size += 1
    if size <= _FEW or largest == lowest:
        _sort_few(value, tag, size, ladder.numbers[VALUE], ladder.rungs[INDEX])
    elif not _sort_into_buckets(
        value, tag, size, lowest, largest, ladder.rungs[BUCKETS], ladder.numbers[VALUE], ladder.rungs[INDEX]
    ):
        for i in range(size):
            value[i] = -value[i]
        sort_pairs(value, tag, size, ladder.numbers[VALUE], ladder.rungs[INDEX])
        for i in range(size):
            ladder.numbers[VALUE, i] = -value[i]
            ladder.rungs[INDEX, i] = tag[i]
    for i in range(size):
        ladder.rungs[GROUP, i] = ladder.rungs[INDEX, i] & ((1 << _GROUP_BITS) - 1)
        ladder.rungs[INDEX, i] >>= _GROUP_BITS
    index_groups(ladder, size, 2 * n_classes)


@compiled
def _sort_into_buckets(value, tag, size, lowest, largest, heads, sorted_value, sorted_tag):
    """Sort rungs, largest first, equal ones in the order they came: into buckets, then by insertion.

    Gives up, and returns False, if buckets are crowded, as those of weights that span many magnitudes are.
    """
    n_buckets = 64
    while n_buckets < size and n_buckets < MOST_BUCKETS and 2 * n_buckets < heads.size:
        n_buckets *= 2
    scale = n_buckets / (largest - lowest) * (1.0 - 1e-9)
    if not scale < np.inf:
        return False
    for b in range(n_buckets + 1):
        heads[b] = 0
    for i in range(size):
        heads[int((largest - value[i]) * scale) + 1] += 1
    for b in range(n_buckets):
        if heads[b + 1] > _CROWDED:
            return False
        heads[b + 1] += heads[b]
    for i in range(size):
        b = int((largest - value[i]) * scale)
        to = heads[b]
        heads[b] += 1
        sorted_value[to] = value[i]
        sorted_tag[to] = tag[i]
    _sort_few(sorted_value, sorted_tag, size, sorted_value, sorted_tag)
    return True


@compiled
def _sort_few(value, tag, size, sorted_value, sorted_tag):
    """Sort by insertion, to other arrays or in place; fast for few or nearly sorted rungs."""
    for i in range(size):
        v, k = value[i], tag[i]
        j = i
        while j > 0 and sorted_value[j - 1] < v:
            sorted_value[j] = sorted_value[j - 1]
            sorted_tag[j] = sorted_tag[j - 1]
            j -= 1
        sorted_value[j] = v
        sorted_tag[j] = k

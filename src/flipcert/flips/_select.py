"""From a row of weights to a ladder: scores, how deep the ladder has to reach, and its rungs in order. Compiled.

Sorting a whole row would cost many times the product that formed it. The flips that matter close a known gap between
two scores, so a histogram of (a sample of) the weights tells how large they have to be; only larger ones are taken and
sorted. The guess need not be right: an algorithm that runs past the end says so.
"""

from __future__ import annotations

import numpy as np

from flipcert.engine._sort import sort_pairs
from flipcert.engine.jit import compiled
from flipcert.flips._ladder import (
    BINS,
    BUCKETS,
    CHOSEN,
    DEEPEST,
    FLOOR,
    GROUP,
    INDEX,
    LINE,
    MOST_BUCKETS,
    N_BINS,
    SPARE,
    VALUE,
    index_groups,
)

# Rows up to this length go without a histogram: the first few rungs are picked out directly.
SHORT = 64
_TOP = 24
# Histograms look at about this many weights.
_SAMPLE = 2048
# Up to this many rungs are sorted by insertion at once.
_FEW = 24
# Buckets with more rungs than this are not worth sorting by insertion.
_CROWDED = 48
# A rung's group takes this many bits beside its sample while they are sorted.
_GROUP_BITS = 24


@compiled
def line_up(row, labels, offset, scores, line):
    """Copy the movable weights to ``line``, class by class, and add up the class scores.

    Returns the sum of all magnitudes that went into the scores, the largest movable one, and whether a movable weight
    is negative. Four sums at a time, because a single one would wait for itself.
    """
    members, starts, fixed, fixed_starts = labels
    total = 0.0
    largest = 0.0
    lowest = 0.0
    for c in range(scores.size):
        s0 = s1 = s2 = s3 = a0 = a1 = a2 = a3 = 0.0
        h0 = h1 = l0 = l1 = 0.0
        position, end = starts[c], starts[c + 1]
        while position + 4 <= end:
            w0 = np.float64(row[members[position]])
            w1 = np.float64(row[members[position + 1]])
            w2 = np.float64(row[members[position + 2]])
            w3 = np.float64(row[members[position + 3]])
            line[position] = w0
            line[position + 1] = w1
            line[position + 2] = w2
            line[position + 3] = w3
            s0 += w0
            s1 += w1
            s2 += w2
            s3 += w3
            a0 += abs(w0)
            a1 += abs(w1)
            a2 += abs(w2)
            a3 += abs(w3)
            h0 = max(h0, max(w0, w1))
            h1 = max(h1, max(w2, w3))
            l0 = min(l0, min(w0, w1))
            l1 = min(l1, min(w2, w3))
            position += 4
        while position < end:
            w0 = np.float64(row[members[position]])
            line[position] = w0
            s0 += w0
            a0 += abs(w0)
            h0 = max(h0, w0)
            l0 = min(l0, w0)
            position += 1
        for position in range(fixed_starts[c], fixed_starts[c + 1]):
            w0 = np.float64(row[fixed[position]])
            s1 += w0
            a1 += abs(w0)
        scores[c] = offset[c] + ((s0 + s1) + (s2 + s3))
        total += abs(offset[c]) + ((a0 + a1) + (a2 + a3))
        largest = max(largest, max(h0, h1))
        lowest = min(lowest, min(l0, l1))
    return total, max(largest, -lowest), lowest < 0.0


@compiled
def set_floors(ladder, n_movable, starts, first, reach, largest):
    """Guess how small the weights may be that close a gap of ``reach`` between the first class and another.

    Positive weights of the first class close the gap twice, and so may negative ones of any class: they are needed
    down to half the size of the others. Floors of zero ask for the whole row.
    """
    line, bins, floor = ladder.numbers[LINE], ladder.numbers[BINS], ladder.numbers[FLOOR]
    n_groups = 2 * (starts.size - 1)
    for g in range(n_groups):
        floor[g] = 0.0
    ladder.numbers[DEEPEST, 0] = 0.0
    if not (reach < np.inf and 0.0 < largest < 1e300):
        return
    n_bins = N_BINS if n_movable > _SAMPLE else N_BINS // 4
    for b in range(n_bins):
        bins[b] = 0.0
    n_classes = starts.size - 1
    stride = max(1, n_movable // _SAMPLE)
    scale = (n_bins - 1) / (2.0 * largest)
    for position in range(starts[first], starts[first + 1], stride):
        if line[position] > 0.0:
            bins[int(2.0 * line[position] * scale)] += 2.0 * line[position]
    for part in range(2):
        begin, end = (0, starts[first]) if part == 0 else (starts[first + 1], starts[n_classes])
        for position in range(begin, end, stride):
            weight = abs(line[position])
            bins[int(weight * scale)] += weight
    closed = 0.0
    level = n_bins - 1
    while level > 0 and closed * stride < reach:
        closed += bins[level]
        level -= 1
    # one bin of margin: the sample is only a sample
    single = max(0.0, (level - 1) / scale) if closed * stride >= reach else 0.0
    for g in range(n_groups):
        floor[g] = single / 2.0 if g == 2 * first or g & 1 else single
    ladder.numbers[DEEPEST, 0] = single


@compiled
def fill_ladder(ladder, labels):
    """Put the movable weights above their floors on the ladder."""
    members, starts = labels.members, labels.starts
    line = ladder.numbers[LINE]
    # Unsorted first, in working space that only matters later; sample and group in one number, to move less.
    value, tag = ladder.numbers[SPARE], ladder.rungs[CHOSEN]
    size = 0
    lowest, largest = np.inf, 0.0
    for c in range(starts.size - 1):
        positive, negative = ladder.numbers[FLOOR, 2 * c], -ladder.numbers[FLOOR, 2 * c + 1]
        for position in range(starts[c], starts[c + 1]):
            weight = line[position]
            if weight > positive or weight < negative:
                value[size] = abs(weight)
                tag[size] = members[position] << _GROUP_BITS | 2 * c | (1 if weight < 0.0 else 0)
                lowest = min(lowest, value[size])
                largest = max(largest, value[size])
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
    index_groups(ladder, size, 2 * (starts.size - 1))
    return size


@compiled
def fill_top(ladder, labels):
    """Put the few largest movable weights on the ladder."""
    members, starts = labels.members, labels.starts
    line = ladder.numbers[LINE]
    value, index = ladder.numbers[VALUE], ladder.rungs[INDEX]
    size = 0
    room = min(_TOP, members.size)
    floor = 0.0  # largest weight that did not fit
    for c in range(starts.size - 1):
        for position in range(starts[c], starts[c + 1]):
            weight = abs(line[position])
            if weight <= floor:
                continue
            if size == room:
                floor = value[room - 1]
                if weight <= floor:
                    floor = weight
                    continue
                j = room - 1
            else:
                j = size
                size += 1
            while j > 0 and value[j - 1] < weight:
                value[j] = value[j - 1]
                index[j] = index[j - 1]
                j -= 1
            value[j] = weight
            index[j] = 2 * position + (1 if line[position] < 0.0 else 0)
    for g in range(2 * (starts.size - 1)):
        ladder.numbers[FLOOR, g] = floor
    ladder.numbers[DEEPEST, 0] = floor
    for i in range(size):
        position = index[i] >> 1
        c = 0
        while position >= starts[c + 1]:
            c += 1
        ladder.rungs[GROUP, i] = 2 * c + (index[i] & 1)
        index[i] = members[position]
    index_groups(ladder, size, 2 * (starts.size - 1))


@compiled
def _sort_into_buckets(value, tag, size, lowest, largest, heads, sorted_value, sorted_tag):
    """Sort rungs, largest first, equal ones in the order they came: into buckets, then by insertion.

    Gives up, and returns False, if buckets are crowded, as those of weights that span many magnitudes are.
    """
    n_buckets = 64
    while n_buckets < 2 * size and n_buckets < MOST_BUCKETS and 2 * n_buckets < heads.size:
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

"""What a clip does to sums of gradients, and what flips gain next to it. Compiled."""

from __future__ import annotations

import numpy as np

from flipcert.classifiers.network._jit.top import sum_of_largest
from flipcert.engine.jit import compiled


@compiled
def _clamped(value, clip):
    # What is not a number stays so, and is noticed in the sum.
    return clip if value > clip else -clip if value < -clip else value


@compiled
def _gains_beside_clip(rows, values, low, high, codes, movable, clip, factor, least, gains, counts, cut):
    """Clip the entries of one feature: by how much that moves both ends of the sums, and what flips then gain.

    ``low`` and ``high`` are ends of the loss's gradients by sample and class, with the label as it is; another label
    moves one of them by ``factor``. Gains are noted one after the other, for each end and class.
    """
    n_classes = low.shape[1]
    counts[:] = 0
    cut[:] = 0.0
    for k in range(rows.size):
        i, value = rows[k], values[k]
        code, can_flip, reach = codes[i], movable[i], factor * abs(value)
        for c in range(n_classes):
            if value > 0.0:
                below, above = low[i, c] * value, high[i, c] * value
            else:
                below, above = high[i, c] * value, low[i, c] * value
            lowest, highest = _clamped(below, clip), _clamped(above, clip)
            cut[0, c] += below - lowest
            cut[1, c] += highest - above
            if not can_flip:
                continue
            if (value > 0.0) == (code != c):
                gain = lowest - _clamped(below - reach, clip)
                gains[0, c, counts[0, c]] = gain if gain > least else least
                counts[0, c] += 1
            else:
                gain = _clamped(above + reach, clip) - highest
                gains[1, c, counts[1, c]] = gain if gain > least else least
                counts[1, c] += 1


@compiled
def clipped_sums(rows, values, low, high, codes, movable, clip, factor, least, flips, moved, left):
    """How far the ends of the sums for one feature move outwards, given the entries of it that may be clipped.

    Sums were taken without a clip; here every entry is clipped, and the largest gains of flips are added. A gain counts
    as ``least`` if it is smaller, so that the entries that are not given, which gain no more, come after these.
    ``left`` are the flips that are left for them.
    """
    n_classes = low.shape[1]
    gains, counts = np.empty((2, n_classes, rows.size)), np.empty((2, n_classes), np.int64)
    _gains_beside_clip(rows, values, low, high, codes, movable, clip, factor, least, gains, counts, moved)
    for end in range(2):
        for c in range(n_classes):
            moved[end, c] += sum_of_largest(gains[end, c], counts[end, c], flips)
            left[end, c] = max(flips - counts[end, c], 0)


@compiled
def clipped_table(rows, values, low, high, codes, movable, clip, factor, least, table, result):
    """What all numbers of flips move at most: ``table`` has the sums of gains of the entries that are not given."""
    n_classes, size = low.shape[1], table.shape[2]
    gains, counts = np.empty((2, n_classes, rows.size)), np.empty((2, n_classes), np.int64)
    cut = np.empty((2, n_classes))
    _gains_beside_clip(rows, values, low, high, codes, movable, clip, factor, least, gains, counts, cut)
    for end in range(2):
        for c in range(n_classes):
            count = counts[end, c]
            largest = np.sort(gains[end, c, :count])
            total = cut[end, c]
            result[end, c, 0] = total
            for k in range(1, size):
                if k <= count:
                    total += largest[count - k]
                    result[end, c, k] = total
                else:
                    result[end, c, k] = total + table[end, c, k - count]

"""Sums of the largest effects that flips can have. Compiled."""

from __future__ import annotations

import numpy as np

from flipcert.engine.jit import compiled


@compiled
def flips_below(weights, extra, scale, codes, movable, winners, limits, counts):
    """How many flips, the worst ones, leave each class behind the winner of a row.

    Flipping sample i moves the gap between the two by its weight for each of the two classes that it leaves or joins,
    and by at most ``scale * extra[i]`` beyond that. The gap must stay below ``limits``; -1 where it is not even with
    no flip. Sums are rounded: the limits have to allow for it.
    """
    n_classes = limits.shape[1]
    gains = np.empty(codes.size)
    for t in range(weights.shape[0]):
        winner = winners[t]
        for c in range(n_classes):
            if c == winner or not limits[t, c] > 0.0:
                counts[t, c] = -1
                continue
            size = 0
            for i in range(codes.size):
                if not movable[i]:
                    continue
                weight = weights[t, i]
                if codes[i] == winner:
                    gain = 2.0 * weight if n_classes == 2 else max(weight, 2.0 * weight)
                elif codes[i] == c:
                    gain = -2.0 * weight if n_classes == 2 else max(-weight, -2.0 * weight)
                else:
                    gain = abs(weight)
                gain += scale[t] * extra[i]
                # What overflowed, or was lost with it, may be anything.
                gains[size] = max(gain, 0.0) if gain < np.inf else np.inf
                size += 1
            counts[t, c] = _count_below(gains, size, limits[t, c])


@compiled
def _count_below(gains, size, limit):
    """How many of the largest numbers add up to less than a limit; none of them is negative.

    Finds the border as quickselect does, without sorting.
    """
    begin, end = 0, size
    total = 0.0
    while begin < end:
        pivot = gains[(begin + end) // 2]
        # Larger ones to the front, smaller ones to the back.
        larger, i, smaller = begin, begin, end
        above = 0.0
        while i < smaller:
            gain = gains[i]
            if gain > pivot:
                gains[i], gains[larger] = gains[larger], gain
                above += gain
                larger += 1
                i += 1
            elif gain < pivot:
                smaller -= 1
                gains[i], gains[smaller] = gains[smaller], gain
            else:
                i += 1
        if total + above >= limit:
            end = larger
            continue
        total += above
        for i in range(larger, smaller):
            if total + pivot >= limit:
                return i
            total += pivot
        begin = smaller
    return begin


@compiled
def top_sums(products, order, codes, movable, raised, lowered):
    """Largest sums that flips can add to, and take from, the score of each class at each row, by number of flips.

    ``order`` sorts each row of ``products`` by magnitude, largest first. Flipping sample i to a class adds its product
    there and takes it from the class it had.
    """
    n_classes, most = raised.shape[1], raised.shape[2] - 1
    up, down = np.zeros(n_classes, np.int64), np.zeros(n_classes, np.int64)
    for j in range(products.shape[0]):
        up[:] = 0
        down[:] = 0
        raised[j, :, 0] = 0.0
        lowered[j, :, 0] = 0.0
        for i in order[j]:
            if not movable[i]:
                continue
            value = products[j, i]
            size = abs(value)
            for c in range(n_classes):
                if (value > 0.0) == (codes[i] != c):
                    if up[c] < most:
                        raised[j, c, up[c] + 1] = raised[j, c, up[c]] + size
                        up[c] += 1
                elif down[c] < most:
                    lowered[j, c, down[c] + 1] = lowered[j, c, down[c]] + size
                    down[c] += 1
        for c in range(n_classes):
            raised[j, c, up[c] + 1 :] = raised[j, c, up[c]]
            lowered[j, c, down[c] + 1 :] = lowered[j, c, down[c]]

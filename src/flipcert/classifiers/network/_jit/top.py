"""Sums of the largest effects that flips can have. Compiled."""

from __future__ import annotations

import numpy as np

from flipcert.engine.jit import compiled

# Gains are looked at from the largest one down to this part of it, to this part of that, ...
_STEP = 0.8
_LAST = 1e-3


@compiled
def _gain(weight, extra, is_winners, is_targets, two_classes):
    """What flipping a sample takes from the lead of a winner over a target, at most."""
    if is_winners:
        gain = 2.0 * weight if two_classes else max(weight, 2.0 * weight)
    elif is_targets:
        gain = -2.0 * weight if two_classes else max(-weight, -2.0 * weight)
    else:
        gain = abs(weight)
    gain += extra
    # What overflowed, or was lost with it, may be anything.
    return max(gain, 0.0) if gain < np.inf else np.inf


@compiled
def flips_below(weights, extra, scale, codes, movable, winners, limits, counts):
    """How many flips, the worst ones, leave each class behind the winner of a row.

    Flipping sample i moves the gap between the two by its weight for each of the two classes that it leaves or joins,
    and by at most ``scale * extra[i]`` beyond that. The gap must stay below ``limits``; -1 where it is not even with
    no flip. Sums are rounded: the limits have to allow for it.

    Few samples matter. Those that gain at least a bar for some class are picked for all classes together, and the bar
    is lowered until the gains above it reach the limit.
    """
    n_classes = limits.shape[1]
    two_classes = n_classes == 2
    tops, gains = np.empty(codes.size), np.empty(codes.size)
    picked = np.empty(codes.size, np.int64)
    waiting = np.empty(n_classes, np.bool_)
    for t in range(weights.shape[0]):
        winner = winners[t]
        for c in range(n_classes):
            waiting[c] = c != winner and limits[t, c] > 0.0
            counts[t, c] = -1
        if not waiting.any():
            continue
        highest = 0.0
        for i in range(codes.size):
            tops[i] = -1.0
            if movable[i]:
                own, more = codes[i] == winner, scale[t] * extra[i]
                tops[i] = _gain(weights[t, i], more, own, not own, two_classes)
                if not (own or two_classes):
                    tops[i] = max(tops[i], _gain(weights[t, i], more, False, False, False))
                highest = max(highest, tops[i])
        bar = _STEP * highest
        while waiting.any():
            if not bar > _LAST * highest:
                bar = 0.0
            n_picked = 0
            for i in range(codes.size):
                picked[n_picked] = i
                n_picked += tops[i] >= bar
            for c in range(n_classes):
                if not waiting[c]:
                    continue
                size = 0
                for k in range(n_picked):
                    i = picked[k]
                    own, its = codes[i] == winner, codes[i] == c
                    gain = _gain(weights[t, i], scale[t] * extra[i], own, its, two_classes)
                    if gain >= bar:
                        gains[size] = gain
                        size += 1
                counts[t, c] = _count_below(gains, size, limits[t, c])
                waiting[c] = counts[t, c] == size and bar > 0.0
            bar *= _STEP


@compiled
def _divide(values, begin, end, pivot):
    """Move what is larger than the pivot to the front of a range and what is smaller to its back.

    Returns where the larger ones end, where the smaller ones begin, and the sum of the larger ones.
    """
    larger, i, smaller = begin, begin, end
    above = 0.0
    while i < smaller:
        value = values[i]
        if value > pivot:
            values[i], values[larger] = values[larger], value
            above += value
            larger += 1
            i += 1
        elif value < pivot:
            smaller -= 1
            values[i], values[smaller] = values[smaller], value
        else:
            i += 1
    return larger, smaller, above


@compiled
def _count_below(gains, size, limit):
    """How many of the largest numbers add up to less than a limit; none of them is negative.

    Finds the border as quickselect does, without sorting.
    """
    begin, end = 0, size
    total = 0.0
    while begin < end:
        pivot = gains[(begin + end) // 2]
        larger, smaller, above = _divide(gains, begin, end, pivot)
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
def sum_of_largest(values, size, count):
    """Sum of so many of the largest numbers, found as above; none of them is negative."""
    begin, end = 0, size
    total = 0.0
    while begin < end and count > 0:
        pivot = values[(begin + end) // 2]
        larger, smaller, above = _divide(values, begin, end, pivot)
        if larger - begin > count:
            end = larger
            continue
        total += above + pivot * min(smaller - larger, count - (larger - begin))
        count -= smaller - begin
        begin = smaller
    return total


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

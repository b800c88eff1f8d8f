"""The fewest units whose largest gains pass a gap: the one question behind every threat. Compiled.

Whole orders are not needed: gains are parted around one of them, and only the side is looked at further on which the
answer lies, so this takes a few passes over the gains, however many units it takes. Gains are moved about in place.
"""

from __future__ import annotations

from flipcert.engine.jit import compiled
from flipcert.flips._jit.ladder import UNDECIDED, beats


@compiled
def fewest(gains, gap, wins_ties, slack, unreachable):
    """Fewest gains, largest first, whose sum passes ``gap``, and the margin by which that is decided.

    ``wins_ties`` says whether a sum equal to the gap passes it. UNDECIDED if rounding could change the answer.
    """
    zero = gap - gap  # in the arithmetic of the row
    all_gains = zero
    for i in range(gains.size):
        if gains[i] > 0:
            all_gains += gains[i]
    wins = beats(all_gains - gap, wins_ties, slack)
    if wins != 1:
        return (unreachable, gap - all_gains) if wins == 0 else (UNDECIDED, zero)
    begin = 0
    end = gains.size
    total = zero
    while begin < end:
        pivot = _middle(gains, begin, end)
        larger, equal = _part(gains, begin, end, pivot)
        if pivot <= 0:
            end = larger  # all that counts is larger
            continue
        above = zero
        for i in range(begin, larger):
            above += gains[i]
        if larger > begin and beats(total + above - gap, wins_ties, zero) == 1:
            end = larger
            continue
        total += above
        for i in range(larger, equal):
            short = gap - total
            total += pivot
            wins = beats(total - gap, wins_ties, slack)
            if wins == UNDECIDED:
                return UNDECIDED, zero
            if wins == 1:
                # Nothing at all does not pass: the class that is ahead is ahead.
                if i > 0 and beats(-short, wins_ties, slack) != 0:
                    return UNDECIDED, zero
                return i + 1, min(short, total - gap)
        begin = equal
    return UNDECIDED, zero


@compiled
def sum_of_largest(gains, count):
    """Sum of the largest gains, so many of them or as many as are positive."""
    total = gains[0] - gains[0]
    begin = 0
    end = gains.size
    left = count
    while left > 0 and begin < end:
        pivot = _middle(gains, begin, end)
        larger, equal = _part(gains, begin, end, pivot)
        if larger - begin > left:
            end = larger
            continue
        for i in range(begin, larger):
            if gains[i] > 0:
                total += gains[i]
        left -= larger - begin
        for _ in range(min(left, equal - larger)):
            if pivot > 0:
                total += pivot
        left -= equal - larger
        begin = equal
    return total


@compiled
def _middle(values, begin, end):
    """The median of the first, the middle and the last value of a range."""
    low, middle, high = values[begin], values[(begin + end) // 2], values[end - 1]
    return max(min(low, middle), min(max(low, middle), high))


@compiled
def _part(values, begin, end, pivot):
    """Put larger values first, then those equal to the pivot, then smaller ones: where the last two begin."""
    larger = begin
    equal = begin
    smaller = end
    while equal < smaller:
        value = values[equal]
        if value > pivot:
            values[equal] = values[larger]
            values[larger] = value
            larger += 1
            equal += 1
        elif value < pivot:
            smaller -= 1
            values[equal] = values[smaller]
            values[smaller] = value
        else:
            equal += 1
    return larger, equal

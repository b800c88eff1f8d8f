"""Mixtures of rivals: tighter bounds for weights of both signs. Compiled.

To reach class c it has to pass every rival, so it has to pass every weighted mean of them too. For whole numbers
``m[q] >= 0`` with sum M, a labelling in which c wins has ``M s_c - sum_q m[q] s_q >= 0``. One flip raises the left side
by at most ``w (M + m[p])`` for a positive weight of class p (moved to c), ``|w| (M + max m)`` for a negative one of c
and ``|w| (max m - m[p])`` for a negative one of another class p (moved to the rival with the largest m). If the k
largest of these do not cover the deficit, k flips are not enough: a proof for *every* m, so the search for a good m
need not be trusted. A single rival is the special case of one m.

"Deficit minus the k largest gains" is concave in m, so subgradient steps find an m that makes it positive if there
is one. The k flips with the largest gains at such an m are also a good attack: positive weights go to c, negative ones
to whichever class is then highest.
"""

from __future__ import annotations

import numpy as np

from flipcert.engine.jit import compiled
from flipcert.flips._jit.ladder import (
    BEST_MIXTURE,
    CHOSEN,
    CURRENT,
    FACTORS,
    FLOOR,
    GAINS,
    GROUP,
    HEADS,
    MIXTURE,
    NEW_CLASS,
    PLACE,
    START,
    TRUNCATED,
    VALUE,
    is_ahead,
)

# Multipliers are whole numbers of this size in all, so that they and their sums are exact in a double.
UNITS = 2.0**20


@compiled
def tighten(ladder, scores, target, first, slack, rounding, lower, upper, steps, afresh):
    """Raise the lower and lower the upper cost of reaching ``target`` as far as mixtures do, in so many steps.

    Returns both, and by how much the deficit exceeds the gains of one flip fewer than the lower cost (infinity if the
    lower cost did not change). TRUNCATED as the lower cost asks for a longer ladder. An attack that lowers the upper
    cost is left recorded. Multipliers start at the first class, or, not ``afresh``, where they were. ``rounding``
    bounds the error of sums of weights even where they happen to be exact, because products with multipliers need not
    be.
    """
    n_classes = scores.size
    slope, m, best_m = ladder.numbers[GAINS], ladder.numbers[MIXTURE], ladder.numbers[BEST_MIXTURE]
    margin = np.inf
    closest = -np.inf  # deficit minus gains at the best multipliers so far
    if afresh:
        for q in range(n_classes):
            m[q] = 0.0
        m[first] = UNITS
    for _ in range(steps):
        total, strongest, deficit = weigh(m, scores, target)
        gained, last = largest_gains(ladder, scores, target, m, total, strongest, lower)
        if last < 0.0:
            return TRUNCATED, upper, 0.0
        # The sums here carry the factors m, at most twice their total, and one more rounding each.
        error = 4.0 * total * rounding
        if deficit - gained > error and last == 0.0:
            return upper, upper, margin  # all that can be flipped is not enough: nothing leads there
        if deficit - gained > error:
            lower += 1
            closest = -np.inf
            margin = (deficit - gained) / (2.0 * total)
            if lower == upper:
                break
            continue
        if deficit - gained > closest:
            closest = deficit - gained
            for q in range(n_classes):
                best_m[q] = m[q]
        if last == 0.0:
            break
        if attack_with(ladder, scores, target, lower, slack):
            upper = lower
            break
        # Polyak's step towards a value a little above zero, along the slope within the simplex of multipliers.
        mean = 0.0
        count = 0
        for q in range(n_classes):
            if q != target:
                slope[q] = scores[q] - scores[target] - slope[q]
                if m[q] > 0.0:
                    mean += slope[q]
                    count += 1
        mean /= count
        square = 0.0
        for q in range(n_classes):
            if q != target:
                slope[q] -= mean
                if m[q] == 0.0 and slope[q] < 0.0:
                    slope[q] = 0.0
                square += slope[q] * slope[q]
        if square == 0.0:
            break
        step = (gained - deficit + 0.25 * last) / square
        sum_of_m = 0.0
        for q in range(n_classes):
            if q != target:
                m[q] = max(0.0, m[q] + step * slope[q])
                sum_of_m += m[q]
        if not 0.0 < sum_of_m < np.inf:
            break
        for q in range(n_classes):
            m[q] = 0.0 if q == target else np.floor(m[q] / sum_of_m * UNITS + 0.5)
    return lower, upper, margin


@compiled
def weigh(m, scores, target):
    """Sum of the multipliers, the class with the largest, and by how much the mixture of rivals is ahead."""
    total = 0.0
    strongest = -1
    deficit = 0.0
    for q in range(scores.size):
        if q != target:
            total += m[q]
            deficit += m[q] * (scores[q] - scores[target])
            if strongest < 0 or m[q] > m[strongest]:
                strongest = q
    return total, strongest, deficit


@compiled
def gain_factor(g, target, m, total, strongest):
    """What flipping a weight of group g gains at most, as a multiple of its size."""
    p = g >> 1
    if g & 1:
        return total + m[strongest] if p == target else m[strongest] - m[p]
    return 0.0 if p == target else total + m[p]


@compiled
def largest_gains(ladder, scores, target, m, total, strongest, count):
    """Sum of the ``count`` largest gains at multipliers ``m``, and the smallest of them.

    Instead of the smallest, zero says that there are fewer, and a negative number that the ladder is too short.

    Records the samples, and leaves the slope of the sum with respect to each multiplier and the next rung of each
    group.
    """
    value, place, start, head = ladder.numbers[VALUE], ladder.rungs[PLACE], ladder.rungs[START], ladder.rungs[HEADS]
    n_groups = 2 * scores.size
    slope, factors = ladder.numbers[GAINS], ladder.numbers[FACTORS]
    for q in range(scores.size):
        slope[q] = 0.0
    for g in range(n_groups):
        head[g] = start[g]
        factors[g] = gain_factor(g, target, m, total, strongest)
    gained = 0.0
    best = 0.0
    for k in range(count):
        best = 0.0
        missing = 0.0
        choice = -1
        for g in range(n_groups):
            if head[g] < start[g + 1]:
                gain = factors[g] * value[place[head[g]]]
                if gain > best:
                    best = gain
                    choice = g
            else:
                missing = max(missing, factors[g] * ladder.numbers[FLOOR, g])
        if best <= missing and missing > 0.0:
            return gained, -1.0
        if choice < 0:
            return gained, 0.0
        position = place[head[choice]]
        head[choice] += 1
        ladder.rungs[CHOSEN, k] = position
        gained += best
        p = choice >> 1
        if choice & 1:
            slope[strongest] += value[position]
            if p != target:
                slope[p] -= value[position]
        else:
            slope[p] += value[position]
    return gained, best


@compiled
def attack_with(ladder, scores, target, count, slack):
    """Whether the recorded samples, flipped in the best way that is easy to see, make ``target`` win; records how."""
    current = ladder.numbers[CURRENT, : scores.size]
    n_classes = scores.size
    for q in range(n_classes):
        current[q] = scores[q]
    for step in range(count):
        position = ladder.rungs[CHOSEN, step]
        if ladder.rungs[GROUP, position] & 1 == 0:
            current[ladder.rungs[GROUP, position] >> 1] -= ladder.numbers[VALUE, position]
            current[target] += ladder.numbers[VALUE, position]
            ladder.rungs[NEW_CLASS, step] = target
    for step in range(count):
        position = ladder.rungs[CHOSEN, step]
        if ladder.rungs[GROUP, position] & 1:
            old = ladder.rungs[GROUP, position] >> 1
            top = -1
            for q in range(n_classes):
                if q != target and q != old and (top < 0 or current[q] > current[top]):
                    top = q
            if top < 0:
                return False
            current[old] += ladder.numbers[VALUE, position]
            current[top] -= ladder.numbers[VALUE, position]
            ladder.rungs[NEW_CLASS, step] = top
    return is_ahead(current, target, slack) == 1

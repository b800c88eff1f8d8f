"""Rival costs: the fewest flips that lift one class above one other (DESIGN: ``O2(c, q)``). Compiled."""

from __future__ import annotations

import numpy as np

from flipcert.engine.jit import compiled
from flipcert.flips._ladder import UNDECIDED, beats, leader


@compiled
def rival_cost(value, group, size, target, rival, gap, slack, unreachable, at_least):
    """Fewest flips after which ``target`` beats ``rival``, given ``gap = score[rival] - score[target]``.

    A weight that counts for the rival (or against the target) closes twice its size, one of a third class its size,
    so two walkers merge the two kinds. Whoever only cares about costs from ``at_least`` on says so, and closer calls
    below need not be decided. Returns the cost and the margin: by how much the deciding sums clear the gap.
    """
    total = gap - gap  # zero, in the arithmetic of the row
    cost = 0
    double = 0  # next weight that closes the gap twice
    single = 0  # next weight of a third class
    short = np.inf
    while True:
        if cost >= at_least:
            wins = beats(total - gap, target < rival, slack)
            if wins == UNDECIDED:
                return UNDECIDED, 0.0
            if wins == 1:
                return cost, min(short, total - gap)
            short = gap - total
        while double < size and group[double] != 2 * rival and group[double] != 2 * target + 1:
            double += 1
        while single < size and (group[single] >> 1 == rival or group[single] >> 1 == target):
            single += 1
        twice = 2 * value[double] if double < size else 0
        once = value[single] if single < size else 0
        if twice == 0 and once == 0:
            if cost >= at_least:
                return unreachable, short
            cost = at_least  # nothing more to flip: the sum is what it will be
            continue
        if twice >= once:
            total += twice
            double += 1
        else:
            total += once
            single += 1
        cost += 1


@compiled
def flip_for_pair(value, group, size, target, rival, count, scores, chosen, new_class):
    """Apply the ``count`` flips of a rival cost to ``scores``; record ladder positions and new classes."""
    double = 0
    single = 0
    for step in range(count):
        while double < size and group[double] != 2 * rival and group[double] != 2 * target + 1:
            double += 1
        while single < size and (group[single] >> 1 == rival or group[single] >> 1 == target):
            single += 1
        twice = 2 * value[double] if double < size else 0
        once = value[single] if single < size else 0
        if twice >= once:
            position = double
            double += 1
        else:
            position = single
            single += 1
        negative = group[position] & 1
        weight = -value[position] if negative else value[position]
        to = rival if negative else target
        scores[group[position] >> 1] -= weight
        scores[to] += weight
        chosen[step] = position
        new_class[step] = to


@compiled
def cheapest_rival(value, group, size, scores, first, slack, unreachable):
    """Cheapest ``rival_cost(c, first)``: the exact number of flips that change the prediction.

    Returns the cost, the class ``c`` (the smallest of several) and the margin, or UNDECIDED.
    """
    best = unreachable
    best_class = -1
    margin = np.inf
    for c in range(scores.size):
        if c == first:
            continue
        cost, room = rival_cost(value, group, size, c, first, scores[first] - scores[c], slack, unreachable, 1)
        if cost == UNDECIDED:
            return UNDECIDED, -1, 0.0
        if cost < best:
            best = cost
            best_class = c
            margin = room
        elif cost == best:
            margin = min(margin, room)
    return best, best_class, margin


@compiled
def dearest_rival(value, group, size, scores, target, first, slack, unreachable):
    """Largest ``rival_cost(target, q)`` over all rivals: a lower bound on the cost of reaching ``target``."""
    gap = scores[first] - scores[target]
    worst, margin = rival_cost(value, group, size, target, first, gap, slack, unreachable, 1)
    for q in range(scores.size):
        if q == target or q == first or worst == UNDECIDED or worst == unreachable:
            continue
        gap = scores[q] - scores[target]
        cost, room = rival_cost(value, group, size, target, q, gap, slack, unreachable, worst)
        if cost == worst:
            margin = min(margin, room)
        else:
            worst = cost
            margin = room
    return worst, margin


@compiled
def winner_after_pair(value, group, size, scores, target, rival, count, slack, chosen, new_class):
    """Which class wins once the flips of ``rival_cost(target, rival)`` are made, or UNDECIDED."""
    after = scores.copy()
    flip_for_pair(value, group, size, target, rival, count, after, chosen, new_class)
    return leader(after, slack)

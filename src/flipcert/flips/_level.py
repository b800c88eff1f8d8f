"""Exact flip cost for weights that are not negative: the level scan. Compiled."""

from __future__ import annotations

import numpy as np

from flipcert.engine.jit import compiled
from flipcert.flips._ladder import UNDECIDED, beats


@compiled
def level_cost(value, group, size, scores, target, slack, unreachable, counts):
    """Fewest flips of positive weights *to* ``target`` after which it wins; ``counts[q]`` of them come from class q.

    Exact whenever no movable weight is negative, and the cost of a real attack in any case. Returns the cost and its
    margin (by how much the deciding sums clear the level).

    With ``slack > 0`` a decided comparison is never a tie, so the sweep "the target ends above the level" is enough;
    with exact sums a second sweep covers "the target ends at the level".
    """
    best, margin = _sweep(value, group, size, scores, target, False, slack, unreachable, counts)
    if best != UNDECIDED and slack == 0.0:
        tied_counts = np.empty_like(counts)
        tied, tied_margin = _sweep(value, group, size, scores, target, True, slack, best, tied_counts)
        if tied < best:
            counts[:] = tied_counts
            return tied, tied_margin
    return best, margin


@compiled
def _sweep(value, group, size, scores, target, at_level, slack, best, counts):
    """Scan the levels that the highest other class may end at, from the present one downwards.

    Classes above the level must give up their largest weights: *forced* flips. If the target is then not above it
    (``at_level``: not at it), the largest weights left anywhere follow: *extra* flips. From a level to the next lower
    one, forced flips only join and extra flips only leave, so both are kept by walking, never recomputed.

    Where the target is to end exactly at the level, classes before it must end strictly below, and only classes
    after it can set the level.

    A comparison too close to call counts as "not reached" and leaves a doubt: whether that many flips would do. Only
    a doubt below the cost found in the end leaves the cost undecided.
    """
    n_classes = scores.size
    place, rank, start = _positive_rungs(group, size, n_classes)
    taken = np.zeros(n_classes, np.int64)  # forced flips of each class
    current = scores.copy()  # scores after the forced flips
    gained = scores[target]  # score of the target after forced and extra flips
    cost = 0
    forced = 0
    end = 0  # extra flips: the rungs before `end` that are not forced
    best_taken = np.zeros(n_classes, np.int64)
    best_end = 0
    room = 0.0
    short_of_fewer = np.inf
    doubt = best
    while True:
        top = -1
        for q in range(target + 1 if at_level else 0, n_classes):
            if q != target and (top < 0 or current[q] > current[top]):
                top = q
        if top < 0:
            break
        level = current[top]

        # Force classes that may not stay at the level, then add extra flips until the target reaches it.
        exhausted = False
        if at_level:
            for q in range(target):
                while current[q] >= level and not exhausted:
                    if taken[q] == start[q + 1] - start[q]:
                        exhausted = True
                    else:
                        position = place[start[q] + taken[q]]
                        taken[q] += 1
                        forced += 1
                        current[q] -= value[position]
                        if position >= end:
                            gained += value[position]
                            cost += 1
        if exhausted:
            break
        reached = beats(gained - level, at_level, slack)
        if reached == UNDECIDED:
            doubt = min(doubt, _least(value, group, rank, taken, target, level, slack, gained, cost, end))
        while reached != 1 and end < size:
            if _is_extra(group[end], rank[end], taken, target):
                gained += value[end]
                cost += 1
            end += 1
            reached = beats(gained - level, at_level, slack)
            if reached == UNDECIDED:
                doubt = min(doubt, _least(value, group, rank, taken, target, level, slack, gained, cost, end))

        if reached == 1:
            short = np.inf
            while end > 0:
                if _is_extra(group[end - 1], rank[end - 1], taken, target):
                    fewer = gained - value[end - 1]
                    still = beats(fewer - level, at_level, slack)
                    if still == UNDECIDED:
                        doubt = min(
                            doubt, _least(value, group, rank, taken, target, level, slack, fewer, cost - 1, end - 1)
                        )
                    if still != 1:
                        short = level - fewer
                        break
                    gained = fewer
                    cost -= 1
                end -= 1
            if cost < best:
                best = cost
                best_taken[:] = taken
                best_end = end
                room = gained - level
                short_of_fewer = short
            elif cost == best:
                room = max(room, gained - level)
                short_of_fewer = min(short_of_fewer, short)
            if cost == forced:
                break
        if forced >= best or taken[top] == start[top + 1] - start[top]:
            break
        position = place[start[top] + taken[top]]
        taken[top] += 1
        forced += 1
        current[top] -= value[position]
        if position >= end:
            gained += value[position]
            cost += 1

    if doubt < best:
        return UNDECIDED, 0.0
    counts[:] = 0
    for position in range(best_end):
        if rank[position] >= 0 and group[position] >> 1 != target:
            counts[group[position] >> 1] += 1
    for q in range(n_classes):
        counts[q] = max(counts[q], best_taken[q])
    return best, min(room, short_of_fewer)


@compiled
def _least(value, group, rank, taken, target, level, slack, gained, cost, end):
    """Fewest flips that might reach the level, given a number that might: drop extra ones until it certainly fails."""
    while end > 0:
        if _is_extra(group[end - 1], rank[end - 1], taken, target):
            gained = gained - value[end - 1]
            if beats(gained - level, True, slack) == 0:
                break
            cost -= 1
        end -= 1
    return cost


@compiled
def _positive_rungs(group, size, n_classes):
    """List the ladder positions of each class's positive weights, and each rung's rank within its class or -1."""
    start = np.zeros(n_classes + 1, np.int64)
    for position in range(size):
        if group[position] & 1 == 0:
            start[(group[position] >> 1) + 1] += 1
    for q in range(n_classes):
        start[q + 1] += start[q]
    place = np.empty(start[n_classes], np.int64)
    rank = np.full(size, -1, np.int64)
    filled = np.zeros(n_classes, np.int64)
    for position in range(size):
        if group[position] & 1 == 0:
            q = group[position] >> 1
            rank[position] = filled[q]
            place[start[q] + filled[q]] = position
            filled[q] += 1
    return place, rank, start


@compiled
def _is_extra(rung_group, rung_rank, taken, target):
    """Whether a rung before the end of the extra flips is one of them: positive, not forced, not the target's own."""
    q = rung_group >> 1
    return rung_rank >= 0 and q != target and rung_rank >= taken[q]

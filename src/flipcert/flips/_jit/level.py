"""Exact flip cost for weights that are not negative: the level scan. Compiled."""

from __future__ import annotations

import numpy as np

from flipcert.engine.jit import compiled
from flipcert.flips._jit.ladder import (
    CHOSEN,
    COUNT,
    CURRENT,
    DEEPEST,
    FLOOR,
    GAINS,
    GROUP,
    KEPT,
    LEAST,
    MOST,
    NEW_CLASS,
    PLACE,
    RANK,
    START,
    TAKEN,
    TRUNCATED,
    UNDECIDED,
    VALUE,
    beats,
)


@compiled
def level_costs(ladder, scores, first, slack, unreachable, cost, margin):
    """``level_cost`` of every class but the first; 0 if that worked, else UNDECIDED or TRUNCATED.

    Most classes are settled at once. Stripping the leader of its largest weight again and again is the fastest way to
    lower the highest score, and it is the same for all targets. After k flips let L be the highest score that is left,
    G what was stripped, and T the k largest weights of other classes than c. Class c wins with k flips if
    ``s_c + G > L`` and cannot if ``s_c + T < L``; where the first k of the one follows the last k of the other, that
    is its cost. Only the classes in between are scanned level by level.
    """
    value, group, place, start = ladder.numbers[VALUE], ladder.rungs[GROUP], ladder.rungs[PLACE], ladder.rungs[START]
    size = ladder.rungs[COUNT, 0]
    n_classes = scores.size
    taken, current, best_sum, next_rung = (
        ladder.rungs[TAKEN],
        ladder.numbers[CURRENT],
        ladder.numbers[GAINS],
        ladder.rungs[KEPT],
    )
    least, most = ladder.rungs[LEAST], ladder.rungs[MOST]  # bounds on each cost
    deepest = ladder.numbers[DEEPEST, 0]  # weights below the cut could be as large as this
    for q in range(n_classes):
        taken[q] = 0
        next_rung[q] = 0
        current[q] = scores[q]
        best_sum[q] = scores[q]  # s_c + T
        least[q] = 0
        most[q] = unreachable
        margin[q] = np.inf
    left = n_classes - 1
    stripped = 0 * scores[first]
    flips = 0
    top = first
    while left > 0:
        level = current[top]
        for c in range(n_classes):
            if c == first or most[c] < unreachable:
                continue
            above = scores[c] + stripped - level
            if above > slack:
                most[c] = flips
                margin[c] = min(margin[c], above)
                left -= 1
            elif c == top:
                left = 0  # its own weights would be stripped next, though next to nothing else was
            elif level - best_sum[c] > slack:
                least[c] = flips + 1
                margin[c] = level - best_sum[c]  # by how much one flip fewer falls short
        if left == 0 or taken[top] == start[2 * top + 1] - start[2 * top]:
            break
        position = place[start[2 * top] + taken[top]]
        taken[top] += 1
        flips += 1
        stripped += value[position]
        current[top] -= value[position]
        for q in range(n_classes):
            if current[q] > current[top]:
                top = q
        for c in range(n_classes):
            if most[c] == unreachable and least[c] == flips:
                while next_rung[c] < size and group[next_rung[c]] >> 1 == c:
                    next_rung[c] += 1
                rung = deepest
                if next_rung[c] < size:
                    rung = max(rung, value[next_rung[c]])
                    next_rung[c] += 1
                best_sum[c] += rung
    for c in range(n_classes):
        cost[c] = most[c]
        if c == first:
            cost[c] = 0
            margin[c] = np.inf
        elif least[c] < most[c]:
            cost[c], margin[c] = level_cost(ladder, scores, c, slack, unreachable, least[c], False)
            if cost[c] < 0:
                return cost[c]
    return 0


@compiled
def level_cost(ladder, scores, target, slack, unreachable, at_least, record):
    """Fewest flips of positive weights *to* ``target`` after which it wins, known to be ``at_least`` that many.

    Exact whenever no movable weight is negative, and the cost of a real attack in any case. Flips are recorded on the
    ladder on demand. Returns the cost and its margin (by how much the deciding sums clear the level).

    Scan the levels that the highest other class may end at, from the present one downwards. Classes above the level
    must give up their largest weights: *forced* flips. If the target is then not above it, the largest weights left
    anywhere follow: *extra* flips. From a level to the next lower one, forced flips only join and extra flips only
    leave, so both are kept by walking, never recomputed.

    With ``slack > 0`` a decided comparison is never a tie, so the sweep in which the target ends above the level is
    enough. With exact sums a second sweep covers the target ending *at* the level: then classes before it must end
    strictly below, and only classes after it can set the level.

    A comparison too close to call counts as "not reached" and leaves a doubt: whether that many flips would do. Only
    a doubt below the cost found in the end leaves the cost undecided.
    """
    value = ladder.numbers[VALUE]
    group, start, rank = ladder.rungs[GROUP], ladder.rungs[START], ladder.rungs[RANK]
    size = ladder.rungs[COUNT, 0]
    n_classes = scores.size
    taken = ladder.rungs[TAKEN]  # forced flips of each class
    current = ladder.numbers[CURRENT, : scores.size]  # scores after the forced flips
    best = unreachable
    best_end = -1
    room = 0.0
    short_of_fewer = np.inf
    doubt = unreachable
    extra_floor = ladder.numbers[DEEPEST, 0]  # weights below the cut could be as large as this
    for at_level in range(2 if slack == 0.0 else 1):
        for q in range(n_classes):
            taken[q] = 0
            current[q] = scores[q]
        gained = scores[target]  # score of the target after forced and extra flips
        cost = 0
        forced = 0
        end = 0  # extra flips: the rungs before `end` that are not forced
        while True:
            top = -1
            for q in range(target + 1 if at_level else 0, n_classes):
                if q != target and (top < 0 or current[q] > current[top]):
                    top = q
            if top < 0:
                break
            level = current[top]

            # Force classes that may not stay at the level, then add extra flips until the target reaches it.
            stuck = False
            if at_level:
                for q in range(target):
                    while current[q] >= level and not stuck:
                        if taken[q] == start[2 * q + 1] - start[2 * q]:
                            if ladder.numbers[FLOOR, 2 * q] > 0:
                                return TRUNCATED, 0.0
                            stuck = True
                        else:
                            gained, cost = _force(ladder, q, end, gained, cost)
                            forced += 1
            if stuck:
                break
            reached = beats(gained - level, at_level == 1, slack)
            if reached == UNDECIDED:
                doubt = min(doubt, _least(ladder, target, level, slack, gained, cost, end))
            while reached != 1 and end < size and cost <= best:
                if _is_extra(group[end], rank[end], taken, target):
                    if value[end] < extra_floor:
                        return TRUNCATED, 0.0
                    gained += value[end]
                    cost += 1
                end += 1
                reached = beats(gained - level, at_level == 1, slack)
                if reached == UNDECIDED:
                    doubt = min(doubt, _least(ladder, target, level, slack, gained, cost, end))
            if reached != 1 and end == size and extra_floor > 0:
                return TRUNCATED, 0.0

            if reached == 1:
                short = np.inf
                while end > 0:
                    if _is_extra(group[end - 1], rank[end - 1], taken, target):
                        fewer = gained - value[end - 1]
                        still = beats(fewer - level, at_level == 1, slack)
                        if still == UNDECIDED:
                            doubt = min(doubt, _least(ladder, target, level, slack, fewer, cost - 1, end - 1))
                        if still != 1:
                            short = level - fewer
                            break
                        gained = fewer
                        cost -= 1
                    end -= 1
                if cost < best:
                    best = cost
                    for q in range(n_classes):
                        ladder.rungs[KEPT, q] = taken[q]
                    best_end = end
                    room = gained - level
                    short_of_fewer = short
                elif cost == best:
                    room = max(room, gained - level)
                    short_of_fewer = min(short_of_fewer, short)
                if cost == forced:
                    break
            if forced >= best or best == at_least:
                break
            if taken[top] == start[2 * top + 1] - start[2 * top]:
                if ladder.numbers[FLOOR, 2 * top] > 0:
                    return TRUNCATED, 0.0
                break
            gained, cost = _force(ladder, top, end, gained, cost)
            forced += 1

    if max(doubt, at_least) < best:
        return UNDECIDED, 0.0
    if record and best_end >= 0:
        step = 0
        for position in range(size):
            q = group[position] >> 1
            if (
                q != target
                and group[position] & 1 == 0
                and (position < best_end or rank[position] < ladder.rungs[KEPT, q])
            ):
                ladder.rungs[CHOSEN, step] = position
                ladder.rungs[NEW_CLASS, step] = target
                step += 1
    return best, min(room, short_of_fewer)


@compiled
def _force(ladder, q, end, gained, cost):
    """Flip the largest weight left of class q, by force; it counts unless it was an extra flip already."""
    position = ladder.rungs[PLACE, ladder.rungs[START, 2 * q] + ladder.rungs[TAKEN, q]]
    ladder.rungs[TAKEN, q] += 1
    ladder.numbers[CURRENT, q] -= ladder.numbers[VALUE, position]
    if position >= end:
        return gained + ladder.numbers[VALUE, position], cost + 1
    return gained, cost


@compiled
def _least(ladder, target, level, slack, gained, cost, end):
    """Fewest flips that might reach the level, given a number that might: drop extra ones until it certainly fails."""
    while end > 0:
        if _is_extra(ladder.rungs[GROUP, end - 1], ladder.rungs[RANK, end - 1], ladder.rungs[TAKEN], target):
            gained = gained - ladder.numbers[VALUE, end - 1]
            if beats(gained - level, True, slack) == 0:
                break
            cost -= 1
        end -= 1
    return cost


@compiled
def _is_extra(rung_group, rung_rank, taken, target):
    """Whether a rung before the end of the extra flips is one of them: positive, not forced, not the target's own."""
    q = rung_group >> 1
    return rung_group & 1 == 0 and q != target and rung_rank >= taken[q]

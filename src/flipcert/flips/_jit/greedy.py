"""Greedy attacks towards a class, for weights of any sign. Compiled.

Any attack that ends with the target in front is an upper bound on its flip cost, so nothing here needs to be right but
the last comparison. Each step looks only at the largest weight left in every (class, sign) group: O(K) a step.
"""

from __future__ import annotations

from flipcert.engine._jit.sort import sort_pairs
from flipcert.engine.jit import compiled
from flipcert.flips._jit.ladder import (
    BUCKETS,
    CHOSEN,
    COUNT,
    CURRENT,
    FLOOR,
    HEADS,
    KEPT,
    LEAST,
    MOST,
    NEW_CLASS,
    PLACE,
    START,
    TAKEN,
    TRUNCATED,
    UNDECIDED,
    VALUE,
    is_ahead,
)
from flipcert.flips._jit.rival import move


@compiled
def greedy_cost(ladder, scores, target, published, slack, unreachable):
    """Flip whatever closes the gap between ``target`` and the current leader most, until ``target`` leads.

    ``published`` uses the damages of the paper's algorithm: flips against the leader count no more than up to the
    second class, and negative weights of third classes are not used. Otherwise every flip counts what it closes.
    Flips are recorded on the ladder. Returns their number (``unreachable`` when stuck) and the first number at which it
    was too close to call whether ``target`` leads.
    """
    value, place, start = ladder.numbers[VALUE], ladder.rungs[PLACE], ladder.rungs[START]
    n_classes = scores.size
    current = ladder.numbers[CURRENT, : scores.size]
    for q in range(n_classes):
        current[q] = scores[q]
    head = ladder.rungs[HEADS]
    for g in range(2 * n_classes):
        head[g] = start[g]
    doubt = unreachable
    for step in range(ladder.rungs[COUNT, 0] + 1):
        won = is_ahead(current, target, slack)
        if won == 1:
            return step, doubt
        if won == UNDECIDED:
            doubt = min(doubt, step)
        front = -1  # strongest other class
        for q in range(n_classes):
            if q != target and (front < 0 or current[q] > current[front]):
                front = q
        second = current[target]
        for q in range(n_classes):
            if q != front and current[q] > second:
                second = current[q]

        damage = 0 * current[front]
        missing = damage
        choice = -1
        for g in range(2 * n_classes):
            q = g >> 1
            negative = g & 1
            against_leader = (q == front and not negative) or (q == target and negative)
            if not against_leader and (q == front or q == target or (published and negative)):
                continue
            if head[g] == start[g + 1]:
                missing = max(missing, 2 * ladder.numbers[FLOOR, g] if against_leader else ladder.numbers[FLOOR, g])
                continue
            closes = value[place[head[g]]]
            if against_leader:
                closes = closes + (min(closes, current[front] - second) if published else closes)
            # Of equal flips, take the one whose class can best do without (or is hurt least by) it.
            if closes > damage or (closes == damage and choice >= 0 and current[q] < current[choice >> 1]):
                damage = closes
                choice = g
        if damage <= missing and missing > 0:
            return TRUNCATED, doubt
        if choice < 0:
            return unreachable, doubt
        ladder.rungs[CHOSEN, step] = place[head[choice]]
        ladder.rungs[NEW_CLASS, step] = front if choice & 1 else target
        head[choice] += 1
        move(ladder, current, step, 1)
    return unreachable, doubt


@compiled
def drop_needless(ladder, scores, target, slack, count):
    """Take back recorded flips that the attack does not need, smallest first; return how many stay, and a doubt."""
    chosen, new_class = ladder.rungs[CHOSEN], ladder.rungs[NEW_CLASS]
    after = ladder.numbers[CURRENT, : scores.size]
    for q in range(scores.size):
        after[q] = scores[q]
    for step in range(count):
        move(ladder, after, step, 1)
    # Flips in the order of their rungs, so that the smallest weights come last (in rows that are free at this point).
    position, order, keep = ladder.rungs[BUCKETS], ladder.rungs[LEAST], ladder.rungs[MOST]
    for step in range(count):
        position[step] = chosen[step]
        order[step] = step
        keep[step] = 1
    sort_pairs(position, order, count, ladder.rungs[TAKEN], ladder.rungs[KEPT])
    doubts = 0
    for place in range(count - 1, -1, -1):
        step = order[place]
        move(ladder, after, step, -1)
        won = is_ahead(after, target, slack)
        if won == 1:
            keep[step] = 0
        else:
            doubts += won == UNDECIDED
            move(ladder, after, step, 1)
    left = 0
    for step in range(count):
        if keep[step]:
            chosen[left] = chosen[step]
            new_class[left] = new_class[step]
            left += 1
    return left, left - doubts

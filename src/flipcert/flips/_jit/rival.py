"""Rival costs: the fewest flips that lift one class above one other. Compiled."""

from __future__ import annotations

import numpy as np

from flipcert.engine.jit import compiled
from flipcert.flips._jit.ladder import (
    BINS,
    CHOSEN,
    COUNT,
    CURRENT,
    DEEPEST,
    FLOOR,
    GROUP,
    NEW_CLASS,
    PLACE,
    SPARE,
    START,
    TAKEN,
    TRUNCATED,
    UNDECIDED,
    VALUE,
    beats,
    leader,
    runner_up,
)
from flipcert.flips._jit.select import PICKED, next_gain, prepare_gains


@compiled
def rival_cost(ladder, target, rival, gap, slack, unreachable, at_least, at_most, record):
    """Fewest flips after which ``target`` beats ``rival``, given ``gap = score[rival] - score[target]``.

    A weight that counts for the rival (or against the target) closes twice its size, one of a third class its size;
    three walkers merge the rival's, the target's and the others'. Whoever only cares about costs from ``at_least`` to
    ``at_most`` says so: closer calls below need not be decided, and ``at_most`` stands for anything from there on.
    Flips are recorded on the ladder on demand. Returns the cost and the margin: by how much the deciding sums clear
    the gap.
    """
    value, group, place, start = ladder.numbers[VALUE], ladder.rungs[GROUP], ladder.rungs[PLACE], ladder.rungs[START]
    size = ladder.rungs[COUNT, 0]
    rivals, rivals_end = start[2 * rival], start[2 * rival + 1]
    owns, owns_end = start[2 * target + 1], start[2 * target + 2]
    other = 0
    total = gap - gap  # zero, in the arithmetic of the row
    cost = 0
    short = np.inf
    while True:
        if cost >= at_least:
            if cost == at_most:
                return at_most, short
            wins = beats(total - gap, target < rival, slack)
            if wins == UNDECIDED:
                return UNDECIDED, 0.0
            if wins == 1:
                return cost, min(short, total - gap)
            short = gap - total
        while other < size and (group[other] >> 1 == rival or group[other] >> 1 == target):
            other += 1
        best = 0 * gap
        missing = ladder.numbers[DEEPEST, 0]  # what weights below the cut could close at most
        if rivals < rivals_end:
            best = 2 * value[place[rivals]]
        else:
            missing = max(missing, 2 * ladder.numbers[FLOOR, 2 * rival])
        choice = 0
        if owns < owns_end:
            if 2 * value[place[owns]] > best:
                best = 2 * value[place[owns]]
                choice = 1
        else:
            missing = max(missing, 2 * ladder.numbers[FLOOR, 2 * target + 1])
        if other < size and value[other] > best:
            best = value[other]
            choice = 2
        if best < missing:
            return TRUNCATED, 0.0
        if best == 0:
            if cost >= at_least:
                return unreachable, short
            cost = at_least  # nothing more to flip: the sum is what it will be
            continue
        if record:
            position = place[rivals] if choice == 0 else place[owns] if choice == 1 else other
            ladder.rungs[CHOSEN, cost] = position
            ladder.rungs[NEW_CLASS, cost] = rival if group[position] & 1 else target
        rivals += choice == 0
        owns += choice == 1
        other += choice == 2
        total += best
        cost += 1


@compiled
def rival_costs(ladder, scores, first, slack, unreachable, cost, margin):
    """``rival_cost(c, first)`` of every class; 0 if that worked, else UNDECIDED or TRUNCATED."""
    for c in range(scores.size):
        cost[c] = 0
        margin[c] = np.inf
        if c != first:
            gap = scores[first] - scores[c]
            cost[c], margin[c] = rival_cost(ladder, c, first, gap, slack, unreachable, 1, unreachable, False)
            if cost[c] < 0:
                return cost[c]
    return 0


@compiled
def rival_costs_in_one_walk(ladder, row, labels, scores, first, slack, unreachable, cost, margin):
    """``rival_costs`` with one order of gains for all classes, which leaves out their own weights.

    The gains of a short row are picked out of it; its negative weights close twice as much for their own class, as
    gains that count for that class alone. Those of a long row, without negative weights, are on the ladder.
    """
    value, group, place, start = ladder.numbers[VALUE], ladder.rungs[GROUP], ladder.rungs[PLACE], ladder.rungs[START]
    own_sum, own_count = ladder.numbers[CURRENT], ladder.rungs[TAKEN]
    n_classes = scores.size
    for c in range(n_classes):
        cost[c] = 0 if c == first else unreachable
        margin[c] = np.inf
        own_sum[c] = 0.0
        own_count[c] = 0
    on_ladder = row.size > PICKED
    size = rivals = rivals_end = other = 0
    if on_ladder:
        size = ladder.rungs[COUNT, 0]
        rivals, rivals_end = start[2 * first], start[2 * first + 1]
    else:
        size = prepare_gains(ladder, row, labels, first)
    total = 0.0
    steps = 0
    left = n_classes - 1
    alone = -1  # as the taker of a gain that only one class has
    while left > 0:
        if on_ladder:
            while other < size and group[other] >> 1 == first:
                other += 1
            twice = 2.0 * value[place[rivals]] if rivals < rivals_end else 0.0
            once = value[other] if other < size else 0.0
            missing = ladder.numbers[DEEPEST, 0]
            if rivals == rivals_end:
                missing = max(missing, 2.0 * ladder.numbers[FLOOR, 2 * first])
            gain = max(twice, once)
            if gain < missing:
                return TRUNCATED
            if twice >= once:
                taker = first
                rivals += 1
            else:
                taker = group[other] >> 1
                other += 1
        else:
            gain, position = next_gain(ladder.numbers[SPARE], ladder.numbers[BINS], size)
            taker = np.int64(labels.codes[position]) if position < row.size else alone
        if gain == 0.0:
            return 0
        begin, end = 0, n_classes
        if taker == alone:
            begin = ladder.rungs[CHOSEN, position]
            end = begin + 1
            own_sum[begin] -= gain
            own_count[begin] -= 1
        else:
            total += gain
            steps += 1
            if taker != first:
                own_sum[taker] += gain
                own_count[taker] += 1
        for c in range(begin, end):
            if c != taker and cost[c] == unreachable:
                short = scores[first] - scores[c] - (total - own_sum[c])
                wins = beats(-short, c < first, slack)
                if wins == UNDECIDED:
                    return UNDECIDED
                if wins == 1:
                    cost[c] = steps - own_count[c]
                    margin[c] = min(margin[c], -short)
                    left -= 1
                else:
                    margin[c] = short
    return 0


@compiled
def cheapest_rival(ladder, scores, first, slack, unreachable):
    """Cheapest ``rival_cost(c, first)``: the exact number of flips that change the prediction.

    Returns the cost, a class ``c`` of that cost and the margin; UNDECIDED or TRUNCATED as the cost.
    """
    best = unreachable
    best_class = -1
    margin = np.inf
    # The second class is mostly the cheapest; the others then only have to be followed that far.
    second = runner_up(scores, first)
    for turn in range(-1, scores.size):
        c = second if turn < 0 else turn
        if c < 0 or c == first or (turn >= 0 and c == second):
            continue
        gap = scores[first] - scores[c]
        cost, room = rival_cost(ladder, c, first, gap, slack, unreachable, 1, best, False)
        if cost < 0:
            return cost, -1, 0.0
        if cost < best:
            best = cost
            best_class = c
            margin = room
        else:
            margin = min(margin, room)
    return best, best_class, margin


@compiled
def dearest_rival(ladder, scores, target, first, slack, unreachable):
    """Largest ``rival_cost(target, q)`` over all rivals: a lower bound on the cost of reaching ``target``."""
    gap = scores[first] - scores[target]
    worst, margin = rival_cost(ladder, target, first, gap, slack, unreachable, 1, unreachable, False)
    for q in range(scores.size):
        if q == target or q == first or worst < 0 or worst == unreachable:
            continue
        gap = scores[q] - scores[target]
        cost, room = rival_cost(ladder, target, q, gap, slack, unreachable, worst, unreachable, False)
        if cost == worst:
            margin = min(margin, room)
        else:
            worst = cost
            margin = room
    return worst, margin


@compiled
def winner_after(ladder, scores, count, slack):
    """Which class wins once the first ``count`` recorded flips are made, or UNDECIDED."""
    after = ladder.numbers[CURRENT, : scores.size]
    for c in range(scores.size):
        after[c] = scores[c]
    for step in range(count):
        move(ladder, after, step, 1)
    return leader(after, slack)


@compiled
def move(ladder, scores, step, direction):
    """Make (1) or take back (-1) a recorded flip."""
    position = ladder.rungs[CHOSEN, step]
    negative = ladder.rungs[GROUP, position] & 1
    weight = -ladder.numbers[VALUE, position] if negative else ladder.numbers[VALUE, position]
    scores[ladder.rungs[GROUP, position] >> 1] -= direction * weight
    scores[ladder.rungs[NEW_CLASS, step]] += direction * weight

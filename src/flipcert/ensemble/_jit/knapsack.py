"""Cheapest way to change a vote, in O(N log N). Compiled.

To let class c overtake class a, voters for a can be turned to c (closing two votes) or to their cheapest other class
(closing one), other voters to c (closing one). A voter whose second step costs at least as much as its first is just
two single steps. Of the others, at most one stops half-way in a cheapest solution: of two that do, sending the cheaper
one all the way and leaving the other alone costs no more. So single steps are sorted, whole turns are sorted, and only
the number of whole turns, and one half-turn, is left to choose.
"""

from __future__ import annotations

import numpy as np

from flipcert.engine._jit.room import room_for_integers, zero_integers
from flipcert.engine._jit.sort import sort_small
from flipcert.engine.jit import compiled
from flipcert.flips._jit.ladder import highest

BEYOND = np.int64(2**62)
# In a plan: turned to whichever other class is cheapest.
LEAVES = -1
# Costs up to this are sorted by counting; dearer changes are rare, and left to a comparison sort.
_COUNTED = 255


@compiled
def tally(votes, n_classes):
    """Votes of each class and the winner, ties to the smaller index."""
    counts = zero_integers(n_classes)
    for i in range(votes.size):
        counts[votes[i]] += 1
    return counts, highest(counts)


@compiled
def overtake(votes, price, away, counts, rival, target, plan):
    """Cheapest flips after which ``target`` has beaten ``rival``; the new votes go to ``plan`` if it has room.

    ``price`` is the cost of turning each voter to the target, ``away`` that of turning a voter for the rival to any
    other class; the plan says ``LEAVES`` for a voter that is turned so.
    """
    need = counts[rival] - counts[target] + (1 if rival < target else 0)
    n_voters = votes.size
    if plan.size:
        for i in range(n_voters):  # as an assignment, it takes seconds more to compile
            plan[i] = votes[i]
    if need <= 0:
        return np.int64(0)
    step = room_for_integers(2 * n_voters)  # costs of single steps
    step_voter = room_for_integers(2 * n_voters)
    whole = room_for_integers(n_voters)  # voters whose second step is cheaper than the first: cost of both
    half = room_for_integers(n_voters)  # and of the first
    whole_voter = room_for_integers(n_voters)
    n_steps = 0
    n_wholes = 0
    for i in range(n_voters):
        if votes[i] == target:
            continue
        if votes[i] != rival:
            step[n_steps] = price[i]
            step_voter[n_steps] = i
            n_steps += 1
        elif price[i] >= 2 * away[i]:
            step[n_steps] = away[i]
            step[n_steps + 1] = price[i] - away[i]
            step_voter[n_steps] = i
            step_voter[n_steps + 1] = i
            n_steps += 2
        else:
            whole[n_wholes] = price[i]
            whole_voter[n_wholes] = i
            n_wholes += 1

    # Stable, so that a voter's first step never comes after its second.
    spare = room_for_integers(2 * n_voters)
    spare_voter = room_for_integers(2 * n_voters)
    sort_small(step, step_voter, n_steps, spare, spare_voter)
    sort_small(whole, whole_voter, n_wholes, spare, spare_voter)
    for k in range(n_wholes):
        half[k] = away[whole_voter[k]]
    best, wholes, steps, halved = _cheapest_mix(need, step[:n_steps], whole[:n_wholes], half[:n_wholes])
    if plan.size and best < BEYOND:
        for k in range(wholes):
            plan[whole_voter[k]] = target
        if halved >= 0:
            plan[whole_voter[halved]] = LEAVES
        for k in range(steps):
            i = step_voter[k]
            plan[i] = LEAVES if votes[i] == rival and plan[i] == rival else target
    return best


@compiled
def _cheapest_mix(need, step, whole, half):
    """Cheapest way to close ``need`` votes with single steps, whole turns (both sorted) and at most one half-turn.

    Returns the cost, how many of the first whole turns and single steps to take, and which whole turn to make only
    half (-1 for none).
    """
    n_steps, n_wholes = step.size, whole.size
    step_sum = zero_integers(n_steps + 1)
    for k in range(n_steps):
        step_sum[k + 1] = step_sum[k] + step[k]
    later = room_for_integers(n_wholes + 1)  # cheapest half-turn from this position on
    later[n_wholes] = -1
    for k in range(n_wholes - 1, -1, -1):
        later[k] = k
        if later[k + 1] >= 0 and half[later[k + 1]] <= half[k]:
            later[k] = later[k + 1]

    best = (BEYOND, 0, 0, -1)
    spent = np.int64(0)  # on the first `wholes` whole turns
    saver = 0  # of the first `wholes + 1` turns, the one that saves most when made only half
    for wholes in range(n_wholes + 1):
        steps = max(need - 2 * wholes, 0)
        if steps <= n_steps and spent + step_sum[steps] < best[0]:
            best = (spent + step_sum[steps], wholes, steps, -1)
        if wholes == n_wholes:
            break
        if whole[wholes] - half[wholes] > whole[saver] - half[saver]:
            saver = wholes
        steps = max(steps - 1, 0)
        if steps <= n_steps:
            added = spent + half[later[wholes]] + step_sum[steps]
            if added < best[0]:
                best = (added, wholes, steps, later[wholes])
            exchanged = spent + whole[wholes] - (whole[saver] - half[saver]) + step_sum[steps]
            if exchanged < best[0]:
                best = (exchanged, wholes + 1, steps, saver)
        spent += whole[wholes]
    return best


@compiled
def cheapest_other(costs, vote):
    """The class other than ``vote`` that costs least, the smaller index of several."""
    best = -1
    for q in range(costs.size):
        if q != vote and (best < 0 or costs[q] < costs[best]):
            best = q
    return best


@compiled
def leave_costs(votes, costs, first, away):
    """Cost of turning each voter for ``first`` to any other class."""
    for i in range(votes.size):
        if votes[i] == first:
            away[i] = costs[i, cheapest_other(costs[i], first)]


@compiled
def overtake_cost(votes, price, away, counts, first, target, tables):
    """The cost alone of ``overtake``."""
    fewest, cheapest_dear = _overtake_by_counting(votes, price, away, counts, first, target, tables)
    if fewest > cheapest_dear:
        fewest = overtake(votes, price, away, counts, first, target, room_for_integers(0))
    return fewest


@compiled
def change_rows(votes, costs, winner, cost, target):
    """For each row the winner, the cheapest cost of changing it and the class that overtakes it then."""
    n_classes = costs.shape[2]
    away, price = room_for_integers(votes.shape[1]), room_for_integers(votes.shape[1])
    tables = new_tables()
    for t in range(votes.shape[0]):
        counts, first = tally(votes[t], n_classes)
        leave_costs(votes[t], costs[t], first, away)
        winner[t] = first
        cost[t] = BEYOND
        target[t] = -1
        for c in range(n_classes):
            if c != first:
                for i in range(price.size):
                    price[i] = costs[t, i, c]
                fewest = overtake_cost(votes[t], price, away, counts, first, c, tables)
                if fewest < cost[t]:
                    cost[t] = fewest
                    target[t] = c


@compiled
def new_tables():
    """Room to count costs in."""
    return np.empty((4, _COUNTED + 2), np.int64)


@compiled
def _overtake_by_counting(votes, price, away, counts, first, target, tables):
    """Cost of ``overtake`` without single costs above ``_COUNTED``, and the cheapest of those.

    If the first is not larger than the second, no cheapest change uses a cost that was left out. Small whole numbers
    are counted instead of sorted. Of whole turns of equal cost it does not matter which ones are made, so the one that
    serves best half-made can always be left out, or be among them.
    """
    need = counts[first] - counts[target] + (1 if first < target else 0)
    steps, wholes, halves, savings = tables[0], tables[1], tables[2], tables[3]
    for v in range(_COUNTED + 2):
        steps[v] = 0  # single steps of this cost
        wholes[v] = 0  # whole turns of this cost, and of these:
        halves[v] = BEYOND  # the cheapest half-turn, also of dearer ones
        savings[v] = 0  # what making one of them only half saves at most
    cheapest_dear = BEYOND
    for i in range(votes.size):
        if votes[i] == target:
            continue
        whole = min(price[i], _COUNTED + 1)
        if whole > _COUNTED:
            cheapest_dear = min(cheapest_dear, away[i] if votes[i] == first and away[i] > _COUNTED else price[i])
        if votes[i] != first:
            steps[whole] += 1
        elif whole > _COUNTED:
            steps[min(away[i], _COUNTED + 1)] += 1  # too dear to go all the way
        elif whole >= 2 * away[i]:
            steps[away[i]] += 1
            steps[whole - away[i]] += 1
        else:
            wholes[whole] += 1
            halves[whole] = min(halves[whole], away[i])
            savings[whole] = max(savings[whole], whole - away[i])
    for v in range(_COUNTED, -1, -1):
        halves[v] = min(halves[v], halves[v + 1])

    # The `missing` cheapest steps are the `taken` ones cheaper than `level`, for `spent`, and some of that cost.
    missing = need
    level = taken = spent = 0
    while level <= _COUNTED and taken + steps[level] < missing:
        taken += steps[level]
        spent += steps[level] * level
        level += 1
    best = BEYOND
    paid = 0  # for whole turns
    saver = 0
    value = used = 0  # cost of the next whole turn, and how many of that cost are made
    while True:
        if level <= _COUNTED or missing == taken:
            best = min(best, paid + spent + (missing - taken) * level)
        while value <= _COUNTED and used == wholes[value]:
            value += 1
            used = 0
        if value > _COUNTED or missing == 0:
            return best, cheapest_dear
        saver = max(saver, savings[value])
        for half_made in range(1, -1, -1):
            # one step fewer: a half-turn more, or one of the whole turns, the next included, only half made;
            # two steps fewer: the next whole turn
            missing = max(missing - 1, 0)
            while missing < taken:
                level -= 1
                taken -= steps[level]
                spent -= steps[level] * level
            if half_made and (level <= _COUNTED or missing == taken):
                extra = min(halves[value], value - saver)
                best = min(best, paid + extra + spent + (missing - taken) * level)
        paid += value
        used += 1


@compiled
def plan_rows(votes, costs, winner, overtaker, which, plans, after):
    """New votes of the cheapest change of the rows ``which``, and who wins then."""
    away = room_for_integers(votes.shape[1])
    for k in range(which.size):
        t = which[k]
        counts, first = tally(votes[t], costs.shape[2])
        leave_costs(votes[t], costs[t], first, away)
        price = costs[t, :, overtaker[t]].copy()
        overtake(votes[t], price, away, counts, winner[t], overtaker[t], plans[k])
        for i in range(votes.shape[1]):
            if plans[k, i] == LEAVES:
                plans[k, i] = cheapest_other(costs[t, i], first)
        _, after[k] = tally(plans[k], costs.shape[2])

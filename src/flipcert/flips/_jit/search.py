"""Settle a cost that mixtures leave open by one flip: search near the best mixture. Compiled.

At multipliers m (see ``mixture.py``) every labelling of k flips in which c wins must gain the deficit. The
k largest gains exceed it by a little, the *room*, so such a labelling is those k flips up to exchanges that lose no
more than the room in all: a flip dropped loses what it gains above the smallest gain of the k, a flip added what it
gains below that. Good multipliers leave little room and few exchanges; all of them are tried. If none works, k flips
are not enough, proven; if one works, it is an attack.

Where the flipped negative weights go is a question of its own. Each lowers one rival, so together they have to *cover*
by how much the rivals exceed c; most candidates already fail because all of them in sum are too small for that.
"""

from __future__ import annotations

from flipcert.engine._jit.room import room_for_doubles, room_for_integers, zero_doubles, zero_integers
from flipcert.engine._jit.sort import sort_pairs
from flipcert.engine.jit import compiled
from flipcert.flips._jit.ladder import (
    BEST_MIXTURE,
    CHOSEN,
    FACTORS,
    FLOOR,
    GROUP,
    HEADS,
    NEW_CLASS,
    PLACE,
    START,
    TRUNCATED,
    VALUE,
)
from flipcert.flips._jit.mixture import largest_gains, weigh
from flipcert.flips._jit.rival import winner_after

FOUND, NONE, OPEN = range(3)
# With more exchanges than this in question the search proves nothing, but may still find an attack.
_MOST_ITEMS = 128


@compiled
def search(ladder, scores, target, count, slack, rounding, nodes):
    """Whether ``count`` flips can make ``target`` win, given that fewer cannot.

    FOUND leaves the attack recorded, NONE is proven, OPEN stands for more than so many nodes; TRUNCATED asks for a
    longer ladder.
    """
    m = ladder.numbers[BEST_MIXTURE]
    total, strongest, deficit = weigh(m, scores, target)
    gained, last = largest_gains(ladder, scores, target, m, total, strongest, count)
    if last <= 0.0:
        return TRUNCATED if last < 0.0 else OPEN
    # Twice the error of the two sums: one for each side of the comparisons that follow.
    room = gained - deficit + 8.0 * total * rounding
    loss, rung = room_for_doubles(_MOST_ITEMS), room_for_integers(_MOST_ITEMS)
    n_items = _list_exchanges(ladder, scores.size, target, count, last, room, loss, rung)
    if n_items == TRUNCATED:
        return TRUNCATED
    complete = n_items < _MOST_ITEMS

    # The k flips, then those that may be added, and which of all these are made; an exchange toggles one.
    flips, made = room_for_integers(count + n_items), zero_integers(count + n_items)
    slot = room_for_integers(n_items)
    for k in range(count):
        flips[k] = ladder.rungs[CHOSEN, k]
        made[k] = 1
    for k in range(n_items):
        flips[count + k] = max(rung[k], 0)
        slot[k] = count + k if rung[k] >= 0 else -1 - rung[k]
    current = room_for_doubles(
        scores.size + 1
    )  # scores with all flips made but those of negative weights not placed yet
    for q in range(scores.size):
        current[q] = scores[q]
    current[scores.size] = 0.0  # what the negative weights can cover
    for k in range(count):
        _toggle(ladder, current, target, flips[k], 1.0)
    # Toggling back and forth rounds every time.
    fuzz = slack * scores.size * (2.0 + nodes / 64.0)

    stack, lost = room_for_integers(n_items), zero_doubles(n_items + 1)  # exchanges made, what the first of them lose
    depth = position = 0
    balance = 0  # flips added less flips dropped
    while True:
        if balance == 0:
            answer, nodes = _place(ladder, current, target, flips, made, fuzz, nodes)
            if answer == FOUND and winner_after(ladder, scores, count, slack) == target:
                return FOUND
            complete &= answer == NONE
        # Make the next exchange that the room allows, or take the last one back. They come in the order of what they
        # lose, and as many are dropped as added.
        while position == n_items or lost[depth] + loss[position] * max(abs(balance), 2 - abs(balance)) > room:
            if depth == 0:
                return NONE if complete else OPEN
            depth -= 1
            position = stack[depth]
            balance += _exchange(ladder, current, target, flips, made, slot[position])
            position += 1
        nodes -= 1
        if nodes <= 0:
            return OPEN
        balance += _exchange(ladder, current, target, flips, made, slot[position])
        stack[depth] = position
        lost[depth + 1] = lost[depth] + loss[position]
        depth += 1
        position += 1


@compiled
def _list_exchanges(ladder, n_classes, target, count, last, room, loss, rung):
    """List the exchanges within the room, cheapest first; as many as there is space for, if there are more.

    An exchange is a rung to add, or minus one minus the step to drop. TRUNCATED if some are not on the ladder.
    """
    value, place, start, head = ladder.numbers[VALUE], ladder.rungs[PLACE], ladder.rungs[START], ladder.rungs[HEADS]
    factors = ladder.numbers[FACTORS]
    size = 0
    for k in range(count):
        position = ladder.rungs[CHOSEN, k]
        excess = factors[ladder.rungs[GROUP, position]] * value[position] - last
        if excess <= room and size < loss.size:
            loss[size] = excess
            rung[size] = -1 - k
            size += 1
    for g in range(2 * n_classes):
        if g == 2 * target:
            continue  # taking a positive weight from the target never helps
        step = head[g]
        while step < start[g + 1] and last - factors[g] * value[place[step]] <= room and size < loss.size:
            loss[size] = last - factors[g] * value[place[step]]
            rung[size] = place[step]
            size += 1
            step += 1
        floor = ladder.numbers[FLOOR, g]
        if step == start[g + 1] and floor > 0.0 and last - factors[g] * floor <= room:
            return TRUNCATED
    sort_pairs(loss, rung, size, room_for_doubles(size), room_for_integers(size))
    return size


@compiled
def _exchange(ladder, current, target, flips, made, slot):
    """Make a flip, or take it back if it is made; return how the number of flips changes."""
    made[slot] = 1 - made[slot]
    direction = 1 if made[slot] else -1
    _toggle(ladder, current, target, flips[slot], float(direction))
    return direction


@compiled
def _toggle(ladder, current, target, position, direction):
    """Move a positive weight to the target, or take a negative one out of its class, to be placed later."""
    change = direction * ladder.numbers[VALUE, position]
    old = ladder.rungs[GROUP, position] >> 1
    if ladder.rungs[GROUP, position] & 1:
        current[old] += change
        current[current.size - 1] += change
    else:
        current[old] -= change
        current[target] += change


@compiled
def _excess(current, target):
    """By how much rivals exceed the target, in sum."""
    excess = 0.0
    for q in range(current.size - 1):
        excess += max(0.0, current[q] - current[target])
    return excess


@compiled
def _place(ladder, current, target, flips, made, fuzz, nodes):
    """Place the negative weights among the flips so that no rival exceeds the target; record the flips if that works.

    FOUND still has to be replayed. Returns the answer and the nodes left.
    """
    cover = current[current.size - 1]
    if _excess(current, target) > cover + fuzz:
        return NONE, nodes
    after = room_for_doubles(current.size)
    for q in range(current.size):
        after[q] = current[q]
    size = 0
    for k in range(flips.size):
        if made[k]:
            ladder.rungs[CHOSEN, size] = flips[k]
            ladder.rungs[NEW_CLASS, size] = target
            size += 1
    negative = room_for_integers(size)  # steps to place
    n_negative = 0
    for step in range(size):
        if ladder.rungs[GROUP, ladder.rungs[CHOSEN, step]] & 1:
            negative[n_negative] = step
            n_negative += 1
    # Largest first: rungs come in that order.
    rungs = room_for_integers(n_negative)
    for k in range(n_negative):
        rungs[k] = ladder.rungs[CHOSEN, negative[k]]
    sort_pairs(rungs, negative, n_negative, room_for_integers(n_negative), room_for_integers(n_negative))

    # Depth first: each weight goes to the highest rival, then to lower ones that still exceed the target.
    depth = 0
    n_classes = current.size - 1
    tried = zero_integers((n_negative + 1) * n_classes)  # of each weight, to which classes it has gone already
    n_tried = zero_integers(n_negative + 1)
    covers = room_for_doubles(n_negative + 1)
    covers[0] = cover
    while True:
        excess = _excess(after, target)
        if depth == n_negative:
            if excess <= fuzz:
                return FOUND, nodes
        else:
            size_here = ladder.numbers[VALUE, rungs[depth]]
            old = ladder.rungs[GROUP, rungs[depth]] >> 1
            top = -1
            if excess <= covers[depth] + fuzz:
                for q in range(n_classes):
                    went = tried[depth * n_classes + q]
                    if q != target and q != old and not went and (top < 0 or after[q] > after[top]):
                        top = q
            if top >= 0 and (after[top] > after[target] - fuzz or n_tried[depth] == 0):
                nodes -= 1
                if nodes <= 0:
                    return OPEN, nodes
                tried[depth * n_classes + top] = 1
                n_tried[depth] += 1
                after[top] -= size_here
                ladder.rungs[NEW_CLASS, negative[depth]] = top
                covers[depth + 1] = covers[depth] - size_here
                depth += 1
                n_tried[depth] = 0
                for q in range(n_classes):
                    tried[depth * n_classes + q] = 0
                continue
        if depth == 0:
            return NONE, nodes
        depth -= 1
        after[ladder.rungs[NEW_CLASS, negative[depth]]] += ladder.numbers[VALUE, rungs[depth]]

"""What it takes to make one given class win by deleting, inserting, replacing or editing training rows.

A class has to beat all others, so costs are scans over the level that it ends at: the others must end below. Every
comparison is made with a *shift*: what is sure to be beaten only if the shift is the error bound of sums, what might be
if it is minus that. Fewer demands never cost more, so where both lead to the same cost, it is the exact one.
Compiled, and interpreted on integers, where the shift is zero.
"""

from __future__ import annotations

import numpy as np

from flipcert.engine.jit import compiled
from flipcert.flips._jit.ladder import (
    CURRENT,
    PLACE,
    START,
    TAKEN,
    UNDECIDED,
    VALUE,
    highest,
    leader,
)
from flipcert.flips._jit.row_changes import (
    DELETE,
    EDIT,
    INSERT,
    REPLACE,
    all_exact,
    change_cost,
    cheapest_row_change,
    most_of_new_row,
)
from flipcert.flips._jit.row_replacements import clears, replacement_cost
from flipcert.flips._jit.select import build, score_row


@compiled
def removal_cost(ladder, scores, target, threat, new, shift, unreachable):
    """Fewest deletions (with insertions, if ``threat`` is MOVE) after which ``target`` wins.

    Its own level rises by rows of negative weights that go, largest first, or by new rows, which never add less. The
    others have to give up their largest weights, until they are below: the higher the level, the fewer.
    """
    value, place, start = ladder.numbers[VALUE], ladder.rungs[PLACE], ladder.rungs[START]
    taken, current = ladder.rungs[TAKEN], ladder.numbers[CURRENT]
    removed = 0
    for q in range(scores.size):
        taken[q] = start[2 * q + 1] - start[2 * q] if q != target else 0
        current[q] = scores[q]
        for k in range(taken[q]):
            current[q] -= value[place[start[2 * q] + k]]
        removed += taken[q]
    level = scores[target]
    own, own_end = start[2 * target + 1], start[2 * target + 2]
    best = unreachable
    steps = 0
    while steps < best:
        below = True
        for q in range(scores.size):
            if q == target:
                continue
            below = below and clears(level - current[q], target < q, shift)
            while taken[q] > 0:
                back = current[q] + value[place[start[2 * q] + taken[q] - 1]]
                if not clears(level - back, target < q, shift):
                    break
                current[q] = back
                taken[q] -= 1
                removed -= 1
        if below:
            best = min(best, steps + removed)
        if threat == DELETE:
            if own == own_end:
                break
            level += value[place[own]]
            own += 1
        else:
            if new <= 0:
                break
            level += new
        steps += 1
    return best


@compiled
def insertion_cost(scores, target, new, shift, unreachable):
    """Fewest new rows of ``target`` after which it wins."""
    level = scores[target]
    for cost in range(unreachable):
        won = True
        for q in range(scores.size):
            won = won and (q == target or clears(level - scores[q], target < q, shift))
        if won:
            return cost
        if new <= 0:
            break
        level += new
    return unreachable


@compiled
def edit_cost(ladder, scores, target, new, shift, unreachable):
    """Fewest flips of positive weights to ``target``, and new rows of it, after which it wins.

    Exact where no movable weight is negative, and the cost of a real attack in any case. The highest other class gives
    up its largest weight again and again; what is missing then, new rows add, each at least as much as any flip.
    """
    value, place, start = ladder.numbers[VALUE], ladder.rungs[PLACE], ladder.rungs[START]
    taken, current = ladder.rungs[TAKEN], ladder.numbers[CURRENT]
    for q in range(scores.size):
        taken[q] = 0
        current[q] = scores[q]
    gained = scores[target]
    flips = 0
    best = unreachable
    inserted = -1
    while flips < best:
        top = -1
        for q in range(scores.size):
            if q != target and (top < 0 or current[q] > current[top]):
                top = q
        if inserted < 0:
            inserted = 0
            while inserted < unreachable and new > 0 and not clears(gained - current[top], target < top, shift):
                gained += new
                inserted += 1
        while inserted > 0 and clears(gained - new - current[top], target < top, shift):
            gained -= new
            inserted -= 1
        if clears(gained - current[top], target < top, shift):
            best = min(best, flips + inserted)
        if inserted == 0 and best < unreachable:
            break
        if taken[top] == start[2 * top + 1] - start[2 * top]:
            break
        step = value[place[start[2 * top] + taken[top]]]
        taken[top] += 1
        current[top] -= step
        gained += step
        flips += 1
    return best


@compiled
def dearest_pair(ladder, scores, target, threat, new, n_movable, slack, unreachable):
    """Most that it takes to lift the target above any one rival, and whether lifting it above one makes it win.

    UNDECIDED as the first. Returns also the rival of the cheapest such attack that makes it win, and its cost.
    """
    worst = 0
    best = unreachable
    best_rival = -1
    after = ladder.numbers[CURRENT, : scores.size]
    for q in range(scores.size):
        if q == target:
            continue
        gap = scores[q] - scores[target]
        ahead = clears(-gap, target < q, slack)
        if ahead:
            continue
        cost, _, lost, gained, inserted = change_cost(
            ladder, target, q, gap, threat, new, n_movable, slack, unreachable, unreachable
        )
        if cost < 0:
            return cost, -1, unreachable
        worst = max(worst, cost)
        if cost < best:
            for c in range(scores.size):
                after[c] = scores[c]
            after[q] -= lost
            after[target] += gained
            after[target] += inserted * new
            if leader(after, slack) == target:
                best = cost
                best_rival = q
    return worst, best_rival, best


@compiled
def class_cost(ladder, scores, target, threat, new, movable, n_movable, prefix, shift, unreachable):
    """Fewest operations after which ``target`` wins; for EDIT with negative weights, those of a real attack."""
    if threat == INSERT:
        return insertion_cost(scores, target, new, shift, unreachable)
    if threat == EDIT:
        return edit_cost(ladder, scores, target, new, shift, unreachable)
    if threat == REPLACE:
        return replacement_cost(ladder, scores, target, new, movable, prefix, shift, unreachable)
    return removal_cost(ladder, scores, target, threat, new, shift, unreachable)


@compiled
def class_costs(ladder, scores, first, threat, bound, known, movable, n_movable, prefix, slack, negative,
                unreachable, lower, upper):  # fmt: skip
    """Lower and upper costs of all classes of one row; 0 if that worked, else UNDECIDED.

    ``bound`` is what new rows weigh at most, ``known`` what one weighs that is known.
    """
    for c in range(scores.size):
        lower[c] = upper[c] = 0
        if c == first:
            continue
        mixed = threat == EDIT and negative
        for turn in range(2):
            new = bound if turn == 0 else known
            if turn == 1 and known == bound and not mixed:
                upper[c] = lower[c]
                break
            if mixed and turn == 0:
                lower[c], _, _ = dearest_pair(ladder, scores, c, threat, new, n_movable, slack, unreachable)
                if lower[c] < 0:
                    return UNDECIDED
                continue
            cost = class_cost(ladder, scores, c, threat, new, movable, n_movable, prefix, slack, unreachable)
            if slack > 0 and cost != class_cost(
                ladder, scores, c, threat, new, movable, n_movable, prefix, -slack, unreachable
            ):
                return UNDECIDED
            if turn == 0:
                lower[c] = cost
            else:
                upper[c] = cost
        if mixed and lower[c] < upper[c]:
            state, _, cost = dearest_pair(ladder, scores, c, threat, known, n_movable, slack, unreachable)
            if state < 0:
                return UNDECIDED
            upper[c] = min(upper[c], cost)
    if threat == EDIT and negative:
        # The cheapest change of prediction is known; it belongs to whichever class it makes win.
        cost, _, _, _, winner = cheapest_row_change(ladder, scores, threat, known, n_movable, slack, unreachable)
        if cost < 0 or winner == -2:
            return UNDECIDED
        if winner >= 0:
            upper[winner] = min(upper[winner], cost)
    return 0


@compiled
def class_cost_rows(weights, labels, offset, threat, most, real, movable, n_movable, tolerance, unreachable, ladder,
                    prefix, prediction, lower, upper, sensitive, decided):  # fmt: skip
    """Costs of all classes for each row of a block, and whether another rounding of the weights might change them."""
    n_classes = offset.shape[1]
    scores = np.empty(n_classes)
    for t in range(weights.shape[0]):
        row = weights[t]
        total, largest, negative = score_row(row, labels, offset[t], scores, ladder)
        bound, total, slack = most_of_new_row(threat, most[t], largest, total, row.size + n_classes)
        known = max(real[t], 0.0)
        decided[t] = False
        sensitive[t] = tolerance[t] > 0.0
        if not slack < np.inf:
            continue
        build(ladder, row, labels, highest(scores), np.inf, largest, n_classes)
        # First as far from all comparisons as another rounding could matter.
        for tries in range(3):
            shift = slack + tolerance[t] if tries == 0 else slack if tries == 1 else 0.0
            if (tries == 1 and tolerance[t] == 0.0) or (
                tries == 2 and not all_exact(row, offset[t], bound, known, total)
            ):
                continue
            prediction[t] = leader(scores, shift)
            if prediction[t] == UNDECIDED:
                continue
            state = class_costs(
                ladder, scores, prediction[t], threat, bound, known, movable, n_movable, prefix, shift, negative,
                unreachable, lower[t], upper[t],
            )  # fmt: skip
            if state == 0:
                decided[t] = True
                sensitive[t] = sensitive[t] and tries > 0
                break

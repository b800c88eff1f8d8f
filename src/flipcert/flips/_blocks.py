"""Blocks of rows through the compiled algorithms: no Python, no GIL, one pass a row.

A row that floating-point sums cannot decide is marked in ``decided`` and left to integers (``flipcert.flips.rows``).
"""

from __future__ import annotations

import numpy as np

from flipcert.engine.jit import compiled
from flipcert.flips._greedy import drop_needless, greedy_cost
from flipcert.flips._ladder import (
    LINE,
    TRUNCATED,
    UNDECIDED,
    highest,
    leader,
    rounding_slack,
    runner_up,
    sums_are_exact,
)
from flipcert.flips._level import level_cost, level_costs
from flipcert.flips._mixture import tighten
from flipcert.flips._rival import cheapest_rival, dearest_rival, rival_cost, winner_after
from flipcert.flips._select import SHORT, fill_ladder, fill_top, line_up, set_floors

LOWER, UPPER, BEST, PUBLISHED_LOWER, PUBLISHED_UPPER = range(5)

# How much farther than the gap between the classes a ladder reaches, try by try; in the end it is the whole row.
# To change the prediction it has to reach the second class; to reach every class, past all others, much farther.
_REACH_ANY = (1.25, 4.0, np.inf)
_REACH_ALL = (10.0, 20.0, np.inf)


@compiled
def score_rows(weights, labels, offset, ladder, scores, prediction, decided):
    """Class scores and predictions of a block."""
    n_terms = weights.shape[1] + scores.shape[1] + 8
    for t in range(weights.shape[0]):
        total, _, _ = line_up(weights[t], labels, offset[t], scores[t], ladder.numbers[LINE])
        prediction[t] = leader(scores[t], rounding_slack(total, n_terms))
        if prediction[t] == UNDECIDED and sums_are_exact(weights[t], offset[t], total):
            prediction[t] = leader(scores[t], 0.0)
        decided[t] = prediction[t] != UNDECIDED


@compiled
def radius_rows(weights, labels, offset, unreachable, ladder, prediction, second, cost, target, margin, decided):
    """Cheapest change of prediction of each row: its cost, the class that then wins, and the margin."""
    n_classes = offset.shape[1]
    scores = np.empty(n_classes)
    for t in range(weights.shape[0]):
        row = weights[t]
        total, largest, _ = line_up(row, labels, offset[t], scores, ladder.numbers[LINE])
        slack = rounding_slack(total, row.size + n_classes + 8)
        guess = highest(scores)
        second[t] = runner_up(scores, guess) if n_classes > 1 else guess
        gap = scores[guess] - scores[second[t]]
        decided[t] = False
        longer = 0
        while longer < len(_REACH_ANY):
            _build(ladder, labels, guess, _REACH_ANY[longer] * gap, largest)
            answer = cheapest_change(ladder, scores, slack, unreachable)
            if answer[0] == TRUNCATED:
                longer += 1
            elif answer[0] == UNDECIDED and slack > 0.0 and sums_are_exact(row, offset[t], total):
                slack = 0.0
            else:
                break
        if answer[0] >= 0:
            cost[t], prediction[t], target[t], margin[t] = answer
            decided[t] = True


@compiled
def cheapest_change(ladder, scores, slack, unreachable):
    """Cost of changing the prediction, the prediction, the class that then wins (-1 for none), and the margin."""
    first = leader(scores, slack)
    if first == UNDECIDED:
        return UNDECIDED, first, -1, 0.0
    fewest, rival, room = cheapest_rival(ladder, scores, first, slack, unreachable)
    if fewest < 0:
        return fewest, first, -1, 0.0
    winner = rival
    if rival >= 0:
        gap = scores[first] - scores[rival]
        rival_cost(ladder, rival, first, gap, slack, unreachable, fewest, unreachable, True)
        winner = winner_after(ladder, scores, fewest, slack)
        if winner == UNDECIDED:
            return UNDECIDED, first, -1, 0.0
    lead = scores[first] - scores[runner_up(scores, first)] if scores.size > 1 else np.inf
    return fewest, first, winner, min(room, lead)


@compiled
def cost_rows(weights, labels, offset, unreachable, kind, ladder, prediction, lower, upper, lead, margin, decided):
    """Flip costs of each row to every class, as bounds of the given kind.

    BEST fills both: equal and exact for rows without negative movable weights, the best bounds otherwise.
    ``lead`` is the distance to the second class, ``margin`` what decides each lower cost.
    """
    n_classes = offset.shape[1]
    scores = np.empty(n_classes)
    for t in range(weights.shape[0]):
        row = weights[t]
        total, largest, negative = line_up(row, labels, offset[t], scores, ladder.numbers[LINE])
        slack = rounding = rounding_slack(total, row.size + n_classes + 8)
        guess = highest(scores)
        gap = scores[guess] - scores.min()
        decided[t] = False
        # With weights of both signs nearly all of a short row is looked at.
        longer = len(_REACH_ALL) - 1 if negative and row.size <= SHORT else 0
        while longer < len(_REACH_ALL):
            _build(ladder, labels, guess, _REACH_ALL[longer] * gap, largest)
            prediction[t] = leader(scores, slack)
            state = UNDECIDED
            if prediction[t] != UNDECIDED:
                state = row_costs(
                    ladder, scores, prediction[t], slack, rounding, unreachable, kind, negative,
                    lower[t], upper[t], margin[t],
                )  # fmt: skip
            if state == TRUNCATED:
                longer += 1
            elif state == UNDECIDED and slack > 0.0 and sums_are_exact(row, offset[t], total):
                slack = 0.0
            else:
                decided[t] = state == 0
                break
        lead[t] = scores[guess] - scores[runner_up(scores, guess)] if n_classes > 1 else np.inf


@compiled
def row_costs(ladder, scores, first, slack, rounding, unreachable, kind, negative, lower, upper, margin):
    """Fill the costs of one row; 0 if that worked, else UNDECIDED or TRUNCATED.

    ``rounding`` bounds the error of sums that are not exact; zero, for integers, leaves mixtures out.
    """
    exact = not negative and (kind == UPPER or kind == BEST)
    if exact:
        state = level_costs(ladder, scores, first, slack, unreachable, upper, margin)
        for c in range(scores.size):
            lower[c] = upper[c]
        return state
    for c in range(scores.size):
        lower[c] = 0
        upper[c] = 0
        margin[c] = np.inf
        if c == first:
            continue
        if kind == PUBLISHED_LOWER:
            gap = scores[first] - scores[c]
            lower[c], margin[c] = rival_cost(ladder, c, first, gap, slack, unreachable, 1, unreachable, False)
        elif kind == PUBLISHED_UPPER:
            upper[c], doubt = greedy_cost(ladder, scores, c, True, slack, unreachable)
            if 0 <= doubt < upper[c]:
                return UNDECIDED
        elif kind == LOWER:
            lower[c], margin[c] = dearest_rival(ladder, scores, c, first, slack, unreachable)
        else:
            lower[c], upper[c], margin[c], _ = reach_bounds(ladder, scores, c, first, slack, rounding, unreachable)
        if lower[c] < 0:
            return lower[c]
        if upper[c] < 0:
            return upper[c]
    if kind == UPPER or kind == BEST:
        # The cheapest change of prediction is known exactly; it belongs to whichever class it makes win.
        fewest, _, winner, _ = cheapest_change(ladder, scores, slack, unreachable)
        if fewest < 0:
            return fewest
        if winner >= 0:
            upper[winner] = fewest
    return 0


BY_LEVEL, GREEDY, CAPPED_GREEDY, MIXED, NO_ATTACK = range(5)
FEW_STEPS, MORE_STEPS, MANY_FLIPS = 12, 24, 16


@compiled
def reach_bounds(ladder, scores, target, first, slack, rounding, unreachable):
    """Best bounds on the cost of reaching ``target``, the margin of the lower one, and which attack gives the upper.

    UNDECIDED or TRUNCATED as the lower cost.
    """
    gap = scores[first] - scores[target]
    lower, margin = rival_cost(ladder, target, first, gap, slack, unreachable, 1, unreachable, False)
    if lower < 0:
        return lower, unreachable, 0.0, NO_ATTACK
    upper = unreachable
    which = NO_ATTACK
    # Mixtures first: mostly they meet in a few steps. Then all rivals one by one and other attacks, to know how far it
    # is from there.
    for steps in (FEW_STEPS, MORE_STEPS):
        if rounding > 0 and lower < upper:
            tight_lower, tight_upper, room = tighten(
                ladder, scores, target, first, slack, rounding, lower, upper, steps, steps == FEW_STEPS
            )
            if tight_lower < 0:
                return tight_lower, unreachable, 0.0, NO_ATTACK
            if tight_lower > lower:
                lower = tight_lower
                margin = room
            if tight_upper < upper:
                upper = tight_upper
                which = MIXED
        if lower == upper:
            break
        if steps == FEW_STEPS:
            dearest, room = dearest_rival(ladder, scores, target, first, slack, unreachable)
            if dearest < 0:
                return dearest, unreachable, 0.0, NO_ATTACK
            if dearest > lower:
                lower = dearest
                margin = room
            upper, which = best_attack(ladder, scores, target, slack, unreachable, lower)
            if upper < 0:
                return upper, unreachable, 0.0, NO_ATTACK
            if lower < MANY_FLIPS:
                break  # a gap of one flip, and in practice no mixture closes it
    return lower, upper, margin, which


@compiled
def best_attack(ladder, scores, target, slack, unreachable, lower):
    """Cheapest of the level attack and the greedy ones, and which one it is; none is cheaper than ``lower``.

    UNDECIDED or TRUNCATED as the cost.
    """
    best, _ = level_cost(ladder, scores, target, slack, unreachable, lower, False)
    if best < 0:
        return best, NO_ATTACK
    which = BY_LEVEL if best < unreachable else NO_ATTACK
    doubt = unreachable
    for attack in (GREEDY, CAPPED_GREEDY):
        if lower < best:
            cost, unsure = attack_greedily(ladder, scores, target, attack, slack, unreachable)
            if cost == TRUNCATED:
                return TRUNCATED, NO_ATTACK
            doubt = min(doubt, unsure)
            if cost < best:
                best = cost
                which = attack
    # A closer look could have made an attack shorter, but not shorter than the best: then nothing is lost.
    return (UNDECIDED, NO_ATTACK) if max(doubt, lower) < best else (best, which)


@compiled
def attack_greedily(ladder, scores, target, attack, slack, unreachable):
    """Run one of the greedy attacks and take back what it does not need: the cost, and a doubt about it."""
    cost, doubt = greedy_cost(ladder, scores, target, attack == CAPPED_GREEDY, slack, unreachable)
    if 0 <= cost < unreachable:
        cost, unsure = drop_needless(ladder, scores, target, slack, cost)
        doubt = min(doubt, unsure)
    return cost, doubt


@compiled
def _build(ladder, labels, first, reach, largest):
    """Build the ladder of the row that is lined up, so that it reaches as far as asked."""
    n_movable = labels.members.size
    if n_movable <= SHORT and reach < np.inf:
        fill_top(ladder, labels)
    else:
        set_floors(ladder, n_movable, labels.starts, first, reach, largest)
        fill_ladder(ladder, labels)

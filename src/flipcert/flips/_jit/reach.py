"""What one row on a ladder costs: to change its prediction, to reach a class, to reach every class. Compiled."""

from __future__ import annotations

import numpy as np

from flipcert.engine.jit import compiled
from flipcert.flips._jit.greedy import drop_needless, greedy_cost
from flipcert.flips._jit.ladder import TRUNCATED, UNDECIDED, leader, runner_up
from flipcert.flips._jit.level import level_cost, level_costs
from flipcert.flips._jit.mixture import tighten
from flipcert.flips._jit.rival import cheapest_rival, dearest_rival, rival_cost, winner_after
from flipcert.flips._jit.search import NONE, OPEN, search

LOWER, UPPER, BEST, PUBLISHED_LOWER, PUBLISHED_UPPER = range(5)


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


BY_LEVEL, GREEDY, CAPPED_GREEDY, RECORDED, NO_ATTACK = range(5)
# Steps of the search for a good mixture: mostly they meet at once; then as long as there is hope.
_FEW_STEPS, _MORE_STEPS = 12, 36
# Exchanges that a search near the best mixture may try.
_NODES = 2000


@compiled
def rival_attack(ladder, scores, target, first, slack, unreachable):
    """Fewest flips that lift ``target`` above the first class, and whether they already make it win."""
    gap = scores[first] - scores[target]
    cost, _ = rival_cost(ladder, target, first, gap, slack, unreachable, 1, unreachable, True)
    return cost, 0 <= cost < unreachable and winner_after(ladder, scores, cost, slack) == target


@compiled
def reach_bounds(ladder, scores, target, first, slack, rounding, unreachable):
    """Best bounds on the cost of reaching ``target``, the margin of the lower one, and which attack gives the upper.

    UNDECIDED or TRUNCATED as the lower cost. ``rounding`` bounds the error of sums that are not exact; zero, for
    integers, leaves mixtures and the search out.
    """
    gap = scores[first] - scores[target]
    lower, margin = rival_cost(ladder, target, first, gap, slack, unreachable, 1, unreachable, True)
    if lower < 0:
        return lower, unreachable, 0.0, NO_ATTACK
    if lower < unreachable and winner_after(ladder, scores, lower, slack) == target:
        return lower, lower, margin, RECORDED
    upper = unreachable
    which = NO_ATTACK
    for attempt in range(4):
        if rounding > 0 and lower < upper:
            steps = _FEW_STEPS if attempt == 0 else _MORE_STEPS
            tight_lower, tight_upper, room = tighten(
                ladder, scores, target, first, slack, rounding, lower, upper, steps, attempt == 0
            )
            if tight_lower < 0:
                return tight_lower, unreachable, 0.0, NO_ATTACK
            if tight_lower > lower:
                lower = tight_lower
                margin = room
            if tight_upper < upper:
                upper = tight_upper
                which = RECORDED
        if lower == upper:
            break
        if attempt == 0:
            # All rivals one by one and other attacks, to know how far it is from there.
            dearest, room = dearest_rival(ladder, scores, target, first, slack, unreachable)
            if dearest < 0:
                return dearest, unreachable, 0.0, NO_ATTACK
            if dearest > lower:
                lower = dearest
                margin = room
            upper, which = best_attack(ladder, scores, target, slack, unreachable, lower)
            if upper < 0:
                return upper, unreachable, 0.0, NO_ATTACK
        elif rounding > 0:
            answer = search(ladder, scores, target, lower, slack, rounding, _NODES)
            if answer == TRUNCATED:
                return TRUNCATED, unreachable, 0.0, NO_ATTACK
            if answer == OPEN:
                break
            if answer == NONE:
                lower += 1
            else:
                upper = lower
                which = RECORDED
        if rounding == 0 or lower == upper:
            break
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

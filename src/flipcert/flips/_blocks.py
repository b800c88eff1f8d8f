"""Blocks of rows through the compiled algorithms: no Python, no GIL, one pass a row.

A row that floating-point sums cannot decide is marked in ``decided`` and left to integers (``flipcert.flips.rows``).
"""

from __future__ import annotations

import numpy as np

from flipcert.engine.jit import compiled
from flipcert.flips._greedy import drop_needless, greedy_cost
from flipcert.flips._ladder import (
    UNDECIDED,
    fill_ladder,
    leader,
    rounding_slack,
    runner_up,
    sum_scores,
    sums_are_exact,
)
from flipcert.flips._level import level_cost
from flipcert.flips._rival import cheapest_rival, dearest_rival, rival_cost, winner_after_pair

LOWER, UPPER, BEST, PUBLISHED_LOWER, PUBLISHED_UPPER = range(5)


@compiled
def score_rows(weights, labels, offset, scores, prediction, decided):
    """Class scores and predictions of a block."""
    for t in range(weights.shape[0]):
        total = sum_scores(weights[t], labels, offset[t], scores[t])
        prediction[t] = leader(scores[t], rounding_slack(total, labels.size + scores.shape[1] + 8))
        if prediction[t] == UNDECIDED and sums_are_exact(weights[t], offset[t], total):
            prediction[t] = leader(scores[t], 0.0)
        decided[t] = prediction[t] != UNDECIDED


@compiled
def radius_rows(
    weights, labels, members, starts, offset, unreachable, prediction, second, cost, target, margin, decided
):
    """Cheapest change of prediction of each row: its cost, the class that then wins, and the margin."""
    n_classes = starts.size - 1
    value, group, index, chosen, new_class = _buffers(members.size)
    scores = np.empty(n_classes)
    for t in range(weights.shape[0]):
        total = sum_scores(weights[t], labels, offset[t], scores)
        size = fill_ladder(weights[t], members, starts, value, group, index)
        slack = rounding_slack(total, labels.size + n_classes + 8)
        decided[t] = False
        for attempt in range(2):
            if attempt == 1:
                if not sums_are_exact(weights[t], offset[t], total):
                    break
                slack = 0.0
            first = leader(scores, slack)
            if first == UNDECIDED:
                continue
            fewest, rival, room = cheapest_rival(value, group, size, scores, first, slack, unreachable)
            if fewest == UNDECIDED:
                continue
            winner = rival
            if rival >= 0:
                winner = winner_after_pair(value, group, size, scores, rival, first, fewest, slack, chosen, new_class)
                if winner == UNDECIDED:
                    continue
            prediction[t] = first
            second[t] = runner_up(scores, first)
            cost[t] = fewest
            target[t] = winner
            margin[t] = min(room, scores[first] - scores[second[t]]) if n_classes > 1 else np.inf
            decided[t] = True
            break


@compiled
def cost_rows(
    weights, labels, members, starts, offset, unreachable, kind, prediction, lower, upper, lead, margin, decided
):
    """Flip costs of each row to every class, as bounds of the given kind.

    BEST fills both: equal and exact for rows without negative movable weights, the best bounds otherwise.
    ``lead`` is the distance to the second class, ``margin`` what decides each lower cost.
    """
    n_classes = starts.size - 1
    buffers = _buffers(members.size)
    value, group, index, chosen, new_class = buffers
    scores = np.empty(n_classes)
    for t in range(weights.shape[0]):
        total = sum_scores(weights[t], labels, offset[t], scores)
        size = fill_ladder(weights[t], members, starts, value, group, index)
        slack = rounding_slack(total, labels.size + n_classes + 8)
        negative = False
        for position in range(size):
            negative |= group[position] & 1 == 1
        decided[t] = False
        for attempt in range(2):
            if attempt == 1:
                if not sums_are_exact(weights[t], offset[t], total):
                    break
                slack = 0.0
            first = leader(scores, slack)
            if first == UNDECIDED:
                continue
            prediction[t] = first
            lead[t] = scores[first] - scores[runner_up(scores, first)] if n_classes > 1 else np.inf
            if row_costs(
                value, group, size, scores, first, slack, unreachable, kind, negative,
                lower[t], upper[t], margin[t], chosen, new_class,
            ):  # fmt: skip
                decided[t] = True
                break


@compiled
def row_costs(
    value, group, size, scores, first, slack, unreachable, kind, negative, lower, upper, margin, chosen, new_class
):
    """Fill the costs of one row; False if some comparison could not be decided."""
    n_classes = scores.size
    counts = np.empty(n_classes, np.int64)
    for c in range(n_classes):
        lower[c] = 0
        upper[c] = 0
        margin[c] = np.inf
        if c == first:
            continue
        if kind == PUBLISHED_LOWER:
            gap = scores[first] - scores[c]
            lower[c], margin[c] = rival_cost(value, group, size, c, first, gap, slack, unreachable, 1)
        elif kind == LOWER or (kind == BEST and negative):
            lower[c], margin[c] = dearest_rival(value, group, size, scores, c, first, slack, unreachable)
        if lower[c] == UNDECIDED:
            return False
        if kind == PUBLISHED_UPPER:
            upper[c], doubt = greedy_cost(value, group, size, scores, c, True, slack, unreachable, chosen, new_class)
            if doubt < upper[c]:
                return False
        elif kind == UPPER or kind == BEST:
            upper[c], room = level_cost(value, group, size, scores, c, slack, unreachable, counts)
            if upper[c] != UNDECIDED and negative:
                upper[c], _ = best_attack(
                    value, group, size, scores, c, slack, unreachable, upper[c], chosen, new_class
                )
            elif kind == BEST:
                lower[c] = upper[c]
                margin[c] = room
        if upper[c] == UNDECIDED:
            return False
    if negative and (kind == UPPER or kind == BEST):
        # The cheapest change of prediction is known exactly; it belongs to whichever class it makes win.
        fewest, rival, room = cheapest_rival(value, group, size, scores, first, slack, unreachable)
        if fewest == UNDECIDED:
            return False
        if rival >= 0:
            winner = winner_after_pair(value, group, size, scores, rival, first, fewest, slack, chosen, new_class)
            if winner == UNDECIDED:
                return False
            upper[winner] = fewest
    return True


BY_LEVEL, GREEDY, CAPPED_GREEDY, NO_ATTACK = range(4)


@compiled
def best_attack(value, group, size, scores, target, slack, unreachable, by_level, chosen, new_class):
    """Best of the level attack (cost given) and the two greedy ones: its cost and which one it is."""
    best = by_level
    which = BY_LEVEL if by_level < unreachable else NO_ATTACK
    doubt = unreachable
    for attack in (GREEDY, CAPPED_GREEDY):
        cost, unsure = attack_greedily(
            value, group, size, scores, target, attack, slack, unreachable, chosen, new_class
        )
        doubt = min(doubt, unsure)
        if cost < best:
            best = cost
            which = attack
    # A closer look could have made an attack shorter, but not shorter than the best: then nothing is lost.
    return (UNDECIDED, NO_ATTACK) if doubt < best else (best, which)


@compiled
def attack_greedily(value, group, size, scores, target, attack, slack, unreachable, chosen, new_class):
    """Run one of the greedy attacks and take back what it does not need: the cost, and a doubt about it."""
    cost, doubt = greedy_cost(
        value, group, size, scores, target, attack == CAPPED_GREEDY, slack, unreachable, chosen, new_class
    )
    if cost < unreachable:
        cost, unsure = drop_needless(value, group, scores, target, slack, cost, chosen, new_class)
        doubt = min(doubt, unsure)
    return cost, doubt


@compiled
def _buffers(size):
    return (
        np.empty(size),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
    )

"""Blocks of rows through the compiled algorithms: no Python, no GIL, one pass a row.

A row that floating-point sums cannot decide is marked in ``decided`` and left to integers (``flipcert.flips.rows``).
"""

from __future__ import annotations

import numpy as np

from flipcert.engine._jit.room import first_smallest, room_for_doubles
from flipcert.engine.jit import compiled
from flipcert.flips._jit.ladder import (
    TRUNCATED,
    UNDECIDED,
    highest,
    leader,
    rounding_slack,
    runner_up,
    sums_are_exact,
)
from flipcert.flips._jit.level import level_cost
from flipcert.flips._jit.reach import BEST, UPPER, cheapest_change, reach_bounds, rival_attack, row_costs
from flipcert.flips._jit.rival import rival_costs, rival_costs_in_one_walk
from flipcert.flips._jit.select import PICKED, SHORT, build, score_row

# How much farther than the gap between the classes a ladder reaches, try by try; in the end it is the whole row.
# To change the prediction it has to reach the second class; to reach every class, past all others, much farther.
_REACH_ANY = (1.25, 4.0, np.inf)
_REACH_ALL = (10.0, 20.0, np.inf)
# The costs of many votes are surveyed: mostly a shorter ladder does, and where it does not, a longer one costs little.
_REACH_VOTES = (1.0, 1.5, 3.0, np.inf)
_REACH_ONE = (1.25, 5.0, 20.0, np.inf)


@compiled
def score_rows(weights, labels, offset, ladder, scores, prediction, decided):
    """Class scores and predictions of a block."""
    for t in range(weights.shape[0]):
        prediction[t] = predict_row(weights[t], labels, offset[t], scores[t], ladder)
        decided[t] = prediction[t] != UNDECIDED


@compiled
def predict_row(row, labels, offset, scores, ladder):
    """Class scores and prediction (or UNDECIDED) of one row."""
    total, _, _ = score_row(row, labels, offset, scores, ladder)
    prediction = leader(scores, rounding_slack(total, row.size + scores.size + 8))
    if prediction == UNDECIDED and sums_are_exact(row, offset, total):
        prediction = leader(scores, 0.0)
    return prediction


@compiled
def radius_rows(weights, labels, offset, unreachable, ladder, prediction, second, cost, target, margin, decided):
    """Cheapest change of prediction of each row: its cost, the class that then wins, and the margin."""
    n_classes = offset.shape[1]
    scores = room_for_doubles(n_classes)
    for t in range(weights.shape[0]):
        row = weights[t]
        total, largest, _ = score_row(row, labels, offset[t], scores, ladder)
        slack = rounding_slack(total, row.size + n_classes + 8)
        guess = highest(scores)
        second[t] = runner_up(scores, guess) if n_classes > 1 else guess
        gap = scores[guess] - scores[second[t]]
        decided[t] = False
        longer = 0 if slack < np.inf else len(_REACH_ANY)
        while longer < len(_REACH_ANY):
            build(ladder, row, labels, guess, _REACH_ANY[longer] * gap, largest, n_classes)
            answer = cheapest_change(ladder, scores, slack, unreachable)
            if answer[0] == TRUNCATED:
                longer += 1
            elif answer[0] == UNDECIDED and slack > 0.0 and sums_are_exact(row, offset[t], total):
                slack = 0.0
            else:
                break
        if slack < np.inf and answer[0] >= 0:
            cost[t], prediction[t], target[t], margin[t] = answer
            decided[t] = True


@compiled
def cost_rows(weights, labels, offset, unreachable, kind, ladder, prediction, lower, upper, lead, margin, decided):
    """Flip costs of each row to every class, as bounds of the given kind.

    BEST fills both: equal and exact for rows without negative movable weights, the best bounds otherwise.
    ``lead`` is the distance to the second class, ``margin`` what decides each lower cost.
    """
    n_classes = offset.shape[1]
    scores = room_for_doubles(n_classes)
    for t in range(weights.shape[0]):
        row = weights[t]
        total, largest, negative = score_row(row, labels, offset[t], scores, ladder)
        slack = rounding = rounding_slack(total, row.size + n_classes + 8)
        guess = highest(scores)
        gap = scores[guess] - scores[first_smallest(scores)]
        decided[t] = False
        longer = 0 if slack < np.inf else len(_REACH_ALL)
        while longer < len(_REACH_ALL):
            build(ladder, row, labels, guess, _REACH_ALL[longer] * gap, largest, n_classes)
            prediction[t] = leader(scores, slack)
            state = UNDECIDED
            if prediction[t] != UNDECIDED:
                state = row_costs(
                    ladder, scores, prediction[t], slack, rounding, unreachable, kind, negative,
                    lower[t], upper[t], margin[t],
                )  # fmt: skip
            in_doubt = state == UNDECIDED
            if state == 0 and (kind == UPPER or kind == BEST):
                # A tie that sums could have rounded away may be all that keeps two bounds apart.
                for c in range(n_classes):
                    in_doubt |= lower[t, c] < upper[t, c]
            if state == TRUNCATED:
                longer += 1
            elif in_doubt and slack > 0.0 and sums_are_exact(row, offset[t], total):
                slack = 0.0
            else:
                decided[t] = state == 0
                break
        lead[t] = scores[guess] - scores[runner_up(scores, guess)] if n_classes > 1 else np.inf


@compiled
def rival_row(row, labels, offset, unreachable, ladder, scores, cost, margin):
    """Prediction of one row (or UNDECIDED), its lead, and for every class the flips that lift it above that.

    The costs are lower bounds, and the smallest of them is exact.
    """
    total, largest, negative = score_row(row, labels, offset, scores, ladder)
    slack = rounding_slack(total, row.size + scores.size + 8)
    if slack == np.inf:
        return UNDECIDED, 0.0
    first = highest(scores)
    second = lowest = np.inf
    for c in range(scores.size):
        if c != first:
            second = min(second, scores[first] - scores[c])
            lowest = min(lowest, scores[c])
    longer = 0
    while longer < len(_REACH_VOTES):
        state = UNDECIDED
        if leader(scores, slack) == first:
            if row.size > (SHORT if negative else PICKED):
                build(ladder, row, labels, first, _REACH_VOTES[longer] * (scores[first] - lowest), largest, scores.size)
            if negative and row.size > SHORT:
                state = rival_costs(ladder, scores, first, slack, unreachable, cost, margin)
            else:
                state = rival_costs_in_one_walk(ladder, row, labels, scores, first, slack, unreachable, cost, margin)
        if state == TRUNCATED:
            longer += 1
        elif state == UNDECIDED and slack > 0.0 and sums_are_exact(row, offset, total):
            slack = 0.0
        else:
            break
    return (first if state == 0 else UNDECIDED), second


@compiled
def reach_row(row, labels, offset, target, unreachable, ladder, scores):
    """Best bounds on the cost of one row to reach one class; UNDECIDED as the lower one."""
    total, largest, negative = score_row(row, labels, offset, scores, ladder)
    slack = rounding = rounding_slack(total, row.size + scores.size + 8)
    first = highest(scores)
    lower = upper = UNDECIDED
    longer = 0
    while longer < len(_REACH_ONE):
        lower = UNDECIDED
        if leader(scores, slack) == first:
            build(
                ladder, row, labels, first, _REACH_ONE[longer] * (scores[first] - scores[target]), largest, scores.size
            )
            # Mostly the flips that lift the target above the first class also make it win; that takes few rungs to see.
            lower, won = rival_attack(ladder, scores, target, first, slack, unreachable)
            if won or lower == unreachable:
                return lower, lower
            if longer == 0 and row.size > SHORT:
                lower = TRUNCATED
            elif negative and lower >= 0:
                lower, upper, _, _ = reach_bounds(ladder, scores, target, first, slack, rounding, unreachable)
            elif lower >= 0:
                lower, _ = level_cost(ladder, scores, target, slack, unreachable, lower, False)
                upper = lower
        if lower == TRUNCATED:
            longer += 1
        elif (lower == UNDECIDED or 0 <= lower < upper) and slack > 0.0 and sums_are_exact(row, offset, total):
            slack = 0.0
        else:
            break
    return lower, upper


@compiled
def change_row(row, labels, offset, unreachable, ladder, scores):
    """Which class the cheapest change of prediction of one row leads to; UNDECIDED, or none (-1 too)."""
    total, largest, _ = score_row(row, labels, offset, scores, ladder)
    slack = rounding_slack(total, row.size + scores.size + 8)
    first = highest(scores)
    build(ladder, row, labels, first, np.inf, largest, scores.size)
    answer = cheapest_change(ladder, scores, slack, unreachable)
    if answer[0] == UNDECIDED and sums_are_exact(row, offset, total):
        answer = cheapest_change(ladder, scores, 0.0, unreachable)
    return answer[2]

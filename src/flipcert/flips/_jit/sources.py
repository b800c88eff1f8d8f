"""Labels that are changed source by source: gains of a source add up over its labels. Compiled.

Whoever holds a label of weight w closes the gap between the predicted class a and a class c by ``|w|`` if it has a
third class, by ``2 |w|`` if it counts for a or against c, and not at all if it counts for c or against a already. Over
the labels of a source these add up to ``size + (sum of weights at a) - (sum of weights at c)``, so that all that is
needed of a row are two sums for each *cell*, the labels of one class from one source.
"""

from __future__ import annotations

import numpy as np

from flipcert.engine.jit import compiled
from flipcert.flips._jit.fewest import fewest, sum_of_largest
from flipcert.flips._jit.ladder import UNDECIDED, beats, highest, leader, rounding_slack, runner_up


@compiled
def add_cells(weights, of, plus, minus):
    """Add up positive weights and magnitudes of negative ones of each row, cell by cell."""
    for t in range(weights.shape[0]):
        row, above, below = weights[t], plus[t], minus[t]
        for i in range(row.size):
            weight = np.float64(row[i])
            if weight >= 0.0:
                above[of[i]] += weight
            else:
                below[of[i]] -= weight


@compiled
def scores_of_cells(plus, minus, cells, offset, scores):
    """Class scores of a row; returns the sum of all magnitudes."""
    n_cells = cells.source.size
    total = offset[0] - offset[0]
    for c in range(scores.size):
        scores[c] = offset[c] + (plus[n_cells + c] - minus[n_cells + c])
        total += abs(offset[c]) + plus[n_cells + c] + minus[n_cells + c]
        for cell in range(cells.bounds[c], cells.bounds[c + 1]):
            scores[c] += plus[cell] - minus[cell]
            total += plus[cell] + minus[cell]
    return total


@compiled
def add_base(plus, minus, cells, first, base):
    """What each source closes of the gap to a class that it holds no label of."""
    for j in range(base.size):
        base[j] = plus[0] - plus[0]
    for cell in range(cells.source.size):
        base[cells.source[cell]] += plus[cell] + minus[cell]
    for cell in range(cells.bounds[first], cells.bounds[first + 1]):
        base[cells.source[cell]] += plus[cell] - minus[cell]


@compiled
def gains_of(plus, minus, cells, base, target, gains):
    """What each source closes of the gap between the class of ``base`` and ``target``."""
    for j in range(base.size):
        gains[j] = base[j]
    for cell in range(cells.bounds[target], cells.bounds[target + 1]):
        gains[cells.source[cell]] -= plus[cell] - minus[cell]


@compiled
def cheapest_by_sources(plus, minus, cells, scores, slack, unreachable, base, gains, after):
    """Fewest sources that change the prediction: cost (or UNDECIDED), prediction, class that wins then, margin."""
    zero = scores[0] - scores[0]
    first = leader(scores, slack)
    if first == UNDECIDED:
        return UNDECIDED, UNDECIDED, -1, zero
    best = unreachable
    best_class = -1
    margin = np.inf
    if scores.size == 1:
        return best, first, best_class, margin
    add_base(plus, minus, cells, first, base)
    # The second class is mostly the cheapest; the others then only have to be followed that far.
    second = runner_up(scores, first)
    for turn in range(-1, scores.size):
        c = second if turn < 0 else turn
        if c == first or (turn >= 0 and c == second):
            continue
        gap = scores[first] - scores[c]
        gains_of(plus, minus, cells, base, c, gains)
        if best < unreachable:
            short = gap - sum_of_largest(gains, best - 1)
            wins = beats(-short, c < first, slack)
            if wins == UNDECIDED and best > 1:
                return UNDECIDED, first, -1, zero
            if wins != 1 or best == 1:
                margin = min(margin, short)
                continue
        cost, room = fewest(gains, gap, c < first, slack, unreachable)
        if cost == UNDECIDED:
            return UNDECIDED, first, -1, zero
        if cost < best:
            best = cost
            best_class = c
            margin = room
        else:
            margin = min(margin, room)
    if best < unreachable:
        best_class = _winner_after(plus, minus, cells, scores, first, best_class, best, slack, base, gains, after)
        if best_class == UNDECIDED:
            return UNDECIDED, first, -1, zero
    return best, first, best_class, margin


@compiled
def _winner_after(plus, minus, cells, scores, first, target, count, slack, base, gains, after):
    """Which class wins once the sources with the largest gains have done their best for ``target``; or UNDECIDED."""
    gains_of(plus, minus, cells, base, target, gains)
    sum_of_largest(gains, count)
    least = gains[0]
    for i in range(count):
        least = min(least, gains[i])
    gains_of(plus, minus, cells, base, target, gains)
    # Of those that tie for the last places, the first ones are taken.
    ties = count
    for j in range(gains.size):
        ties -= gains[j] > least
    for j in range(gains.size):
        taken = gains[j] > least
        if gains[j] == least and ties > 0:
            taken = True
            ties -= 1
        gains[j] = 1 if taken else 0
    for c in range(scores.size):
        after[c] = scores[c]
    for c in range(scores.size):
        for cell in range(cells.bounds[c], cells.bounds[c + 1]):
            if gains[cells.source[cell]] == 1:
                after[c] -= plus[cell] - minus[cell]
                after[target] += plus[cell]
                after[first] -= minus[cell]
    return leader(after, slack)


@compiled
def source_radius_rows(
    plus, minus, cells, offset, n_labels, unreachable, exactly, prediction, second, cost, target, margin, decided
):
    """Cheapest change of prediction of each row: its cost in sources, the class that then wins, and the margin.

    ``exactly`` says that all sums are exact as they stand.
    """
    n_classes = offset.shape[1]
    scores, after = np.empty(n_classes), np.empty(n_classes)
    base, gains = np.empty(cells.n_sources), np.empty(cells.n_sources)
    for t in range(plus.shape[0]):
        total = scores_of_cells(plus[t], minus[t], cells, offset[t], scores)
        guess = highest(scores)
        second[t] = runner_up(scores, guess) if n_classes > 1 else guess
        # More additions than of flips: those of the cells, then those of cells and sources.
        slack = 0.0 if exactly else rounding_slack(total, 4 * n_labels + n_classes + 8)
        decided[t] = False
        if slack < np.inf:
            answer = cheapest_by_sources(plus[t], minus[t], cells, scores, slack, unreachable, base, gains, after)
            if answer[0] != UNDECIDED:
                cost[t], prediction[t], target[t], margin[t] = answer
                decided[t] = True


@compiled
def source_power_rows(plus, minus, cells, offset, n_labels, exactly, powers):
    """Whether each source alone changes the prediction of each row: 1, 0, or UNDECIDED."""
    n_classes = offset.shape[1]
    scores = np.empty(n_classes)
    base, gains = np.empty(cells.n_sources), np.empty(cells.n_sources)
    for t in range(plus.shape[0]):
        total = scores_of_cells(plus[t], minus[t], cells, offset[t], scores)
        slack = 0.0 if exactly else rounding_slack(total, 2 * n_labels + n_classes + 8)
        first = leader(scores, slack) if slack < np.inf else UNDECIDED
        for j in range(cells.n_sources):
            powers[t, j] = UNDECIDED if first == UNDECIDED else 0
        if first == UNDECIDED:
            continue
        add_base(plus[t], minus[t], cells, first, base)
        for c in range(n_classes):
            if c == first:
                continue
            gains_of(plus[t], minus[t], cells, base, c, gains)
            for j in range(cells.n_sources):
                if powers[t, j] != 1 and gains[j] > 0.0:
                    wins = beats(gains[j] - (scores[first] - scores[c]), c < first, slack)
                    if wins != 0:
                        powers[t, j] = wins

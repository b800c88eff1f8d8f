"""How many sources lead to each class: bounds from below and attacks from above, row by row. Compiled.

A class has to get past all others at once, and a source that is taken does its best against all of them: labels that
count for their class go to the target, those that count against it to whichever rival is highest. Which sources to take
is a hard question for more than two classes; where nothing counts against its class, few sources are searched through.
"""

from __future__ import annotations

import numpy as np

from flipcert.engine.jit import compiled
from flipcert.flips._jit.fewest import fewest
from flipcert.flips._jit.ladder import UNDECIDED, beats, is_ahead, leader, rounding_slack, runner_up
from flipcert.flips._jit.source_search import (
    AFTER,
    AGAINST,
    CURRENT,
    FOR,
    FOUND,
    LIFTED,
    N_RECORDS,
    NONE,
    RIVAL,
    TAKEN,
    search,
)
from flipcert.flips._jit.sources import scores_of_cells

# A search through more sources than this seldom ends.
_FEW_SOURCES = 64


@compiled
def source_cost_rows(
    plus, minus, cells, offset, n_labels, unreachable, exactly, tables, gains, used, record, vectors,
    prediction, lower, upper, lead, margin, decided,
):  # fmt: skip
    """Costs of each row to every class, in sources."""
    n_classes = offset.shape[1]
    scores = np.empty(n_classes)
    for t in range(plus.shape[0]):
        total = scores_of_cells(plus[t], minus[t], cells, offset[t], scores)
        slack = 0.0 if exactly else rounding_slack(total, 4 * n_labels + 4 * n_classes + 8)
        decided[t] = False
        first = leader(scores, slack) if slack < np.inf else UNDECIDED
        if first == UNDECIDED:
            continue
        state = source_costs(
            plus[t], minus[t], cells, scores, first, slack, unreachable, tables, gains, used, record, vectors,
            lower[t], upper[t], margin[t],
        )  # fmt: skip
        if state != UNDECIDED:
            prediction[t] = first
            lead[t] = scores[first] - scores[runner_up(scores, first)] if n_classes > 1 else np.inf
            decided[t] = True


@compiled
def source_costs(
    plus, minus, cells, scores, first, slack, unreachable, tables, gains, used, record, vectors, lower, upper, margin
):
    """Costs of one row to every class; ``record`` keeps the attacks behind the upper ones. 0, or UNDECIDED."""
    zero = scores[0] - scores[0]
    n_classes = scores.size
    any_negative = fill_tables(plus, minus, cells, tables, zero)
    for c in range(n_classes):
        lower[c] = 0
        upper[c] = 0 if c == first else unreachable
        margin[c] = np.inf
    for c in range(n_classes):
        if c != first:
            state = attack_the_first(tables, scores, c, first, slack, unreachable, gains, used, record, vectors, upper)
            if state == UNDECIDED:
                return UNDECIDED
    for c in range(n_classes):
        if c == first:
            continue
        lower[c], margin[c] = dearest_rival(tables, scores, c, first, slack, unreachable, gains)
        if lower[c] == UNDECIDED:
            return UNDECIDED
        if lower[c] < upper[c] and lower[c] < unreachable:
            cost = attack_greedily(tables, scores, c, slack, unreachable, used, record, vectors)
            if cost == UNDECIDED:
                return UNDECIDED
            if cost < upper[c]:
                upper[c] = cost
                _keep(record, n_classes, c, cost)
        if lower[c] < upper[c]:
            mixed, room = best_mixture(tables, scores, c, slack, unreachable, lower[c], gains, vectors)
            if mixed > lower[c]:
                lower[c] = mixed
                margin[c] = room
        while lower[c] < upper[c] and not any_negative and gains.size <= _FEW_SOURCES:
            found = search(tables, scores, c, lower[c], slack, used, record)
            if found == UNDECIDED:
                return UNDECIDED
            if found == NONE:
                lower[c] += 1
                continue
            if found == FOUND:
                upper[c] = lower[c]
                _keep(record, n_classes, c, upper[c])
            break
    return 0


@compiled
def attack_the_first(tables, scores, target, first, slack, unreachable, gains, used, record, vectors, upper):
    """Lift ``target`` above the predicted class with as few sources as that takes: an attack for whoever wins then."""
    n_classes = scores.size
    gap = scores[first] - scores[target]
    gains_over(tables, n_classes, target, first, gains)
    count, _ = fewest(gains, gap, target < first, slack, unreachable)
    if count == UNDECIDED or count == unreachable:
        return count
    current, after = vectors[CURRENT], vectors[AFTER]
    for q in range(n_classes):
        current[q] = scores[q]
    gains_over(tables, n_classes, target, first, gains)
    for j in range(used.size):
        used[j] = 0
    for step in range(count):
        best = -1
        for j in range(used.size):
            if used[j] == 0 and (best < 0 or gains[j] > gains[best]):
                best = j
        _take(tables, best, target, first, step, used, record, current, after)
    winner = leader(current, slack)
    if winner != UNDECIDED and winner != first and count < upper[winner]:
        upper[winner] = count
        _keep(record, n_classes, winner, count)
    return UNDECIDED if winner == UNDECIDED else 0


@compiled
def _keep(record, tried, c, count):
    """The attack that was tried is the best one known for a class."""
    for own in range(N_RECORDS):
        for step in range(count):
            record[own, c, step] = record[own, tried, step]


@compiled
def fill_tables(plus, minus, cells, tables, zero):
    """Spread cells over sources and classes; whether any label counts against its class."""
    any_negative = False
    for j in range(cells.n_sources):
        for c in range(cells.bounds.size - 1):
            tables[FOR, j, c] = zero
            tables[AGAINST, j, c] = zero
    for c in range(cells.bounds.size - 1):
        for cell in range(cells.bounds[c], cells.bounds[c + 1]):
            tables[FOR, cells.source[cell], c] = plus[cell]
            tables[AGAINST, cells.source[cell], c] = minus[cell]
            if minus[cell] > 0:
                any_negative = True
    return any_negative


@compiled
def gains_over(tables, n_classes, target, rival, gains):
    """What each source closes of the gap between ``target`` and one rival."""
    for j in range(gains.size):
        own = tables[FOR, j, rival] - tables[AGAINST, j, rival] - tables[FOR, j, target] + tables[AGAINST, j, target]
        for q in range(n_classes):
            own += tables[FOR, j, q] + tables[AGAINST, j, q]
        gains[j] = own


@compiled
def dearest_rival(tables, scores, target, first, slack, unreachable, gains):
    """Most sources that getting past any one rival takes: a lower bound on getting past all. Its margin."""
    zero = scores[0] - scores[0]
    worst = 1
    margin = np.inf
    for q in range(scores.size):
        if q == target:
            continue
        gap = scores[q] - scores[target]
        if q != first:
            ahead = beats(-gap, target < q, slack)
            if ahead == 1:
                continue
            if ahead == UNDECIDED:
                return UNDECIDED, zero
        gains_over(tables, scores.size, target, q, gains)
        cost, room = fewest(gains, gap, target < q, slack, unreachable)
        if cost == UNDECIDED:
            return UNDECIDED, zero
        if cost > worst or margin == np.inf:
            worst = max(worst, cost)
            margin = room
        elif cost == worst:
            margin = min(margin, room)
    return worst, margin


@compiled
def best_mixture(tables, scores, target, slack, unreachable, known, gains, vectors):
    """Sources that closing the mean gap to several rivals takes, the highest ones first: the largest such bound.

    A label moves the mean over m rivals by its weight, and by one m-th more or less where it is, or goes, to one of
    them; all is counted in m-ths. Returns ``known`` if there is nothing better.
    """
    n_classes = scores.size
    margin = scores[0] - scores[0]
    place = vectors[AFTER]
    for q in range(n_classes):
        place[q] = 0
    need = margin
    smallest = n_classes
    for m in range(1, n_classes):
        rival = -1
        for q in range(n_classes):
            if q != target and place[q] == 0 and (rival < 0 or scores[q] > scores[rival]):
                rival = q
        place[rival] = 1
        smallest = min(smallest, rival)
        need += scores[rival] - scores[target]
        if m == 1:
            continue
        if beats(-need, target < smallest, slack * (2 * m)) != 0:
            break
        for j in range(gains.size):
            gains[j] = margin - margin
            for q in range(n_classes):
                if q == target:
                    gains[j] += (m + 1) * tables[AGAINST, j, q]
                elif place[q] == 1:
                    gains[j] += (m + 1) * tables[FOR, j, q]
                else:
                    gains[j] += m * tables[FOR, j, q] + tables[AGAINST, j, q]
        cost, room = fewest(gains, need, target < smallest, slack * (2 * m), unreachable)
        if cost != UNDECIDED and cost > known:
            known = cost
            margin = room
    return known, margin


@compiled
def attack_greedily(tables, scores, target, slack, unreachable, used, record, vectors):
    """Take the source that brings the target closest to the lead, again and again; ``unreachable`` if that fails."""
    n_classes, n_sources = scores.size, used.size
    current, after = vectors[CURRENT], vectors[AFTER]
    for q in range(n_classes):
        current[q] = scores[q]
    for j in range(n_sources):
        used[j] = 0
    for step in range(n_sources):
        rival = 1 if target == 0 else 0
        for q in range(n_classes):
            if q != target and current[q] > current[rival]:
                rival = q
        best = -1
        best_short = current[rival] - current[target]
        for j in range(n_sources):
            if used[j] == 0:
                _hand_over(tables, j, target, rival, current, after)
                short = after[0 if target > 0 else 1] - after[target]
                for q in range(n_classes):
                    if q != target:
                        short = max(short, after[q] - after[target])
                if short < best_short:
                    best_short = short
                    best = j
        if best < 0:
            return unreachable
        _take(tables, best, target, rival, step, used, record, current, after)
        ahead = is_ahead(current, target, slack)
        if ahead == UNDECIDED:
            return UNDECIDED
        if ahead == 1:
            return step + 1
    return unreachable


@compiled
def _take(tables, source, target, rival, step, used, record, current, after):
    """Let one more source do its best for the target against the rival, and note that down as a step."""
    n_classes = current.size
    used[source] = 1
    record[TAKEN, n_classes, step] = source
    record[LIFTED, n_classes, step] = target
    record[RIVAL, n_classes, step] = rival
    _hand_over(tables, source, target, rival, current, after)
    for q in range(n_classes):
        current[q] = after[q]


@compiled
def _hand_over(tables, j, target, rival, current, after):
    """Scores once a source has put what counts for a class to the target, and what counts against it to the rival."""
    given = current[0] - current[0]
    charged = given
    for q in range(current.size):
        after[q] = current[q]
        if q != target:
            after[q] -= tables[FOR, j, q]
            given += tables[FOR, j, q]
        if q != rival:
            after[q] += tables[AGAINST, j, q]
            charged += tables[AGAINST, j, q]
    after[target] += given
    after[rival] -= charged

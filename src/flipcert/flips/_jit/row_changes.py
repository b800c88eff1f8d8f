"""Rows that come and go: the fewest deletions, insertions, replacements or edits that lift one class above another.

What one operation closes of a gap between two classes does not depend on the others: the weight of a row that goes,
the most that a new row can weigh, both, or twice the weight of a row whose label changes. So the largest go first. Only
rows of the two classes matter one by one, and of these first those that hold the gap open: positive weights of the
class ahead, negative ones of the other. Compiled, and interpreted on integers like all that walks a ladder.
"""

from __future__ import annotations

import numpy as np

from flipcert.engine._jit.bits import lowest_bit
from flipcert.engine.jit import compiled
from flipcert.flips._jit.ladder import (
    BINS,
    COUNT,
    CURRENT,
    DEEPEST,
    FLOOR,
    N_BINS,
    PLACE,
    START,
    TRUNCATED,
    UNDECIDED,
    VALUE,
    beats,
    highest,
    leader,
    multiples_are_exact,
    rounding_slack,
    runner_up,
)
from flipcert.flips._jit.select import SHORT, fill, score_row

DELETE, INSERT, REPLACE, EDIT, MOVE = range(5)

# How much farther than the gap between the classes a ladder reaches, try by try; in the end it is the whole row.
_REACH = (1.25, 4.0, np.inf)
# Histograms look at this many weights at least, and at one of this many at least, in runs of so many.
_SAMPLE, _SPARSEST, _RUN = 512, 16, 8


@compiled
def change_cost(ladder, target, rival, gap, threat, new, movable, slack, unreachable, at_most):
    """Fewest operations after which ``target`` beats ``rival``, which is ahead by ``gap``.

    ``new`` is what a new row weighs, ``movable`` how many rows can be replaced. ``at_most`` stands for any cost from
    there on. Returns the cost and the margin, by how much the deciding sums clear the gap; then, of the attack, what
    the rival loses, what the target gains by rows that go or change, and how many rows are new; UNDECIDED as the last
    where rows of other classes are replaced.
    """
    value, place, start = ladder.numbers[VALUE], ladder.rungs[PLACE], ladder.rungs[START]
    rivals, rivals_end = start[2 * rival], start[2 * rival + 1]
    owns, owns_end = start[2 * target + 1], start[2 * target + 2]
    # Rows that hold the gap closed are replaced last, the smallest weights first; until then all rows of other classes.
    shut_rivals, shut_rivals_end = start[2 * rival + 2] - 1, start[2 * rival + 1]
    shut_owns, shut_owns_end = start[2 * target + 1] - 1, start[2 * target]
    others = movable - (rivals_end - rivals) - (owns_end - owns)
    others -= (shut_rivals + 1 - shut_rivals_end) + (shut_owns + 1 - shut_owns_end)
    zero = gap - gap
    total = lost = gained = zero
    cost = 0
    inserted = 0
    short = np.inf
    only_two = True
    while True:
        if cost > 0:
            wins = beats(total - gap, target < rival, slack)
            if wins == UNDECIDED:
                return UNDECIDED, 0.0, zero, zero, 0
            if wins == 1:
                return cost, min(short, total - gap), lost, gained, inserted if only_two else UNDECIDED
            short = gap - total
        if cost + 1 >= at_most:
            return at_most, short, zero, zero, 0
        largest = zero
        from_rival = True
        if threat != INSERT:
            missing = zero  # what weights below the cut could be
            if rivals < rivals_end:
                largest = value[place[rivals]]
            else:
                missing = ladder.numbers[FLOOR, 2 * rival]
            if owns < owns_end:
                if value[place[owns]] > largest:
                    largest = value[place[owns]]
                    from_rival = False
            else:
                missing = max(missing, ladder.numbers[FLOOR, 2 * target + 1])
            if largest < missing and not (threat == EDIT and 2 * missing <= new):
                return TRUNCATED, 0.0, zero, zero, 0
        if largest > 0 and (threat != EDIT or 2 * largest > new):
            rivals += from_rival
            owns += not from_rival
            step = 2 * largest if threat == EDIT else largest
            if threat == REPLACE:
                step += new
                inserted += 1
            # A label that changes counts for both classes, a row that goes for its own.
            if from_rival or threat == EDIT:
                lost += largest
            if not from_rival or threat == EDIT:
                gained += largest
        elif threat == INSERT or threat == EDIT:
            step = new
            inserted += 1
        elif threat == REPLACE and others > 0:
            step = new
            others -= 1
            only_two = False
        elif threat == REPLACE:
            if max(ladder.numbers[FLOOR, 2 * rival + 1], ladder.numbers[FLOOR, 2 * target]) > 0:
                return TRUNCATED, 0.0, zero, zero, 0
            only_two = False
            step = zero
            if shut_rivals >= shut_rivals_end:
                step = new - value[place[shut_rivals]]
            if shut_owns >= shut_owns_end and (
                shut_rivals < shut_rivals_end or value[place[shut_owns]] < value[place[shut_rivals]]
            ):
                step = new - value[place[shut_owns]]
                shut_owns -= 1
            else:
                shut_rivals -= 1
        else:
            step = zero
        if step <= 0:
            return unreachable, short, zero, zero, 0
        total += step
        cost += 1


@compiled
def cheapest_row_change(ladder, scores, threat, new, movable, slack, unreachable):
    """Fewest operations that change the prediction, the prediction, a class they lift above it, the margin, who wins.

    UNDECIDED or TRUNCATED as the cost. The winner is -1 if there is none, -2 if whoever knows the rows has to find out.
    """
    first = leader(scores, slack)
    if first == UNDECIDED:
        return UNDECIDED, first, -1, 0.0, -1
    best = unreachable
    rival = winner = -1
    margin = np.inf
    lost = gained = scores[0] - scores[0]
    inserted = 0
    # The second class is mostly the cheapest; the others then only have to be followed that far.
    second = runner_up(scores, first)
    for turn in range(-1, scores.size):
        c = second if turn < 0 else turn
        if c < 0 or c == first or (turn >= 0 and c == second):
            continue
        gap = scores[first] - scores[c]
        cost, room, own_lost, own_gained, own_inserted = change_cost(
            ladder, c, first, gap, threat, new, movable, slack, unreachable, best
        )
        if cost < 0:
            return cost, first, -1, 0.0, -1
        margin = room if cost < best else min(margin, room)
        if cost < best:
            best = cost
            rival = c
            lost, gained, inserted = own_lost, own_gained, own_inserted
    if rival >= 0:
        if inserted == UNDECIDED:
            winner = -2
        else:
            after = ladder.numbers[CURRENT, : scores.size]
            for c in range(scores.size):
                after[c] = scores[c]
            after[first] -= lost
            after[rival] += gained
            after[rival] += inserted * new
            winner = leader(after, slack)
            if winner == UNDECIDED:
                winner = -2
    lead = scores[first] - scores[second] if scores.size > 1 else np.inf
    return best, first, rival, min(margin, lead), winner


@compiled
def most_of_new_row(threat, most, largest, total, n_terms):
    """The most that a new row may weigh, the sum of all magnitudes with it, and the error bound of sums."""
    bound = most
    if threat != DELETE:
        bound = max(bound, largest)
        total += bound
    return bound, total, rounding_slack(2.0 * total, n_terms + 8)


@compiled
def change_rows(weights, labels, offset, threat, most, real, movable, unreachable, ladder,
                prediction, second, lower, upper, rival, target, margin, decided):  # fmt: skip
    """Cheapest change of prediction of each row: proven, and by an attack that inserts what is known.

    ``rival`` is the class that the attack lifts above the prediction, ``target`` the one that then wins.
    """
    n_classes = offset.shape[1]
    scores = np.empty(n_classes)
    for t in range(weights.shape[0]):
        row = weights[t]
        total, largest, _ = score_row(row, labels, offset[t], scores, ladder)
        bound, total, slack = most_of_new_row(threat, most[t], largest, total, row.size + n_classes)
        known = max(real[t], 0.0)
        guess = highest(scores)
        second[t] = runner_up(scores, guess) if n_classes > 1 else guess
        gap = scores[guess] - scores[second[t]]
        decided[t] = False
        longer = 0 if slack < np.inf else len(_REACH)
        if threat == INSERT:
            ladder.rungs[COUNT, 0] = 0
        while longer < len(_REACH):
            if threat != INSERT:
                build_for_two(
                    ladder, row, labels, guess, second[t], threat, min(bound, known), _REACH[longer] * gap, largest,
                    n_classes,
                )  # fmt: skip
            answer = cheapest_row_change(ladder, scores, threat, bound, movable, slack, unreachable)
            attack = answer
            if answer[0] >= 0 and known != bound:
                attack = cheapest_row_change(ladder, scores, threat, known, movable, slack, unreachable)
            state = min(answer[0], attack[0])
            if state == TRUNCATED:
                longer += 1
            elif state == UNDECIDED and slack > 0.0 and all_exact(row, offset[t], bound, known, total):
                slack = 0.0
            else:
                break
        if slack < np.inf and state >= 0 and attack[4] != -2:
            lower[t], prediction[t], _, margin[t], _ = answer
            upper[t], _, rival[t], _, target[t] = attack
            decided[t] = True


@compiled
def all_exact(row, offset, bound, known, total):
    """Tell whether every sum of these numbers, new rows among them, is a double."""
    lowest = min(lowest_bit(row, 2000, -2000), lowest_bit(offset, 2000, -2000))
    for number in (bound, known):
        lowest = min(lowest, lowest_bit(np.full(1, number), 2000, -2000))
    return multiples_are_exact(lowest, 2.0 * total)


@compiled
def build_for_two(ladder, row, labels, first, second, threat, new, reach, largest, n_classes):
    """Put on the ladder what holds gaps to the first class open, down to where it closes ``reach`` (a guess).

    These are positive weights of the first class and negative ones of others; a whole ladder to replace rows has all.
    ``new`` is the least that a new row is taken to weigh.
    """
    floor, bins = ladder.numbers[FLOOR], ladder.numbers[BINS]
    lowest = 0.0
    if row.size > SHORT and reach < np.inf and 1e-300 < largest < 1e300:
        n_bins = N_BINS if row.size > 16 * _SAMPLE else N_BINS // 4
        for b in range(n_bins):
            bins[b] = 0.0
        scale = (n_bins - 1) / largest
        stride = max(1, min(row.size // _SAMPLE, _SPARSEST))
        for begin in range(0, row.size, _RUN * stride):
            for i in range(begin, min(begin + _RUN, row.size)):
                weight = np.float64(row[i])
                if labels.codes[i] == second:
                    weight = -weight
                if weight > 0.0 and (labels.codes[i] == first or labels.codes[i] == second):
                    step = 2.0 * weight if threat == EDIT else weight + new if threat == REPLACE else weight
                    bins[int(weight * scale)] += step
        closed = 0.0
        level = n_bins - 1
        while level > 0 and closed * stride < reach:
            closed += bins[level]
            level -= 1
        # one bin of margin: the sample is only a sample
        if closed * stride >= reach:
            lowest = max(0.0, (level - 1) / scale)
    if threat == EDIT:
        lowest = max(lowest, new / 2.0)  # where a new row is as good
    whole = threat == REPLACE and lowest == 0.0
    for g in range(2 * n_classes):
        floor[g] = lowest if whole or g == 2 * first or g & 1 else np.inf
    floor[2 * first + 1] = lowest if whole else np.inf
    ladder.numbers[DEEPEST, 0] = 2.0 * lowest
    fill(ladder, row, labels, n_classes)

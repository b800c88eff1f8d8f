"""Elections among voters of which a unit of a threat reaches several: what the strongest units can do. Compiled.

Unit h reaches the voters ``touched[starts[h]:starts[h + 1]]``. What it can close of a gap at most is its *power*, the
sum of what each of these voters can; however many units attack, they close no more than as many strongest ones. A
voter that two units reach is counted twice, which makes costs too small at worst.
"""

from __future__ import annotations

import numpy as np

from flipcert.engine.jit import compiled
from flipcert.ensemble._jit.knapsack import leave_costs, new_tables, overtake_cost, tally

# What a class needs: to overtake the winner in the first round, to overtake the other finalist, to beat the winner.
OVERTAKE, ENTER, BEAT, N_NEEDS = range(4)


@compiled
def _fewest(power, gap, bins, limit):
    """Fewest units, strongest first, whose powers add up to ``gap``; ``limit`` if all together do not."""
    if gap <= 0:
        return np.int64(0)
    for p in range(bins.size):
        bins[p] = 0
    for h in range(power.size):
        bins[power[h]] += 1
    count = np.int64(0)
    for p in range(bins.size - 1, 0, -1):
        if bins[p] * p >= gap:
            return count + (gap + p - 1) // p
        gap -= bins[p] * p
        count += bins[p]
    return np.int64(limit)


@compiled
def _holdings(first, starts, touched, holds):
    """How many of the voters that each unit reaches vote for each class."""
    for h in range(holds.shape[0]):
        for c in range(holds.shape[1]):
            holds[h, c] = 0
        for k in range(starts[h], starts[h + 1]):
            holds[h, first[touched[k]]] += 1


@compiled
def _overtaking(counts, holds, starts, rival, target, power, bins, limit):
    """Fewest units with which ``target`` gets ahead of ``rival`` in votes."""
    for h in range(power.size):
        power[h] = starts[h + 1] - starts[h] + holds[h, rival] - holds[h, target]
    return _fewest(power, _lead(counts, rival, target), bins, limit)


@compiled
def _lead(counts, rival, target):
    """Votes that ``target`` has to close until it is ahead of ``rival``; ties go to the smaller class."""
    return counts[rival] - counts[target] + (1 if target > rival else 0)


@compiled
def plurality_rows(votes, starts, touched, limit, winner, second, costs):
    """Winner and second of each row, and the fewest units with which each class could overtake the winner."""
    n_units, n_classes = starts.size - 1, costs.shape[1]
    holds, power = np.zeros((n_units, n_classes), np.int64), np.zeros(n_units, np.int64)
    bins = _new_bins(starts)
    for t in range(votes.shape[0]):
        counts, winner[t] = tally(votes[t], n_classes)
        second[t] = _next_highest(counts, winner[t])
        _holdings(votes[t], starts, touched, holds)
        for c in range(n_classes):
            costs[t, c] = 0
            if c != winner[t]:
                costs[t, c] = _overtaking(counts, holds, starts, winner[t], c, power, bins, limit)


@compiled
def _new_bins(starts):
    """Room to count units by their powers, at most three for each voter reached."""
    most = 0
    for h in range(starts.size - 1):
        most = max(most, starts[h + 1] - starts[h])
    return np.zeros(3 * most + 1, np.int64)


@compiled
def _next_highest(counts, first):
    """The class with most votes after the first, the smaller index of several."""
    best = -1
    for c in range(counts.size):
        if c != first and (best < 0 or counts[c] > counts[best]):
            best = c
    return best


@compiled
def elect_rows(rankings, winner, second, scores):
    """Winner and loser of the second round, and what each class has got, of each row of ``rankings``.

    A class that is in the second round has all voters on top of those that prefer it there.
    """
    n_voters, n_classes = rankings.shape[1], rankings.shape[2]
    for t in range(rankings.shape[0]):
        counts, one = tally(rankings[t, :, 0], n_classes)
        for c in range(n_classes):
            scores[t, c] = counts[c]
        winner[t] = second[t] = one
        if n_classes == 1:
            continue
        other = _next_highest(counts, one)
        low, high = min(one, other), max(one, other)
        for_low = 0
        for i in range(n_voters):
            k = 0
            while rankings[t, i, k] != low and rankings[t, i, k] != high:
                k += 1
            for_low += rankings[t, i, k] == low
        scores[t, low], scores[t, high] = n_voters + for_low, 2 * n_voters - for_low
        winner[t], second[t] = (low, high) if 2 * for_low >= n_voters else (high, low)


@compiled
def _margins(rankings, winner, margin, prefers):
    """For each class, by how many voters the winner is preferred to it, and which voters prefer the winner."""
    n_voters, n_classes = rankings.shape
    for c in range(n_classes):
        margin[c] = n_voters
        for i in range(n_voters):
            prefers[i, c] = True
    for i in range(n_voters):
        for k in range(n_classes):
            c = rankings[i, k]
            prefers[i, c] = False
            if c == winner:
                break
            margin[c] -= 2


@compiled
def runoff_rows(rankings, winner, second, starts, touched, limit, floors, every, costs, faced):
    """Fewest units with which each class could win, one row a test point; 0 for the winner.

    It has to face the winner in the second round and be preferred there (``faced``), or to overtake it in the first
    round together with another class. ``floors`` bound what it needs from below by other means. Unless costs of
    ``every`` class are wanted, only the smallest of each row is right.
    """
    n_units, n_voters, n_classes = starts.size - 1, rankings.shape[1], rankings.shape[2]
    holds, power = np.zeros((n_units, n_classes), np.int64), np.zeros(n_units, np.int64)
    prefers, margin = np.zeros((n_voters, n_classes), np.bool_), np.zeros(n_classes, np.int64)
    leave = np.zeros(n_classes, np.int64)
    bins = _new_bins(starts)
    for t in range(rankings.shape[0]):
        c, s = winner[t], second[t]
        first = rankings[t, :, 0]
        counts, _ = tally(first, n_classes)
        _holdings(first, starts, touched, holds)
        _margins(rankings[t], c, margin, prefers)
        costs[t, c] = faced[t, c] = leave[c] = 0
        best = limit
        for b in range(n_classes):
            if b == c:
                continue
            overtake = _overtaking(counts, holds, starts, c, b, power, bins, limit)
            leave[b] = max(overtake, floors[OVERTAKE, t, b])
            enter = 0
            if b != s:
                enter = _overtaking(counts, holds, starts, s, b, power, bins, limit)
            for h in range(n_units):
                power[h] = 0
                for k in range(starts[h], starts[h + 1]):
                    power[h] += 2 * prefers[touched[k], b]
            beat = _fewest(power, margin[b] + (1 if b > c else 0), bins, limit)
            faced[t, b] = max(max(enter, floors[ENTER, t, b]), max(beat, floors[BEAT, t, b]))
            costs[t, b] = faced[t, b]
            best = min(best, costs[t, b])
        order = np.argsort(leave)
        for j in range(1, n_classes):
            b = order[j]
            if b == c or (not every and leave[b] >= best):
                continue
            for i in range(j):
                a = order[i]
                if a == c or leave[b] >= max(costs[t, a], costs[t, b]):
                    continue
                # Both gaps together: a voter for the winner closes three, one for a third class one. A gap that is
                # closed already counts as it is, below zero.
                for h in range(n_units):
                    power[h] = starts[h + 1] - starts[h] + 2 * holds[h, c] - holds[h, a] - holds[h, b]
                gaps = _lead(counts, c, a) + _lead(counts, c, b)
                both = max(leave[b], _fewest(power, gaps, bins, limit))
                costs[t, a], costs[t, b] = min(costs[t, a], both), min(costs[t, b], both)
                best = min(best, both)


@compiled
def needs_of_costs(rankings, winner, second, costs, reversing, limit, floors):
    """What each class needs, by the costs of turning single voters, if no unit reaches several.

    ``costs`` turn a voter to a class, ``reversing`` are those of having it prefer a class to the winner.
    """
    n_voters, n_classes = rankings.shape[1], rankings.shape[2]
    from_winner, from_second = np.zeros(n_voters, np.int64), np.zeros(n_voters, np.int64)
    price, dear = np.zeros(n_voters, np.int64), np.zeros(n_voters, np.int64)
    prefers, margin = np.zeros((n_voters, n_classes), np.bool_), np.zeros(n_classes, np.int64)
    tables = new_tables()
    for t in range(rankings.shape[0]):
        c, s = winner[t], second[t]
        first = rankings[t, :, 0]
        counts, _ = tally(first, n_classes)
        _margins(rankings[t], c, margin, prefers)
        leave_costs(first, costs[t], c, from_winner)
        leave_costs(first, costs[t], s, from_second)
        for b in range(n_classes):
            floors[OVERTAKE, t, b] = floors[ENTER, t, b] = floors[BEAT, t, b] = 0
            if b == c:
                continue
            for i in range(n_voters):
                price[i] = costs[t, i, b]
            floors[OVERTAKE, t, b] = min(overtake_cost(first, price, from_winner, counts, c, b, tables), limit)
            if b != s:
                floors[ENTER, t, b] = min(overtake_cost(first, price, from_second, counts, s, b, tables), limit)
            size = 0
            for i in range(n_voters):
                if prefers[i, b]:
                    dear[size] = reversing[t, i, b]
                    size += 1
            dear[:size].sort()
            missing = (margin[b] + (1 if b > c else 0) + 1) // 2
            paid = np.int64(0)
            for k in range(max(missing, 0)):
                paid = min(paid + dear[k], limit) if k < size else np.int64(limit)
            floors[BEAT, t, b] = paid

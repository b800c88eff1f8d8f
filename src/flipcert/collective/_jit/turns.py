"""What it does to many points at once that so many units of a threat go to one voter. Compiled.

``first`` and ``second`` are how many it takes, at least, until a voter closes one vote, and two, of the gap between the
winner and each rival; more than there are options where nothing does. A cut counts what is closed above a floor for
every unit that is spent.
"""

from __future__ import annotations

import numpy as np

from flipcert.engine.jit import compiled
from flipcert.ensemble._jit.knapsack import leave_costs, overtake, tally


@compiled
def turning_points(votes, costs, never, winner, gaps, pair_costs, first, second):
    """Fill in who wins each row, what rivals have to close, what that costs, and what each voter closes when.

    ``costs`` are those of turning voters to each class, at least; none that is as large as ``never`` comes about.
    """
    n_voters, n_classes = costs.shape[1], costs.shape[2]
    away, price = np.empty(n_voters, np.int64), np.empty(n_voters, np.int64)
    no_plan = np.empty(0, np.int64)
    for t in range(votes.shape[0]):
        counts, a = tally(votes[t], n_classes)
        winner[t] = a
        leave_costs(votes[t], costs[t], a, away)
        for c in range(n_classes):
            gaps[t, c] = 0.0
            pair_costs[t, c] = never
            if c == a:
                continue
            gaps[t, c] = counts[a] - counts[c] + (1 if a < c else 0)
            for i in range(n_voters):
                price[i] = costs[t, i, c]
                if votes[t, i] == a:
                    first[t, i, c] = min(away[i], never)
                    second[t, i, c] = min(price[i], never)
                elif votes[t, i] != c:
                    first[t, i, c] = min(price[i], never)
            pair_costs[t, c] = min(never, overtake(votes[t], price, away, counts, a, c, no_plan))


@compiled
def _share(units, gain, floor, inverse):
    """The coefficient of one rival in a cut."""
    above = gain - units * floor
    share = above * inverse if above > 0.0 else 0.0
    return share if share < 1.0 else 1.0


@compiled
def add_turn_prices(first, second, point, cuts, shares, prices):
    """Add up coefficients times shares of all cuts, for so many units spent on each voter.

    Everything is at least zero, so that sums err by a share of themselves.
    """
    n_voters, n_options = prices.shape
    worth = np.empty(n_options)
    for j in range(point.size):
        if not shares[j] > 0.0:
            continue
        t = point[j]
        at, end = cuts.first_left_out[j], cuts.first_left_out[j + 1]
        for i in range(n_voters):
            if at < end and cuts.left_out[at] == i:
                at += 1
                continue
            for k in range(n_options):
                worth[k] = 0.0
            for c in range(first.shape[2]):
                floor, inverse = cuts.floor[j, c], cuts.inverse[j, c]
                if not inverse > 0.0:
                    continue
                for units in range(first[t, i, c], n_options + 1):
                    gain = 2.0 if units >= second[t, i, c] else 1.0
                    worth[units - 1] = max(worth[units - 1], _share(units, gain, floor, inverse))
            for k in range(n_options):
                prices[i, k] += shares[j] * worth[k]


@compiled
def turn_coefficients(first, second, voter, units, point, cuts, out):
    """Write the coefficients of some choices, so many units for a voter, in all cuts: (n_cuts, n_choices)."""
    for j in range(point.size):
        t = point[j]
        at, end = cuts.first_left_out[j], cuts.first_left_out[j + 1]
        for k in range(voter.size):
            i = voter[k]
            out[j, k] = 0.0
            while at < end and cuts.left_out[at] < i:
                at += 1
            if at < end and cuts.left_out[at] == i:
                continue
            for c in range(first.shape[2]):
                if cuts.inverse[j, c] > 0.0 and units[k] >= first[t, i, c]:
                    gain = 2.0 if units[k] >= second[t, i, c] else 1.0
                    out[j, k] = max(out[j, k], _share(units[k], gain, cuts.floor[j, c], cuts.inverse[j, c]))


@compiled
def most_within(prices, budget):
    """The largest sum of prices, one option of each unit at most, where option k takes k + 1 of the budget."""
    best = np.zeros(budget + 1)
    reached = 0
    for i in range(prices.shape[0]):
        reached = min(budget, reached + prices.shape[1])
        for left in range(reached, 0, -1):
            most = best[left]
            for k in range(min(left, prices.shape[1])):
                most = max(most, best[left - k - 1] + prices[i, k])
            best[left] = most
    return best.max()

"""What the strongest sources can do to a vote if a source has labels in many partitions. Compiled.

A partition whose vote takes ``rho`` sources to turn lends each of them a share of ``1 / rho`` of the vote, and the
shares of a source in all partitions that it touches add up to its power. However many sources attack, they close no
more of a gap than the powers of as many strongest ones. Shares are whole multiples of ``1 / unit``, rounded up; how
many of them were rounded is counted, so that who must know can tell whether that mattered.
"""

from __future__ import annotations

import numpy as np

from flipcert.engine._jit.sort import sort_pairs
from flipcert.engine.jit import compiled
from flipcert.ensemble._jit.knapsack import BEYOND, leave_costs, new_tables, overtake_cost, tally


@compiled
def fewest_sources(votes, costs, beyond, starts, touched, unit, limit, blackbox, whitebox, rounded, turning):
    """For each row and class, the fewest sources with which the class could overtake the winner.

    Source j touches the partitions ``touched[starts[j]:starts[j + 1]]``; ``costs`` are sources that turn a voter to a
    class, ``beyond`` and more where none do. ``blackbox`` and ``whitebox`` are sources by their powers, ``rounded``
    says whether rounding of shares may have made the second too small; ``turning`` is the sum of costs of the cheapest
    change. ``limit`` stands for what not even all sources do.
    """
    n_sources, n_voters, n_classes = starts.size - 1, votes.shape[1], costs.shape[2]
    share = np.zeros((n_voters, n_classes), np.int64)
    plain = np.zeros((n_voters, n_classes), np.int64)
    inexact = np.zeros((n_voters, n_classes), np.int64)
    power = np.zeros((n_sources, n_classes), np.int64)
    plain_power = np.zeros((n_sources, n_classes), np.int64)
    rounding = np.zeros((n_sources, n_classes), np.int64)
    own, own_rounding = np.zeros(n_sources, np.int64), np.zeros(n_sources, np.int64)
    spare, spare_rounding = np.zeros(n_sources, np.int64), np.zeros(n_sources, np.int64)
    price, away = np.zeros(n_voters, np.int64), np.zeros(n_voters, np.int64)
    tables = new_tables()
    for t in range(votes.shape[0]):
        counts, first = tally(votes[t], n_classes)
        leave_costs(votes[t], costs[t], first, away)
        for i in range(n_voters):
            for c in range(n_classes):
                share[i, c] = plain[i, c] = inexact[i, c] = 0
                if c == first or c == votes[t, i]:
                    continue
                votes_closed, cost = 1, costs[t, i, c]
                plain[i, c] = 1
                if votes[t, i] == first:
                    plain[i, c] = 2
                    # Turned to the class it closes two votes, turned elsewhere one: whichever is cheaper a vote.
                    votes_closed = 2
                    if 2 * away[i] < cost:
                        votes_closed, cost = 1, away[i]
                if cost < beyond:
                    share[i, c] = (votes_closed * unit + cost - 1) // cost
                    inexact[i, c] = 1 if votes_closed * unit % cost else 0
        for j in range(n_sources):
            for c in range(n_classes):
                power[j, c] = plain_power[j, c] = rounding[j, c] = 0
            for k in range(starts[j], starts[j + 1]):
                i = touched[k]
                for c in range(n_classes):
                    power[j, c] += share[i, c]
                    plain_power[j, c] += plain[i, c]
                    rounding[j, c] += inexact[i, c]
        for c in range(n_classes):
            blackbox[t, c] = whitebox[t, c] = turning[t, c] = 0
            rounded[t, c] = False
            if c == first:
                continue
            need = counts[first] - counts[c] + (1 if first < c else 0)
            size = 0
            for j in range(n_sources):
                if plain_power[j, c] > 0:
                    own[size], own_rounding[size] = plain_power[j, c], 0
                    size += 1
            blackbox[t, c], _ = _strongest(own, own_rounding, size, need, limit, spare, spare_rounding)
            size = 0
            for j in range(n_sources):
                if power[j, c] > 0:
                    own[size], own_rounding[size] = power[j, c], rounding[j, c]
                    size += 1
            whitebox[t, c], rounded[t, c] = _strongest(
                own, own_rounding, size, need * unit, limit, spare, spare_rounding
            )
            for i in range(n_voters):
                price[i] = costs[t, i, c]
            turning[t, c] = min(overtake_cost(votes[t], price, away, counts, first, c, tables), BEYOND)


@compiled
def _strongest(power, rounding, size, need, limit, spare, spare_rounding):
    """Fewest powers, largest first, that add up to ``need``; and whether they do so only by having been rounded up."""
    if need <= 0:
        return np.int64(0), False
    sort_pairs(power, rounding, size, spare, spare_rounding)
    total = excess = np.int64(0)
    for k in range(1, size + 1):
        total += power[size - k]
        excess += rounding[size - k]
        if total >= need:
            return np.int64(k), total - excess < need
    return np.int64(limit), False

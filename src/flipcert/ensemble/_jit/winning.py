"""Bounds on the flips that make one given class win a vote. Compiled.

Overtaking the present winner is not enough for that: every class has to be overtaken.
"""

from __future__ import annotations

import numpy as np

from flipcert.engine.jit import compiled
from flipcert.ensemble._jit.knapsack import BEYOND, leave_costs, overtake, tally


@compiled
def reach_lower(votes, costs, target):
    """Lower bound on the flips that make ``target`` win: its dearest rival, or the fewest votes that can win at all."""
    n_voters, n_classes = costs.shape
    counts, _ = tally(votes, n_classes)
    goal = 1  # votes with which the target can win: all others fit below it
    while (n_classes - 1) * goal - target < n_voters - goal:
        goal += 1
    prices = np.sort(costs[votes != target, target])
    dearest = prices[: max(goal - counts[target], 0)].sum()
    price = costs[:, target].copy()
    away = np.empty(n_voters, np.int64)
    for q in range(n_classes):
        if q != target:
            leave_costs(votes, costs, q, away)
            dearest = max(dearest, overtake(votes, price, away, counts, q, target, np.empty(0, np.int64)))
    return dearest


@compiled
def reach_upper(votes, costs, target):
    """Cheapest flips that make ``target`` win by turning voters to it and nowhere else.

    Guess the votes it ends with; every class above that gives up its cheapest voters, then the cheapest left follow.
    """
    counts, _ = tally(votes, costs.shape[1])
    order = np.argsort(costs[:, target], kind="mergesort")
    best = BEYOND
    excess = np.empty_like(counts)
    for goal in range(max(counts[target], 1), votes.size + 1):
        free = goal - counts[target]
        for q in range(counts.size):
            excess[q] = 0 if q == target else max(0, counts[q] - goal + (1 if q < target else 0))
            free -= excess[q]
        if free < 0:
            continue
        spent = np.int64(0)
        for i in order:
            if votes[i] != target:
                if excess[votes[i]] > 0:
                    excess[votes[i]] -= 1
                    spent += costs[i, target]
                elif free > 0:
                    free -= 1
                    spent += costs[i, target]
        best = min(best, spent)
    return best

"""The paper's dynamic program for votes, compiled: what a careful implementation of O(K N^2) costs."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def dynamic_program_radii(votes, costs, beyond):
    """Radius of each row; ``beyond`` is the cost of what cannot be reached."""
    n_rows, n_voters = votes.shape
    n_classes = costs.shape[2]
    radii = np.empty(n_rows, np.int64)
    table = np.empty(n_voters + 2, np.int64)
    away = np.empty(n_voters, np.int64)
    for t in range(n_rows):
        counts = np.zeros(n_classes, np.int64)
        for vote in votes[t]:
            counts[vote] += 1
        winner = np.argmax(counts)
        for i in range(n_voters):
            away[i] = beyond
            for q in range(n_classes):
                if q != winner:
                    away[i] = min(away[i], costs[t, i, q])
        best = beyond
        for target in range(n_classes):
            if target != winner:
                need = counts[winner] - counts[target] + (1 if winner < target else 0)
                best = min(best, _knapsack(votes[t], costs[t], away, winner, target, need, table, beyond))
        radii[t] = best - 1
    return radii


@njit(cache=True, nogil=True)
def _knapsack(votes, costs, away, winner, target, need, table, beyond):
    """Least cost of closing ``need`` votes; the table is updated from above, so that no voter is used twice."""
    table[0] = 0
    table[1 : need + 1] = beyond
    for i in range(votes.size):
        turn = costs[i, target]
        if votes[i] == winner:
            for closed in range(need, 1, -1):
                half_way = min(table[closed], table[closed - 1] + away[i])
                table[closed] = min(half_way, table[closed - 2] + turn)
            if need > 0:
                table[1] = min(table[1], min(away[i], turn))
        elif votes[i] != target:
            for closed in range(need, 0, -1):
                table[closed] = min(table[closed], table[closed - 1] + turn)
    return table[need]

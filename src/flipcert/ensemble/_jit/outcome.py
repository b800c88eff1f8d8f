"""What is found out about a row, as a row of a table, and the black-box part of it. Compiled."""

from __future__ import annotations

from flipcert.engine._jit.room import zero_integers
from flipcert.engine.jit import compiled
from flipcert.ensemble._jit.knapsack import tally
from flipcert.flips._jit.ladder import highest

# Columns: classes, costs of changing the winner, and whether rounding could change them.
WINNER, LOWER_COST, UPPER_COST, BLACKBOX_COST, RUNNER_UP, TARGET, SENSITIVE, N_COLUMNS = range(8)


@compiled
def blackbox_cost(votes, can_turn, counts, first, limit):
    """Flips that change the winner if one flip turns any voter that can be turned, and who overtakes then (or -1)."""
    turnable = zero_integers(counts.size)
    all_turnable = 0
    for i in range(votes.size):
        turnable[votes[i]] += can_turn[i]
        all_turnable += can_turn[i]
    best, target = limit, -1
    for c in range(counts.size):
        if c == first:
            continue
        need = counts[first] - counts[c] + (1 if first < c else 0)
        twice = min(turnable[first], (need + 1) // 2)  # voters turned from the first to c
        once = max(need - 2 * twice, 0)
        if once <= all_turnable - turnable[first] - turnable[c] and twice + once < best:
            best, target = twice + once, c
    return best, target


@compiled
def blackbox_rows(votes, can_turn, n_classes, limit, table):
    """Outcome of each row if a flip may turn any voter."""
    for t in range(votes.shape[0]):
        counts, first = tally(votes[t], n_classes)
        cost, target = blackbox_cost(votes[t], can_turn, counts, first, limit)
        counts[first] = -1
        table[t, WINNER] = first
        table[t, LOWER_COST] = table[t, BLACKBOX_COST] = cost
        table[t, UPPER_COST] = limit
        table[t, TARGET] = target
        table[t, RUNNER_UP] = highest(counts)

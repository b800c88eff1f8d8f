"""Exact radii from bounds on the costs of votes: only costs that the cheapest change of a vote uses are solved."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from flipcert.ensemble._jit.knapsack import plan_rows
from flipcert.ensemble.votes.ballots import Ballots
from flipcert.ensemble.votes.radius import change_costs
from flipcert.exceptions import UnsolvedError


def close_plans(ballots: Ballots, solve: Callable[[int, int, int], int]) -> None:
    """Solve costs until the cheapest change of every row by lower costs is one of exact costs.

    ``solve(row, voter, target)`` is the exact cost of turning a voter; what it cannot solve stays a bound.
    """
    _, lower, _ = change_costs(ballots.votes, ballots.lower)
    _, upper, _ = change_costs(ballots.votes, ballots.upper)
    for t in np.flatnonzero(lower < np.minimum(upper, ballots.unreachable)).tolist():
        unsolved: set[tuple[int, int]] = set()
        while used := _bounds_in_use(ballots, t) - unsolved:
            for i, target in used:
                try:
                    cost = solve(t, i, target)
                except UnsolvedError:
                    unsolved.add((i, target))
                else:
                    ballots.lower[t, i, target] = ballots.upper[t, i, target] = cost


def _bounds_in_use(ballots: Ballots, t: int) -> set[tuple[int, int]]:
    """Voters that the cheapest change of a row turns, and to what, where the cost of that is not known exactly."""
    votes, lower, upper = (own[t : t + 1] for own in (ballots.votes, ballots.lower, ballots.upper))
    winner, cost, overtaker = change_costs(votes, lower)
    if cost[0] >= ballots.unreachable:
        return set()
    plan, after = np.empty_like(votes), np.empty(1, np.int64)
    plan_rows(votes, lower, winner, overtaker, np.zeros(1, np.int64), plan, after)
    turned = np.flatnonzero(plan[0] != votes[0]).tolist()
    return {(i, int(plan[0, i])) for i in turned if lower[0, i, plan[0, i]] < upper[0, i, plan[0, i]]}

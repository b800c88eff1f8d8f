"""Radius of an ensemble of label-linear classifiers, row by row. Compiled.

The cheapest change of a vote uses few of its N * K costs, so few need to be known well. A *survey* takes for every
voter and class the flips that lift the class above the one voted for: a lower bound, and the smallest of them is the
exact cost of leaving that class. The cheapest change under these bounds is a plan. Costs that it uses are then settled,
which may raise them and lead to another plan. A plan of exact costs is the exact answer; all others may stay bounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flipcert.engine._jit.room import (
    first_smallest,
    room_for_doubles,
    room_for_integers,
    zero_doubles,
)
from flipcert.engine.jit import compiled
from flipcert.ensemble._jit.ballot import UNSETTLED, Ballot, VoterColumns, ballot_of, labels_of
from flipcert.ensemble._jit.knapsack import BEYOND, LEAVES, new_tables, overtake, overtake_cost, tally
from flipcert.ensemble._jit.outcome import (
    BLACKBOX_COST,
    LOWER_COST,
    N_COLUMNS,
    RUNNER_UP,
    SENSITIVE,
    TARGET,
    UPPER_COST,
    WINNER,
    blackbox_cost,
)
from flipcert.flips._jit.blocks import change_row, predict_row, reach_row, rival_row
from flipcert.flips._jit.ladder import UNDECIDED, Ladder, highest

# Rows that are surveyed together: few enough for their weights and costs to stay in the cache.
TOGETHER = 8


def certify_rows(
    weights: Any, voters: VoterColumns, tolerance: Any, ladder: Ladder, ballots: Ballot, outcome: Any, undecided: Any
) -> None:
    """Outcome of each row of a block; rows that doubles cannot decide are marked.

    ``tolerance`` is by how much rounding could have moved the sums of each row and voter.
    """
    stuck = np.empty(len(weights), np.int64)
    _survey_and_settle(weights, voters, tolerance, ladder, ballots, outcome, stuck, True, True)
    undecided[:] = stuck >= 0


def survey(weights: Any, voters: VoterColumns, tolerance: Any, ladder: Ladder, ballots: Ballot) -> None:
    """Votes on a few rows and lower bounds on all costs; UNDECIDED as the vote where doubles do not tell."""
    nothing = np.empty((0, N_COLUMNS), np.int64), np.empty(0, np.int64)
    _survey_and_settle(weights, voters, tolerance, ladder, ballots, *nothing, True, False)


def settle(row: Any, voters: VoterColumns, ladder: Ladder, ballot: Ballot, outcome: Any) -> int:
    """Outcome of one row, given its survey. Returns -1, or a voter that doubles cannot decide."""
    one = {name: getattr(ballot, name)[None] for name in ("votes", "lower", "upper", "away", "unsteady")}
    stuck = np.empty(1, np.int64)
    _survey_and_settle(
        row[None], voters, np.empty((0, 0)), ladder, ballot._replace(**one), outcome[None], stuck, False, True
    )
    return int(stuck[0])


_ballot_of = compiled(ballot_of)


@compiled
def _survey_and_settle(weights, voters, tolerance, ladder, ballots, outcome, stuck, surveying, settling):
    """All that is done with rows, behind one door: each other one would be compiled with all that is behind it."""
    for begin in range(0, weights.shape[0], TOGETHER):
        end = min(begin + TOGETHER, weights.shape[0])
        if surveying:
            _survey(weights[begin:end], voters, tolerance[begin:end], ladder, ballots)
        if settling:
            for t in range(begin, end):
                stuck[t] = _settle(weights[t], voters, ladder, _ballot_of(ballots, t - begin), outcome[t])


@compiled
def vote_rows(weights, voters, ladder, votes):
    """Votes on each row of a block; UNDECIDED where doubles do not tell."""
    n_classes = voters.n_classes
    offset, scores = zero_doubles(n_classes), room_for_doubles(n_classes)
    for t in range(weights.shape[0]):
        for i in range(voters.bounds.size - 1):
            row = weights[t][voters.bounds[i] : voters.bounds[i + 1]]
            votes[t, i] = predict_row(row, labels_of(voters, i), offset, scores, ladder)


@compiled
def _survey(weights, voters, tolerance, ladder, ballots):
    n_classes = voters.n_classes
    offset, scores, margin = zero_doubles(n_classes), room_for_doubles(n_classes), room_for_doubles(n_classes)
    cost = room_for_integers(n_classes)
    for i in range(voters.bounds.size - 1):
        begin, end = voters.bounds[i], voters.bounds[i + 1]
        labels = labels_of(voters, i)
        for t in range(weights.shape[0]):
            first, lead = rival_row(
                weights[t][begin:end], labels, offset, end - begin + 1, ladder, scores, cost, margin
            )
            ballots.votes[t, i] = first
            away = voters.limit
            firm = tolerance[t, i] if tolerance[t, i] > 0 else -1.0
            for c in range(n_classes):
                price = cost[c] if cost[c] <= end - begin else voters.limit
                ballots.lower[t, c, i] = price
                ballots.upper[t, c, i] = UNSETTLED
                ballots.unsteady[t, c, i] = (lead if c == first else margin[c]) <= firm
                if c != first:
                    away = min(away, price)
            ballots.away[t, i] = away


@compiled
def _settle(row, voters, ladder, ballot, outcome):
    for i in range(ballot.votes.size):
        if ballot.votes[i] == UNDECIDED:
            return i
    n_classes = voters.n_classes
    counts, first = tally(ballot.votes, n_classes)
    fewest = room_for_integers(n_classes)
    tables = new_tables()
    _start_from(ballot.price, ballot.lower)
    target, voter = _cheapest_plan(row, voters, ladder, ballot, counts, first, fewest, tables, ballot.lower)
    if voter >= 0:
        return voter
    outcome[LOWER_COST] = outcome[UPPER_COST] = min(fewest[target], voters.limit)
    if outcome[LOWER_COST] < voters.limit and _is_open(ballot, target):
        # Now as an attacker: what is settled costs what its attack costs, and only what is settled counts.
        for c in range(n_classes):
            for i in range(ballot.votes.size):
                if ballot.upper[c, i] != UNSETTLED:
                    ballot.price[c, i] = ballot.upper[c, i]
        target, voter = _cheapest_plan(row, voters, ladder, ballot, counts, first, fewest, tables, ballot.upper)
        if voter >= 0:
            return voter
        outcome[UPPER_COST] = min(fewest[target], voters.limit)
    outcome[WINNER] = first
    outcome[BLACKBOX_COST], _ = blackbox_cost(ballot.votes, voters.can_turn, counts, first, voters.limit)
    outcome[TARGET] = -1
    if outcome[LOWER_COST] < voters.limit:
        outcome[TARGET] = target
        if outcome[UPPER_COST] < voters.limit:
            outcome[TARGET], voter = _winner_after_plan(row, voters, ladder, ballot, counts, target)
            if voter >= 0:
                return voter
    outcome[SENSITIVE] = _is_sensitive(ballot, counts, first, fewest, tables, voters.limit)
    counts[first] = -1
    outcome[RUNNER_UP] = highest(counts)
    return -1


@compiled
def _cheapest_plan(row, voters, ladder, ballot, counts, first, fewest, tables, bound):
    """Cheapest change of the vote at ``ballot.price``, left in ``ballot.plan``, with all that it uses settled.

    A cost that is settled has its price in ``bound``, the lower bounds or, for an attacker, the upper ones.
    Returns the class that overtakes the first, and -1, or a voter that doubles cannot decide. ``fewest`` gets what each
    class costs; settling moves only costs of the class in question, so the others need not be computed again.
    """
    votes, price, plan = ballot.votes, ballot.price, ballot.plan
    fewest[first] = BEYOND
    for c in range(voters.n_classes):
        if c != first:
            fewest[c] = overtake_cost(votes, price[c], ballot.away, counts, first, c, tables)
    while True:
        target = first_smallest(fewest)
        if fewest[target] >= voters.limit:
            return target, -1
        overtake(votes, price[target], ballot.away, counts, first, target, plan)
        moved = False
        for i in range(votes.size):
            if plan[i] == target and votes[i] != target and ballot.upper[target, i] == UNSETTLED:
                if not _settle_cost(row, voters, ladder, ballot, i, target):
                    return target, i
                moved |= bound[target, i] != price[target, i]
                price[target, i] = bound[target, i]
        if not moved:
            return target, -1
        fewest[target] = overtake_cost(votes, price[target], ballot.away, counts, first, target, tables)


@compiled
def _settle_cost(row, voters, ladder, ballot, i, target):
    """Best bounds on turning voter i to ``target``; False if doubles cannot decide them."""
    begin, end = voters.bounds[i], voters.bounds[i + 1]
    scores = room_for_doubles(voters.n_classes)
    lower, upper = reach_row(
        row[begin:end], labels_of(voters, i), zero_doubles(voters.n_classes), target, end - begin + 1, ladder, scores
    )
    if lower == UNDECIDED:
        return False
    if lower > ballot.lower[target, i]:
        ballot.lower[target, i] = lower if lower <= end - begin else voters.limit
    ballot.upper[target, i] = upper if upper <= end - begin else voters.limit
    return True


@compiled
def _start_from(price, lower):
    """Copy; numba would compile its words on arrays of two shapes with an assignment, for long."""
    for c in range(lower.shape[0]):
        for i in range(lower.shape[1]):
            price[c, i] = lower[c, i]


@compiled
def plan_below(row, voters, ladder, ballot):
    """Leave in ``ballot.plan`` the cheapest change under the lower bounds, all settled; return who overtakes."""
    counts, first = tally(ballot.votes, voters.n_classes)
    _start_from(ballot.price, ballot.lower)
    fewest = room_for_integers(voters.n_classes)
    target, _ = _cheapest_plan(row, voters, ladder, ballot, counts, first, fewest, new_tables(), ballot.lower)
    return target


@compiled
def _is_open(ballot, target):
    """Whether the plan uses a cost that is not exact."""
    for i in range(ballot.votes.size):
        if ballot.plan[i] == target and ballot.votes[i] != target and ballot.lower[target, i] < ballot.upper[target, i]:
            return True
    return False


@compiled
def _winner_after_plan(row, voters, ladder, ballot, counts, target):
    """Who wins once the plan is carried out: mostly the target, but voters that leave may go to a stronger class.

    Who leaves goes to a class that costs no more than leaving. Where that is not unique, and matters, the attack tells.
    Returns the class and -1, or a voter that doubles cannot decide.
    """
    n_classes = voters.n_classes
    after, possible = room_for_integers(n_classes), room_for_integers(n_classes)
    for c in range(n_classes):
        after[c] = possible[c] = counts[c]
    for i in range(ballot.votes.size):
        vote = ballot.votes[i]
        if ballot.plan[i] == vote:
            continue
        after[vote] -= 1
        possible[vote] -= 1
        if ballot.plan[i] != LEAVES:
            after[target] += 1
            continue
        for c in range(n_classes):
            if c != vote and c != target and ballot.lower[c, i] == ballot.away[i]:
                possible[c] += 1
    behind = True
    for c in range(n_classes):
        behind &= c == target or after[target] > possible[c] or (after[target] == possible[c] and target < c)
    if behind:
        return target, -1
    scores = room_for_doubles(n_classes)
    for i in range(ballot.votes.size):
        if ballot.plan[i] == LEAVES:
            begin, end = voters.bounds[i], voters.bounds[i + 1]
            to = -1
            for c in range(n_classes):
                if c != ballot.votes[i] and ballot.upper[c, i] == ballot.away[i]:
                    to = c
            if to < 0:
                own, no_offset = row[begin:end], zero_doubles(n_classes)
                to = change_row(own, labels_of(voters, i), no_offset, own.size + 1, ladder, scores)
            if to < 0:
                return target, i
            after[to] += 1
    return highest(after), -1


@compiled
def _is_sensitive(ballot, counts, first, fewest, tables, limit):
    """Whether the radius would move if every cost that rounding could move did, by one either way."""
    votes, lower, unsteady, price = ballot.votes, ballot.lower, ballot.unsteady, ballot.price
    any_cost = False
    for i in range(votes.size):
        if unsteady[votes[i], i]:
            return 1
    for c in range(lower.shape[0]):
        for i in range(votes.size):
            any_cost |= unsteady[c, i]
    if not any_cost:
        return 0
    away, cheapest = room_for_integers(votes.size), room_for_integers(2)
    for turn in range(2):
        for i in range(votes.size):
            away[i] = limit
        for c in range(lower.shape[0]):
            for i in range(votes.size):
                cost = lower[c, i]
                if unsteady[c, i] and cost < limit:
                    cost = cost + 1 if turn else max(cost - 1, 1)
                price[c, i] = cost
                if c != votes[i]:
                    away[i] = min(away[i], cost)
        fewest[first] = BEYOND
        for c in range(lower.shape[0]):
            if c != first:
                fewest[c] = overtake_cost(votes, price[c], away, counts, first, c, tables)
        cheapest[turn] = min(fewest[first_smallest(fewest)], limit)
    return 1 if cheapest[0] != cheapest[1] else 0

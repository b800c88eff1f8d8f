"""Elections whose units reach several voters, against every change that they can make."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from flipcert.ensemble.votes.election import MostVotes, RunOff
from flipcert.ensemble.votes.radius import blackbox_radius, ensemble_radius
from flipcert.ensemble.votes.reach import Reach
from tests.helpers.election_oracle import fewest_to_each_class, most_votes, published_run_off, run_off

LIMIT = 99


def made_up(rng, n_classes, n_voters):
    """Rankings that agree here and there, and units of one voter, of voters in a circle, or of any."""
    usual = rng.permutation(n_classes)
    rankings = [usual if rng.random() < 0.5 else rng.permutation(n_classes) for _ in range(n_voters)]
    kind = rng.integers(3)
    if kind == 0:
        units = [[i] for i in range(n_voters)]
    elif kind == 1:
        shifts = rng.permutation(n_voters)[:2]
        units = [sorted({int(h + s) % n_voters for s in shifts}) for h in range(n_voters)]
    else:
        units = [sorted(set(rng.integers(0, n_voters, 2).tolist())) for _ in range(n_voters)]
    # What is trusted is no unit.
    units = [unit for unit in units if rng.random() < 0.9]
    return [own.tolist() for own in rankings], units


def reach_of(units):
    return Reach.of([np.array(unit, np.int64) for unit in units])


@pytest.mark.parametrize("seed", range(60))
def test_no_change_by_fewer_units_makes_a_class_win(seed):
    rng = np.random.default_rng(seed)
    n_classes = int(rng.integers(2, 4))
    rankings, units = made_up(rng, n_classes, int(rng.integers(1, 5)))
    table = np.array([rankings])
    for election, elect, votes in ((RunOff(), run_off, table), (MostVotes(), most_votes, table[:, :, 0])):
        standings = election.standings(votes, n_classes, reach_of(units), LIMIT, every=True)
        winner = elect(rankings, n_classes)
        assert standings.winner[0] == winner == election.scores(votes, n_classes)[0].argmax()
        known = fewest_to_each_class(elect, rankings, n_classes, units, LIMIT)
        assert (standings.costs[0] <= known).all()
        assert standings.cheapest[0] >= 1
        quick = election.standings(votes, n_classes, reach_of(units), LIMIT)
        assert quick.cheapest[0] == standings.cheapest[0] <= min(np.delete(known, winner))


def test_nearly_all_of_these_costs_are_met():
    met = 0
    for seed in range(60):
        rng = np.random.default_rng(1000 + seed)
        rankings, units = made_up(rng, 3, 4)
        found = RunOff().standings(np.array([rankings]), 3, reach_of(units), LIMIT).cheapest[0]
        known = fewest_to_each_class(run_off, rankings, 3, units, LIMIT)
        met += found == min(np.delete(known, run_off(rankings, 3)))
    assert met >= 55


@pytest.mark.parametrize("seed", range(40))
def test_run_offs_of_many_classes_are_certified_as_published(seed):
    rng = np.random.default_rng(seed)
    n_classes, n_voters = int(rng.integers(2, 8)), int(rng.integers(1, 40))
    rankings, units = made_up(rng, n_classes, n_voters)
    found = RunOff().standings(np.array([rankings]), n_classes, reach_of(units), LIMIT)
    assert found.cheapest[0] == published_run_off(rankings, n_classes, units, LIMIT)
    every = RunOff().standings(np.array([rankings]), n_classes, reach_of(units), LIMIT, every=True)
    assert every.cheapest[0] == found.cheapest[0]


def test_voters_that_share_nothing_vote_as_ever():
    rng = np.random.default_rng(0)
    votes = rng.integers(0, 4, (300, 9))
    standings = MostVotes().standings(votes, 4, reach_of([[i] for i in range(9)]), LIMIT)
    np.testing.assert_array_equal(standings.cheapest - 1, blackbox_radius(votes, 4))


def test_a_run_off_of_two_classes_is_a_majority_vote():
    rng = np.random.default_rng(1)
    first = rng.integers(0, 2, (200, 7))
    rankings = np.stack([first, 1 - first], axis=2)
    reach = reach_of([[i] for i in range(7)])
    run, most = RunOff().standings(rankings, 2, reach, LIMIT), MostVotes().standings(first, 2, reach, LIMIT)
    np.testing.assert_array_equal(run.winner, most.winner)
    np.testing.assert_array_equal(run.costs, most.costs)
    costs = rng.integers(1, 6, (200, 7, 2))
    np.put_along_axis(costs, first[:, :, None], 0, axis=2)
    by_costs = RunOff().standings_by_costs(rankings, costs, costs, reach, LIMIT)
    np.testing.assert_array_equal(by_costs.cheapest - 1, ensemble_radius(first, costs, n_labels=LIMIT - 1))


def test_a_gap_that_is_closed_already_is_no_reason_to_prove_more():
    """Class 1 is ahead of the winner as it is, and its voter may leave it: clipped at zero, the sum would be wrong."""
    for seed in range(300):
        rng = np.random.default_rng(seed)
        rankings, units = made_up(rng, 3, 3)
        winner = run_off(rankings, 3)
        first = [own[0] for own in rankings]
        if any(first.count(c) > first.count(winner) for c in range(3)):
            found = RunOff().standings(np.array([rankings]), 3, reach_of(units), LIMIT).cheapest[0]
            assert found <= min(np.delete(fewest_to_each_class(run_off, rankings, 3, units, LIMIT), winner))


@cache
def steps(i, j):
    """Voters that close two gaps, each of which closes two of one and one of the other."""
    if i <= 0 and j <= 0:
        return 0
    return 1 + min(steps(max(i - 2, 0), max(j - 1, 0)), steps(max(i - 1, 0), max(j - 2, 0)))


def test_two_gaps_have_a_closed_form():
    for i in range(60):
        for j in range(60):
            assert steps(i, j) == max(-(-i // 2), -(-j // 2), -(-(i + j) // 3))


def test_costs_of_voters_prove_no_less_than_their_rankings():
    rng = np.random.default_rng(3)
    rankings = np.array([[rng.permutation(4) for _ in range(8)] for _ in range(100)])
    reach = reach_of([[i] for i in range(8)])
    costs = rng.integers(1, 5, (100, 8, 4))
    np.put_along_axis(costs, rankings[:, :, :1], 0, axis=2)
    plain = RunOff().standings(rankings, 4, reach, LIMIT, every=True)
    ones = np.minimum(costs, 1)
    same = RunOff().standings_by_costs(rankings, ones, np.ones_like(costs), reach, LIMIT, every=True)
    np.testing.assert_array_equal(same.costs, plain.costs)
    more = RunOff().standings_by_costs(rankings, costs, np.full_like(costs, 2), reach, LIMIT, every=True)
    assert (more.costs >= plain.costs).all()
    assert (more.costs > plain.costs).any()


def test_classes_that_nobody_can_lift_are_out_of_reach():
    standings = RunOff().standings(np.array([[[0, 1, 2]] * 3]), 3, reach_of([]), LIMIT)
    assert standings.cheapest[0] == LIMIT
    assert standings.target[0] == -1

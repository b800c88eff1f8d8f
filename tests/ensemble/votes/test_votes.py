"""Radii of votes against brute force, the paper's dynamic program and its integer program."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import flipcert
from flipcert.ensemble._jit.knapsack import plan_rows
from flipcert.ensemble._jit.winning import reach_lower, reach_upper
from flipcert.ensemble.votes.integer_program import exact_reach
from flipcert.ensemble.votes.radius import change_costs
from tests.helpers.oracles import (
    brute_force_reach,
    dynamic_program_radius,
    integer_program_radius,
    vote_winner,
)
from tests.helpers.strategies import vote_problems


@settings(max_examples=500)
@given(vote_problems())
def test_brute_force(problem):
    votes, costs, n_classes = problem
    truth = brute_force_reach(votes, costs, n_classes)
    winner = vote_winner(votes, n_classes)
    cheapest = min(cost for c, cost in enumerate(truth) if c != winner)
    assert flipcert.ensemble_radius(votes[None], costs[None])[0] == cheapest - 1

    _, cost, target = change_costs(votes[None], costs[None])
    plans, after = np.empty((1, votes.size), np.int64), np.empty(1, np.int64)
    plan_rows(votes[None], costs[None], np.array([winner]), target, np.array([0]), plans, after)
    assert vote_winner(plans[0], n_classes) == after[0] != winner
    assert sum(costs[i, c] for i, c in enumerate(plans[0]) if c != votes[i]) == cost[0] == cheapest

    for c in range(n_classes):
        lower, upper = reach_lower(votes, costs, c), reach_upper(votes, costs, c)
        assert lower <= truth[c] <= upper
        assert exact_reach(votes, costs, c, int(lower), int(upper), 10.0) == truth[c]


@settings(max_examples=300)
@given(vote_problems())
def test_all_costs_one_is_the_black_box(problem):
    votes, costs, n_classes = problem
    blackbox = flipcert.blackbox_radius(votes[None], n_classes)
    assert np.array_equal(flipcert.ensemble_radius(votes[None], np.ones((1, *costs.shape), int)), blackbox)
    assert flipcert.ensemble_radius(votes[None], np.maximum(costs, 1)[None])[0] >= blackbox[0]


def larger_problem(rng):
    n_classes = int(rng.integers(2, 11))
    n_voters = int(rng.integers(10, 120))
    votes = np.where(rng.random(n_voters) < rng.random(), rng.integers(n_classes), rng.integers(0, n_classes, n_voters))
    costs = rng.integers(1, int(rng.choice([1, 2, 3, 10, 200, 400, 3000])) + 1, (n_voters, n_classes))
    return votes, costs, n_classes


def test_dynamic_program_on_larger_votes():
    rng = np.random.default_rng(0)
    for _ in range(600):
        votes, costs, n_classes = larger_problem(rng)
        assert flipcert.ensemble_radius(votes[None], costs[None])[0] == dynamic_program_radius(
            votes.tolist(), costs.tolist(), n_classes
        )


def test_integer_program():
    rng = np.random.default_rng(1)
    for _ in range(25):
        votes, costs, n_classes = larger_problem(rng)
        votes, costs = votes[:30], costs[:30]
        assert flipcert.ensemble_radius(votes[None], costs[None])[0] == integer_program_radius(votes, costs, n_classes)


def test_unreachable_saturates():
    votes = np.zeros((1, 5), int)
    costs = np.full((1, 5, 3), 8)
    assert flipcert.ensemble_radius(votes, costs, n_labels=7).tolist() == [7]
    assert flipcert.ensemble_radius(votes, costs, n_labels=100).tolist() == [23]
    costs[:, :, 1] = 10**15
    assert flipcert.ensemble_radius(votes, costs, n_labels=20).tolist() == [20]


def test_unreachable_may_be_any_large_number():
    votes = [[0, 0, 1]]
    for large in (2**62, 2**63 - 1):
        costs = np.array([[[0, large], [0, 3], [2, 0]]])
        assert flipcert.ensemble_radius(votes, costs, n_labels=10).tolist() == [2]
    assert flipcert.ensemble_radius(votes, costs.astype(np.uint64) + 5, n_labels=10).tolist() == [10 - 3]
    assert flipcert.ensemble_radius([[0]], [[[0, 1e19]]], n_labels=10).tolist() == [10]


def test_own_vote_is_not_read():
    votes = np.array([[0, 0, 1]])
    costs = np.array([[[0, 3], [0, 4], [2, 0]]])
    marked = costs.copy()
    marked[0, [0, 1, 2], votes[0]] = 99
    assert np.array_equal(flipcert.ensemble_radius(votes, costs), flipcert.ensemble_radius(votes, marked))


def test_no_rows():
    assert flipcert.ensemble_radius(np.empty((0, 3), int), np.empty((0, 3, 2), int)).shape == (0,)
    assert flipcert.blackbox_radius(np.empty((0, 3), int), 2).shape == (0,)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: flipcert.ensemble_radius([[0, 2]], np.ones((1, 2, 2), int)), "votes must be at most 1; got 2"),
        (lambda: flipcert.ensemble_radius([[0, 1]], np.ones((1, 3, 2), int)), "votes has shape"),
        (lambda: flipcert.ensemble_radius([[0, 1]], np.ones((2, 2), int)), "costs must be of 3 dimensions"),
        (lambda: flipcert.ensemble_radius([[0, 1]], -np.ones((1, 2, 2), int)), "costs must be at least 0; got -1"),
        (lambda: flipcert.ensemble_radius([[0, 1]], np.full((1, 2, 2), 0.5)), "costs must hold whole numbers"),
        (lambda: flipcert.ensemble_radius([[0, 1]], np.full((1, 2, 2), np.nan)), "costs must hold whole numbers"),
        (lambda: flipcert.ensemble_radius([[0, 1]], np.ones((1, 2, 2), int), 3), "n_classes=3, but costs has 2"),
        (lambda: flipcert.ensemble_radius([[0, 0]], np.ones((1, 2, 1), int)), "at least two classes"),
        (lambda: flipcert.ensemble_radius([[0, 1]], np.full((1, 2, 2), 2**61)), "say what is unreachable"),
        (lambda: flipcert.ensemble_radius([[0] * 9], np.full((1, 9, 2), 2**61), n_labels=2**61), "too large to add up"),
        (lambda: flipcert.ensemble_radius([[0]], [[[0.0, 1.5]]]), "costs must hold whole numbers; got 1.5"),
        (lambda: flipcert.ensemble_radius([[0]], [[["a", "b"]]]), "costs must hold whole numbers; got 'a'"),
        (lambda: flipcert.ensemble_radius([[0, 1]], np.ones((1, 2, 2), int), n_labels=0), "n_labels must be at least"),
        (lambda: flipcert.blackbox_radius([[0, 1]], 1), "n_classes must be at least 2; got 1"),
        (lambda: flipcert.blackbox_radius([0, 1], 2), "votes must be of 2 dimensions"),
        (lambda: flipcert.blackbox_radius([[]], 2), "at least one voter"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()

"""The baseline of the benchmarks is the published method: it agrees with the compiled version of it, and on votes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import flipcert
from benchmarks import published, published_loops
from benchmarks.dynamic_program import dynamic_program_radii
from tests.helpers.oracles import brute_force_costs, dynamic_program_radius
from tests.helpers.strategies import vote_problems

ATTACKS = (published.upper_cost, published_loops.upper_cost)


def upper_costs(attack, weights, labels, n_classes):
    return [attack(weights, labels, n_classes, c) for c in range(n_classes)]


def random_row(rng, signed):
    n_classes = int(rng.integers(2, 7))
    n = int(rng.integers(1, 60))
    weights = rng.normal(size=n) if signed else rng.gamma(2.0, size=n)
    labels = rng.integers(0, rng.integers(1, n_classes + 1), n)
    return weights, labels, n_classes


@pytest.mark.parametrize("signed", [False, True])
def test_costs_agree_with_the_compiled_published_method(signed):
    rng = np.random.default_rng(0)
    for _ in range(300):
        weights, labels, n_classes = random_row(rng, signed)
        lower, upper = (
            flipcert.flip_costs(weights[None], labels, n_classes, bound=bound, method="published")[0]
            for bound in ("lower", "upper")
        )
        assert published.lower_costs(weights, labels, n_classes).tolist() == lower.tolist()
        for attack in ATTACKS:
            assert upper_costs(attack, weights, labels, n_classes) == upper.tolist()


def test_ties_go_to_the_smaller_class():
    # Whole numbers, so that sums are exact and ties are real.
    rng = np.random.default_rng(1)
    for _ in range(300):
        _, labels, n_classes = random_row(rng, signed=True)
        weights = rng.integers(-3, 4, labels.size).astype(float)
        lower = flipcert.flip_costs(weights[None], labels, n_classes, bound="lower", method="published")[0]
        assert published.lower_costs(weights, labels, n_classes).tolist() == lower.tolist()


def test_bounds_enclose_brute_force():
    rng = np.random.default_rng(2)
    for _ in range(100):
        weights = rng.integers(-3, 4, 6).astype(float)
        labels = rng.integers(0, 3, 6)
        truth = brute_force_costs(weights, labels, 3)
        assert np.all(published.lower_costs(weights, labels, 3) <= truth)
        for attack in ATTACKS:
            assert np.all(upper_costs(attack, weights, labels, 3) >= truth)
        leader = truth.argmin()
        assert published.stand_alone(weights, labels, 3) == (leader, *[min(np.delete(truth, leader)) - 1] * 2)


@pytest.mark.parametrize(
    ("weights", "labels", "lower", "upper"),
    [
        # No labelling reaches class 1.
        ([0.0, 0.0], [0, 0], [0, 3], [0, 3]),
        # Flipping the one label helps class 1, but the greedy attack has no use for a negative weight of a third class.
        ([-1.0], [2], [0, 1, 1], [0, 2, 2]),
    ],
)
def test_loops_end_where_no_flip_helps(weights, labels, lower, upper):
    row = np.array(weights), np.array(labels), len(lower)
    assert published.lower_costs(*row).tolist() == lower
    for attack in ATTACKS:
        assert upper_costs(attack, *row) == upper


@settings(max_examples=300)
@given(vote_problems())
def test_votes_agree(problem):
    votes, costs, n_classes = problem
    radius = flipcert.ensemble_radius(votes[None], costs[None], n_labels=100)[0]
    for solve in (published.knapsack, published_loops.knapsack):
        assert published.vote_radius(votes, costs, 100, solve) == radius
    assert dynamic_program_radii(votes[None], costs[None], 101)[0] == radius
    assert min(dynamic_program_radius(votes.tolist(), costs.tolist(), n_classes), 100) == radius


def test_larger_votes_agree():
    rng = np.random.default_rng(3)
    for _ in range(50):
        n_voters, n_classes = int(rng.integers(10, 150)), int(rng.integers(2, 11))
        votes = np.where(rng.random(n_voters) < 0.6, 1, rng.integers(0, n_classes, n_voters))[None]
        costs = rng.integers(1, 9, (1, n_voters, n_classes))
        radius = flipcert.ensemble_radius(votes, costs, n_labels=10_000)
        for solve in (published.knapsack, published_loops.knapsack):
            assert published.vote_radius(votes[0], costs[0], 10_000, solve) == radius[0]
        assert dynamic_program_radii(votes, costs, 10_001).tolist() == radius.tolist()


@pytest.mark.parametrize("signed", [False, True])
def test_whole_ensembles_agree(blobs, signed):
    X_train, y_train, X_test, _ = blobs
    shift = 0.0 if signed else 10.0
    model = flipcert.PartitionEnsemble(flipcert.KernelSVM("linear"), n_partitions=5).fit(X_train + shift, y_train)
    certificates = model.certify(X_test + shift)
    members = [np.flatnonzero(model.partition_ == i) for i in range(5)]
    for t, row in enumerate(X_test + shift):
        weights = [(X_train[m] + shift) @ row for m in members]
        published_one = published.certify_sample(weights, [y_train[m] for m in members], 3, y_train.size)
        assert published_one.prediction == certificates.prediction[t]
        assert published_one.radius <= certificates.radius[t]
        assert certificates.radius_upper[t] <= published_one.radius_upper

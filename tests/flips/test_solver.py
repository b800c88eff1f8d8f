"""Integer programs and exhaustive search for what the bounds leave open."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from scipy.optimize import Bounds, LinearConstraint, milp

import flipcert
from flipcert.flips import search, solver
from flipcert.flips.costs import cost_block
from flipcert.flips.rows import IntegerRow
from flipcert.labels.labels import Labels
from tests.helpers.oracles import brute_force_costs, exact_winner
from tests.helpers.strategies import label_problems


@settings(max_examples=120)
@given(label_problems())
# What HiGHS 1.8, the one of scipy before 1.17.1, is wrong about: it flips the label of next to no weight as well.
@example((np.array([1.0, 2.0**-24]), np.array([0, 0]), 2, None))
@example((np.array([0.5, 2.0**-26, 2.0**-27]), np.array([1, 0, 1]), 2, None))
def test_program_equals_brute_force(problem):
    """The solver alone, without the quick search before it and without knowing a bound."""
    weights, codes, n_classes, offset = problem
    labels = Labels.of(codes, n_classes)
    row = IntegerRow(weights, labels, np.zeros(n_classes) if offset is None else offset)
    truth = brute_force_costs(weights, codes, n_classes, offset)
    for target in range(n_classes):
        if target == row.prediction:
            continue
        bound, attack = solver._Program(row, target).solve(1, labels.unreachable, np.inf)
        assert bound <= truth[target]
        if attack is not None:
            assert exact_winner(weights, attack.apply(codes), n_classes, offset) == target
            assert len(attack) >= truth[target]


@pytest.mark.parametrize("seed", range(6))
def test_program_and_search_agree_on_rows_of_both_signs(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    n_classes = 4
    codes = rng.integers(0, n_classes, 24)
    weights = rng.normal(size=(3, 24))
    searched = flipcert.flip_costs(weights, codes, n_classes, bound="exact")
    monkeypatch.setattr(solver, "_FEW_SAMPLES", 0)
    programmed = flipcert.flip_costs(weights, codes, n_classes, bound="exact")
    assert np.array_equal(searched, programmed)
    for target in range(n_classes):
        for row, cost, witness in zip(
            weights,
            programmed[:, target],
            flipcert.cheapest_flips(weights, codes, n_classes, target=target, bound="exact"),
            strict=True,
        ):
            assert len(witness) == cost
            assert exact_winner(row, witness.apply(codes), n_classes) == target


def test_badly_scaled_rows_go_to_the_search():
    """Tiny weights decide, far below what a solver in floats can see."""
    weights = np.array([1e12, -1e12, 3e-9, -2e-9, 1e-9, 1.0])
    codes = np.array([0, 1, 1, 2, 2, 0])
    exact = flipcert.flip_costs(weights[None], codes, 3, bound="exact")[0]
    assert np.array_equal(exact, brute_force_costs(weights, codes, 3))


def test_out_of_time_is_an_error_that_says_so():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 6, 300)
    # Too large to be added up in doubles: integers take over, which know neither mixtures nor the search near them.
    weights = (rng.normal(size=(20, 300)) + 0.5 * (codes == 0)) * 2.0**1014
    open_rows = (
        flipcert.flip_costs(weights, codes, 6, bound="lower") < flipcert.flip_costs(weights, codes, 6, bound="upper")
    ).any(axis=1)
    assert open_rows.any()
    with pytest.raises(flipcert.UnsolvedError, match=r"not proven within time_limit=1e-06 s \(it is between"):
        flipcert.flip_costs(weights[open_rows], codes, 6, bound="exact", time_limit=1e-6)


def test_search_gives_up_beyond_its_depth():
    row = IntegerRow(np.ones(1200), Labels.of(np.zeros(1200, np.int64), 2), np.zeros(2))
    with pytest.raises(search.OutOfBudget):
        search.find_attack(row, 1, 601, 700)


def test_equal_weights_in_large_pools():
    """Flips of equal samples share a variable; how many there are must not narrow what the program allows."""
    codes = np.repeat([0, 1, 3], [18, 25, 46])
    weights = np.full((1, 89), -3.0)
    offset = np.array([[69.0, 84.0, -7.0, 63.0]])
    exact = flipcert.flip_costs(weights, codes, 4, bound="exact", offset=offset)
    assert exact[0, 2] == 14
    (witness,) = flipcert.cheapest_flips(weights, codes, 4, target=2, bound="exact", offset=offset)
    assert len(witness) == 14
    assert exact_winner(weights[0], witness.apply(codes), 4, offset[0]) == 2


@pytest.mark.parametrize("seed", range(8))
def test_programs_of_grouped_weights(seed, monkeypatch):
    """Few different weights, many samples each, against an integer program of one variable for every sample."""
    rng = np.random.default_rng(seed)
    n_classes = int(rng.integers(3, 5))
    n = int(rng.integers(20, 50))
    codes = rng.integers(0, n_classes, n)
    weights = rng.choice([-3.0, -1.0, 2.0], n)
    offset = rng.integers(-20, 60, n_classes).astype(float)
    monkeypatch.setattr(solver, "_FEW_SAMPLES", 0)
    exact = flipcert.flip_costs(weights[None], codes, n_classes, bound="exact", offset=offset[None])[0]
    for target in range(n_classes):
        assert exact[target] == sample_program(weights, codes, n_classes, offset, target)


@pytest.mark.parametrize("seed", range(10))
def test_bounds_of_mixed_rows_hold(seed):
    """Mixtures of rivals and all attacks, between which the exact cost must lie."""
    rng = np.random.default_rng(seed)
    n_classes = int(rng.integers(3, 6))
    n = int(rng.integers(20, 60))
    codes = rng.integers(0, n_classes, n)
    scale = int(rng.choice([5, 50, 2000]))
    weights = rng.integers(-scale, scale + 1, n) + (codes == 0) * float(rng.integers(0, scale))
    offset = rng.integers(-scale, scale + 1, n_classes) * float(rng.choice([0, 3]))
    costs = cost_block(weights[None], Labels.of(codes, n_classes), offset[None])
    rivals_only = flipcert.flip_costs(weights[None], codes, n_classes, offset=offset[None])
    assert (costs.lower >= rivals_only).all()
    for target in range(n_classes):
        exact = sample_program(weights, codes, n_classes, offset, target)
        assert costs.lower[0, target] <= exact <= costs.upper[0, target]


def test_mixtures_beat_single_rivals():
    """Three strong rivals at once cost more than the strongest of them."""
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(4), 30)
    weights = rng.normal(size=(30, 120)) + 0.5 * (codes < 3)
    rivals = flipcert.flip_costs(weights, codes, 4, bound="lower")
    costs = cost_block(weights, Labels.of(codes, 4), np.zeros((30, 4)))
    assert (costs.lower[:, 3] > rivals[:, 3]).mean() > 0.5
    assert (costs.lower == costs.upper).mean() > 0.8


def sample_program(weights, codes, n_classes, offset, target):
    """Fewest flips to the target, with one variable for each sample and class; whole numbers, so no tolerance bites."""
    n = len(weights)
    keep = np.zeros((n, n_classes))
    keep[np.arange(n), codes] = 1
    one_label = np.kron(np.eye(n), np.ones(n_classes))
    leads, least = [], []
    for q in range(n_classes):
        if q != target:
            row = np.zeros((n, n_classes))
            row[:, target] += weights
            row[:, q] -= weights
            leads.append(row.ravel())
            least.append(offset[q] - offset[target] + (1 if q < target else 0))
    result = milp(
        1 - keep.ravel(), integrality=np.ones(n * n_classes), bounds=Bounds(0, 1),
        constraints=[LinearConstraint(one_label, 1, 1), LinearConstraint(np.array(leads), least, np.inf)],
        options={"mip_rel_gap": 0},
    )  # fmt: skip
    return n + 1 if result.status == 2 else round(result.fun)


def test_equal_weights_are_small_numbers_to_the_program():
    """A tenth is a large integer times a power of two; a row of nothing else is a row of ones."""
    codes = np.random.default_rng(0).integers(0, 6, 300)
    tenths = flipcert.flip_costs(np.full((1, 300), -0.1), codes, 6, bound="exact")
    assert np.array_equal(tenths, flipcert.flip_costs(np.full((1, 300), -1.0), codes, 6, bound="exact"))

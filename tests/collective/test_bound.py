"""The bound itself: coefficients from their definition, any shares, and the linear program that proposes them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import flipcert
from flipcert.collective.cuts import cuts_of
from flipcert.collective.effects import Columns
from flipcert.collective.label_effects import LabelEffects
from flipcert.collective.master import solve_master
from flipcert.collective.points import LinearPoints
from flipcert.collective.search import Search
from flipcert.engine.clock import working_time
from tests.helpers.collective_oracle import most_changed, naive_coefficients


def effects_of(X, y, points, classes=(0, 1, 2), trusted=None):
    model = flipcert.KernelRidge("linear", reg=0.3, classes=classes).fit(X, y, trusted=trusted)
    linear, rows = model._asked(points)
    return model, LabelEffects(LinearPoints(linear, rows, np.arange(rows.shape[0])))


@pytest.mark.parametrize("theta", [0.0, 0.5, 0.8])
@pytest.mark.parametrize("classes", [None, (0, 1, 2)])
def test_coefficients_are_what_relabellings_close_of_the_gaps(theta, classes):
    rng = np.random.default_rng(5)
    X, points, y, budget = rng.normal(size=(12, 3)), rng.normal(size=(6, 3)), np.arange(12) % 3, 5
    _, effects = effects_of(X, y, points, classes)
    unit, option = np.repeat(np.arange(12), 3), np.tile(np.arange(3), 12)
    real = option != y[unit]
    columns = Columns(unit[real], option[real])
    active = effects.costs <= budget
    cuts = cuts_of(np.arange(6), effects.gaps, active, budget, np.full(6, theta), [np.empty(0, np.int64)] * 6)
    weights = effects.seen(np.arange(12))._weights
    found = effects.seen(np.arange(12)).coefficients(cuts, columns)
    prices = effects.prices([(cuts, np.ones(6))])[0]
    predicted = np.array([row.argmax() for row in weights @ np.eye(3)[y]])
    for t in range(6):
        gaps = {c: effects.gaps[t, c] for c in range(3) if active[t, c]}
        naive = naive_coefficients(
            weights[t], y, predicted[t], columns.option, columns.unit, gaps, budget, theta,
            4 if active[t, 3] else None,
        )  # fmt: skip
        np.testing.assert_allclose(found[t], naive, rtol=1e-9)
    np.testing.assert_allclose(prices[columns.unit, columns.option], found.sum(axis=0), rtol=1e-9)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_any_shares_of_any_cuts_prove_something_true(seed):
    rng = np.random.default_rng(seed)
    n, n_points, budget = 6, 4, int(rng.integers(1, 3))
    X, points = (rng.integers(-2, 3, (size, 2)).astype(float) for size in (n, n_points))
    y = np.concatenate([[0, 1, 2], rng.integers(0, 3, n - 3)])
    classes = None if seed % 2 else (0, 1, 2)
    X[0] = (1.0, 2.0)
    model, effects = effects_of(X, y, points, classes)
    radius = model.certify(points).radius
    threatened = np.flatnonzero(radius < budget)
    if threatened.size == 0:
        return
    truth = most_changed(model, X, y, points, np.ones(n_points, bool), budget)
    search = Search(effects, budget, threatened)
    for _ in range(3):
        shares = rng.random(search.cuts.point.size) ** 2
        shares /= np.maximum(1.0, np.bincount(search.cuts.point, shares, n_points))[search.cuts.point]
        search.shares = np.floor(shares * 2**20) / 2**20
        search.hears(effects.prices([(search.cuts, search.shares)])[0])
        assert truth <= search.at_most
        # Units that are left out of cuts, whichever they are.
        seen = effects.seen(np.arange(n))
        out = np.sort(rng.permutation(n)[:2])
        active = effects.costs[threatened] <= budget
        closed = np.where(active, [seen.most(t, out).sum(axis=0) for t in threatened], 0.0)
        cuts = cuts_of(
            threatened, effects.gaps[threatened], active, budget, np.zeros(threatened.size), [out] * threatened.size,
            closed,
        )  # fmt: skip
        kept = np.all(~active | (closed < 0.9 * effects.gaps[threatened]), axis=1)
        search.cuts = search.cuts.joined(cuts.only(kept))


def test_the_program_on_few_columns_is_solved():
    rng = np.random.default_rng(1)
    for _ in range(40):
        n_points, each = int(rng.integers(1, 20)), int(rng.integers(1, 4))
        n, budget = int(rng.integers(1, 60)), int(rng.integers(1, 8))
        point, unit = np.repeat(np.arange(n_points), each), np.sort(rng.integers(0, n, n))
        matrix = rng.random((point.size, n)) * (rng.random((point.size, n)) < 0.4) * rng.choice([0.2, 0.5, 1.0])
        solution = solve_master(matrix, point, unit, np.ones(n_points), budget, 1e-4, working_time() + 60, np.ones(n))
        of_points = np.eye(n_points)[point]
        left = np.block(
            [
                [-matrix, of_points],
                [np.ones((1, n)), np.zeros((1, n_points))],
                [np.eye(n)[unit].T, np.zeros((n, n_points))],
            ]
        )
        right = np.concatenate([np.zeros(point.size), [budget], np.ones(n)])
        upper = [(0, None)] * n + [(0, 1)] * n_points
        best = linprog(np.concatenate([np.zeros(n), -np.ones(n_points)]), left, right, bounds=upper)
        assert solution.value == pytest.approx(-best.fun, rel=2e-3, abs=2e-3)


def test_a_program_without_time_is_cut_short():
    matrix, point = np.ones((3, 4)), np.arange(3)
    solution = solve_master(matrix, point, np.arange(4), np.ones(3), 2, 1e-6, working_time() - 1.0, np.ones(4))
    assert np.all(solution.shares >= 0.0)

"""Attacks told apart: whatever is assumed of them, what is proven holds for all attacks of that kind."""

import itertools

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits

import flipcert
from flipcert.collective.branches import Branch, lowered
from flipcert.collective.label_effects import LabelEffects
from flipcert.collective.points import LinearPoints
from flipcert.collective.search import Search
from flipcert.engine.clock import working_time

N = 6


def all_attacks(model, X, y, points, budget, trusted):
    """Every attack, through fit and predict: what it makes of which labels, and which points it changes."""
    before = clone(model).fit(X, y).predict(points)
    for touched in itertools.combinations(np.flatnonzero(~trusted), budget):
        for labels in itertools.product(range(3), repeat=budget):
            flipped = y.copy()
            flipped[list(touched)] = labels
            choices = {(i, new) for i, new in zip(touched, labels, strict=True) if y[i] != new}
            yield choices, clone(model).fit(X, flipped).predict(points) != before


def drawn(seed):
    """A search on a tiny model, and all attacks; whole numbers, where ties are and rows that are twice, or any."""
    rng = np.random.default_rng(seed)
    X, points = rng.normal(size=(N, 2)), rng.normal(size=(6, 2))
    if seed % 2:
        X, points = rng.integers(-2, 3, (N, 2)).astype(float), rng.integers(-2, 3, (6, 2)).astype(float)
        X[0], points[5] = (1.0, 2.0), points[0]
    y = np.concatenate([[0, 1, 2], rng.integers(0, 3, N - 3)])
    trusted = rng.random(N) < 0.2 if seed % 3 == 0 else np.zeros(N, bool)
    trusted &= np.arange(N) > 2
    model = flipcert.KernelRidge("linear", reg=0.3, classes=None if seed % 5 == 0 else (0, 1, 2))
    model.fit(X, y, trusted=trusted)
    budget = 2
    threatened = np.flatnonzero(model.certify(points).radius < budget)
    linear, rows = model._asked(points)
    effects = LabelEffects(LinearPoints(linear, rows, np.arange(6)))
    return searched(effects, budget, threatened), list(all_attacks(model, X, y, points, budget, trusted))


def searched(effects, budget, threatened):
    """A search that has come to its end."""
    search = Search(effects, budget, threatened)
    while not search.finished:
        search.hears(effects.prices([(search.cuts, search.shares)])[0])
        search.goes_on(working_time() + 60.0)
    return search


@pytest.mark.parametrize("seed", range(12))
def test_what_is_assumed_of_attacks_proves_nothing_that_is_wrong_of_them(seed):
    search, attacks = drawn(seed)
    if not Branch.begins(search):
        return
    rng, deadline = np.random.default_rng(seed), working_time() + 60.0
    most = max(int(changed.sum()) for _, changed in attacks)
    for _ in range(6):
        # Attacks on no more than the target are of no interest to any of the branches.
        target = int(rng.integers(0, most + 1))
        branch, kind = Branch(search), [own for own in attacks if own[1].sum() > target]
        for _ in range(4):
            proven = branch.proves(target, deadline)
            assert all(changed.sum() <= branch.at_most for _, changed in kind)
            if proven:
                assert not kind
                break
            if branch._barred is not None:
                barred = {(int(i), int(new)) for i, new in np.argwhere(branch._barred)}
                assert not any(choices & barred for choices, _ in kind)
            place, yes = int(rng.integers(branch._points.size)), bool(rng.random() < 0.5)
            if rng.random() < 0.5:
                point = branch._points[place]
                if branch._weight[place] > 1.0:
                    continue
                kind = [(choices, changed) for choices, changed in kind if changed[point] == yes]
                branch = branch._with(place) if yes else branch._without(place)
            else:
                unit = int(rng.integers(N))
                if unit in branch._touched or branch._touched.size == branch.budget:
                    continue
                kind = [own for own in kind if (unit in {i for i, _ in own[0]}) == yes]
                branch = branch._touching(unit) if yes else branch._not_touching(unit)
            if branch._points.size == 0:
                break


@pytest.mark.parametrize("seed", range(30, 50))
def test_no_attack_changes_more_than_was_proven_of_all_kinds(seed):
    search, attacks = drawn(seed)
    before, most = search.at_most, max(int(changed.sum()) for _, changed in attacks)
    told = list(lowered(search, working_time() + 60.0))
    assert told == list(range(before - 1, search.at_most - 1, -1))
    assert most <= search.at_most


def test_attacks_on_no_point_that_is_left_change_none():
    search = next(own for own in (drawn(seed)[0] for seed in range(12)) if Branch.begins(own))
    branch = Branch(search)
    for _ in range(search.n_points):
        branch = branch._without(0)
    assert branch.proves(0, working_time() + 60.0)


@pytest.fixture(scope="module")
def digits_search():
    X, y = load_digits(return_X_y=True)
    model = flipcert.KernelRidge("linear", reg=10.0).fit(X[:600] / 16, y[:600])
    points, budget = X[600:760] / 16, 2
    certificates = model.certify(points)
    linear, rows = model._asked(points)
    threatened = np.flatnonzero((certificates.radius < budget) & certificates.correct(y[600:760]))
    effects = LabelEffects(LinearPoints(linear, rows, np.arange(160)))
    return searched(effects, budget, threatened)


def test_without_time_nothing_more_is_proven(digits_search):
    assert digits_search.at_most == 7
    assert list(lowered(digits_search, working_time() - 1.0)) == []


def test_attacks_told_apart_prove_fewer_and_end_where_the_program_decides_everything(digits_search):
    # An attack on 6 points is known.
    assert list(lowered(digits_search, working_time() + 60.0)) == [6]

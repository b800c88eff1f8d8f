"""Attacks on many points at once, against all attacks there are on tiny problems."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flipcert
from flipcert.collective._jit.exchange import slopes
from flipcert.collective.attack import find_attack
from flipcert.collective.every_attack import EveryAttack
from flipcert.collective.points import LinearPoints
from flipcert.engine.clock import working_time
from flipcert.labels.labels import Labels
from flipcert.results.witness import Witness
from tests.helpers.results import digits
from tests.helpers.strategies import FAMILIES


class Points:
    """Points with given weights, as ``LinearPoints`` are to a search."""

    def __init__(self, weights, labels, offset=0.0):
        self.weights, self.labels, self.offset = weights, labels, offset
        self.n_points = len(weights)
        self.scores = self.scores_of(labels.codes)
        self.prediction = self.scores.argmax(axis=1)

    def scores_of(self, codes):
        return self.offset + self.weights @ np.eye(self.labels.n_classes)[codes]

    def columns(self, samples):
        return self.weights[:, samples].astype(float)

    def pull(self, slopes):
        return self.weights.T @ slopes

    def changed(self, codes):
        """How many points change, the slow way."""
        scores = self.scores_of(codes)
        if not self.labels.space_is_fixed:
            there = np.bincount(codes, minlength=self.labels.n_classes) > 0
            if np.count_nonzero(there) < 2:
                return 0
            scores[:, ~there] = -np.inf
        return int(np.count_nonzero(scores.argmax(axis=1) != self.prediction))


def most(points, budget):
    """The most points that any attack changes, over all attacks."""
    labels = points.labels
    able = np.flatnonzero(labels.coded.movable)
    best = 0
    for flips in range(1, min(budget, able.size) + 1):
        for samples in itertools.combinations(able.tolist(), flips):
            for to in itertools.product(range(labels.n_classes), repeat=flips):
                codes = labels.codes.copy()
                codes[list(samples)] = to
                best = max(best, points.changed(codes))
    return best


def tiny(seed, **kind):
    """Weights that are small integers in every third problem, so that there are ties."""
    random = np.random.RandomState(seed)
    n, n_points = random.randint(4, 8), random.randint(1, 7)
    weights = random.randint(-3, 4, (n_points, n)).astype(float) if seed % 3 == 0 else random.randn(n_points, n)
    codes = np.r_[0, 1, 2, random.randint(3, size=n - 3)]
    if kind.pop("trusted", False):
        kind["trusted"] = random.rand(n) < 0.3
    return Points(weights, Labels.of(codes, 3, **kind), random.randn(3) * (seed % 2))


def count_of(points, attack, budget):
    """How many points an attack changes; it is one that can be made."""
    if attack is None:
        return 0
    labels = points.labels
    assert 0 < len(attack) <= budget
    assert np.unique(attack.indices).size == len(attack)
    assert labels.coded.movable[attack.indices].all()
    assert (attack.labels != labels.codes[attack.indices]).all()
    return points.changed(attack.apply(labels.codes))


KINDS = pytest.mark.parametrize(
    "kind", [{}, {"trusted": True}, {"space_is_fixed": False}], ids=["all", "trusted", "open"]
)


@KINDS
def test_no_attack_is_better_where_all_are_tried(kind):
    for seed in range(60):
        points, budget = tiny(seed, **kind), 1 + seed % 3
        found = count_of(points, find_attack(points, budget, working_time() + 60.0, seed=seed), budget)
        assert found == most(points, budget)


@KINDS
def test_hardly_any_attack_is_better_where_they_are_searched(kind, monkeypatch):
    """Exchanges alone; a class that loses its last label and gets another is beyond them."""
    monkeypatch.setattr(EveryAttack, "takes_too_long", lambda _: True)
    monkeypatch.setattr("flipcert.collective.attack._ROUNDS_IN_VAIN", 1)
    monkeypatch.setattr("flipcert.collective.attack._ROUNDS_IN_VAIN_EMPTIED", 1)
    worse = 0
    for seed in range(60):
        points, budget = tiny(seed, **kind), 1 + seed % 3
        found = count_of(points, find_attack(points, budget, working_time() + 60.0, seed=seed), budget)
        truth = most(points, budget)
        assert found <= truth
        worse += found < truth
    assert worse <= 2


@settings(max_examples=60)
@given(st.data())
def test_strange_weights_neither_fail_nor_count_twice(data):
    numbers = FAMILIES[data.draw(st.sampled_from(sorted(FAMILIES)))]
    n, n_points, budget = (data.draw(st.integers(low, high)) for low, high in ((3, 8), (1, 4), (1, 4)))
    rows = st.lists(numbers, min_size=n, max_size=n)
    weights = np.array(data.draw(st.lists(rows, min_size=n_points, max_size=n_points)), float)
    with np.errstate(all="ignore"):
        points = Points(weights, Labels.of(np.arange(n) % 3, 3, space_is_fixed=data.draw(st.booleans())))
        attack = find_attack(points, budget, working_time() + data.draw(st.sampled_from([0.02, 0.1])))
        count_of(points, attack, budget)


def test_scores_that_overflow_on_the_way_end_no_search():
    """Both classes at infinity: there is no lead, and no slope of it."""
    most = 1.7e308
    with np.errstate(all="ignore"):
        points = Points(np.array([[most] * 4, [most, most, most, -most]]), Labels.of(np.arange(4) % 3, 3))
        count_of(points, find_attack(points, 4, working_time() + 0.05), 4)
    scores, out = np.array([[np.inf, 1.0], [np.inf, 0.5], [0.0, 0.0]]), np.full((3, 2), np.nan)
    slopes(scores, np.zeros(2, np.int64), np.ones(2), np.ones(2), 1.0, out)
    assert out[:, 0].tolist() == [0.0, 0.0, 0.0]
    assert out[0, 1] < 0 < out[1, 1]
    scores[:, 0], scale = (np.inf, 1.0, 1.0), np.array([np.inf, 1.0])
    slopes(scores, np.ones(2, np.int64), scale, np.ones(2), 1.0, out)
    assert np.isfinite(out[:, 0]).all()


def test_an_attack_without_flips_is_none():
    points = Points(np.array([[0.0, 0.0, np.finfo(float).max]]), Labels.of(np.arange(3), 3))
    with np.errstate(all="ignore"):
        count_of(points, find_attack(points, 1, working_time() + 5.0), 1)


@pytest.fixture(scope="module")
def ridge_points():
    """Correct points of a ridge model on digits."""
    X_train, y_train, X_test, y_test = digits()
    model = flipcert.KernelRidge(kernel="linear", reg=10.0).fit(X_train, y_train)
    X_test = np.ascontiguousarray(X_test)
    points = LinearPoints(model.label_linear_, X_test, np.arange(y_test.size))
    return LinearPoints(model.label_linear_, X_test, np.flatnonzero(points.prediction == y_test))


def test_a_shared_budget_changes_several_digits(ridge_points):
    weights = ridge_points.columns(np.arange(ridge_points.labels.n_labels))
    points = Points(weights, ridge_points.labels)
    counts = []
    for budget in (2, 4, 8):
        attack = find_attack(ridge_points, budget, working_time() + 2.0)
        counts.append(count_of(points, attack, budget))
    threatened = [int(np.count_nonzero(_least(ridge_points) <= budget)) for budget in (2, 4, 8)]
    assert 2 <= counts[0] < counts[1] < counts[2]
    assert (np.array(counts) <= threatened).all()


def _least(points):
    costs = points.costs.copy()
    costs[np.arange(points.n_points), points.prediction] = points.labels.unreachable
    return costs.min(axis=1)


def test_attacks_to_begin_with_are_never_made_worse(ridge_points):
    weights = ridge_points.columns(np.arange(ridge_points.labels.n_labels))
    points = Points(weights, ridge_points.labels)
    good = find_attack(ridge_points, 6, working_time() + 2.0)
    again = find_attack(ridge_points, 6, working_time() + 0.1, starts=[Witness.of([]), good], seed=1)
    assert count_of(points, again, 6) >= count_of(points, good, 6) > 0


@pytest.mark.parametrize("patience", [0.0, 1.0], ids=["chosen once", "chosen anew"])
def test_few_candidates_suffice(ridge_points, monkeypatch, patience):
    """As where there are too many samples to look at each; an attack to begin with is of none of them."""
    for name, value in (("_CANDIDATES", 30), ("_CANDIDATES_PER_FLIP", 4), ("_RENEWING", patience)):
        monkeypatch.setattr(f"flipcert.collective.exchange.{name}", value)
    labels = ridge_points.labels
    points = Points(ridge_points.columns(np.arange(labels.n_labels)), labels)
    idle = np.abs(points.weights).sum(axis=0).argsort()[:6]
    start = Witness.of([(int(sample), int((labels.codes[sample] + 1) % 10)) for sample in idle])
    attack = find_attack(ridge_points, 6, working_time() + 1.5, starts=[start])
    assert count_of(points, attack, 6) >= 5


def test_flips_that_cannot_be_made_are_left_out_of_what_is_given():
    trusted = np.array([True, False, False, False, False])
    points = Points(np.ones((1, 5)), Labels.of(np.array([0, 0, 0, 1, 1]), 2, trusted))
    start = Witness.of([(0, 1), (1, 0), (1, 1), (1, 1), (2, 1)])
    attack = find_attack(points, 1, working_time() - 1.0, starts=[start])
    assert (attack.indices.tolist(), attack.labels.tolist()) == ([1], [1])


def test_no_flip_is_idle_and_the_strongest_comes_first():
    weights = np.array([[1.0, 1.0, 8.0, 1.0, 1.0, 4.0], [0.1, 0.1, 9.0, 0.1, 0.1, 4.0]])
    points = Points(weights, Labels.of(np.array([0, 0, 0, 0, 1, 1]), 2))
    attack = find_attack(points, 4, working_time() + 5.0)
    assert (attack.indices.tolist(), attack.labels.tolist()) == ([2], [1])


@pytest.mark.parametrize("late", [0.0, 0.2])
def test_who_is_late_answers_at_once(ridge_points, late):
    find_attack(ridge_points, 3, working_time() + 0.5)  # compiles
    begin = working_time()
    find_attack(ridge_points, 30, begin + late)
    assert working_time() - begin < late + 2.0


def test_no_budget_and_no_points_have_no_attack(ridge_points):
    nobody = Points(np.empty((0, 3)), Labels.of(np.array([0, 1, 0]), 2))
    assert find_attack(nobody, 2, working_time() + 1.0) is None
    assert find_attack(ridge_points, 0, working_time() + 1.0) is None


def test_enough_is_enough(ridge_points):
    begin = working_time()
    assert find_attack(ridge_points, 8, begin + 100.0, enough=2) is not None
    assert working_time() - begin < 50.0

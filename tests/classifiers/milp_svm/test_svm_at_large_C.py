"""Kernel SVMs far above the small-C regime: fits that stall, machines in fractions, attacks that ``fit`` accepts."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import flipcert
from flipcert.classifiers.milp_svm import machine as svm_machine
from flipcert.classifiers.milp_svm.machine import Machine


def exact_weight(x, is_in, C):
    """Minimiser of ``w**2 / 2 + C * sum of max(0, 1 - y x w)`` for numbers x: a kink, or where a piece is flat."""
    pulls = [Fraction(v) if own else -Fraction(v) for v, own in zip(x.tolist(), is_in, strict=True)]
    C = Fraction(C)
    kinks = sorted({1 / pull for pull in pulls if pull})
    between = [(low + high) / 2 for low, high in itertools.pairwise([*kinks[:1], *kinks, *kinks[-1:]])]
    outside = [kinks[0] - 1, kinks[-1] + 1] if kinks else [Fraction(0)]
    flat = [C * sum(pull for pull in pulls if pull * w < 1) for w in between + outside]

    def objective(w):
        return w * w / 2 + C * sum(max(Fraction(0), 1 - pull * w) for pull in pulls)

    return min(kinks + flat, key=objective)


def exact_costs(x, codes, n_classes, points, C):
    """Fewest flips to each class over all labellings, in fractions."""
    sets = itertools.product([False, True], repeat=x.size)
    weights = {is_in: exact_weight(x, is_in, C) for is_in in sets}
    best = np.full((points.size, n_classes), x.size + 1)
    for labelling in itertools.product(range(n_classes), repeat=x.size):
        own = [weights[tuple(c == label for label in labelling)] for c in range(n_classes)]
        flips = int((np.array(labelling) != codes).sum())
        for t, point in enumerate(points.tolist()):
            scores = [w * Fraction(point) for w in own]
            winner = scores.index(max(scores))
            best[t, winner] = min(best[t, winner], flips)
    return best


def replay(model, X, y, points):
    """Each witness, through ``fit`` with the same arguments: the promised class is predicted."""
    certificates = model.certify(points)
    for t, witness in enumerate(model.worst_flips(points)):
        if witness is None:
            assert certificates.radius_upper[t] == len(y)
            continue
        assert len(witness) == certificates.radius_upper[t] + 1
        after = clone(model).fit(X, witness.apply(y)).predict(points[t : t + 1])[0]
        assert after == certificates.target[t] != certificates.prediction[t]
    return certificates


@st.composite
def lines(draw):
    """Points on a line, often equal, opposite or zero."""
    n_classes = draw(st.sampled_from([2, 2, 3]))
    n = draw(st.integers(3, {2: 6, 3: 4}[n_classes]))
    number = st.one_of(st.integers(-3, 3).map(float), st.integers(-(10**9), 10**9).map(lambda v: v / 2e8))
    x = np.array(draw(st.lists(number, min_size=n, max_size=n)))
    y = np.array(draw(st.lists(st.integers(0, n_classes - 1), min_size=n, max_size=n)))
    points = np.array(draw(st.lists(number, min_size=2, max_size=2)))
    return x, y, n_classes, points, 10.0 ** draw(st.floats(-2, 3))


@settings(max_examples=60)
@given(lines())
@example((np.array([3.31845232, -3.8201384, -1.46318141]), np.array([1, 0, 1]), 2, np.array([1.0, -2.0]), 692.83))
def test_certificates_against_fractions(line):
    x, y, n_classes, points, C = line
    truth = exact_costs(x, y, n_classes, points, C)
    model = flipcert.MilpSVM("linear", C=C, classes=range(n_classes)).fit(x[:, None], y)
    certificates = replay(model, x[:, None], y, points[:, None])
    lower, upper = (model.flip_costs(points[:, None], bound) for bound in ("lower", "upper"))
    for t in range(points.size):
        if certificates.prediction[t] != truth[t].argmin():
            # A tie of real numbers, which rounding decided.
            assert certificates.rounding_sensitive[t]
            assert certificates.radius[t] == 0
            continue
        radius = min(np.sort(truth[t])[1] - 1, y.size)
        assert certificates.radius[t] <= radius <= certificates.radius_upper[t]
        assert (lower[t] <= truth[t]).all()
        assert (truth[t] <= upper[t]).all()


def test_certificates_against_all_fits():
    """Planes and curved kernels, duplicates, dependent points: what any labelling makes of ``fit`` and ``predict``."""
    rng = np.random.default_rng(1)
    n_exact = 0
    for trial in range(12):
        n_classes, n = (3, 4) if trial % 4 == 3 else (2, 5)
        X, y = 3 * rng.normal(size=(n, 2)), rng.integers(0, n_classes, n)
        X[0] = X[trial % n]
        points = 3 * rng.normal(size=(2, 2))
        kernel = "rbf" if trial % 3 == 2 else "linear"
        model = flipcert.MilpSVM(kernel, C=10 ** rng.uniform(0.5, 3), classes=range(n_classes), n_jobs=1).fit(X, y)
        certificates = replay(model, X, y, points)
        truth = np.full((2, n_classes), n + 1)
        for labelling in itertools.product(range(n_classes), repeat=n):
            after = clone(model).fit(X, labelling).predict(points)
            flips = int((np.array(labelling) != y).sum())
            truth[[0, 1], after] = np.minimum(truth[[0, 1], after], flips)
        radius = np.minimum(np.sort(truth, axis=1)[:, 1] - 1, n)
        assert (certificates.radius <= radius).all()
        assert (radius <= certificates.radius_upper).all()
        n_exact += int(certificates.exact.sum())
    assert n_exact >= 20


def test_a_flip_whose_refit_stalls_is_not_overlooked():
    """Once certified to withstand one flip, as exact: the refit of the flip that breaks it had not been solved."""
    X = [[-4.18, -4.0], [-3.29, -1.56], [-3.29, -1.56], [-1.22, -4.37], [0.95, -5.53], [1.47, 0.37], [-2.81, 5.23]]
    X, y = np.array([*X, [0.05, -4.15], [1.47, 0.37]]), np.array([0, 0, 0, 1, 0, 0, 0, 0, 0])
    model = flipcert.MilpSVM("linear", C=965.4, classes=[0, 1]).fit(X, y)
    certificates = replay(model, X, y, np.array([[2.6, 0.1]]))
    assert certificates.prediction.tolist() == [1]
    assert certificates.radius.tolist() == certificates.radius_upper.tolist() == [0]


def test_lines_are_solved():
    """Where coordinate descent alone creeps along, or no bound on the duals is reached in the end."""
    x, y = np.array([3.31845232, -3.8201384, -1.46318141]), np.array([1, 0, 1])
    rng = np.random.default_rng(3)
    for trial in range(80):
        C = 692.83 if trial == 0 else 10 ** rng.uniform(-1, 4)
        model = flipcert.MilpSVM("linear", C=C, classes=[0, 1], n_jobs=1).fit(x[:, None], y)
        weight = float(exact_weight(x, y == 1, C))
        assert model.decision_function([[1.0]])[0] == pytest.approx(weight, rel=1e-4, abs=1e-6)
        n = rng.integers(2, 9)
        x, y = rng.choice([rng.normal(), 0.0, 2.0, rng.normal()], n) * 4, rng.integers(0, 2, n)


@pytest.mark.parametrize("n", [3, 10, 40])
@pytest.mark.parametrize("kind", ["dependent", "duplicates", "zeros", "scales", "curved"])
def test_machines_are_solved(n, kind):
    rng = np.random.default_rng(n)
    for C in (1.0, 100.0, 1e4):
        X, signs = rng.normal(size=(n, 2)), rng.choice([-1.0, 1.0], n)
        if kind == "duplicates":
            X = X[rng.integers(0, n // 2 + 1, n)]
        elif kind == "zeros":
            X[::2] = 0.0
        elif kind == "scales":
            X *= 10 ** rng.uniform(-3, 1, size=(n, 1))
        kernel = C * (np.exp(-((X[:, None] - X) ** 2).sum(axis=2)) if kind == "curved" else X @ X.T)
        machine = Machine.fit(kernel, signs)
        assert machine.is_solved
        # The two objectives, as anyone would write them down.
        coefficients = machine.duals * signs
        size = coefficients @ kernel @ coefficients
        primal = size / 2 + np.maximum(1 - signs * (kernel @ coefficients), 0).sum()
        assert primal - (machine.duals.sum() - size / 2) == pytest.approx(0, abs=1e-6)
        assert ((machine.duals >= 0) & (machine.duals <= 1)).all()
        for i in range(min(n, 5)):
            assert machine.flipped(np.array([i])).is_solved


@pytest.mark.parametrize("n_classes", [2, 3])
def test_refits_that_are_not_solved_prove_and_attack_nothing(n_classes, monkeypatch):
    rng = np.random.default_rng(n_classes)
    for _ in range(12):
        X, y = 2 * rng.normal(size=(6, 2)), rng.integers(0, n_classes, 6)
        points = 2 * rng.normal(size=(3, 2))
        model = flipcert.MilpSVM("linear", C=50.0, classes=range(n_classes), n_jobs=1).fit(X, y)
        solved = model.certify(points)
        with monkeypatch.context() as patch:
            # A solver that gives up at once, and makes flips look harmless: duals of flipped points are 0.
            patch.setattr(svm_machine, "_attempts", lambda kernel, signs, start: iter([np.where(start < 1, start, 0)]))
            spoiled = model.certify(points)
            assert model.worst_flips(points) == [None] * 3
        assert (spoiled.radius_upper == 6).all()
        assert (spoiled.radius <= solved.radius_upper).all()


def test_a_kernel_that_is_not_quite_positive_semi_definite():
    kernel = np.array([[1.0, 1.0 + 1e-9, 0.5], [1.0 + 1e-9, 1.0, 0.5], [0.5, 0.5, 1.0]])
    assert np.linalg.eigvalsh(kernel)[0] < -1e-10
    model = flipcert.MilpSVM("precomputed", C=1e4, classes=[0, 1]).fit(kernel, [0, 1, 1])
    assert np.linalg.eigvalsh(model._machines[1].kernel)[0] > -1e-11
    replay(model, kernel, np.array([0, 1, 1]), kernel)


@pytest.mark.parametrize(
    ("C", "message"),
    [
        (1e15, r"the SVM with C=1e\+15 was not solved \(duality gap [0-9.e+]+\); rescale the features or"),
        (1e308, r"C=1e\+308 times the kernel \(row sums up to [0-9.e+]+\) overflowed; take a smaller C or rescale"),
    ],
)
def test_C_beyond_double_precision(C, message, blobs):
    X, y, _, _ = blobs
    with pytest.raises(ValueError, match=message):
        flipcert.MilpSVM("linear", C=C).fit(100 * X, y)

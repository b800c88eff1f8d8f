"""Kernel SVMs with any C: machines against a solver of another kind, certificates against all labellings."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from sklearn.base import clone

import flipcert
from flipcert.classifiers.milp_svm import point as svm_point
from flipcert.classifiers.milp_svm._jit.dual import score_ranges
from flipcert.classifiers.milp_svm.machine import Machine
from flipcert.classifiers.milp_svm.point import Point
from flipcert.kernels.base import as_kernel
from tests.helpers.models import votes_of


def plain_scores(kernel, codes, n_classes, rows, C):
    """Decision values of all classes by bounded least squares, a machine at a time."""
    scores = []
    for c in range(n_classes):
        y = np.where(codes == c, 1.0, -1.0)
        factor = np.linalg.cholesky(kernel * np.outer(y, y) + 1e-11 * np.eye(len(y)))
        target = np.linalg.solve(factor, np.ones(len(y)))
        duals = lsq_linear(factor.T, target, bounds=(0, C), method="bvls", tol=1e-14).x
        scores.append(rows @ (duals * y))
    return np.array(scores).T


def brute_force(model, X, y, points, trusted=None):
    """Fewest flips to each class over all labellings."""
    n_classes = model.classes_.size
    kernel, rows = (as_kernel(model.kernel)(left, X) for left in (X, points))
    best = np.full((len(points), n_classes), len(y) + 1)
    for codes in itertools.product(range(n_classes), repeat=len(y)):
        codes = np.array(codes)
        if trusted is not None and (codes != y)[trusted].any():
            continue
        winners = plain_scores(kernel, codes, n_classes, rows, model.C).argmax(axis=1)
        for t, c in enumerate(winners):
            best[t, c] = min(best[t, c], (codes != y).sum())
    return best


def problem(n, n_classes, kernel, ratio, seed):
    """A model at ``ratio`` times the largest small C."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    X = rng.normal(size=(n, 2)) + 0.7 * np.array([[1, 0], [0, 1], [-1, -1]])[y]
    points = rng.normal(size=(4, 2))
    model = flipcert.MilpSVM(kernel, classes=range(n_classes)).fit(X, y)
    return model.set_params(C=ratio * model.C_max_).fit(X, y), X, y, points


PATHS = {
    "all": {},
    "search": {"_solve": lambda self, target, rivals, lower, limit, deadline: (lower, False)},
    "program": {"_search": lambda self, target, rivals, lower, limit, deadline, nodes: (lower, False)},
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("n", "n_classes", "kernel", "ratio"),
    [
        (8, 2, "rbf", 1.5),
        (7, 2, "rbf", 12.0),
        (8, 2, "linear", 4.0),
        (5, 3, "rbf", 1.5),
        (5, 3, "rbf", 8.0),
        (5, 3, "linear", 2.0),
    ],
)
def test_costs_against_all_labellings(path, n, n_classes, kernel, ratio, monkeypatch):
    for name, replacement in PATHS[path].items():
        monkeypatch.setattr(Point, name, replacement)
    model, X, y, points = problem(n, n_classes, kernel, ratio, seed=n + n_classes)
    truth = brute_force(model, X, y, points)
    certificates = model.certify(points)
    assert np.array_equal(certificates.prediction, truth.argmin(axis=1))
    assert np.array_equal(certificates.radius, np.minimum(np.sort(truth, axis=1)[:, 1] - 1, n))
    assert certificates.exact.all()
    lower, exact, upper = (model.flip_costs(points, bound) for bound in ("lower", "exact", "upper"))
    assert np.array_equal(exact, truth)
    assert (lower <= truth).all()
    assert np.array_equal(upper, truth)
    # The first number of flips that is not certified has an attack.
    for t, witness in enumerate(model.worst_flips(points)):
        if certificates.radius[t] == n:
            assert witness is None
            continue
        assert len(witness) == certificates.radius[t] + 1
        after = clone(model).fit(X, witness.apply(y)).predict(points[t : t + 1])[0]
        assert after == certificates.target[t] != certificates.prediction[t]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_small_C_agrees_with_the_label_linear_machine(n_classes, monkeypatch):
    model, X, y, points = problem(14, n_classes, "rbf", 0.9, seed=3)
    assert model._is_small
    linear = flipcert.KernelSVM("rbf", classes=range(n_classes)).fit(X, y)
    exact = linear.certify(points)
    plain = model.certify(points)
    assert np.array_equal(plain.radius, exact.radius)
    assert plain.exact.all()
    assert np.array_equal(model.flip_costs(points, "exact"), linear.flip_costs(points, "exact"))
    scores = model.decision_function(points)
    # The programs know nothing of the regime; they must find the same.
    monkeypatch.setattr(svm_point, "_QUICK", 0)
    model._machines, model._is_small = model._fit_machines(X, model.C), False
    assert all(np.allclose(machine.duals, 1.0) for machine in model._machines.values())
    assert np.allclose(model.decision_function(points), scores)
    programs = model.certify(points)
    assert np.array_equal(programs.prediction, exact.prediction)
    assert np.array_equal(programs.radius, exact.radius)
    assert np.array_equal(programs.runner_up, exact.runner_up)
    assert programs.exact.all()


def test_ties_are_exact_in_the_small_C_regime():
    model = flipcert.MilpSVM("linear", C=0.1).fit([[1.0], [1.0], [1.0], [1.0]], [0, 0, 1, 1])
    assert model.predict([[1.0]]).tolist() == [0]
    assert model.certify([[1.0]]).radius.tolist() == [0]
    assert model.decision_function([[1.0]]).tolist() == [0.0]


@pytest.mark.parametrize("C", [0.05, 1.0, 50.0])
@pytest.mark.parametrize("n_features", [2, 40])
def test_machines_against_bounded_least_squares(C, n_features):
    rng = np.random.default_rng(n_features)
    for _ in range(5):
        X, y = rng.normal(size=(25, n_features)), rng.choice([-1.0, 1.0], 25)
        kernel = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / n_features)
        machine = Machine.fit(C * kernel, y)
        assert machine.is_solved
        plain = plain_scores(kernel, (y > 0).astype(int), 2, kernel, C)[:, 1]
        assert np.allclose(machine.scores, plain, atol=1e-6)
        flipped = machine.flipped(np.array([1, 7]))
        signs = y.copy()
        signs[[1, 7]] *= -1
        assert np.allclose(flipped.scores, Machine.fit(C * kernel, signs).scores, atol=1e-6)
    # Fewer features than samples: the duals are not unique, the scores are.
    X = rng.normal(size=(25, 2))
    machine = Machine.fit(C * X @ X.T, y)
    assert machine.is_solved


def test_scores_stay_in_their_ranges():
    rng = np.random.default_rng(1)
    for n_features, C in ((2, 0.3), (2, 5.0), (10, 1.0)):
        X, y = rng.normal(size=(12, n_features)), rng.choice([-1.0, 1.0], 12)
        machine = Machine.fit(C * X @ X.T, y)
        movable = rng.random(12) < 0.8
        for budget in (1, 2, 4):
            low, high = np.empty(12), np.empty(12)
            score_ranges(machine.kernel, y, machine.duals, machine.active, machine.scores, movable, budget, low, high)
            for _ in range(40):
                chosen = rng.permutation(np.flatnonzero(movable))[:budget]
                scores = machine.flipped(chosen).scores
                assert (scores >= low - 1e-6).all()
                assert (scores <= high + 1e-6).all()


def test_strong_convexity_bounds_all_costs():
    for n, n_classes, ratio in [(7, 2, 3.0), (7, 2, 30.0), (5, 3, 5.0)]:
        model, X, y, points = problem(n, n_classes, "rbf", ratio, seed=n)
        truth = brute_force(model, X, y, points)
        rows = model._kernel_rows(points)
        sizes, doubts = model._project(rows)
        assert (sizes <= model.C * (1 + 1e-6)).all()  # no longer than the point itself
        assert (doubts <= 1e-6).all()
        for t, row in enumerate(rows):
            point = Point(model._machines, model._labels, row, sizes[t], doubts[t])
            for c in range(n_classes):
                if c != point.prediction:
                    assert point.fewest(c, [q for q in range(n_classes) if q != c]) <= truth[t, c]


def test_out_of_time_is_honest(digits):
    X, y, X_test, y_test = digits
    some, few = (y == 3) | (y == 8), (y_test == 3) | (y_test == 8)
    X, y, X_test = X[some][:60], y[some][:60], X_test[few][:4]
    model = flipcert.MilpSVM(C=1.0, time_limit=1.0).fit(X, y)
    model.set_params(C=30 * model.C_max_, time_limit=0.3).fit(X, y)
    certificates = model.certify(X_test)
    assert (certificates.radius >= 0).all()
    assert (certificates.radius < certificates.radius_upper).any()
    assert not certificates.exact.all()
    for t, witness in enumerate(model.worst_flips(X_test)):
        if witness is not None:
            after = clone(model).fit(X, witness.apply(y)).predict(X_test[t : t + 1])[0]
            assert after != certificates.prediction[t]
    with pytest.raises(flipcert.UnsolvedError, match="take the two bounds, or raise time_limit"):
        model.flip_costs(X_test, bound="exact")


@pytest.mark.parametrize("n_classes", [2, 3])
def test_trusted_labels_against_all_labellings(n_classes):
    n = {2: 8, 3: 6}[n_classes]
    model, X, y, points = problem(n, n_classes, "rbf", 3.0, seed=5)
    trusted = np.arange(n) % 3 == 0
    model.fit(X, y, trusted=trusted)
    truth = brute_force(model, X, y, points, trusted)
    assert np.array_equal(model.flip_costs(points, "exact"), truth)
    assert np.array_equal(model.certify(points).radius, np.minimum(np.sort(truth, axis=1)[:, 1] - 1, n))


def test_precomputed_and_callable_kernels(blobs):
    X, y, X_test, _ = blobs
    X_test = X_test[:6]
    kernel = flipcert.kernels.RBF(0.5)
    direct = flipcert.MilpSVM(kernel, C=0.2).fit(X, y)
    rows = kernel(X_test, X)
    given = flipcert.MilpSVM("precomputed", C=0.2).fit(kernel(X), y)
    assert np.allclose(given.decision_function(rows), direct.decision_function(X_test), atol=1e-6)
    expected = direct.certify(X_test)
    assert np.array_equal(given.certify(rows).radius, expected.radius)
    called = flipcert.MilpSVM(lambda A, B: kernel(A, B), C=0.2).fit(X, y)
    assert np.array_equal(called.certify(X_test).radius, expected.radius)
    rule = np.arange(30) % 3
    ensemble = flipcert.PartitionEnsemble(flipcert.MilpSVM(kernel, C=0.5), 3, rule).fit(X, y).certify(X_test)
    sliced = flipcert.PartitionEnsemble(flipcert.MilpSVM("precomputed", C=0.5), 3, rule).fit(kernel(X), y)
    assert np.array_equal(sliced.certify(rows).radius, ensemble.radius)


@pytest.mark.parametrize(("C", "n_partitions"), [(0.01, 1), (0.01, 6), (0.1, 1), (1.0, 5)])
def test_ensembles(C, n_partitions, blobs):
    X, y, X_test, _ = blobs
    X_test = X_test[:8]
    base = flipcert.MilpSVM("rbf", C=C)
    model = flipcert.PartitionEnsemble(base, n_partitions, classes=[0, 1, 2]).fit(X, y)
    certificates = model.certify(X_test)
    votes = votes_of(model, X_test)
    assert np.array_equal(certificates.blackbox_radius, flipcert.blackbox_radius(votes, 3))
    assert (certificates.radius >= certificates.blackbox_radius).all()
    assert (certificates.radius <= certificates.radius_upper).all()
    assert certificates.exact.mean() > 0.5
    for t, witness in enumerate(model.worst_flips(X_test)):
        assert len(witness) == certificates.radius_upper[t] + 1
        after = clone(model).fit(X, witness.apply(y)).predict(X_test[t : t + 1])[0]
        assert after == certificates.target[t] != certificates.prediction[t]
    if C == 0.01:
        linear = flipcert.PartitionEnsemble(flipcert.KernelSVM("rbf"), n_partitions, classes=[0, 1, 2]).fit(X, y)
        assert np.array_equal(linear.certify(X_test).radius, certificates.radius)


def test_results_do_not_depend_on_threads(blobs):
    X, y, X_test, _ = blobs
    model = flipcert.MilpSVM("rbf", C=0.2).fit(X, y)
    radii = [model.set_params(n_jobs=jobs).certify(X_test).radius for jobs in (1, 2)]
    assert np.array_equal(*radii)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"time_limit": 0}, "time_limit must be a positive number; got 0"),
        ({"time_limit": -1.0}, "time_limit must be a positive number; got -1.0"),
        ({"C": 0.0}, "C must be a positive number; got 0.0"),
        ({"C": "auto"}, "C must be a positive number; got 'auto'"),
        ({"kernel": "cosine"}, "kernel must be None, one of"),
        ({"kernel": lambda A, B: -A @ B.T}, "must be positive semi-definite; got eigenvalues from"),
        ({"kernel": lambda A, B: A[:, :1] @ B[:, 1:].T + 0 * A @ B.T}, "must be symmetric"),
    ],
)
def test_bad_parameters(parameters, message, blobs):
    X, y, _, _ = blobs
    with pytest.raises(ValueError, match=message):
        flipcert.MilpSVM(**{"C": 1.0} | parameters).fit(X, y)


def test_rows_that_no_test_point_has(blobs):
    """A precomputed row outside the span of a singular kernel: nothing is certified."""
    X, y, _, _ = blobs
    model = flipcert.MilpSVM("precomputed", C=1.0).fit(X @ X.T, y == 1)
    rng = np.random.default_rng(0)
    certificates = model.certify(rng.normal(size=(3, 30)))
    assert certificates.radius.tolist() == [0, 0, 0]
    assert certificates.rounding_sensitive.all()


def test_kernels_of_test_points_that_overflow(blobs):
    X, y, _, _ = blobs
    model = flipcert.MilpSVM("linear", C=1.0).fit(X, y)
    with pytest.raises(ValueError, match=r"overflowed; (take a smaller C or )?rescale the features"):
        model.predict(np.full((1, 2), 1.7e308))

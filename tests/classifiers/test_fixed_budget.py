"""Verifiers that answer for a fixed number of flips, and costs of another threat model."""

from __future__ import annotations

import itertools
import runpy

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import flipcert
from tests.helpers.models import votes_of
from tests.helpers.paths import EXAMPLES


def neighbours_are_robust(model, X, n_flips):
    votes = np.sort(model.predict_proba(X) * model.n_neighbors, axis=1).round()
    return votes[:, -1] - votes[:, -2] > 2 * n_flips


class Says:
    """A verifier that always gives the same answer; it names itself without an address, for the names of tests."""

    def __init__(self, answer):
        self.answer = answer

    def __call__(self, model, X, n_flips):
        return np.full(len(X), self.answer)

    def __repr__(self):
        return f"Says({self.answer})"


never, always = Says(False), Says(True)


@parametrize_with_checks(
    [
        flipcert.FixedBudget(RidgeClassifier(), never),
        flipcert.PartitionEnsemble(flipcert.FixedBudget(GaussianNB(), never), n_partitions=2),
    ]
)
def test_scikit_learn_manners(estimator, check):
    if getattr(check, "func", check).__name__ == "check_array_api_input":
        return  # as in test_classifiers
    check(estimator)


class Asked:
    """A verifier with known answers, noting the questions."""

    def __init__(self, radius):
        self.radius = radius
        self.questions = []

    def __call__(self, model, X, n_flips):
        self.questions.append((n_flips, len(X)))
        return self.radius[X[:, 0].astype(int)] >= n_flips

    def __deepcopy__(self, memo):
        return self


@pytest.mark.parametrize("most", [None, 0, 1, 7, 64, 100])
def test_the_search_finds_every_radius(most):
    n = 100
    radius = np.arange(n) % 103
    verifier = Asked(radius)
    X, y = np.arange(n, dtype=float)[:, None], np.arange(n) % 2
    model = flipcert.FixedBudget(GaussianNB(), verifier, max_flips=most).fit(X, y)
    certificates = model.certify(X)
    cap = n if most is None else most
    assert np.array_equal(certificates.radius, np.minimum(radius, cap))
    assert (certificates.radius_upper == n).all()
    assert np.array_equal(certificates.exact, certificates.radius == n)
    # Doubling and bisection: no row is asked often.
    asked = sum(rows for _, rows in verifier.questions)
    assert asked <= n * 15


def test_a_verifier_need_not_be_consistent():
    """Proven at 4 flips is proven at fewer, even if the verifier gave up there."""
    X, y = np.arange(20, dtype=float)[:, None], np.arange(20) % 2
    model = flipcert.FixedBudget(GaussianNB(), lambda m, X, r: np.full(len(X), r in (1, 2, 4))).fit(X, y)
    assert (model.certify(X).radius == 4).all()


def test_all_labels_flipped_is_unreachable(blobs):
    X, y, X_test, _ = blobs
    space = {"classes": np.unique(y)}
    model = flipcert.FixedBudget(GaussianNB(), always, **space).fit(X, y)
    certificates = model.certify(X_test)
    assert (certificates.radius == 30).all()
    assert certificates.exact.all()
    assert certificates.target.mask.all()
    assert (np.sort(model.flip_costs(X_test), axis=1) == [0, 31, 31]).all()
    assert model.worst_flips(X_test) == [None] * 15
    # With few labels to flip, certifying them is enough.
    trusted = np.arange(30) > 3
    up_to_four = flipcert.FixedBudget(GaussianNB(), lambda m, X, r: np.full(len(X), r <= 4), **space)
    four = clone(up_to_four).fit(X, y, trusted=trusted)
    assert (four.certify(X_test).radius == 30).all()
    free = up_to_four.fit(X, y)
    assert (free.certify(X_test).radius == 4).all()
    nobody = flipcert.FixedBudget(GaussianNB(), never).fit(X, y, trusted=np.ones(30, bool))
    assert (nobody.certify(X_test).radius == 30).all()


def test_neighbours_against_all_attacks():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(9, 2)), np.array([0, 0, 0, 0, 0, 1, 0, 2, 0])
    points = rng.normal(size=(5, 2))
    model = flipcert.FixedBudget(KNeighborsClassifier(7), neighbours_are_robust, classes=[0, 1, 2]).fit(X, y)
    certificates = model.certify(points)
    assert certificates.radius.max() == 2
    for flips in range(1, 3):
        for indices in itertools.combinations(range(9), flips):
            for new in itertools.product(range(3), repeat=flips):
                flipped = y.copy()
                flipped[list(indices)] = new
                after = clone(model).fit(X, flipped).predict(points)
                assert (after == certificates.prediction)[certificates.radius >= flips].all()
    # The label-linear certificate of the same classifier is exact; the verifier must not claim more.
    exact = flipcert.WeightedNeighbors(7, classes=[0, 1, 2]).fit(X, y).certify(points)
    assert np.array_equal(exact.prediction, certificates.prediction)
    assert (certificates.radius <= exact.radius).all()


def test_an_estimator_of_ours_verified_from_outside(blobs):
    X, y, X_test, _ = blobs
    base = flipcert.KernelSVM("rbf")
    model = flipcert.FixedBudget(base, lambda m, X, r: m.certify(X).radius >= r).fit(X, y)
    exact = clone(base).fit(X, y).certify(X_test)
    certificates = model.certify(X_test)
    assert np.array_equal(certificates.radius, exact.radius)
    assert np.array_equal(certificates.runner_up, exact.runner_up)
    for n_partitions in (1, 2):
        ensemble = flipcert.PartitionEnsemble(model, n_partitions, classes=[0, 1, 2]).fit(X, y)
        white = flipcert.PartitionEnsemble(base, n_partitions, classes=[0, 1, 2]).fit(X, y).certify(X_test)
        found = ensemble.certify(X_test)
        assert np.array_equal(found.blackbox_radius, flipcert.blackbox_radius(votes_of(ensemble, X_test), 3))
        assert (found.radius >= found.blackbox_radius).all()
        assert (found.radius <= white.radius).all()
        assert (found.radius > found.blackbox_radius).any()
    precomputed = flipcert.FixedBudget(flipcert.KernelSVM("precomputed"), lambda m, X, r: m.certify(X).radius >= r)
    kernel = flipcert.kernels.RBF()
    given = flipcert.PartitionEnsemble(precomputed, 2, partition=ensemble.partition_).fit(kernel(X), y)
    assert np.array_equal(given.certify(kernel(X_test, X)).radius, found.radius)


def test_one_class_partitions_vote_with_radius_zero(blobs):
    X, y, X_test, _ = blobs
    names = np.array(["a", "b", "c"])
    base = flipcert.FixedBudget(RandomForestClassifier(3), always)
    model = flipcert.PartitionEnsemble(base, n_partitions=3, partition=y).fit(X, names[y])
    assert np.array_equal(votes_of(model, X_test), np.tile([0, 1, 2], (15, 1)))
    certificates = model.certify(X_test)
    assert (certificates.radius == certificates.blackbox_radius).all()
    alone = flipcert.FixedBudget(RidgeClassifier(), always, classes=[0, 1, 2]).fit(X, np.ones(30, int))
    assert (alone.certify(X_test).radius == 0).all()
    assert (alone.certify(X_test).runner_up == 0).all()


def test_scores_where_there_are_some(blobs):
    X, y, X_test, _ = blobs
    proba = flipcert.FixedBudget(GaussianNB(), never, classes=[0, 1, 2, 3]).fit(X, y)
    scores = proba.decision_function(X_test)
    assert scores.shape == (15, 4)
    assert np.array_equal(scores.argmax(axis=1), proba.predict(X_test))
    assert np.array_equal(np.argsort(-scores, axis=1)[:, 1], proba.certify(X_test).runner_up)
    binary = flipcert.FixedBudget(RidgeClassifier(), never).fit(X, y == 1)
    assert np.allclose(binary.decision_function(X_test), binary.estimator_.decision_function(X_test))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"is_robust": None}, r"is_robust must be a function of \(model, X, n_flips\); got None"),
        ({"estimator": GaussianNB}, "estimator must be a classifier object"),
        ({"max_flips": 31}, "max_flips=31 is above the number of training labels, 30"),
        ({"max_flips": -1}, "max_flips must be at least 0; got -1"),
        ({"max_flips": 1.5}, "max_flips must hold whole numbers"),
    ],
)
def test_bad_parameters(parameters, message, blobs):
    X, y, _, _ = blobs
    with pytest.raises(ValueError, match=message):
        flipcert.FixedBudget(**{"estimator": GaussianNB(), "is_robust": never} | parameters).fit(X, y)


@pytest.mark.parametrize("answer", [1.0, [True], np.zeros(15), np.ones((15, 1), bool)])
def test_answers_must_be_one_bool_a_row(answer, blobs):
    X, y, X_test, _ = blobs
    model = flipcert.FixedBudget(GaussianNB(), lambda m, X, r: answer).fit(X, y)
    with pytest.raises(ValueError, match="is_robust must return one bool for each of the 15 rows"):
        model.certify(X_test)
    single = flipcert.FixedBudget(GaussianNB(), lambda m, X, r: r <= 3).fit(X, y)
    assert single.certify(X_test[:1]).radius.tolist() == [3]
    with pytest.raises(flipcert.UnsolvedError, match=r"row 0 is not known \(it is between 4 and 31\); take"):
        single.flip_costs(X_test[:1], bound="exact")


def test_clean_label_example(capsys):
    """Costs that count moved samples: no set of samples within the radius, moved for the worst, changes the vote."""
    example = runpy.run_path(str(EXAMPLES / "clean_label.py"))
    capsys.readouterr()
    rng = np.random.default_rng(3)
    X, y = rng.random((12, 3)), rng.integers(0, 2, 12)
    X[y == 1] += np.array([0.5, 0.0, 0.0])
    X[y == 0] += np.array([0.0, 0.4, 0.0])
    points = rng.normal(size=(6, 3))
    partition = np.arange(12) % 3
    epsilon = 0.12
    votes, costs = example["votes_and_costs"](X, y, points, partition, epsilon)
    radius = flipcert.ensemble_radius(votes, costs, n_labels=12)
    assert radius.max() >= 2
    broken = 0
    for t, point in enumerate(points):
        before = np.bincount(votes[t], minlength=10).argmax()
        for count in range(1, min(int(radius[t]) + 2, 6)):
            for chosen in itertools.combinations(range(12), count):
                # Against the winner: its own samples move down, those of the other class up.
                moved = X.copy()
                for i in chosen:
                    moved[i] += epsilon * np.sign(point) * (-1 if y[i] == before else 1)
                after, _ = example["votes_and_costs"](moved, y, point[None], partition, epsilon)
                changed = np.bincount(after[0], minlength=10).argmax() != before
                assert not (changed and count <= radius[t])
                broken += changed
    assert broken > 0

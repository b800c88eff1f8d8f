"""Partition ensembles: votes, white-box and black-box certificates."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import flipcert
from flipcert.ensemble import white_box
from flipcert.kernels import RBF
from tests.helpers.models import all_costs, votes_of


def brute_force_change(model, X, y, point, limit):
    """Fewest flips of y that change the prediction, by refitting on every labelling up to a number of flips."""
    before = model.predict(point)[0]
    for count in range(1, limit + 1):
        for indices in itertools.combinations(range(len(y)), count):
            for labels in itertools.product(range(3), repeat=count):
                flipped = y.copy()
                flipped[list(indices)] = labels
                if clone(model).fit(X, flipped).predict(point)[0] != before:
                    return count
    return None


@pytest.mark.parametrize("base", [flipcert.KernelSVM(RBF(0.5)), flipcert.WeightedNeighbors(2)], ids=str)
def test_radius_equals_refitting_on_every_labelling(base):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(8, 2)), rng.integers(0, 3, 8)
    model = flipcert.PartitionEnsemble(base, n_partitions=3, classes=[0, 1, 2]).fit(X, y)
    points = rng.normal(size=(4, 2))
    certificates = model.certify(points, exact=True)
    assert certificates.exact.all()
    for t in range(4):
        found = brute_force_change(model, X, y, points[t : t + 1], limit=2)
        radius = certificates.radius[t]
        assert found == radius + 1 if found is not None else radius >= 2


@pytest.mark.parametrize("base", [flipcert.KernelSVM(), flipcert.KernelRidge(), flipcert.WeightedNeighbors(3)], ids=str)
def test_one_partition_is_the_model_itself(base, blobs):
    X, y, X_test, _ = blobs
    alone = clone(base).fit(X, y).certify(X_test)
    ensemble = flipcert.PartitionEnsemble(base, n_partitions=1).fit(X, y)
    certificates = ensemble.certify(X_test)
    assert np.array_equal(certificates.prediction, alone.prediction)
    assert np.array_equal(certificates.radius, alone.radius)
    assert np.array_equal(certificates.radius_upper, alone.radius)
    assert np.array_equal(certificates.blackbox_radius, np.zeros(len(X_test)))
    model = clone(base).fit(X, y)
    assert (ensemble.flip_costs(X_test, "lower") >= model.flip_costs(X_test, "lower")).all()
    assert np.array_equal(ensemble.flip_costs(X_test, "upper"), model.flip_costs(X_test, "upper"))
    assert np.array_equal(ensemble.flip_costs(X_test, "exact"), model.flip_costs(X_test, "exact"))


@pytest.mark.parametrize("n_partitions", [2, 5, 9])
@pytest.mark.parametrize("base", [flipcert.KernelSVM(), flipcert.KernelSVM("rbf"), flipcert.KernelRidge()], ids=str)
def test_white_box_is_never_below_black_box(base, n_partitions, blobs):
    X, y, X_test, _ = blobs
    model = flipcert.PartitionEnsemble(base, n_partitions=n_partitions).fit(X, y)
    certificates = model.certify(X_test)
    votes = votes_of(model, X_test)
    assert np.array_equal(certificates.blackbox_radius, flipcert.blackbox_radius(votes, 3))
    assert (certificates.radius >= certificates.blackbox_radius).all()
    assert (certificates.radius <= certificates.radius_upper).all()
    counts = np.stack([(votes == c).sum(axis=1) for c in range(3)], axis=1)
    assert np.array_equal(model.decision_function(X_test), counts)
    assert np.array_equal(model.predict(X_test), counts.argmax(axis=1))
    lower = [e.flip_costs(X_test, "lower") for e in model.estimators_]
    costs = np.stack([np.where(c > len(p), 31, c) for c, p in zip(lower, groups(model), strict=True)], axis=1)
    published = flipcert.ensemble_radius(votes, costs, n_labels=30)
    assert (certificates.radius >= published).all()


def groups(model):
    return [np.flatnonzero(model.partition_ == i) for i in range(model.n_partitions)]


@pytest.fixture
def open_problem():
    """Weights too large to be added up in doubles: integers take over, and leave some radii open."""
    rng = np.random.default_rng(1)
    y = np.arange(200) % 6
    X = (rng.normal(size=(200, 6)) + np.eye(6)[y]) * 2.0**508
    model = flipcert.PartitionEnsemble(flipcert.KernelSVM("linear"), 5, partition=rng.permutation(200) % 5).fit(X, y)
    return model, X, y, rng.normal(size=(40, 6)) * 2.0**508


def test_exact_closes_what_bounds_leave_open(open_problem):
    model, X, y, X_test = open_problem
    bounds = model.certify(X_test)
    still_open = ~bounds.exact
    assert still_open.any()
    points = X_test[still_open]
    closed = model.certify(points, exact=True)
    assert closed.exact.all()
    assert (closed.radius >= bounds.radius[still_open]).all()
    assert (closed.radius <= bounds.radius_upper[still_open]).all()
    for t, witness in enumerate(model.worst_flips(points, exact=True)):
        assert len(witness) == closed.radius[t] + 1
        flipped = clone(model).set_params(classes=range(6)).fit(X, witness.apply(y))
        assert flipped.predict(points[t : t + 1])[0] != closed.prediction[t]


def test_out_of_time_leaves_a_radius_open(open_problem, monkeypatch):
    model, _, _, X_test = open_problem
    bounds = model.certify(X_test)

    def out_of_time(*args):
        raise flipcert.UnsolvedError

    monkeypatch.setattr(white_box, "exact_cost", out_of_time)
    hurried = model.certify(X_test, exact=True)
    assert np.array_equal(hurried.radius, bounds.radius)
    assert np.array_equal(hurried.radius_upper, bounds.radius_upper)
    assert not hurried.exact.all()


def test_costs_of_reaching_each_class(blobs):
    X, y, X_test, _ = blobs
    model = flipcert.PartitionEnsemble(flipcert.KernelRidge(), n_partitions=4).fit(X, y)
    lower, upper, exact = (model.flip_costs(X_test, bound) for bound in ("lower", "upper", "exact"))
    certificates = model.certify(X_test, exact=True)
    rows = np.arange(len(X_test))
    for costs in (lower, upper, exact):
        assert (costs[rows, certificates.prediction] == 0).all()
    assert (lower <= exact).all()
    assert (exact <= upper).all()
    assert np.array_equal(np.sort(exact, axis=1)[:, 1] - 1, certificates.radius)
    assert np.array_equal(exact[rows, certificates.target.data] - 1, certificates.radius)


def test_partitions_that_lack_classes(blobs):
    X, y, X_test, _ = blobs
    model = flipcert.PartitionEnsemble(flipcert.KernelRidge(), n_partitions=3, partition=y).fit(X, y)
    certificates = model.certify(X_test, exact=True)
    assert certificates.exact.all()
    for t, witness in enumerate(model.worst_flips(X_test, exact=True)):
        after = clone(model).fit(X, witness.apply(y)).predict(X_test[t : t + 1])[0]
        assert after != certificates.prediction[t]
        assert len(witness) == certificates.radius[t] + 1


def test_votes_that_no_labelling_can_change():
    """All-zero inputs: every model always predicts the first class, and the radius is the number of labels."""
    X, y = np.zeros((6, 2)), np.array([0, 1, 2, 0, 1, 2])
    parts = {"n_partitions": 3, "partition": np.arange(6) % 3}
    model = flipcert.PartitionEnsemble(flipcert.KernelSVM(), **parts, classes=[0, 1, 2]).fit(X, y)
    certificates = model.certify(np.ones((2, 2)))
    assert certificates.radius.tolist() == certificates.radius_upper.tolist() == [6, 6]
    assert certificates.exact.all()
    assert certificates.blackbox_radius.tolist() == [1, 1]
    assert model.worst_flips(np.ones((2, 2))) == [None, None]
    assert model.flip_costs(np.ones((1, 2))).tolist() == [[0, 7, 7]]
    assert np.isinf(model.C_max_)


def test_one_negative_weight_and_three_classes():
    """One sample, negatively weighted: class 2 cannot be reached, in an ensemble as alone."""
    model = flipcert.PartitionEnsemble(flipcert.KernelSVM("linear"), n_partitions=2, classes=[0, 1, 2])
    model.set_params(partition=[0, 1]).fit([[1.0], [1.0]], [0, 0])
    point = [[-1.0]]
    assert model.predict(point).tolist() == [1]
    exact = model.flip_costs(point, bound="exact")
    assert exact.tolist() == [[1, 0, 3]]
    certificates = model.certify(point, exact=True)
    assert certificates.radius.tolist() == [0]
    assert certificates.target.tolist() == [0]


def test_C_is_checked_in_every_partition(blobs):
    X, y, _, _ = blobs
    model = flipcert.PartitionEnsemble(flipcert.KernelSVM("rbf"), n_partitions=3).fit(X, y)
    thresholds = [estimator.C_max_ for estimator in model.estimators_]
    assert model.C_max_ == min(thresholds)
    model.set_params(estimator__C=min(thresholds)).fit(X, y)
    worst = int(np.argmin(thresholds))
    between = (min(thresholds) + sorted(thresholds)[1]) / 2
    with pytest.raises(ValueError, match=f"partition {worst} could not be fitted: C="):
        model.set_params(estimator__C=between).fit(X, y)


def test_precomputed_kernel(blobs):
    X, y, X_test, _ = blobs
    kernel = RBF(gamma=0.5)
    rule = np.arange(30) % 4
    direct = flipcert.PartitionEnsemble(flipcert.KernelRidge(kernel), 4, rule).fit(X, y)
    given = flipcert.PartitionEnsemble(flipcert.KernelRidge("precomputed"), 4, rule).fit(kernel(X), y)
    assert np.array_equal(given.certify(kernel(X_test, X)).radius, direct.certify(X_test).radius)
    model = flipcert.PartitionEnsemble(flipcert.KernelRidge("precomputed"), 2)
    assert cross_val_score(model, kernel(X), y, cv=3).shape == (3,)
    with pytest.raises(ValueError, match="X must be square"):
        given.fit(X, y)


# Any scikit-learn classifier as a base


@pytest.mark.parametrize("estimator", [KMeans(2), LinearRegression(), None, "svm", flipcert.KernelSVM])
def test_only_classifiers_vote(estimator, blobs):
    X, y, _, _ = blobs
    with pytest.raises(ValueError, match="estimator must be a classifier object"):
        flipcert.PartitionEnsemble(estimator, 2).fit(X, y)


@pytest.mark.parametrize(
    "base",
    [
        DecisionTreeClassifier(),
        GaussianNB(),
        RandomForestClassifier(5),
        make_pipeline(StandardScaler(), LogisticRegression()),
        make_pipeline(SelectKBest(k=1), flipcert.KernelSVM()),
    ],
    ids=lambda base: type(base).__name__,
)
def test_black_box_only(base, blobs):
    X, y, X_test, _ = blobs
    names = np.array(["x", "y", "z"])
    model = flipcert.PartitionEnsemble(base, n_partitions=5, partition="random").fit(X, names[y])
    certificates = model.certify(X_test)
    assert np.array_equal(certificates.radius, flipcert.blackbox_radius(votes_of(model, X_test), 3))
    assert np.array_equal(certificates.radius, certificates.blackbox_radius)
    assert (certificates.radius_upper == 30).all()
    assert not certificates.exact.any()
    assert model.worst_flips(X_test) == [None] * len(X_test)
    assert not hasattr(model, "C_max_")
    again = clone(model).fit(X, names[y])
    assert np.array_equal(again.predict(X_test), certificates.prediction)


def test_one_class_partitions_vote_unfitted(blobs):
    X, y, X_test, _ = blobs
    model = flipcert.PartitionEnsemble(LogisticRegression(), n_partitions=3, partition=y).fit(X, y)
    assert np.array_equal(votes_of(model, X_test), np.tile([0, 1, 2], (len(X_test), 1)))


def test_random_states(blobs):
    X, y, _, _ = blobs
    model = flipcert.PartitionEnsemble(DecisionTreeClassifier(), n_partitions=3).fit(X, y)
    assert [estimator.random_state for estimator in model.estimators_] == [0, 1, 2]
    nested = make_pipeline(StandardScaler(), RandomForestClassifier(2))
    model = flipcert.PartitionEnsemble(nested, n_partitions=2).fit(X, y)
    assert [estimator[-1].random_state for estimator in model.estimators_] == [0, 1]
    with pytest.raises(ValueError, match="random_state of the base estimator is a RandomState"):
        flipcert.PartitionEnsemble(DecisionTreeClassifier(random_state=np.random.RandomState(0)), 2).fit(X, y)


@pytest.mark.parametrize(
    "base",
    [
        LinearSVC(max_iter=20, dual=True),
        make_pipeline(StandardScaler(), LogisticRegression(solver="liblinear", max_iter=20, dual=True)),
        flipcert.FixedBudget(LinearSVC(max_iter=20, dual=True), lambda model, X, n_flips: np.zeros(len(X), bool)),
        GridSearchCV(LogisticRegression(max_iter=5, dual=True), {"solver": ["liblinear"]}, cv=2),
    ],
    ids=lambda base: type(base).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_fits_do_not_share_random_numbers(base, digits):
    """The generator of liblinear belongs to the process, so that threads would mix their draws."""
    X, y, X_test, _ = digits
    y = y % 2
    model = flipcert.PartitionEnsemble(base, n_partitions=8, n_jobs=4)
    voters = [clone(model).fit(X, y).estimators_ for _ in range(3)]
    alone = flipcert.PartitionEnsemble(base, n_partitions=8, n_jobs=1).fit(X, y).estimators_
    for own in voters:
        for voter, same in zip(own, alone, strict=True):
            scores, expected = (estimator.decision_function(X_test) for estimator in (voter, same))
            assert np.array_equal(scores, expected)


def test_an_ensemble_inside_takes_turns_itself(blobs):
    """Whoever waits for threads that wait for them waits for ever."""
    X, y, X_test, _ = blobs
    inner = flipcert.PartitionEnsemble(LinearSVC(), n_partitions=2, n_jobs=2)
    base = make_pipeline(SelectKBest(k=1), VotingClassifier([("a", LinearSVC()), ("b", inner)]))
    assert flipcert.PartitionEnsemble(base, n_partitions=2, n_jobs=2).fit(X, y).predict(X_test).shape == (15,)


def test_label_free_pipelines_are_white_box(blobs):
    X, y, X_test, _ = blobs
    base = make_pipeline(StandardScaler(), flipcert.KernelSVM())
    model = flipcert.PartitionEnsemble(base, n_partitions=3, classes=[0, 1, 2]).fit(X, y)
    certificates = model.certify(X_test)
    assert (certificates.radius > certificates.blackbox_radius).any()
    for t, witness in enumerate(model.worst_flips(X_test)):
        after = clone(model).fit(X, witness.apply(y)).predict(X_test[t : t + 1])[0]
        assert after != certificates.prediction[t]


@pytest.mark.parametrize("shift", [0.0, 10.0], ids=["both signs", "not negative"])
def test_costs_of_turning_each_voter(shift, blobs):
    X, y, X_test, _ = blobs
    base = flipcert.KernelSVM("linear")
    model = flipcert.PartitionEnsemble(base, n_partitions=5, classes=[0, 1, 2]).fit(X + shift, y)
    certificates = model.certify(X_test + shift)
    for bound, radius in (("lower", certificates.radius), ("upper", certificates.radius_upper)):
        votes, costs = model.voter_costs(X_test + shift, bound)
        expected = all_costs(model, X_test + shift, bound)
        assert np.array_equal(votes, expected[0])
        assert np.array_equal(costs, expected[1])
        assert np.array_equal(flipcert.ensemble_radius(votes, costs, n_labels=y.size), radius)
        published = model.voter_costs(X_test + shift, bound, method="published")[1]
        assert np.all(published <= costs if bound == "lower" else published >= costs)


def test_costs_of_voters_that_are_not_label_linear(blobs):
    X, y, X_test, _ = blobs
    smoothed = flipcert.PartitionEnsemble(flipcert.SmoothedLinear(), n_partitions=2, classes=[0, 1, 2]).fit(X, y)
    votes, costs = smoothed.voter_costs(X_test)
    assert np.array_equal(flipcert.ensemble_radius(votes, costs, n_labels=y.size), smoothed.certify(X_test).radius)
    black_box = flipcert.PartitionEnsemble(LogisticRegression(), n_partitions=3).fit(X, y)
    votes, costs = black_box.voter_costs(X_test)
    assert np.array_equal(votes, votes_of(black_box, X_test))
    assert np.array_equal(costs, np.where(np.arange(3) == votes[:, :, None], 0, 1))
    with pytest.raises(ValueError, match=r"needs a label-linear base classifier.*got LogisticRegression"):
        black_box.voter_costs(X_test, method="published")
    with pytest.raises(ValueError, match="bound must be"):
        black_box.voter_costs(X_test, bound="exact")


def test_parts_that_share_buckets_hold_all_labels_of_these_in_order():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)), rng.integers(0, 3, 60)
    model = flipcert.PartitionEnsemble(flipcert.KernelSVM(), n_partitions=7, copies=3, random_state=1).fit(X, y)
    held = np.zeros(60, np.int64)
    for voter, estimator in zip(model.electorate_.voters, model.estimators_, strict=True):
        np.testing.assert_array_equal(voter.members, np.flatnonzero(np.isin(np.arange(60), voter.members)))
        np.testing.assert_array_equal(estimator.X_fit_, X[voter.members])
        # All of a bucket, or nothing of it.
        for bucket in np.unique(model.partition_[voter.members]):
            assert np.isin(np.flatnonzero(model.partition_ == bucket), voter.members).all()
        held[voter.members] += 1
    np.testing.assert_array_equal(held, np.full(60, 3))


def test_many_classes_that_are_named_are_not_taken_for_a_regression():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)), rng.permutation(60)
    model = flipcert.PartitionEnsemble(flipcert.KernelSVM(), n_partitions=2, classes=np.arange(60)).fit(X, y)
    assert model.certify(X[:3]).radius.shape == (3,)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("partition", ["sorted", "random", "hash"])
def test_inputs_of_voters_lie_side_by_side_and_are_those_that_fit_is_given(digits, dtype, partition):
    X, y, test = digits[0].astype(dtype), digits[1], digits[2].astype(dtype)
    model = flipcert.PartitionEnsemble(flipcert.KernelSVM(), 7, partition=partition).fit(X, y)
    whole = model.electorate_.weights._product.right
    for number, own in enumerate(model.estimators_):
        members = np.flatnonzero(model.partition_ == number)
        alone = flipcert.KernelSVM(classes=np.unique(y)).fit(X[members], y[members])
        assert own.X_fit_.tobytes() == X[members].tobytes()
        assert np.shares_memory(own.X_fit_, whole)
        assert own.n_features_in_ == alone.n_features_in_
        assert own.classes_.tolist() == alone.classes_.tolist()
        np.testing.assert_array_equal(own.flip_costs(test[:9]), alone.flip_costs(test[:9]))


def test_who_has_a_fit_of_its_own_is_fitted_by_it():
    class Own(flipcert.KernelSVM):
        def fit(self, X, y, trusted=None, source=None):
            self.seen_ = X.dtype, None if trusted is None else trusted.tolist()
            return super().fit(X, y, trusted, source)

        def flip_costs(self, X, bound="lower", time_limit=60.0, threat="flips"):
            return super().flip_costs(X, bound, time_limit, threat)

    X, y = np.arange(12.0).reshape(6, 2), [0, 1, 0, 1, 0, 1]
    trusted = [True, False] * 3
    model = flipcert.PartitionEnsemble(Own(), 2, partition=[0, 0, 0, 1, 1, 1]).fit(X, y, trusted=trusted)
    assert [own.seen_ for own in model.estimators_] == [(X.dtype, trusted[:3]), (X.dtype, trusted[3:])]

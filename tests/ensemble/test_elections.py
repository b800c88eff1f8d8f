"""Run-offs and Finite Aggregation through fit and predict, against all labellings of small training sets."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import flipcert
from flipcert import KernelRidge, KernelSVM, PartitionEnsemble, WeightedNeighbors
from tests.helpers.election_oracle import run_off

BASES = {
    "tree": DecisionTreeClassifier(max_depth=2, random_state=0),
    "ridge classifier": RidgeClassifier(),
    "naive Bayes": GaussianNB(),
    "ridge": KernelRidge(reg=0.5, n_jobs=1),
    "linear ridge": KernelRidge(kernel="linear", reg=0.5, n_jobs=1),
    "svm": KernelSVM(kernel="linear", n_jobs=1),
    "neighbors": WeightedNeighbors(n_neighbors=None, weights="distance", n_jobs=1),
}
MOST_FLIPS = 3
WAYS = [("runoff", 1), ("runoff", 2), ("majority", 2)]


def fewest_flips(model, X, y, points, trusted, source=None):
    """Fewest units that change each prediction, and that lead to each class, over all labellings of few flips."""
    n, classes = len(y), model.classes_
    before = model.predict(points)
    limit = n + 1 if source is None else len(set(source)) + 1
    change, reach = np.full(len(points), limit), np.full((len(points), classes.size), limit)
    reach[classes == before[:, None]] = 0
    free = np.ones(n, bool) if trusted is None else ~trusted
    for labels in itertools.product(*(classes if f else [c] for f, c in zip(free, y, strict=True))):
        moved = np.flatnonzero(np.array(labels) != y)
        if moved.size not in (1, 2, MOST_FLIPS) or np.unique(labels).size < 2:
            continue
        units = moved.size if source is None else len({source[i] for i in moved})
        after = clone(model).fit(X, np.array(labels), trusted=trusted, source=source).predict(points)
        change = np.where(after != before, np.minimum(change, units), change)
        reached = classes == after[:, None]
        reach[reached] = np.minimum(reach[reached], units)
    return change, reach


def small(rng, n, n_classes):
    X = rng.integers(0, 4, (n, 2)).astype(float) if rng.random() < 0.4 else rng.normal(size=(n, 2)).round(2)
    y = np.append(np.arange(n_classes), rng.integers(0, n_classes, n - n_classes))
    return X, y, np.concatenate([rng.normal(size=(2, 2)), X[:2]])


@pytest.mark.parametrize(("vote", "copies"), WAYS)
@pytest.mark.parametrize("name", BASES)
def test_no_labelling_breaks_a_certificate(name, vote, copies):
    rng = np.random.default_rng([len(name), copies, len(vote)])
    X, y, points = small(rng, 5, 3)
    trusted = rng.random(5) < 0.3 if rng.random() < 0.5 else None
    classes = [0, 1, 2] if rng.random() < 0.5 else None
    buckets = rng.permutation(np.append(np.arange(4), rng.integers(0, 4)))
    rule = "hash" if rng.random() < 0.5 else buckets
    model = PartitionEnsemble(BASES[name], 4 // copies, rule, classes=classes, n_jobs=1, vote=vote, copies=copies).fit(
        X, y, trusted=trusted
    )
    certificates, costs = model.certify(points), model.flip_costs(points)
    change, reach = fewest_flips(model, X, y, points, trusted)
    assert (certificates.prediction == model.predict(points)).all()
    assert (certificates.radius < change).all()
    assert (certificates.radius >= certificates.blackbox_radius).all()
    assert (costs <= reach).all()
    assert (certificates.radius_upper == 5).all()
    assert model.worst_flips(points) == [None] * 4


@pytest.mark.parametrize(("vote", "copies"), WAYS)
def test_sources_that_touch_several_voters_are_counted(vote, copies):
    rng = np.random.default_rng(copies)
    X, y, points = small(rng, 5, 3)
    source = rng.integers(0, 3, 5)
    model = PartitionEnsemble(GaussianNB(), 2, rng.permutation(5) % (2 * copies), vote=vote, copies=copies, n_jobs=1)
    model.fit(X, y, source=source)
    change, _ = fewest_flips(model, X, y, points, None, source)
    assert (model.certify(points, threat="sources").radius < change).all()


@pytest.mark.parametrize(("vote", "copies"), WAYS)
def test_no_deleted_rows_break_a_certificate(vote, copies):
    rng = np.random.default_rng(5)
    for _ in range(4):
        X, y, points = small(rng, 7, 3)
        model = PartitionEnsemble(GaussianNB(), 3, "hash", vote=vote, copies=copies, n_jobs=1).fit(X, y)
        radius, before = model.certify(points, threat="deletions").radius, model.predict(points)
        for size in range(1, 4):
            for gone in itertools.combinations(range(7), size):
                left = np.delete(np.arange(7), gone)
                if np.unique(y[left]).size < 2:
                    continue
                after = clone(model).fit(X[left], y[left]).predict(points)
                assert (after[radius >= size] == before[radius >= size]).all()


def ranked(model, X):
    """Classes in the order of each base classifier, from what it says when asked by itself."""
    orders = []
    for voter in model.estimators_:
        scores = np.full((len(X), model.classes_.size), -np.inf)
        if hasattr(voter, "label"):
            scores[:, model.classes_ == voter.label] = 0.0
        else:
            told = voter.decision_function(X) if hasattr(voter, "decision_function") else voter.predict_proba(X)
            told = np.stack([-told, told], axis=1) if told.ndim == 1 else told
            scores[:, np.isin(model.classes_, voter.classes_)] = told
        orders.append(np.argsort(-scores, axis=1, kind="stable"))
    return np.stack(orders, axis=1)


@pytest.mark.parametrize("base", [*BASES.values(), MLPClassifier((4,), max_iter=20), SVC()], ids=repr)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_predictions_are_those_of_an_election_by_hand(base):
    X, y = load_iris(return_X_y=True)
    model = PartitionEnsemble(base, 6, "random", vote="runoff", copies=2, n_jobs=1).fit(X[::2], y[::2])
    by_hand = [run_off(own.tolist(), 3) for own in ranked(model, X[1::2])]
    predicted, scores = model.predict(X[1::2]), model.decision_function(X[1::2])
    np.testing.assert_array_equal(predicted, by_hand)
    np.testing.assert_array_equal(scores.argmax(axis=1), by_hand)
    np.testing.assert_array_equal(model.certify(X[1::2]).prediction, by_hand)


def test_each_row_is_given_to_as_many_voters_as_there_are_copies():
    X, y = load_digits(return_X_y=True)
    model = PartitionEnsemble(GaussianNB(), 5, copies=3, n_jobs=1).fit(X[:300], y[:300])
    members = [voter.members for voter in model.electorate_.voters]
    assert len(members) == len(model.estimators_) == 15
    assert model.partition_.max() == 14
    np.testing.assert_array_equal(np.bincount(np.concatenate(members)), 3)
    # Who shares a bucket shares it whole, and which ones depends on the seed alone.
    for own in members:
        assert np.isin(np.flatnonzero(np.isin(model.partition_, model.partition_[own])), own).all()
        assert np.unique(model.partition_[own]).size == 3
    other = clone(model).set_params(random_state=1).fit(X[:300], y[:300])
    assert any(not np.array_equal(own, its.members) for own, its in zip(members, other.electorate_.voters, strict=True))
    relabelled = clone(model).fit(X[:300], y[:300][::-1])
    for own, its in zip(members, relabelled.electorate_.voters, strict=True):
        np.testing.assert_array_equal(own, its.members)


def test_two_classes_have_the_certificates_of_a_majority_vote():
    X, y = load_iris(return_X_y=True)
    X, y = X[y > 0], y[y > 0]
    majority = PartitionEnsemble(KernelRidge(), 5, n_jobs=1).fit(X, y)
    run = clone(majority).set_params(vote="runoff").fit(X, y)
    one, other = majority.certify(X), run.certify(X)
    np.testing.assert_array_equal(one.radius, other.radius)
    np.testing.assert_array_equal(one.radius_upper, other.radius_upper)
    np.testing.assert_array_equal(majority.decision_function(X), run.decision_function(X))


def test_costs_of_label_linear_voters_prove_more_than_their_rankings():
    X, y = load_digits(return_X_y=True)
    model = PartitionEnsemble(KernelRidge(reg=10.0), 5, vote="runoff", n_jobs=1).fit(X[::4], y[::4])
    certificates = model.certify(X[1::20])
    assert (certificates.radius >= certificates.blackbox_radius).all()
    assert (certificates.radius > certificates.blackbox_radius).mean() > 0.5
    costs = model.flip_costs(X[1::20])
    np.testing.assert_array_equal(np.where(costs == 0, len(y), costs).min(axis=1) - 1, certificates.radius)
    shared = clone(model).set_params(copies=2).fit(X[::4], y[::4]).certify(X[1::20])
    np.testing.assert_array_equal(shared.radius, shared.blackbox_radius)


def test_ensembles_of_one_copy_are_as_they_were():
    X, y = load_iris(return_X_y=True)
    for base in (KernelRidge(), GaussianNB()):
        plain = PartitionEnsemble(base, 7, n_jobs=1).fit(X, y)
        said = PartitionEnsemble(base, 7, n_jobs=1, vote="majority", copies=1).fit(X, y)
        for name in ("radius", "radius_upper", "blackbox_radius", "prediction", "runner_up"):
            np.testing.assert_array_equal(getattr(plain.certify(X), name), getattr(said.certify(X), name))
        assert type(plain.electorate_) is type(said.electorate_)


def test_collective_certificates_say_why_they_go_point_by_point():
    X, y = load_iris(return_X_y=True)
    model = PartitionEnsemble(KernelRidge(), 5, vote="runoff", n_jobs=1).fit(X[::2], y[::2])
    together = model.certify_collectively(X[1::2], 2)
    assert together.why_one_by_one is not None
    np.testing.assert_array_equal(together.changed_at_most, (model.certify(X[1::2]).radius < 2).sum())


def test_searches_and_pipelines_set_both():
    X, y = load_iris(return_X_y=True)
    base = PartitionEnsemble(DecisionTreeClassifier(random_state=0), 3, n_jobs=1)
    search = GridSearchCV(base, {"vote": ["majority", "runoff"], "copies": [1, 2]}, cv=2).fit(X, y)
    assert set(search.best_params_) == {"vote", "copies"}
    pipeline = make_pipeline(StandardScaler(), clone(base).set_params(vote="runoff", copies=2)).fit(X, y)
    certificates = flipcert.certify(pipeline, X)
    assert certificates.model["vote"] == "runoff"
    assert certificates.model["copies"] == 2
    inside = PartitionEnsemble(make_pipeline(StandardScaler(), SVC()), 3, vote="runoff", n_jobs=1).fit(X, y)
    assert (inside.certify(X).prediction == inside.predict(X)).all()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"vote": "ranked"}, "vote must be one of 'majority', 'runoff'; got 'ranked'"),
        ({"copies": 0}, "copies must be a whole number of at least 1"),
        ({"copies": 1.5}, "copies must be a whole number of at least 1"),
        ({"copies": 100}, "cut rows into 300 buckets, but there are only 150 rows"),
        ({"copies": 2, "random_state": None}, "random_state must be a whole number"),
        ({"n_partitions": True}, "n_partitions must be a whole number"),
        ({"copies": 2, "n_partitions": 1.5}, "n_partitions must be a whole number"),
        ({"vote": "runoff", "estimator": SVC(decision_function_shape="ovo")}, "compares pairs of classes"),
    ],
)
def test_what_makes_no_sense_is_refused(changed, said):
    X, y = load_iris(return_X_y=True)
    model = PartitionEnsemble(GaussianNB(), 3, n_jobs=1).set_params(**changed)
    with pytest.raises(ValueError, match=said):
        model.fit(X, y)


class Scoreless(GaussianNB):
    """A classifier that only predicts."""

    @property
    def predict_proba(self):
        raise AttributeError("predict_proba")


def test_run_offs_need_scores():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="Scoreless has neither decision_function nor predict_proba"):
        PartitionEnsemble(Scoreless(), 3, vote="runoff", n_jobs=1).fit(X, y)
    model = PartitionEnsemble(KernelRidge(), 3, copies=2, n_jobs=1).fit(X, y)
    with pytest.raises(ValueError, match="majority of voters that share no labels"):
        model.voter_costs(X)


@pytest.mark.parametrize(("vote", "copies"), [("majority", 1), *WAYS])
def test_machines_on_kernel_matrices_vote_on_their_own_columns(vote, copies):
    X, y = load_iris(return_X_y=True)
    given = {"partition": "random", "n_jobs": 1, "vote": vote, "copies": copies}
    stored = PartitionEnsemble(SVC(kernel="precomputed"), 3, **given).fit(X @ X.T, y)
    plain = PartitionEnsemble(SVC(kernel="linear"), 3, **given).fit(X, y)
    np.testing.assert_array_equal(stored.predict(X @ X.T), plain.predict(X))
    np.testing.assert_array_equal(stored.certify(X @ X.T).radius, plain.certify(X).radius)

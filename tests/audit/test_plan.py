"""Plans of audits: what they say is proven is what a fit with these labels trusted proves."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import flipcert
from flipcert import Annotations, AuditPlan, KernelRidge, KernelSVM, PartitionEnsemble, WeightedNeighbors
from flipcert.engine.watch import Watcher, watched_by


def proven(model, X_train, y_train, trusted, X, flips, y, threat="flips", **fit):
    """The share that ``certify`` tells of a new fit."""
    certificates = clone(model).fit(X_train, y_train, trusted=trusted, **fit).certify(X, threat=threat)
    counted = np.ones(len(X), bool) if y is None else certificates.prediction == y
    return np.mean(counted & (certificates.radius >= flips))


def assert_measured(plan, model, X_train, y_train, X, y, trusted=None, source=None):
    """Compare every entry of a plan with a new fit."""
    before = np.zeros(len(y_train), bool) if trusted is None else trusted
    options = {} if source is None else {"source": source}
    for k in plan.checked:
        if plan.sources is None:
            now = np.isin(np.arange(before.size), plan.indices[:k])
        else:
            now = np.isin(source, plan.sources[:k])
        expected = proven(model, X_train, y_train, before | now, X, plan.flips, y, plan.threat, **options)
        assert plan.certified[k] == expected


# Few different numbers: ties everywhere, in features, kernels, distances and scores.
MODELS = (
    KernelRidge(kernel="linear", reg=1.0, n_jobs=1),
    KernelRidge(kernel="rbf", reg=0.1, n_jobs=1),
    KernelSVM(kernel="linear", n_jobs=1),
    KernelSVM(kernel="rbf", n_jobs=1),
    WeightedNeighbors(n_neighbors=4, n_jobs=1),
    WeightedNeighbors(n_neighbors=5, weights="distance", n_jobs=1),
)


@settings(max_examples=30, deadline=None)
@given(
    number=st.integers(0, len(MODELS) - 1),
    seed=st.integers(0, 10**6),
    n_classes=st.integers(2, 4),
    named=st.booleans(),
    flips=st.integers(1, 6),
    with_labels=st.booleans(),
    some_trusted=st.booleans(),
)
def test_every_entry_is_what_certify_says(number, seed, n_classes, named, flips, with_labels, some_trusted):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 16))
    X_train, X = rng.integers(-1, 2, (n, 2)).astype(float), rng.integers(-1, 2, (7, 2)).astype(float)
    X_train += 0.5
    y_train = np.append(np.arange(n_classes), rng.integers(0, n_classes, n - n_classes))
    model = clone(MODELS[number]).set_params(classes=np.arange(n_classes) if named else None)
    trusted = rng.random(n) < 0.2 if some_trusted else np.zeros(n, bool)
    y = rng.integers(0, n_classes, len(X)) if with_labels else None
    model.fit(X_train, y_train, trusted=trusted)
    count = int(rng.integers(1, 1 + np.count_nonzero(~trusted)))
    plan = flipcert.plan_audit(model, X, count, flips=flips, y=y)
    assert plan.indices.size == np.unique(plan.indices).size == count
    assert not trusted[plan.indices].any()
    assert_measured(plan, model, X_train, y_train, X, y, trusted)


@settings(max_examples=12, deadline=None)
@given(number=st.integers(0, len(MODELS) - 1), seed=st.integers(0, 10**6), named=st.booleans(), flips=st.integers(1, 4))
def test_sources_are_checked_as_a_whole(number, seed, named, flips):
    rng = np.random.default_rng(seed)
    X_train, X = rng.integers(-1, 2, (14, 2)) + 0.5, rng.integers(-1, 2, (6, 2)).astype(float)
    y_train, source = np.append([0, 1, 2], rng.integers(0, 3, 11)), np.array(list("abcdef"))[rng.integers(0, 6, 14)]
    trusted = rng.random(14) < 0.1
    model = clone(MODELS[number]).set_params(classes=[0, 1, 2] if named else None)
    model.fit(X_train, y_train, trusted=trusted, source=source)
    left = np.unique(source[~trusted]).size
    flips = min(flips, left)
    plan = flipcert.plan_audit(model, X, left, flips=flips, threat="sources")
    assert sorted(plan.sources) == sorted(np.unique(source[~trusted]))
    assert sorted(plan.indices) == np.flatnonzero(~trusted).tolist()
    assert_measured(plan, model, X_train, y_train, X, None, trusted, source)


@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 10**6), named=st.booleans(), flips=st.integers(1, 4), ridge=st.booleans())
def test_ensembles_are_asked_after_every_check(seed, named, flips, ridge):
    rng = np.random.default_rng(seed)
    X_train, X = rng.normal(size=(18, 3)), rng.normal(size=(6, 3))
    y_train = np.append([0, 1, 2], rng.integers(0, 3, 15))
    y = rng.integers(0, 3, 6)
    base = KernelRidge(kernel="linear", n_jobs=1) if ridge else KernelSVM(kernel="rbf", n_jobs=1)
    model = PartitionEnsemble(base, 3, partition="random", classes=[0, 1, 2] if named else None, n_jobs=1)
    model.fit(X_train, y_train)
    plan = flipcert.plan_audit(model, X, 18, flips=flips, y=y)
    assert sorted(plan.indices) == list(range(18))
    assert_measured(plan, model, X_train, y_train, X, y)


def test_orders_of_ones_own_are_measured_too():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, 3)), np.append([0, 1, 2], rng.integers(0, 3, 27))
    model = KernelRidge(n_jobs=1).fit(X, y)
    order = rng.permutation(30)[:12]
    measured = flipcert.measure_audit(model, X, order, flips=2, y=y)
    assert measured.indices.tolist() == order.tolist()
    assert_measured(measured, model, X, y, X, y)


def test_annotations_are_checked_one_by_one():
    rng = np.random.default_rng(2)
    X, row = rng.normal(size=(12, 3)), np.append(np.arange(12), rng.integers(0, 12, 12))
    label = np.append([0, 1, 2], rng.integers(0, 3, 21))
    model = KernelRidge(n_jobs=1).fit(X, Annotations(row, label))
    plan = flipcert.plan_audit(model, X, 20, flips=2)
    for k in (0, 5, 13, 20):
        trusted = np.isin(np.arange(24), plan.indices[:k])
        own = KernelRidge(n_jobs=1).fit(X, Annotations(row, label, trusted=trusted)).certify(X)
        assert plan.certified[k] == np.mean(own.radius >= 2)


def test_pipelines_are_planned_behind_their_transformers():
    X, y = load_digits(return_X_y=True)
    model = make_pipeline(StandardScaler(), KernelRidge(reg=10.0, n_jobs=1)).fit(X[:100], y[:100])
    plan = flipcert.plan_audit(model, X[100:140], 10, flips=2, y=y[100:140])
    trusted = np.isin(np.arange(100), plan.indices)
    own = make_pipeline(StandardScaler(), KernelRidge(reg=10.0, n_jobs=1))
    own.fit(X[:100], y[:100], kernelridge__trusted=trusted)
    assert plan.certified[10] == flipcert.certify(own, X[100:140]).certified_accuracy(y[100:140], 2)
    assert "StandardScaler" in str(plan.model)


def test_small_memory_and_many_threads_give_the_same_shares():
    import sklearn

    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(300, 4)), rng.integers(0, 3, 300)
    model = KernelRidge(kernel="rbf", n_jobs=1).fit(X, y)
    plan = flipcert.plan_audit(model, X[:90], 60, flips=6)
    threads = flipcert.plan_audit(KernelRidge(kernel="rbf", n_jobs=2).fit(X, y), X[:90], 60, flips=6)
    assert threads.indices.tolist() == plan.indices.tolist()
    with sklearn.config_context(working_memory=0.01):
        # Lists are made anew again and again, of few points; what is proven is measured all the same.
        little = flipcert.plan_audit(model, X[:90], 60, flips=6)
        trusted = np.isin(np.arange(300), little.indices[:33])
        assert little.certified[33] == proven(model, X, y, trusted, X[:90], 6, None)
        # With enough checks, points that lists had no room for at first get their turn.
        many = flipcert.plan_audit(model, X[:90], 299, flips=6)
    assert little.certified[60] > little.certified[0]
    assert np.all(many.weighs_on > 0)


def digits():
    """The digits of the specification: 1,437 labels, 360 points."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order] / 16, y[order]
    return X[:1437], y[:1437], X[1437:], y[1437:]


def test_a_tenth_of_the_digits_proves_a_tenth_more():
    X_train, y_train, X, y = digits()
    model = KernelRidge(kernel="linear", reg=10.0, n_jobs=1).fit(X_train, y_train)
    plan = flipcert.plan_audit(model, X, 144, flips=10, y=y, held_out=True)
    assert plan.certified[0] == plan.held_out[0] == plan.random[0] == pytest.approx(0.653, abs=0.001)
    assert plan.certified[144] >= 0.76
    # It helps predictions that it was made for, others little, and random checks help hardly at all.
    assert plan.random[144] < plan.held_out[144] < plan.certified[144]
    for k in (1, 50, 144):
        trusted = np.isin(np.arange(1437), plan.indices[:k])
        assert plan.certified[k] == proven(model, X_train, y_train, trusted, X, 10, y)


def test_held_out_points_are_those_of_the_other_half():
    X_train, y_train, X, y = (own[:200] for own in digits())
    model = KernelRidge(kernel="linear", reg=10.0, n_jobs=1).fit(X_train, y_train)
    plan = flipcert.plan_audit(model, X, 20, flips=3, y=y, held_out=True)
    odd = np.arange(len(X)) % 2 == 1
    expected = 0
    for half in (~odd, odd):
        # A point that is not to be planned for counts as wrong.
        own = flipcert.plan_audit(model, X, 20, flips=3, y=np.where(half, y, -1))
        trusted = np.isin(np.arange(200), own.indices)
        c = clone(model).fit(X_train, y_train, trusted=trusted).certify(X)
        expected += np.count_nonzero((c.radius >= 3) & (c.prediction == y) & ~half)
    assert plan.held_out[20] == expected / len(X)


def test_a_class_that_could_be_removed_is_checked():
    # Two labels of class 2 are all there is of it: whoever flips both removes it, whatever they weigh.
    X = np.eye(12)
    y = np.array([0] * 5 + [1] * 5 + [2] * 2)
    model = KernelRidge(kernel="linear", reg=0.01, n_jobs=1).fit(X, y)
    point = X[10:11] + X[11:12]
    plan = flipcert.plan_audit(model, point, 2, flips=2)
    assert plan.certified[0] == 0.0
    assert set(plan.indices) & {10, 11}
    best = max(proven(model, X, y, np.isin(np.arange(12), own), point, 2, None) for own in combinations(range(12), 2))
    assert plan.certified[2] == best


def test_one_pair_is_planned_at_its_best():
    """For one point and two classes, the largest gains are best: no other choice proves it with fewer checks."""
    rng = np.random.default_rng(5)
    for _ in range(4):
        X, y = rng.normal(size=(7, 2)), np.append([0, 1], rng.integers(0, 2, 5))
        model = KernelRidge(kernel="rbf", classes=[0, 1], n_jobs=1).fit(X, y)
        plan = flipcert.plan_audit(model, X[:1] + 0.1, 4, flips=2)
        for k in range(5):
            best = max(
                proven(model, X, y, np.isin(np.arange(7), own), X[:1] + 0.1, 2, None)
                for own in combinations(range(7), k)
            )
            assert plan.certified[k] == best


def test_plans_are_saved_shown_and_plotted(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.integers(0, 3, 40)
    model = KernelSVM(kernel="rbf", n_jobs=1).fit(X, y, source=rng.integers(0, 6, 40))
    for threat in ("flips", "sources"):
        plan = flipcert.plan_audit(model, X, 4, flips=2, y=y, threat=threat, held_out=True)
        plan.save(tmp_path / "plan.npz")
        back = AuditPlan.load(tmp_path / "plan.npz")
        for name in ("indices", "certified", "weighs_on", "held_out", "random", "checked"):
            assert np.array_equal(getattr(back, name), getattr(plan, name))
        assert (back.sources is None) == (threat == "flips")
        assert back.flips == 2
        assert repr(back) == repr(plan)
        frame = plan.to_frame()
        assert frame["certified"].tolist() == plan.certified.tolist()
        assert (
            frame["source" if threat == "sources" else "label"][1:].tolist()
            == (plan.indices if threat == "flips" else plan.sources).tolist()
        )
        assert len(plan.plot().axes[0].lines) == 3
    assert "4 sources to check; certified accuracy at 2 sources of 40 points" in repr(plan)
    with pytest.raises(ValueError, match="is not a file of a saved audit plan"):
        AuditPlan.load(_other_file(tmp_path, model, X))


def _other_file(folder, model, X):
    model.certify(X).save(folder / "certificates.npz")
    return folder / "certificates.npz"


class Looker(Watcher):
    def __init__(self):
        self.done = {}

    def begin(self, total, unit):
        self.unit, self.done[unit] = unit, [total, 0]

    def advance(self, units):
        self.done[self.unit][1] += units


def test_progress_is_shown():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 3)), rng.integers(0, 3, 80)
    looker = Looker()
    with watched_by(looker):
        flipcert.plan_audit(KernelRidge(n_jobs=1).fit(X, y), X, 12, flips=2)
    assert looker.done["labels"] == [12, 12]
    assert looker.done["points"][0] == looker.done["points"][1]


def fitted():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)), np.append([0, 1], rng.integers(0, 2, 18))
    return KernelRidge(n_jobs=1).fit(X, y, trusted=np.arange(20) < 5), X, y


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_labels": 16}, "n_labels must be at most the 15 labels that are not trusted yet; got 16"),
        ({"n_labels": 0}, "n_labels must be at least 1; got 0"),
        ({"n_labels": 2.5}, "n_labels must hold whole numbers; got 2.5"),
        ({"flips": 0}, "flips must be at least 1; got 0"),
        ({"flips": "ten"}, "flips must hold whole numbers; got 'ten'"),
        ({"flips": [1, 2]}, "flips must be a single number"),
        ({"flips": 21}, "flips must be at most the 20 labels that there are; got 21"),
        ({"y": [0, 1]}, "y"),
        ({"threat": "deletions"}, "refused by KernelRidge"),
        ({"threat": "sources"}, "nobody said who gave the labels"),
        ({"held_out": "yes"}, "held_out must be True or False"),
        ({"X": np.zeros((3, 7))}, "X has 7 features, but KernelRidge is expecting 3"),
    ],
)
def test_bad_input_is_told_in_one_sentence(options, message):
    model, X, _ = fitted()
    given = {"X": X, "n_labels": 3, "flips": 2} | options
    with pytest.raises(ValueError, match=message):
        flipcert.plan_audit(model, **given)


def test_what_cannot_be_planned_is_refused():
    _, X, y = fitted()
    with pytest.raises(Exception, match="not fitted yet"):
        flipcert.plan_audit(KernelRidge(), X, 2, flips=1)
    for model in (flipcert.SmoothedLinear(), flipcert.MilpSVM()):
        with pytest.raises(ValueError, match="no audit can be planned: it needs a label-linear model"):
            flipcert.plan_audit(model.fit(X, y), X, 2, flips=1)
    black_box = PartitionEnsemble(LogisticRegression(), 2, n_jobs=1).fit(X, y)
    with pytest.raises(ValueError, match="needs label-linear base classifiers, such as KernelRidge; got LogisticReg"):
        flipcert.plan_audit(black_box, X, 2, flips=1)
    with pytest.raises(TypeError, match="has no certificate"):
        flipcert.plan_audit(LogisticRegression().fit(X, y), X, 2, flips=1)
    empty = PartitionEnsemble(KernelRidge(classes=[0, 1]), 60, partition="hash", classes=[0, 1], n_jobs=1)
    with pytest.raises(ValueError, match="a partition of PartitionEnsemble holds no label; use fewer partitions"):
        flipcert.plan_audit(empty.fit(X, y), X, 2, flips=1)
    ensemble = PartitionEnsemble(KernelRidge(), 2, n_jobs=1).fit(X, y, source=np.arange(20) % 4)
    with pytest.raises(ValueError, match="planned for flips only"):
        flipcert.plan_audit(ensemble, X, 2, flips=1, threat="sources")
    model, X, _ = fitted()
    with pytest.raises(ValueError, match="order names something twice"):
        flipcert.measure_audit(model, X, [3, 3], flips=1)
    with pytest.raises(ValueError, match="order must be at most 19; got 20"):
        flipcert.measure_audit(model, X, [20], flips=1)
    by_source = KernelRidge(n_jobs=1).fit(X, y, source=np.arange(20) % 4)
    with pytest.raises(ValueError, match="order names the source 9, which gave no label"):
        flipcert.measure_audit(by_source, X, [1, 9], flips=1, threat="sources")

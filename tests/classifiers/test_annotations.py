"""Several labels a row: every label-linear model against all labellings of small data, in exact numbers."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import flipcert
from flipcert.engine.cluster.packing import pack, unpack
from flipcert.kernels import RBF
from tests.helpers.models import weights_of

MODELS = [
    flipcert.KernelSVM(),
    flipcert.KernelSVM("rbf"),
    flipcert.KernelRidge(reg=0.3),
    flipcert.KernelRidge(RBF(0.5), reg=0.1),
    flipcert.WeightedNeighbors(3),
    flipcert.WeightedNeighbors(4, weights="distance"),
    flipcert.LabelSpreading(3),
]


def stored_weights(of_rows, row, weight=None):
    """Weights of the annotations as they are stored: the rounded share times the weight of the row, rounded."""
    given_ones = [1.0] * len(row) if weight is None else [float(own) for own in weight]
    totals = {i: sum(w for w, r in zip(given_ones, row, strict=True) if r == i) for i in set(row)}
    return [float(of_rows[i]) * (own / totals[i]) for i, own in zip(row, given_ones, strict=True)]


def fewest(weights, codes, n_classes, trusted, source, is_fixed):
    """The prediction, and over all labellings the fewest flips, and the fewest sources, that lead to each class."""
    numbers = [Fraction(own) for own in weights]

    def winner(labelling):
        present = range(n_classes) if is_fixed else sorted(set(labelling))
        scores = [sum(w for w, c in zip(numbers, labelling, strict=True) if c == own) for own in present]
        return present[scores.index(max(scores))] if len(present) > 1 else None

    options = [[c] if fixed else range(n_classes) for c, fixed in zip(codes, trusted, strict=True)]
    flips, sources = ([limit + 1] * n_classes for limit in (len(codes), len(set(source))))
    for labelling in itertools.product(*options):
        if (to := winner(labelling)) is not None:
            changed = [k for k in range(len(codes)) if labelling[k] != codes[k]]
            flips[to] = min(flips[to], len(changed))
            sources[to] = min(sources[to], len({source[k] for k in changed}))
    return winner(codes), {"flips": flips, "sources": sources}


@st.composite
def problems(draw):
    """Weights of rows, annotations of them, and a label space."""
    n_rows = draw(st.integers(1, 3))
    n_classes = draw(st.integers(2, 4))
    most = {2: 8, 3: 6, 4: 5}[n_classes]
    more = draw(st.lists(st.integers(0, n_rows - 1), max_size=most - n_rows))
    row = draw(st.permutations([*range(n_rows), *more]))
    n = len(row)
    kinds = [st.integers(-3, 3).map(float), st.floats(-2, 2, allow_nan=False, width=32), st.integers(0, 3).map(float)]
    of_rows = draw(st.lists(draw(st.sampled_from(kinds)), min_size=n_rows, max_size=n_rows))
    weight = draw(st.none() | st.lists(st.integers(0, 4), min_size=n, max_size=n))
    if weight is not None and any(
        sum(w for w, r in zip(weight, row, strict=True) if r == i) == 0 for i in range(n_rows)
    ):
        weight = None
    codes = draw(st.lists(st.integers(0, n_classes - 1), min_size=n, max_size=n))
    trusted = draw(st.lists(st.booleans(), min_size=n, max_size=n) | st.just([False] * n))
    source = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    is_fixed = draw(st.booleans())
    return of_rows, row, weight, codes, n_classes, trusted, source, is_fixed


def check_against_all_labellings(problem, threats=("flips", "sources")):
    of_rows, row, weight, codes, n_classes, trusted, source, is_fixed = problem
    n_rows = len(of_rows)
    if not is_fixed:
        # The label space is what the labels show.
        present = sorted(set(codes))
        codes, n_classes = [present.index(c) for c in codes], len(present)
        if n_classes < 2:
            return
    annotations = flipcert.Annotations(row, codes, source, weight, np.array(trusted))
    # Any symmetric training kernel will do: small C leaves it out of the weights.
    model = flipcert.KernelSVM("precomputed", classes=range(n_classes) if is_fixed else None)
    model.fit(np.eye(n_rows), annotations)
    test = np.array([of_rows])
    weights = stored_weights(of_rows, row, weight)
    prediction, costs = fewest(weights, codes, n_classes, trusted, source, is_fixed)
    assert model.predict(test).tolist() == [prediction]
    for threat in threats:
        check_threat(
            model, test, annotations, threat, costs[threat], {"flips": len(row), "sources": len(set(source))}[threat]
        )
    return 1


def check_threat(model, test, annotations, threat, costs, limit):
    """Radius, costs and witness of one point are those that were found by trying everything."""
    (prediction,) = model.predict(test).tolist()
    cost = min(np.delete(costs, prediction))
    certificates = model.certify(test, threat=threat)
    assert certificates.limit == limit
    assert certificates.n_labels == len(annotations)
    assert certificates.radius.tolist() == certificates.radius_upper.tolist() == [cost - 1]
    check_costs(model, test, threat, costs)
    (witness,) = model.worst_flips(test, threat=threat)
    assert (witness is None) == (cost > limit)
    if witness is not None:
        assert len(witness) == cost
        assert annotations.trusted is None or not annotations.trusted[witness.indices].any()
        assert threat == "flips" or set(annotations.source[witness.indices]) <= set(witness.sources)
        after = clone(model).fit(np.eye(annotations.n_rows), witness.apply(annotations))
        assert after.predict(test)[0] != prediction


def check_costs(model, test, threat, costs):
    (lower,) = model.flip_costs(test, threat=threat)
    (upper,) = model.flip_costs(test, bound="upper", threat=threat)
    assert (lower <= costs).all()
    assert (upper >= costs).all()
    if model.classes is not None:
        assert model.flip_costs(test, bound="exact", threat=threat).tolist() == [costs]


@settings(max_examples=300)
@given(problems())
def test_all_labellings(problem):
    check_against_all_labellings(problem)


def some_annotations(rng, n_rows, n_annotations, n_classes, n_sources=3):
    """Rows in no order, all of them there."""
    row = rng.permutation(np.append(np.arange(n_rows), rng.integers(0, n_rows, n_annotations - n_rows)))
    label, source = rng.integers(0, n_classes, n_annotations), rng.integers(0, n_sources, n_annotations)
    return flipcert.Annotations(row, label, source, rng.integers(1, 5, n_annotations), rng.random(n_annotations) < 0.2)


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_fitting_again_on_all_labellings(model, n_classes):
    """No oracle but fit and predict: labels that are not trusted are put in every way there is."""
    rng = np.random.default_rng(n_classes)
    n = {2: 8, 3: 6}[n_classes]
    for _ in range(3):
        X, test = rng.normal(size=(5, 2)), rng.normal(size=(6, 2))
        annotations = some_annotations(rng, 5, n, n_classes)
        model = clone(model).set_params(classes=range(n_classes), n_jobs=1).fit(X, annotations)
        prediction, certificates = model.predict(test), model.certify(test)
        costs = np.full(len(test), n + 1)
        options = [
            [c] if fixed else range(n_classes) for c, fixed in zip(annotations.label, annotations.trusted, strict=True)
        ]
        other = clone(model)
        for labelling in itertools.product(*options):
            flips = np.count_nonzero(annotations.label != labelling)
            changed = other.fit(X, annotations.relabelled(labelling)).predict(test) != prediction
            costs[changed] = np.minimum(costs[changed], flips)
        assert certificates.radius.tolist() == (costs - 1).tolist()
        for t, witness in enumerate(model.worst_flips(test)):
            assert (witness is None) == (costs[t] > n)
            if witness is not None:
                assert len(witness) == costs[t]
                assert other.fit(X, witness.apply(annotations)).predict(test[t : t + 1]) != prediction[t]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_one_annotation_a_row_is_the_plain_model(model, dtype, blobs):
    X, y, X_test, _ = blobs
    X, X_test = X.astype(dtype), X_test.astype(dtype)
    trusted, source = np.arange(30) % 4 == 0, np.arange(30) % 7
    plain = clone(model).fit(X, y, trusted=trusted, source=source)
    order = np.random.default_rng(0).permutation(30)
    for place in (np.arange(30), order):
        weight = np.full(30, 0.3)
        annotations = flipcert.Annotations(place, y[place], source[place], weight, trusted[place])
        own = clone(model).fit(X, annotations)
        assert np.array_equal(weights_of(own, X_test), weights_of(plain, X_test)[:, place])
        same = [own.decision_function(X_test), plain.decision_function(X_test)]
        assert np.array_equal(*same) if place is not order else np.allclose(*same, rtol=1e-5)
        one, other = own.certify(X_test), plain.certify(X_test)
        for name in ("prediction", "radius", "radius_upper", "runner_up", "target", "rounding_sensitive"):
            assert np.array_equal(getattr(one, name), getattr(other, name)), name
        assert one.model == other.model
        assert (one.n_labels, one.n_attackable, one.n_sources) == (other.n_labels, other.n_attackable, 7)
        for mine, theirs in zip(own.worst_flips(X_test), plain.worst_flips(X_test), strict=True):
            assert (mine is None) == (theirs is None)
            assert mine is None or len(mine) == len(theirs)


def test_rows_are_fitted_to_the_mean_of_their_labels():
    rng = np.random.default_rng(4)
    X, X_test = rng.normal(size=(20, 3)), rng.normal(size=(9, 3))
    annotations = some_annotations(rng, 20, 61, 3)
    targets = np.zeros((20, 3))
    for i, c, weight in zip(annotations.row, annotations.label, annotations.weight, strict=True):
        targets[i, c] += weight / annotations.weight[annotations.row == i].sum()
    assert np.allclose(targets.sum(axis=1), 1)
    kernel = RBF(0.5)
    expected = kernel(X_test, X) @ np.linalg.solve(kernel(X) + 0.1 * np.eye(20), targets)
    model = flipcert.KernelRidge(kernel, reg=0.1).fit(X, annotations)
    assert np.allclose(model.decision_function(X_test), expected)
    model = flipcert.KernelSVM(kernel).fit(X, annotations)
    assert np.allclose(model.decision_function(X_test), kernel(X_test, X) @ targets)
    # Who has a label is nothing that the regime of small C depends on.
    assert model.C_max_ == flipcert.KernelSVM(kernel).fit(X, np.arange(20) % 3).C_max_
    nearest = ((X_test[:, None] - X) ** 2).sum(axis=2).argsort(axis=1)[:, :4]
    model = flipcert.WeightedNeighbors(4).fit(X, annotations)
    assert np.allclose(model.decision_function(X_test), targets[nearest].mean(axis=1))


def test_replay_makes_one_flip_after_the_other(blobs):
    X, _, X_test, _ = blobs
    rng = np.random.default_rng(2)
    annotations = some_annotations(rng, 30, 80, 3)
    for model in (flipcert.KernelRidge(reg=0.3), flipcert.WeightedNeighbors(9)):
        model.fit(X, annotations)
        (witness,) = model.worst_flips(X_test[:1])
        path = model.replay(X_test[:1], witness)
        assert np.allclose(path[0], model.decision_function(X_test[:1])[0])
        after = clone(model).fit(X, witness.apply(annotations))
        assert np.allclose(path[-1], after.decision_function(X_test[:1])[0])
        assert len(path) == len(witness) + 1


def test_an_annotation_of_weight_zero_still_names_a_class():
    X = np.eye(3)
    annotations = flipcert.Annotations([0, 0, 1, 2], ["a", "c", "b", "b"], weight=[1, 0, 1, 1])
    model = flipcert.KernelSVM("linear").fit(X, annotations)
    assert model.classes_.tolist() == ["a", "b", "c"]
    # All other scores are negative.
    assert model.predict([[-1.0, -1.0, -1.0]]).tolist() == ["c"]
    (witness,) = model.worst_flips([[-1.0, -1.0, -1.0]])
    assert model.certify([[-1.0, -1.0, -1.0]]).radius.tolist() == [0]
    assert model.fit(X, witness.apply(annotations)).predict([[-1.0, -1.0, -1.0]]) != "c"


def test_pipelines(blobs):
    X, _, X_test, _ = blobs
    annotations = some_annotations(np.random.default_rng(0), 30, 70, 3)
    pipeline = make_pipeline(StandardScaler(), flipcert.LabelFree(PCA(1)), flipcert.KernelRidge()).fit(X, annotations)
    certificates = flipcert.certify(pipeline, X_test)
    assert certificates.n_labels == 70
    assert certificates.model["preprocessing"] == "StandardScaler, LabelFree(transformer=PCA(n_components=1))"
    inputs = PCA(1).fit(StandardScaler().fit_transform(X))
    scaled = StandardScaler().fit(X)
    alone = flipcert.KernelRidge().fit(inputs.transform(scaled.transform(X)), annotations)
    assert np.array_equal(certificates.radius, alone.certify(inputs.transform(scaled.transform(X_test))).radius)
    for t, witness in enumerate(flipcert.worst_flips(pipeline, X_test)):
        again = clone(pipeline).fit(X, witness.apply(annotations))
        assert again.predict(X_test[t : t + 1]) != certificates.prediction[t]


@pytest.mark.parametrize("model", [flipcert.KernelRidge(), flipcert.WeightedNeighbors(9)], ids=str)
def test_trusted_annotations_only_raise_radii(model, blobs):
    X, y, X_test, _ = blobs
    row = np.arange(90) % 30
    free = flipcert.Annotations(row, y[row])
    fixed = flipcert.Annotations(row, y[row], trusted=np.arange(90) >= 30)
    model = clone(model).set_params(classes=[0, 1, 2])
    before, after = (clone(model).fit(X, own).certify(X_test) for own in (free, fixed))
    assert (before.radius <= after.radius).all()
    assert (before.radius < after.radius).any()
    assert (before.n_attackable, after.n_attackable) == (90, 30)
    # All trusted: nothing changes a prediction.
    everything = flipcert.Annotations(row, y[row], trusted=np.ones(90, bool))
    assert clone(model).fit(X, everything).certify(X_test).radius.tolist() == [90] * 15


def test_a_fitted_model_travels(blobs):
    X, _, X_test, _ = blobs
    model = flipcert.KernelRidge().fit(X, some_annotations(np.random.default_rng(1), 30, 90, 3))
    there = unpack(pack(model))
    assert np.array_equal(there.certify(X_test).radius, model.certify(X_test).radius)


def test_what_each_source_could_do_alone(blobs):
    X, y, X_test, _ = blobs
    rng = np.random.default_rng(3)
    row = np.append(np.arange(30), rng.integers(0, 30, 40))
    source = rng.choice(list("abcdefgh"), 70)
    annotations = flipcert.Annotations.capped(row, np.where(rng.random(70) < 0.8, y[row], 0), source, cap=5)
    model = flipcert.KernelRidge(RBF(0.5), classes=[0, 1, 2]).fit(X, annotations)
    ids, labels, points = model.source_powers(X_test)
    weights, prediction = weights_of(model, X_test), model.predict(X_test)
    assert labels.tolist() == [np.count_nonzero(source == own) for own in ids]
    for own, count in zip(ids, points, strict=True):
        changed = 0
        for row_of_weights, first in zip(weights, prediction, strict=True):
            scores = [sum(Fraction(float(w)) for w in row_of_weights[annotations.label == c]) for c in range(3)]
            gains = [Fraction(0)] * 3
            for w, c in zip(row_of_weights[source == own], annotations.label[source == own], strict=True):
                for to in set(range(3)) - {first}:
                    # What the label does for the class that is to pass the first, before and at best.
                    side = {to: 1, int(first): -1}
                    gains[to] += Fraction(abs(float(w))) - side.get(int(c), 0) * Fraction(float(w))
            changed += any(
                gains[to] - (scores[first] - scores[to]) > 0 or (to < first and gains[to] == scores[first] - scores[to])
                for to in set(range(3)) - {int(first)}
            )
        assert count == changed
    alone = model.certify(X_test, threat="sources").radius == 0
    assert points.max() <= alone.sum() <= points.sum()
    assert 0 < alone.sum() < 15

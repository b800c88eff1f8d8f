"""Label spreading: the operator it applies, what brute force says of it, and what rows without labels do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import flipcert
from flipcert.linear.spreading import ACCURACY
from tests.helpers.models import weights_of
from tests.helpers.spreading_oracle import costs_by_refits, dense_inverse, dense_polynomial

ALPHAS = [0.001, 0.5, 0.9, 0.99, 0.999]


def random_rows(rng, kind, *shape):
    """Few values, so that copies and ties are everywhere; tenths, which are no doubles; or no ties at all."""
    if kind == "grid":
        return rng.integers(0, 3, shape).astype(float)
    return np.round(rng.normal(size=shape), 1 if kind == "tenths" else 17)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("kind", ["grid", "tenths", "plain"])
def test_weights_are_the_polynomial_and_close_to_the_inverse(kind, alpha):
    rng = np.random.default_rng(0)
    for n_labeled, n_further, n_neighbors in [(1, 0, 3), (2, 0, 5), (30, 0, 4), (30, 20, 4), (12, 1, 12), (3, 60, 2)]:
        X, X_test = (random_rows(rng, kind, rows, 3) for rows in (n_labeled + n_further, 15))
        y = np.arange(n_labeled) % 2
        model = flipcert.LabelSpreading(n_neighbors, alpha, classes=[0, 1])
        model.fit(X[:n_labeled], y, unlabeled=X[n_labeled:] if n_further else None)
        weights = weights_of(model, X_test)
        asked = X, X_test, n_labeled, n_neighbors, alpha
        wanted = dense_polynomial(*asked, model.n_steps_)
        assert np.abs(weights - wanted).max() <= 1e-11 * max(1.0, wanted.max())
        limit = dense_inverse(*asked)
        degree = max(1, min(n_neighbors, len(X) - 1))
        start = np.sqrt(len(X) / degree)  # no row of s_t is longer
        assert np.linalg.norm(weights - limit, axis=1).max() <= ACCURACY / (1 - alpha) * start
        assert (weights >= 0).all()


@pytest.mark.parametrize(("alpha", "steps"), [(0.5, 10), (0.9, 30), (0.99, 97)])
def test_steps_are_known_beforehand_and_few(alpha, steps, blobs):
    X, y, _, _ = blobs
    model = flipcert.LabelSpreading(alpha=alpha)
    assert model.fit(X, y).n_steps_ == model.fit(X[:9], y[:9]).n_steps_ == steps
    neumann = np.log(ACCURACY) / np.log(alpha)
    assert steps < neumann / 1.8


@pytest.mark.parametrize("kind", ["grid", "tenths", "plain"])
def test_permuting_rows_permutes_weights(kind):
    rng = np.random.default_rng(1)
    for _ in range(10):
        X, further, X_test = (random_rows(rng, kind, rows, 2) for rows in (25, 10, 8))
        y, order, shuffled = np.arange(25) % 3, rng.permutation(25), rng.permutation(10)
        model = flipcert.LabelSpreading(3)
        before = weights_of(model.fit(X, y, unlabeled=further), X_test)
        certified = model.certify(X_test)
        after = weights_of(model.fit(X[order], y[order], unlabeled=further[shuffled]), X_test)
        error = np.linalg.norm(after - before[:, order], axis=1)
        assert error.max() <= 1e-13
        # By no more than certificates are told that they could move.
        weights = model.label_linear_.weights
        near = weights.features(X_test)
        assert (error <= 16 * weights.rounding(near, after)).all()
        agrees = model.certify(X_test).radius == certified.radius
        assert (agrees | certified.rounding_sensitive).all()


@given(st.integers(0, 10**6), st.sampled_from(["grid", "tenths", "plain"]), st.booleans(), st.booleans())
def test_all_labellings_through_fit_and_predict(seed, kind, fixed, trusts):
    rng = np.random.default_rng(seed)
    n_classes = int(rng.integers(2, 4))
    n = int(rng.integers(1, 6 if n_classes == 2 else 5))
    X, X_test = random_rows(rng, kind, n, 2), random_rows(rng, kind, 3, 2)
    further = random_rows(rng, kind, int(rng.integers(1, 5)), 2) if rng.random() < 0.5 else None
    y = rng.integers(0, n_classes, n)
    fixed |= np.unique(y).size < 2
    space = np.arange(n_classes) if fixed else np.unique(y)
    free = rng.random(n) < 0.7 if trusts else np.ones(n, bool)
    model = flipcert.LabelSpreading(
        int(rng.integers(1, 5)), float(rng.choice(ALPHAS)), classes=space if fixed else None, n_jobs=1
    )
    costs = costs_by_refits(model, X, y, X_test, space, free, further)
    model.fit(X, y, trusted=~free, unlabeled=further)
    certificates = model.certify(X_test)
    now = np.arange(3), np.searchsorted(space, certificates.prediction)
    assert not costs[now].any()
    if fixed:
        assert np.array_equal(model.flip_costs(X_test, bound="exact"), costs)
    assert (model.flip_costs(X_test) <= costs).all()
    assert (model.flip_costs(X_test, bound="upper") >= costs).all()
    costs[now] = n + 1
    assert certificates.exact.all()
    assert np.array_equal(certificates.radius, costs.min(axis=1) - 1)
    for t, witness in enumerate(model.worst_flips(X_test)):
        if witness is None:
            assert certificates.radius[t] == n
            continue
        assert len(witness) == certificates.radius[t] + 1
        assert free[witness.indices].all()
        refit = flipcert.LabelSpreading(**model.get_params()).fit(X, witness.apply(y), unlabeled=further)
        assert refit.predict(X_test)[t] == certificates.target[t] != certificates.prediction[t]


def test_a_single_row_gives_its_label_to_all():
    for label in (0, 1):
        model = flipcert.LabelSpreading(classes=[0, 1]).fit([[2.0]], [label])
        certificates = model.certify([[2.0], [50.0]])
        assert certificates.prediction.tolist() == [label, label]
        assert certificates.radius.tolist() == [0, 0]
        assert model.decision_function([[3.0]]) == (1 if label else -1)


def test_copies_of_a_row_are_neighbours_and_no_row_is_its_own():
    # Two copies and a third row: with one neighbour each, the copies have each other, the third has both.
    X = np.array([[0.0], [0.0], [1.0]])
    model = flipcert.LabelSpreading(1, 0.5).fit(X, [0, 1, 1])
    graph = model.label_linear_.weights._graph
    assert np.split(graph.members, graph.begins[1:-1])[0].tolist() == [1, 2]
    assert graph.degrees.tolist() == [2, 2, 2]
    weights = weights_of(model, np.array([[0.0]]))[0]
    assert weights[0] == weights[1] > weights[2]


def test_points_that_no_label_reaches():
    X, further = np.array([[0.0], [0.1], [0.2]]), np.array([[100.0], [100.1], [100.2]])
    model = flipcert.LabelSpreading(2, classes=[0, 1]).fit(X, [1, 1, 1], unlabeled=further)
    certificates = model.certify([[100.05], [0.05]])
    assert certificates.prediction.tolist() == [0, 1]
    assert certificates.radius.tolist() == [3, 1]
    assert certificates.exact.all()
    assert not certificates.rounding_sensitive.any()
    assert not model.decision_function([[100.05]]).any()


def test_rows_without_labels_carry_them(digits):
    X, y, X_test, y_test = digits
    few = slice(0, 60)
    alone = flipcert.LabelSpreading().fit(X[few], y[few])
    carried = flipcert.LabelSpreading().fit(X[few], y[few], unlabeled=X_test)
    assert carried.score(X_test, y_test) > alone.score(X_test, y_test) + 0.03
    assert carried.label_linear_.weights.n_samples == 60
    none = flipcert.LabelSpreading().fit(X[few], y[few], unlabeled=X[:0])
    assert np.array_equal(weights_of(none, X_test), weights_of(alone, X_test))


def test_digits_are_certified_well():
    X, y = load_digits(return_X_y=True)
    accuracy, certified = [], []
    for seed in range(3):
        X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=360, random_state=seed)
        certificates = flipcert.LabelSpreading().fit(X_train, y_train).certify(X_test)
        accuracy.append(np.mean(certificates.prediction == y_test))
        certified.append(certificates.certified_accuracy(y_test, 10))
    assert np.mean(accuracy) >= 0.955
    assert np.mean(certified) >= 0.80


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_bit_depends_on_the_company_of_a_point(dtype, digits):
    X, y, X_test = digits[0].astype(dtype), digits[1], digits[2].astype(dtype)
    model = flipcert.LabelSpreading().fit(X, y)
    together = weights_of(model, X_test[:60])
    assert together.dtype == dtype
    assert np.array_equal(together[17:18], weights_of(model, X_test[17:18]))
    assert np.array_equal(together[::-7], weights_of(model, X_test[:60][::-7]))
    other = flipcert.LabelSpreading(n_jobs=1).fit(X, y)
    assert np.array_equal(together, weights_of(other, X_test[:60]))
    assert np.array_equal(model.certify(X_test).radius, other.certify(X_test).radius)
    assert not model.certify(X_test).rounding_sensitive.any()
    with config_context(working_memory=1):
        little = flipcert.LabelSpreading().fit(X, y)
        assert np.array_equal(together, weights_of(little, X_test[:60]))
        assert np.array_equal(little.certify(X_test[:60]).radius, model.certify(X_test[:60]).radius)


@pytest.mark.parametrize("scale", [2.0**-300, 2.0**300, 5e-324])
def test_weights_do_not_depend_on_the_unit(scale, blobs):
    X, y, X_test, _ = (np.round(4 * part) for part in blobs)
    reference = weights_of(flipcert.LabelSpreading(4).fit(X, y), X_test)
    scaled = weights_of(flipcert.LabelSpreading(4).fit(X * scale, y), X_test * scale)
    assert np.array_equal(scaled, reference)


def test_rows_must_stay(blobs):
    X, y, X_test, _ = blobs
    model = flipcert.LabelSpreading().fit(X, y)
    for threat in ("deletions", "insertions", "replacements", "edits"):
        with pytest.raises(
            ValueError, match=f'threat="{threat}" is refused by LabelSpreading: the graph of neighbours'
        ):
            model.certify(X_test, threat=threat)


def test_ensembles_fit_each_part_alone(blobs):
    X, y, X_test, _ = blobs
    base = flipcert.LabelSpreading(4, classes=[0, 1, 2])
    ensemble = flipcert.PartitionEnsemble(base, 7, classes=[0, 1, 2]).fit(X, y)
    certificates = ensemble.certify(X_test)
    assert (certificates.radius >= certificates.blackbox_radius).all()
    for t, witness in enumerate(ensemble.worst_flips(X_test)):
        again = flipcert.PartitionEnsemble(base, 7, classes=[0, 1, 2]).fit(X, witness.apply(y))
        assert again.predict(X_test)[t] != certificates.prediction[t]


def test_pipelines_sources_annotations_and_collective_certificates(blobs):
    X, y, X_test, y_test = blobs
    source = np.arange(30) % 8
    pipeline = make_pipeline(StandardScaler(), flipcert.LabelSpreading(4)).fit(X, y, labelspreading__source=source)
    in_sources = flipcert.certify(pipeline, X_test, threat="sources")
    assert (in_sources.radius <= flipcert.certify(pipeline, X_test).radius).all()
    assert in_sources.model["model"] == "spreading"
    twice = flipcert.Annotations(np.repeat(np.arange(30), 2), np.repeat(y, 2))
    annotated = flipcert.LabelSpreading(4).fit(X, twice, unlabeled=X_test)
    assert np.array_equal(
        annotated.predict(X_test), flipcert.LabelSpreading(4).fit(X, y, unlabeled=X_test).predict(X_test)
    )
    together = annotated.certify_collectively(X_test, [1, 3], y_test)
    assert (together.changed_at_most <= together.changed_one_by_one).all()
    assert (together.changed_at_least <= together.changed_at_most).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0.0}, "alpha must be a number above 0 and below 1; got 0.0"),
        ({"alpha": 1}, "alpha must be a number above 0 and below 1; got 1"),
        ({"alpha": np.nan}, "alpha must be a number above 0 and below 1; got nan"),
        ({"alpha": "auto"}, "alpha must be a number above 0 and below 1; got 'auto'"),
        ({"alpha": 1 - 1e-12}, "alpha=0.999999999999 is so close to 1 that labels would have to be spread"),
        ({"n_neighbors": 0}, "n_neighbors must be a positive whole number; got 0"),
        ({"n_neighbors": 2.5}, "n_neighbors must be a positive whole number; got 2.5"),
        ({"n_neighbors": True}, "n_neighbors must be a positive whole number; got True"),
        ({"n_neighbors": None}, "n_neighbors must be a positive whole number; got None"),
    ],
)
def test_bad_parameters(options, message, blobs):
    X, y, _, _ = blobs
    with pytest.raises(ValueError, match=message):
        flipcert.LabelSpreading(**options).fit(X, y)


@pytest.mark.parametrize(
    ("unlabeled", "message"),
    [
        (np.ones((4, 3)), r"unlabeled must hold rows of the 2 features that X has; got shape \(4, 3\)"),
        (np.ones(2), r"unlabeled must hold rows of the 2 features that X has; got shape \(2,\)"),
        ([[0.0, np.nan]], "Input unlabeled contains NaN"),
        ([[0.0, np.inf]], "Input unlabeled contains infinity"),
        (pd.DataFrame({"b": [1.0], "a": [2.0]}), "feature names"),
    ],
)
def test_bad_rows_without_labels(unlabeled, message, blobs):
    X, y, _, _ = blobs
    with pytest.raises(ValueError, match=message):
        flipcert.LabelSpreading().fit(pd.DataFrame(X, columns=["a", "b"]), y, unlabeled=unlabeled)


def test_a_graph_beyond_memory_is_refused(monkeypatch):
    monkeypatch.setattr("flipcert.linear.neighbor_graph.available_memory", lambda: 10_000.0)
    with pytest.raises(ValueError, match=r"so many of the 100 rows are equally far .* n_neighbors=3, with all ties"):
        flipcert.LabelSpreading(3).fit(np.zeros((100, 1)), np.arange(100) % 2)

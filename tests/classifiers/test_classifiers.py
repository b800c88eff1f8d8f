"""What all estimators share: scikit-learn manners, labels of any type, witnesses, precomputed kernels, bad input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import flipcert
from flipcert.kernels import NTK, RBF
from tests.helpers.models import weights_of

MODELS = [
    flipcert.KernelSVM(),
    flipcert.KernelSVM(kernel=NTK(activation="relu")),
    flipcert.KernelRidge(),
    flipcert.KernelRidge(kernel="rbf", reg=0.1),
    flipcert.WeightedNeighbors(),
    flipcert.WeightedNeighbors(n_neighbors=None, weights=RBF()),
    flipcert.WeightedNeighbors(n_neighbors=3, weights="distance"),
    flipcert.LabelSpreading(n_neighbors=4),
]
# Certified by bounds.
PEERS = [
    flipcert.SmoothedLinear(),
    flipcert.SmoothedLinear(method="neyman-pearson"),
    flipcert.MilpSVM("rbf", C=0.1),
    flipcert.LogisticRegression(C=0.1),
    flipcert.BoundedNetwork(loss="squared", learning_rate=0.2, epochs=10, decay=0.0),
]
# Certified by bounds, and no attack is known.
NETWORKS = [
    flipcert.BoundedNetwork(),
    flipcert.BoundedNetwork(hidden=(8,), learning_rate=0.5, epochs=30, decay=0.0),
]
ENSEMBLES = [
    flipcert.PartitionEnsemble(flipcert.KernelSVM(), n_partitions=3),
    flipcert.PartitionEnsemble(flipcert.KernelRidge()),
    flipcert.PartitionEnsemble(DecisionTreeClassifier(), n_partitions=2, partition="random"),
    flipcert.PartitionEnsemble(flipcert.SmoothedLinear(), n_partitions=3),
    flipcert.PartitionEnsemble(flipcert.MilpSVM("rbf"), n_partitions=3),
    flipcert.PartitionEnsemble(flipcert.LabelSpreading(), n_partitions=3),
    flipcert.PartitionEnsemble(flipcert.LogisticRegression(), n_partitions=3),
]


@parametrize_with_checks([*MODELS, *PEERS, *NETWORKS, *ENSEMBLES])
def test_scikit_learn_manners(estimator, check):
    if getattr(check, "func", check).__name__ == "check_array_api_input":
        return  # needs SCIPY_ARRAY_API set before scipy is imported; these estimators do not declare array API support
    check(estimator)


@pytest.mark.parametrize("model", [*MODELS, *PEERS, *NETWORKS], ids=str)
@pytest.mark.parametrize(
    "names", [np.array(["cat", "dog", "emu"]), np.array([30, -2, 7]), np.array(["b", "a", "c"], dtype=object)]
)
def test_labels_of_any_type(model, names, blobs):
    X, y, X_test, _ = blobs
    order = np.unique(names, return_inverse=True)[1]
    plain = clone(model).fit(X, order[y]).certify(X_test)
    named = clone(model).fit(X, names[y])
    certificates = named.certify(X_test)
    assert np.array_equal(named.classes_, np.unique(names))
    assert np.array_equal(certificates.prediction, named.classes_[plain.prediction])
    assert np.array_equal(certificates.radius, plain.radius)
    assert np.array_equal(named.predict(X_test), certificates.prediction)


LAYOUTS = {
    "columns first": np.asfortranarray,
    "every second column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "backwards": lambda X: X[::-1].copy()[::-1],
    "read-only": lambda X: np.frombuffer(X.tobytes(), X.dtype).reshape(X.shape),
    "lists": np.ndarray.tolist,
    "frame": pd.DataFrame,
    "whole numbers": lambda X: X.astype(np.int8),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("model", [*MODELS, *PEERS, *ENSEMBLES[:4]], ids=str)
def test_inputs_of_any_layout(model, layout, blobs):
    X, y, X_test = np.round(2 * blobs[0]), blobs[1], np.round(2 * blobs[2])
    plain = clone(model).fit(X, y)
    other = clone(model).fit(LAYOUTS[layout](X), y)
    expected, certificates = plain.certify(X_test), other.certify(LAYOUTS[layout](X_test))
    assert np.array_equal(certificates.prediction, expected.prediction)
    assert np.array_equal(certificates.radius, expected.radius)
    assert np.array_equal(certificates.radius_upper, expected.radius_upper)
    for one, two in zip(plain.worst_flips(X_test), other.worst_flips(LAYOUTS[layout](X_test)), strict=True):
        assert (one is None) == (two is None)
        assert one is None or np.array_equal(one.indices, two.indices)


def test_boolean_labels(blobs):
    X, y, X_test, _ = blobs
    model = flipcert.KernelSVM().fit(X, y == 1)
    assert model.predict(X_test).dtype == bool
    assert model.decision_function(X_test).shape == (len(X_test),)
    assert np.array_equal(model.decision_function(X_test) > 0, model.predict(X_test))
    assert set(model.worst_flips(X_test)[0].labels.tolist()) <= {True, False}


@pytest.mark.parametrize("model", [*MODELS, *PEERS, *ENSEMBLES[:2], *ENSEMBLES[3:]], ids=str)
def test_witnesses_replay_and_attacks_inside_the_radius_fail(model, blobs):
    X, y, X_test, _ = blobs
    rng = np.random.default_rng(0)
    model = clone(model).set_params(classes=[0, 1, 2]).fit(X, y)
    certificates = model.certify(X_test)
    for t, witness in enumerate(model.worst_flips(X_test)):
        point = X_test[t : t + 1]
        before = certificates.prediction[t]
        assert len(witness) == certificates.radius_upper[t] + 1 == np.unique(witness.indices).size
        flipped = witness.apply(y)
        assert (flipped != y).sum() == len(witness)
        after = clone(model).fit(X, flipped).predict(point)[0]
        assert after != before
        assert after == certificates.target[t]
        # Inside the radius: all but one of the worst flips, and flips at random.
        radius = certificates.radius[t]
        inside = y.copy()
        inside[witness.indices[:radius]] = witness.labels[:radius]
        attacks = [inside]
        for _ in range(5):
            some = rng.choice(len(y), size=radius, replace=False)
            guess = y.copy()
            guess[some] = rng.integers(0, 3, radius)
            attacks.append(guess)
        for attack in attacks:
            assert clone(model).fit(X, attack).predict(point)[0] == before


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_costs_of_an_estimator_are_those_of_its_weights(model, blobs):
    X, y, X_test, _ = blobs
    model = clone(model).fit(X, y)
    weights = weights_of(model, X_test)
    for bound in ("lower", "upper", "exact"):
        costs = model.flip_costs(X_test, bound=bound)
        assert np.array_equal(costs, flipcert.flip_costs(weights, y, 3, bound=bound))
    certificates = model.certify(X_test)
    assert np.array_equal(certificates.radius, np.sort(costs, axis=1)[:, 1] - 1)
    assert certificates.exact.all()
    assert certificates.blackbox_radius is None
    assert np.array_equal(costs[np.arange(len(X_test)), certificates.prediction], np.zeros(len(X_test)))
    scores = model.decision_function(X_test)
    assert np.array_equal(scores.argmax(axis=1), certificates.prediction)
    assert np.array_equal(np.argsort(-scores, axis=1, kind="stable")[:, 1], certificates.runner_up)


@pytest.mark.parametrize("make", [flipcert.KernelSVM, flipcert.KernelRidge])
def test_precomputed_kernel(make, blobs):
    X, y, X_test, _ = blobs
    kernel = RBF(gamma=0.5)
    direct = make(kernel=kernel).fit(X, y)
    given = make(kernel="precomputed").fit(kernel(X), y)
    rows = kernel(X_test, X)
    assert np.array_equal(given.certify(rows).radius, direct.certify(X_test).radius)
    assert not given.certify(rows).rounding_sensitive.any() or make is flipcert.KernelRidge
    assert cross_val_score(given, kernel(X), y, cv=3).shape == (3,)
    with pytest.raises(ValueError, match=r"X must be square with kernel=.precomputed.*got shape \(30, 2\)"):
        make(kernel="precomputed").fit(X, y)


def test_grid_search_over_kernel_depth(blobs):
    X, y, _, _ = blobs
    search = GridSearchCV(
        flipcert.KernelRidge(kernel=NTK(activation="relu")), {"kernel__depth": [1, 2], "reg": [0.1, 1.0]}, cv=3
    ).fit(X, y)
    assert search.best_estimator_.certify(X).radius.shape == (30,)


@pytest.mark.parametrize("model", [*MODELS, *PEERS, *NETWORKS, *ENSEMBLES], ids=str)
def test_classes_may_be_missing_from_the_labels(model, blobs):
    X, y, X_test, _ = blobs
    model = clone(model).set_params(classes=["d", "a", "c", "b"])
    model.fit(X, np.array(["a", "b", "b"])[y])
    assert model.classes_.tolist() == ["a", "b", "c", "d"]
    certificates = model.certify(X_test)
    assert (certificates.radius >= 0).all()
    assert model.flip_costs(X_test).shape == (len(X_test), 4)
    # One class only is fine as long as the label space has more.
    alone = clone(model).fit(X, np.repeat("b", len(y)))
    assert (alone.predict(X_test) == "b").mean() > 0.5


@pytest.mark.parametrize(
    "model",
    [
        flipcert.KernelSVM(),
        flipcert.KernelRidge(),
        flipcert.WeightedNeighbors(),
        flipcert.LabelSpreading(),
        *PEERS,
        *NETWORKS,
        ENSEMBLES[0],
        *ENSEMBLES[3:],
    ],
    ids=str,
)
def test_bad_training_sets(model, blobs):
    X, y, X_test, _ = blobs
    broken = X.copy()
    broken[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        clone(model).fit(broken, y)
    broken[3, 1] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        clone(model).fit(broken, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        clone(model).fit(X, y[:-1])
    with pytest.raises(ValueError, match=r"y has one class only \(.*1.*\).*classes="):
        clone(model).fit(X, np.ones(30, int))
    with pytest.raises(ValueError, match=r"y holds the label 2, which classes=.* does not name"):
        clone(model).set_params(classes=[0, 1]).fit(X, y)
    assert clone(model).set_params(classes={0, 1, 2, 3}).fit(X, y).classes_.tolist() == [0, 1, 2, 3]
    for classes in ([[0, 1], [2, 3]], [0, 1, None]):
        with pytest.raises(ValueError, match="classes must be a list of labels of one type"):
            clone(model).set_params(classes=classes).fit(X, y)
    with pytest.raises(ValueError, match="n_jobs must be None or a whole number other than 0; got 0"):
        clone(model).set_params(n_jobs=0).fit(X, y)
    with pytest.raises(ValueError, match="classes must name at least two classes"):
        clone(model).set_params(classes=[1]).fit(X, np.ones(30, int))
    with pytest.raises(ValueError, match="trusted must be a boolean mask"):
        clone(model).fit(X, y, trusted=np.ones(30))
    with pytest.raises(ValueError, match="trusted must be a boolean mask"):
        clone(model).fit(X, y, trusted=np.ones(29, bool))
    fitted = clone(model).fit(X, y)
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 2 features"):
        fitted.certify(np.ones((2, 3)))
    with pytest.raises(ValueError, match="bound must be one of 'lower', 'upper', 'exact'; got 'middle'"):
        fitted.flip_costs(X_test, bound="middle")


def test_features_too_large_for_the_kernel(blobs):
    X, y, X_test, _ = blobs
    with pytest.raises(ValueError, match=r"overflowed: products .*; rescale the features"):
        flipcert.KernelRidge().fit(X * 1e200, y)
    with pytest.raises(ValueError, match=r"overflowed: products .*; rescale the features"):
        flipcert.KernelSVM(C=1.0).fit(X * 1e200, y)
    with pytest.raises(ValueError, match="overflowed"):
        flipcert.KernelSVM().fit(X * 1e160, y).predict(X_test * 1e160)


def test_a_fitted_model_keeps_its_kernel_whoever_changes_it(blobs):
    X, y, X_test, _ = blobs
    kernel = RBF(gamma=0.3)
    models = (
        flipcert.KernelRidge(kernel, reg=0.1),
        flipcert.KernelSVM(kernel),
        flipcert.WeightedNeighbors(None, kernel),
    )
    for model in models:
        model.fit(X, y)
    before = [model.certify(X_test) for model in models]
    flipcert.KernelRidge(kernel).set_params(kernel__gamma=9.0)
    for model, certificates in zip(models, before, strict=True):
        after = model.certify(X_test)
        assert np.array_equal(after.prediction, certificates.prediction)
        assert np.array_equal(after.radius, certificates.radius)


@pytest.mark.parametrize("exact", [None, "yes", 1, 1.5])
def test_exact_is_true_or_false(exact, blobs):
    X, y, X_test, _ = blobs
    for model in (flipcert.KernelRidge(), flipcert.PartitionEnsemble(flipcert.KernelRidge(), 2)):
        for question in (model.fit(X, y).certify, model.worst_flips):
            with pytest.raises(ValueError, match="exact must be True or False; got"):
                question(X_test, exact=exact)


def test_parameters_that_change_after_fit_change_no_certificate(blobs):
    X, y, X_test, _ = blobs
    smoothed = flipcert.SmoothedLinear(0.05).fit(X, y)
    before = smoothed.certify(X_test)
    after = smoothed.set_params(method="published").certify(X_test)
    assert np.array_equal(before.radius, after.radius)
    assert after.model["method"] == "white-box"
    machine = flipcert.MilpSVM("rbf", C=0.2).fit(X[:10], y[:10])
    scores = machine.decision_function(X_test)
    assert np.array_equal(machine.set_params(C=50.0).decision_function(X_test), scores)

"""BoundedNetwork as its users meet it: radii, attacks, trusted labels, ensembles, messages."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest
import torch
from sklearn import config_context
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

import flipcert
from flipcert.classifiers.network.boxes import Boxes
from flipcert.classifiers.network.function_space import FunctionSpace
from flipcert.classifiers.network.stability import Stability
from tests.helpers.models import votes_of


def test_each_bound_proves_something(digits):
    X, y, X_test, y_test = digits
    centre = X.mean(axis=0)
    model = flipcert.BoundedNetwork().fit(X[:300] - centre, y[:300])
    assert [type(bound) for bound in model._bounds] == [Stability, FunctionSpace, Boxes]
    accuracies = []
    for bound in model._bounds:
        single = clone(model).fit(X[:300] - centre, y[:300])
        single._bounds = [bound]
        accuracies.append(single.certify(X_test - centre).certified_accuracy(y_test, 1))
    both = model.certify(X_test - centre).certified_accuracy(y_test, 1)
    assert max(accuracies) <= both
    assert both > 0.5
    assert min(accuracies) > 0.1


def test_linear_squared_has_witnesses(blobs):
    X, y, X_test, _ = blobs
    model = flipcert.BoundedNetwork(loss="squared", learning_rate=0.1, epochs=3, classes=[0, 1, 2]).fit(X, y)
    certificates = model.certify(X_test)
    assert certificates.exact.all()
    witnesses = model.worst_flips(X_test)
    assert sum(witness is not None for witness in witnesses) > 5
    for t, witness in enumerate(witnesses):
        if witness is None:
            assert certificates.radius[t] == 30
            continue
        assert len(witness) == certificates.radius[t] + 1
        after = clone(model).fit(X, witness.apply(y)).predict(X_test[t : t + 1])[0]
        assert after == certificates.target[t] != certificates.prediction[t]


def test_without_an_attack(blobs):
    X, y, X_test, _ = blobs
    model = flipcert.BoundedNetwork(learning_rate=1.0).fit(X, y)
    certificates = model.certify(X_test)
    assert (certificates.radius_upper == 30).all()
    assert model.worst_flips(X_test) == [None] * 15
    upper = model.flip_costs(X_test, "upper")
    assert (np.sort(upper, axis=1) == [0, 31, 31]).all()
    with pytest.raises(flipcert.UnsolvedError, match="exact cost of class"):
        model.flip_costs(X_test, "exact")


def test_one_value_for_all_classes(blobs):
    X, y, X_test, _ = blobs
    model = flipcert.BoundedNetwork(learning_rate=0.5, method="intervals").fit(X, y)
    by_class = np.sort(model.flip_costs(X_test), axis=1)
    common = np.sort(model.set_params(method="published").fit(X, y).flip_costs(X_test), axis=1)
    assert np.array_equal(common[:, 1], by_class[:, 1])
    assert np.array_equal(common[:, 2], by_class[:, 1])
    assert (by_class[:, 2] > common[:, 2]).any()


@pytest.mark.parametrize("settings", [{}, {"method": "intervals"}, {"loss": "squared", "learning_rate": 0.1}], ids=str)
def test_max_flips_caps_the_search(settings, blobs):
    X, y, X_test, _ = blobs
    model = flipcert.BoundedNetwork(**{"learning_rate": 0.5, **settings}).fit(X, y)
    free = model.flip_costs(X_test)
    capped = clone(model).set_params(max_flips=2).fit(X, y)
    assert np.array_equal(capped.flip_costs(X_test), np.minimum(free, 3))
    assert capped.certify(X_test).radius.max() == 2
    assert np.array_equal(clone(model).set_params(max_flips=30).fit(X, y).flip_costs(X_test), free)
    assert (clone(model).set_params(max_flips=0).fit(X, y).certify(X_test).radius == 0).all()


def test_points_that_hang_on_rounding(blobs):
    X, y, X_test, _ = blobs
    y = y % 2
    model = flipcert.BoundedNetwork(learning_rate=0.1)
    for trusted, radius in ((np.zeros(30, bool), 0), (np.ones(30, bool), 30)):
        model.fit(X, y, trusted=trusted)
        normal, offset = model.coefs_[0] @ [1, -1], model.intercepts_[0] @ [1, -1]
        border = -offset * normal / (normal @ normal)
        certificates = model.certify(np.vstack([border, X_test]))
        assert certificates.rounding_sensitive.tolist() == [True] + [False] * 15
        assert certificates.radius[0] == radius


def test_the_training_set_is_kept(blobs):
    X, y, X_test, _ = blobs
    own = X.copy()
    model = flipcert.BoundedNetwork(learning_rate=1.0).fit(own, y)
    own[:] = 0.0
    assert np.array_equal(
        model.flip_costs(X_test), flipcert.BoundedNetwork(learning_rate=1.0).fit(X, y).flip_costs(X_test)
    )


def test_trusted_labels(blobs):
    X, y, X_test, _ = blobs
    for options in ({}, {"method": "intervals"}, {"hidden": (4,)}, {"loss": "squared", "learning_rate": 0.1}):
        model = flipcert.BoundedNetwork(**{"learning_rate": 0.5, **options})
        free = clone(model).fit(X, y).certify(X_test)
        some = clone(model).fit(X, y, trusted=np.arange(30) % 3 != 0).certify(X_test)
        assert (some.radius >= free.radius).all()
        assert (some.radius > free.radius).any()
        everything = clone(model).fit(X, y, trusted=np.ones(30, bool)).certify(X_test)
        assert (everything.radius == 30).all()
        assert everything.exact.all()


@pytest.mark.parametrize(
    "base",
    [
        flipcert.BoundedNetwork(learning_rate=1.0),
        flipcert.BoundedNetwork(learning_rate=1.0, method="published", random_state=None),
        flipcert.BoundedNetwork(hidden=(4,), learning_rate=0.3),
        flipcert.BoundedNetwork(loss="squared", learning_rate=0.1),
        make_pipeline(PCA(1), flipcert.BoundedNetwork(learning_rate=1.0)),
    ],
    ids=str,
)
def test_white_box_ensembles_are_never_below_black_box(base, blobs):
    X, y, X_test, _ = blobs
    model = flipcert.PartitionEnsemble(base, n_partitions=5).fit(X, y)
    certificates = model.certify(X_test)
    votes = votes_of(model, X_test)
    assert np.array_equal(certificates.blackbox_radius, flipcert.blackbox_radius(votes, 3))
    assert (certificates.radius >= certificates.blackbox_radius).all()
    costs = np.stack([flipcert.certify(e, X_test).radius + 1 for e in model.estimators_], axis=1)
    assert (costs >= 1).all()
    for witness, upper in zip(model.worst_flips(X_test), certificates.radius_upper, strict=True):
        assert (witness is None) == (upper == 30)


def test_a_model_survives_pickling(blobs):
    X, y, X_test, _ = blobs
    model = flipcert.BoundedNetwork(learning_rate=1.0).fit(X, y)
    before = model.flip_costs(X_test)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).flip_costs(X_test), before)


def test_results_do_not_depend_on_threads_or_memory(digits):
    X, y, X_test, _ = digits
    model = flipcert.BoundedNetwork(hidden=(6,), learning_rate=0.2, max_flips=3, clip=0.1)
    expected = clone(model).fit(X[:150], y[:150]).flip_costs(X_test)
    assert expected.max() > 1
    before = torch.get_num_threads()
    for n_jobs, memory in ((1, 1024), (2, 1)):
        with config_context(working_memory=memory):
            costs = clone(model).set_params(n_jobs=n_jobs).fit(X[:150], y[:150]).flip_costs(X_test)
        assert np.array_equal(costs, expected)
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hidden": (0,)}, "hidden must be at least 1; got 0"),
        ({"hidden": 5}, r"hidden must be one-dimensional; got shape \(\)"),
        ({"loss": "hinge"}, "loss must be one of 'cross-entropy', 'squared'; got 'hinge'"),
        ({"epochs": 0}, "epochs must be at least 1; got 0"),
        ({"batch_size": 0}, "batch_size must be at least 1; got 0"),
        ({"batch_size": 31}, "batch_size must be at most 30, the number of samples, .*; got 31"),
        ({"learning_rate": 0}, "learning_rate must be a positive number; got 0"),
        ({"decay": -1.0}, "decay must be a number that is not negative; got -1.0"),
        ({"min_learning_rate": "low"}, "min_learning_rate must be .*; got 'low'"),
        ({"l2": -0.1}, "l2 must be .*; got -0.1"),
        ({"clip": 0}, "clip, if not None, must be a positive number; got 0"),
        ({"method": "best"}, "method must be one of 'auto', 'intervals', 'published'; got 'best'"),
        ({"max_flips": 31}, "max_flips must be at most 30, the number of labels; got 31"),
        ({"max_flips": -1}, "max_flips must be at least 0; got -1"),
        ({"random_state": None}, "random_state must be a whole number, .*; got None"),
        ({"random_state": -1}, "random_state must be at least 0; got -1"),
        ({"loss": "squared", "learning_rate": 1e200}, r"training diverged: .* after step \d of 2; lower learning_rate"),
        ({"hidden": (3,), "learning_rate": 1e300, "epochs": 9}, "training diverged"),
    ],
    ids=str,
)
def test_bad_settings(settings, message, blobs):
    X, y, _, _ = blobs
    with pytest.raises(ValueError, match=message):
        flipcert.BoundedNetwork(**settings).fit(X, y)


def test_features_so_large_that_training_diverges(blobs):
    X, y, _, _ = blobs
    with pytest.raises(ValueError, match="training diverged"):
        flipcert.BoundedNetwork().fit(X * 1e200, y)


def test_without_torch(blobs, monkeypatch):
    X, y, _, _ = blobs
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r'BoundedNetwork needs torch. Install with: pip install "flipcert\[torch\]"'):
        flipcert.BoundedNetwork().fit(X, y)

"""Trusted labels: only the others can be flipped."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

import flipcert
from flipcert.flips.costs import close_gaps, cost_block, radius_block
from flipcert.kernels import RBF
from flipcert.labels.labels import Labels
from tests.helpers.oracles import brute_force_costs
from tests.helpers.strategies import label_problems

MODELS = [
    flipcert.KernelSVM(),
    flipcert.KernelRidge(reg=0.3),
    flipcert.WeightedNeighbors(7),
    flipcert.PartitionEnsemble(flipcert.KernelSVM(RBF(0.5)), n_partitions=4),
    flipcert.PartitionEnsemble(flipcert.KernelRidge(), n_partitions=3),
    flipcert.SmoothedLinear(1e-4, reg=0.1),
    flipcert.PartitionEnsemble(flipcert.SmoothedLinear(1e-4, reg=0.1), n_partitions=3),
    flipcert.MilpSVM("rbf", C=0.1),
    flipcert.LogisticRegression(C=0.1),
    flipcert.PartitionEnsemble(flipcert.MilpSVM("rbf"), n_partitions=3),
]


@settings(max_examples=300)
@given(label_problems(), st.data())
def test_brute_force(problem, data):
    weights, codes, n_classes, offset = problem
    n = len(weights)
    trusted = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    labels = Labels.of(codes, n_classes, trusted)
    offsets = np.zeros((1, n_classes)) if offset is None else offset[None]
    truth = brute_force_costs(weights, codes, n_classes, offset, trusted)
    costs = cost_block(weights[None], labels, offsets)
    assert (costs.lower[0] <= truth).all()
    assert (costs.upper[0] >= truth).all()
    close_gaps(costs, weights[None], labels, offsets, 60.0)
    assert np.array_equal(costs.upper[0], truth)
    others = np.arange(n_classes) != costs.prediction[0]
    assert radius_block(weights[None], labels, offsets).cost[0] == truth[others].min()


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_witnesses_spare_trusted_labels(model, blobs):
    X, y, X_test, _ = blobs
    trusted = np.arange(30) % 3 != 0
    model = clone(model).set_params(classes=[0, 1, 2])
    free = clone(model).fit(X, y).certify(X_test)
    model.fit(X, y, trusted=trusted)
    certificates = model.certify(X_test)
    assert np.array_equal(certificates.prediction, free.prediction)
    assert (certificates.radius >= free.radius).all()
    assert (certificates.radius > free.radius).any()
    for t, witness in enumerate(model.worst_flips(X_test)):
        if witness is None:
            assert certificates.radius_upper[t] == 30
            continue
        assert not trusted[witness.indices].any()
        assert len(witness) == certificates.radius_upper[t] + 1
        assert clone(model).fit(X, witness.apply(y)).predict(X_test[t : t + 1])[0] != certificates.prediction[t]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_all_trusted_cannot_change(model, blobs):
    X, y, X_test, _ = blobs
    certificates = clone(model).fit(X, y, trusted=np.ones(30, bool)).certify(X_test)
    assert (certificates.radius == 30).all()
    assert certificates.exact.all()
    assert certificates.target.mask.all()


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_none_trusted_changes_nothing(model, blobs):
    X, y, X_test, _ = blobs
    plain = clone(model).fit(X, y).certify(X_test)
    masked = clone(model).fit(X, y, trusted=np.zeros(30, bool)).certify(X_test)
    assert np.array_equal(plain.radius, masked.radius)


@pytest.mark.parametrize("base", [flipcert.KernelSVM(), DecisionTreeClassifier()], ids=str)
def test_a_partition_without_untrusted_labels_keeps_its_vote(base, blobs):
    X, y, X_test, _ = blobs
    rule = np.arange(30) % 3
    trusted = rule != 0
    ensemble = flipcert.PartitionEnsemble(base, n_partitions=3, partition=rule, classes=[0, 1, 2])
    model = ensemble.fit(X, y, trusted=trusted)
    certificates = model.certify(X_test)
    votes = np.stack([e.predict(X_test) for e in model.estimators_], axis=1)
    for t in range(len(X_test)):
        # Only the first of the three votes can move; it decides unless the other two agree.
        moved = [np.bincount([c, *votes[t, 1:]], minlength=3).argmax() for c in range(3)]
        if len(set(moved)) == 1:
            assert certificates.blackbox_radius[t] == certificates.radius[t] == 30
        else:
            assert certificates.blackbox_radius[t] == 0
            assert certificates.radius[t] >= 0

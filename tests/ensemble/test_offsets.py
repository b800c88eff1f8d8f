"""Ensembles of models whose scores have a part that no label adds to."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import flipcert
from flipcert.classifiers.certified_by_weights import CertifiedByWeights
from flipcert.ensemble.grey_box import GreyBox
from flipcert.linear.weights import Weights


class Prior(Weights):
    """Whole numbers of the inputs as weights, and more for the first classes whatever the labels are."""

    def __init__(self, X):
        self.n_samples, self.dtype = X.shape[0], X.dtype
        self.X = X

    def form(self, X, out):
        out[:] = np.round(X @ self.X.T)

    def rounding(self, X, formed):
        return np.zeros(X.shape[0])

    def offset(self, X, n_classes):
        return np.tile(np.arange(n_classes, 0.0, -1.0), (X.shape[0], 1))


class WithPrior(CertifiedByWeights):
    def __init__(self, classes=None, n_jobs=None):
        self.classes = classes
        self.n_jobs = n_jobs

    def _make_weights(self, X):
        return Prior(X)


def test_the_offset_is_known_to_be_there():
    assert Prior.has_offset
    assert not Weights.has_offset


class Cautious(flipcert.KernelRidge):
    """Claims less than its weights prove."""

    def flip_costs(self, X, bound="lower", time_limit=60.0):
        return np.minimum(super().flip_costs(X, bound, time_limit), 1)


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.uint8, np.uint64, np.float32])
def test_costs_may_be_numbers_of_any_type(kind, blobs):
    X, y, x, _ = blobs

    class Told(flipcert.KernelRidge):
        def flip_costs(self, X, bound="lower", time_limit=60.0):
            return super().flip_costs(X, bound, time_limit).astype(kind)

    usual = flipcert.PartitionEnsemble(Cautious(), 3).fit(X, y).certify(x)
    assert (flipcert.PartitionEnsemble(Told(), 3).fit(X, y).certify(x).radius >= usual.radius).all()


def test_costs_of_ones_own_are_asked_for(blobs):
    X, y, x, _ = blobs
    usual, cautious = (flipcert.PartitionEnsemble(own, 3).fit(X, y) for own in (flipcert.KernelRidge(), Cautious()))
    certificates = cautious.certify(x)
    assert np.array_equal(certificates.radius, certificates.blackbox_radius)
    assert (usual.certify(x).radius > certificates.radius).any()


@pytest.mark.parametrize("n_partitions", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_all_labellings(n_partitions, seed):
    """Radii against every labelling, through fit and predict."""
    rng = np.random.default_rng(seed)
    X, x = rng.integers(-2, 3, (6, 2)).astype(float), rng.integers(-2, 3, (8, 2)).astype(float)
    y = rng.integers(3, size=6)
    base = WithPrior(classes=[0, 1, 2])
    model = base if n_partitions == 1 else flipcert.PartitionEnsemble(
        WithPrior(), n_partitions, partition=np.arange(6) % n_partitions, classes=[0, 1, 2]
    )  # fmt: skip
    certificates = model.fit(X, y).certify(x, exact=True)
    if n_partitions > 1:
        assert isinstance(model.electorate_, GreyBox)
    witnesses = model.worst_flips(x, exact=True)
    fewest = np.full(len(x), 7)
    for labelling in itertools.product(range(3), repeat=6):
        flips = int((np.array(labelling) != y).sum())
        changed = model.fit(X, np.array(labelling)).predict(x) != certificates.prediction
        fewest = np.where(changed, np.minimum(fewest, flips), fewest)
    assert np.array_equal(certificates.radius, np.where(fewest > 6, 6, fewest - 1))
    for t, witness in enumerate(witnesses):
        if witness is not None:
            assert len(witness) == certificates.radius_upper[t] + 1
            assert model.fit(X, witness.apply(y)).predict(x)[t] != certificates.prediction[t]

"""Base classifiers that only tell their flip costs: any estimator with ``flip_costs(X, bound="lower")``."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import flipcert
from flipcert.results.flip_costs import FlipCosts
from tests.helpers.models import votes_of, weights_of
from tests.helpers.oracles import dynamic_program_radius


class Quoting(ClassifierMixin, BaseEstimator):
    """Somebody else's classifier: kernel ridge regression that shows nothing but its flip costs."""

    def __init__(self, classes=None, factor=1.0, subtract=0):
        self.classes = classes
        self.factor = factor
        self.subtract = subtract

    def fit(self, X, y, trusted=None):
        self.inner_ = flipcert.KernelRidge(classes=self.classes).fit(X, y, trusted=trusted)
        self.classes_ = self.inner_.classes_
        return self

    def predict(self, X):
        return self.inner_.predict(X)

    def flip_costs(self, X, bound="lower"):
        assert bound == "lower"
        return np.maximum(self.inner_.flip_costs(X) * self.factor - self.subtract, 0)


class Attacking(Quoting):
    """The same, telling attacks too."""

    def costs_and_attacks(self, X, exact=False):
        inner = self.inner_
        upper = inner.flip_costs(X, bound="upper")
        prediction = np.searchsorted(self.classes_, inner.predict(X))

        def attack(row, target):
            weights = weights_of(inner, np.repeat(X[row : row + 1], 32, axis=0))
            codes = inner.label_linear_.labels.codes
            (witness,) = flipcert.cheapest_flips(weights[:1], codes, self.classes_.size, target=target)
            return witness

        lower = self.flip_costs(X)
        return FlipCosts(prediction, lower, upper, np.zeros(len(X), bool), attack)


class Unnamed(Quoting):
    """The same without a parameter for the label space."""

    def __init__(self):
        self.classes = None
        self.factor, self.subtract = 1.0, 0


@pytest.mark.parametrize("n_partitions", [1, 3, 7])
def test_radius_from_quoted_costs(n_partitions, blobs):
    X, y, X_test, _ = blobs
    model = flipcert.PartitionEnsemble(Quoting(), n_partitions, classes=[0, 1, 2]).fit(X, y)
    certificates = model.certify(X_test)
    votes = votes_of(model, X_test)
    quoted = [e.flip_costs(X_test) for e in model.estimators_]
    costs = np.stack([np.where(c > (model.partition_ == i).sum(), 31, c) for i, c in enumerate(quoted)], axis=1).astype(
        int
    )
    for t in range(len(X_test)):
        truth = min(dynamic_program_radius(votes[t].tolist(), costs[t].tolist(), 3), 30)
        assert certificates.radius[t] == truth
    assert np.array_equal(certificates.blackbox_radius, flipcert.blackbox_radius(votes, 3))
    assert (certificates.radius >= certificates.blackbox_radius).all()
    assert (certificates.radius > certificates.blackbox_radius).any() or n_partitions == 7
    assert (certificates.radius_upper == 30).all()
    assert model.worst_flips(X_test) == [None] * len(X_test)
    assert np.array_equal(model.predict(X_test), certificates.prediction)
    # The label-linear electorate knows more, and never certifies less.
    white = flipcert.PartitionEnsemble(flipcert.KernelRidge(), n_partitions, classes=[0, 1, 2]).fit(X, y)
    assert (white.certify(X_test).radius >= certificates.radius).all()
    assert np.array_equal(white.predict(X_test), certificates.prediction)
    lower = model.flip_costs(X_test)
    assert (lower <= white.flip_costs(X_test, "exact")).all()
    assert (lower[np.arange(len(X_test)), certificates.prediction] == 0).all()


def test_attacks_that_voters_tell(blobs):
    X, y, X_test, _ = blobs
    model = flipcert.PartitionEnsemble(Attacking(), 4, classes=[0, 1, 2]).fit(X, y)
    certificates = model.certify(X_test)
    assert (certificates.radius <= certificates.radius_upper).all()
    assert certificates.exact.any()
    for t, witness in enumerate(model.worst_flips(X_test)):
        assert len(witness) == certificates.radius_upper[t] + 1
        after = clone(model).fit(X, witness.apply(y)).predict(X_test[t : t + 1])[0]
        assert after == certificates.target[t] != certificates.prediction[t]


def test_trusted_partitions_keep_their_vote(blobs):
    X, y, X_test, _ = blobs
    rule = np.arange(30) % 3
    model = flipcert.PartitionEnsemble(Quoting(), 3, partition=rule, classes=[0, 1, 2])
    free = model.fit(X, y).certify(X_test)
    certificates = model.fit(X, y, trusted=rule != 0).certify(X_test)
    assert (certificates.radius >= free.radius).all()
    votes = votes_of(model, X_test)
    agree = votes[:, 1] == votes[:, 2]
    assert (certificates.radius[agree] == 30).all()
    everything = model.fit(X, y, trusted=np.ones(30, bool)).certify(X_test)
    assert (everything.radius == 30).all()
    assert everything.target.mask.all()


def test_costs_below_one_count_as_one(blobs):
    """Too humble a base classifier: changing a vote takes a flip, so the votes alone certify this much."""
    X, y, X_test, _ = blobs
    model = flipcert.PartitionEnsemble(Quoting(subtract=100), 5, classes=[0, 1, 2]).fit(X, y)
    certificates = model.certify(X_test)
    assert np.array_equal(certificates.radius, certificates.blackbox_radius)


def test_unreachable_may_be_infinite(blobs):
    X, y, X_test, _ = blobs
    model = flipcert.PartitionEnsemble(Quoting(factor=1e300), 3, classes=[0, 1, 2]).fit(X, y)
    certificates = model.certify(X_test)
    assert (certificates.radius == 30).all()
    assert not certificates.rounding_sensitive.any()
    with pytest.raises(ValueError, match=r"flip_costs of Quoting must hold whole numbers; got 0\.5"):
        clone(model).set_params(estimator__factor=0.5).fit(X, y).certify(X_test)


def test_pipelines_and_nested_ensembles(blobs):
    X, y, X_test, _ = blobs
    piped = flipcert.PartitionEnsemble(make_pipeline(StandardScaler(), Quoting()), 3, classes=[0, 1, 2]).fit(X, y)
    certificates = piped.certify(X_test)
    assert (certificates.radius > certificates.blackbox_radius).any()
    inner = flipcert.PartitionEnsemble(flipcert.KernelRidge(), 2)
    nested = flipcert.PartitionEnsemble(inner, 3, classes=[0, 1, 2]).fit(X, y)
    certificates = nested.certify(X_test)
    assert (certificates.radius >= certificates.blackbox_radius).all()
    assert (certificates.radius > certificates.blackbox_radius).any()


def test_label_space_has_to_be_covered(blobs):
    X, y, X_test, _ = blobs
    with pytest.raises(ValueError, match="partition 0 has 3 of the 4 classes, and Unnamed has no parameter classes"):
        flipcert.PartitionEnsemble(Unnamed(), 1, classes=[0, 1, 2, 3]).fit(X, y)
    fitted = flipcert.PartitionEnsemble(Unnamed(), 2, partition=np.arange(30) // 15).fit(X, y)
    assert fitted.certify(X_test).radius.shape == (15,)


@pytest.mark.parametrize("base", [Quoting(), DecisionTreeClassifier()], ids=str)
def test_exact_costs_need_exact_votes(base, blobs):
    X, y, X_test, _ = blobs
    model = flipcert.PartitionEnsemble(base, 3, classes=[0, 1, 2]).fit(X, y)
    with pytest.raises(flipcert.UnsolvedError, match="some are known as bounds only"):
        model.flip_costs(X_test, bound="exact")

"""The class that certificates name as the cheapest is one that a known attack reaches."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

import flipcert

MODELS = [
    flipcert.KernelSVM("linear"),
    flipcert.KernelRidge("linear", reg=0.1),
    flipcert.SmoothedLinear(0.05),
    flipcert.PartitionEnsemble(flipcert.KernelRidge("linear", reg=0.1), 4),
    flipcert.PartitionEnsemble(flipcert.WeightedNeighbors(2), 4),
    flipcert.PartitionEnsemble(DecisionTreeClassifier(random_state=0), 4),
]


@pytest.mark.parametrize(
    "model", MODELS, ids=lambda m: f"{type(m).__name__} {type(getattr(m, 'estimator', m)).__name__}"
)
@pytest.mark.parametrize("classes", [None, [0, 1, 2]])
def test_a_class_is_named_where_an_attack_is_known_and_the_attack_reaches_it(model, classes):
    rng = np.random.default_rng(0)
    n_named = 0
    for share in (0.0, 0.5, 0.9) * 4:
        X, T = rng.normal(size=(18, 3)), rng.normal(size=(6, 3))
        y = np.r_[0, 1, 2, rng.integers(0, 3, 15)]
        trusted = rng.random(18) < share
        own = clone(model).set_params(classes=classes).fit(X, y, trusted=trusted)
        certificates, witnesses = own.certify(T), own.worst_flips(T)
        named = ~np.ma.getmaskarray(certificates.target)
        assert named.tolist() == [witness is not None for witness in witnesses]
        assert np.array_equal(named, certificates.radius_upper < certificates.n_attackable)
        n_named += named.sum()
        for t in np.flatnonzero(named):
            flipped = y.copy()
            flipped[witnesses[t].indices] = witnesses[t].labels
            again = clone(own).fit(X, flipped, trusted=trusted).predict(T[t : t + 1])
            assert again == certificates.target[t] != certificates.prediction[t]
    assert n_named or isinstance(getattr(model, "estimator", None), DecisionTreeClassifier)


def test_among_equally_cheap_classes_it_is_the_one_that_the_attack_reaches():
    """A voter that leaves may have a choice of classes, and the vote depends on it."""
    rng = np.random.default_rng(1)
    ties = 0
    for _ in range(120):
        X, T, y = rng.normal(size=(16, 3)), rng.normal(size=(8, 3)), np.r_[:4, rng.integers(0, 4, 12)]
        model = flipcert.PartitionEnsemble(flipcert.KernelRidge("linear", reg=0.1), 4, classes=range(4)).fit(X, y)
        certificates, costs = model.certify(T), model.flip_costs(T)
        ties += np.sum(np.sum(costs == certificates.radius_upper[:, None] + 1, axis=1) > 1)
        for t, witness in enumerate(model.worst_flips(T)):
            flipped = y.copy()
            flipped[witness.indices] = witness.labels
            assert clone(model).fit(X, flipped).predict(T[t : t + 1]) == certificates.target[t]
    assert ties > 100

"""SmoothedLinear as its users meet it: certificates against all labellings, abstention, ensembles, messages."""

from __future__ import annotations

import numpy as np
import pytest

import flipcert
from tests.helpers.models import votes_of
from tests.helpers.oracles import labellings

METHODS = ["white-box", "neyman-pearson", "kl"]


@pytest.mark.parametrize("method", METHODS)
def test_estimator_against_refitting_on_every_labelling(method):
    rng = np.random.default_rng(11)
    X, y = 0.1 * rng.normal(size=(10, 2)), np.array([0, 1, 2, 0, 0, 0, 0, 0, 0, 0])
    X += 2.0 * np.array([[1, 0], [0, 1], [-1, -1]])[y]
    points = np.array([[2.0, 0.0], [0.0, 2.0], [3.0, 1.0]])
    model = flipcert.SmoothedLinear(0.001, reg=0.1, method=method, classes=[0, 1, 2]).fit(X, y)
    certificates = model.certify(points)
    assert certificates.radius.max() > 0
    assert not certificates.exact.all()
    for t in range(len(points)):
        for flips in range(1, int(certificates.radius[t]) + 1):
            for flipped in labellings(y, 3, flips):
                again = flipcert.SmoothedLinear(0.001, reg=0.1, classes=[0, 1, 2]).fit(X, flipped)
                assert again.predict(points[t : t + 1])[0] == certificates.prediction[t]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_it_is_the_ridge_regression(method, dtype, digits):
    X, y, X_test, _ = digits
    X, X_test = X.astype(dtype), X_test[:60].astype(dtype)
    ridge = flipcert.KernelRidge("linear", reg=10.0).fit(X, y)
    model = flipcert.SmoothedLinear(0.0125, reg=10.0, method=method).fit(X, y)
    exact, certificates = ridge.certify(X_test), model.certify(X_test)
    assert np.array_equal(model.predict(X_test), ridge.predict(X_test))
    assert np.array_equal(model.decision_function(X_test), ridge.decision_function(X_test))
    assert np.array_equal(certificates.radius_upper, exact.radius)
    assert (certificates.radius <= exact.radius).all()
    share = {"white-box": 0.9, "neyman-pearson": 0.6, "kl": 0.25}[method]
    assert certificates.radius.mean() > share * exact.radius.mean()
    costs = model.flip_costs(X_test)
    others = np.sort(costs, axis=1)[:, 1]
    assert np.array_equal(others - 1, certificates.radius)
    assert np.array_equal(model.flip_costs(X_test, "upper"), ridge.flip_costs(X_test, "upper"))
    for jobs in (1, 2):
        assert np.array_equal(model.set_params(n_jobs=jobs).flip_costs(X_test), costs)


def test_methods_compare_as_they_should(digits):
    X, y, X_test, _ = digits
    radii = {m: flipcert.SmoothedLinear(0.01, 10.0, m).fit(X, y).certify(X_test[:80]).radius for m in METHODS}
    assert (radii["neyman-pearson"] >= radii["kl"]).all()
    assert radii["white-box"].mean() > radii["neyman-pearson"].mean() > radii["kl"].mean() > 0


def test_abstention_has_radius_zero():
    """No class is ahead with probability above one half: cost one for all others."""
    X, y = np.ones((4, 1)), np.array([0, 0, 1, 1])
    for method in METHODS:
        model = flipcert.SmoothedLinear(0.1, method=method, classes=[0, 1, 2]).fit(X, y)
        assert model.predict([[1.0]]).tolist() == [0]
        assert model.flip_costs([[1.0], [0.0]]).tolist() == [[0, 1, 1], [0, 1, 1]]
        assert model.certify([[1.0], [0.0]]).radius.tolist() == [0, 0]


@pytest.mark.parametrize("method", METHODS)
def test_trusted_labels(method, blobs):
    X, y, X_test, _ = blobs
    free = flipcert.SmoothedLinear(0.01, 0.1, method).fit(X, y).certify(X_test)
    model = flipcert.SmoothedLinear(0.01, 0.1, method)
    some = model.fit(X, y, trusted=np.arange(30) % 2 == 0).certify(X_test)
    assert np.array_equal(free.prediction, some.prediction)
    assert (some.radius >= free.radius).all()
    assert (some.radius <= some.radius_upper).all()
    everything = model.fit(X, y, trusted=np.ones(30, bool)).certify(X_test)
    assert (everything.radius == 30).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_partitions", [1, 3])
def test_ensembles(method, n_partitions, blobs):
    X, y, X_test, _ = blobs
    X, X_test = np.hstack([X, np.ones((30, 1))]), np.hstack([X_test, np.ones((15, 1))])
    base = flipcert.SmoothedLinear(0.001, 0.1, method)
    model = flipcert.PartitionEnsemble(base, n_partitions, classes=[0, 1, 2]).fit(X, y)
    certificates = model.certify(X_test)
    votes = votes_of(model, X_test)
    assert np.array_equal(certificates.blackbox_radius, flipcert.blackbox_radius(votes, 3))
    assert (certificates.radius >= certificates.blackbox_radius).all()
    assert (certificates.radius <= certificates.radius_upper).all()
    ridge = flipcert.PartitionEnsemble(flipcert.KernelRidge("linear", reg=0.1), n_partitions, classes=[0, 1, 2])
    exact = ridge.fit(X, y).certify(X_test, exact=True)
    assert np.array_equal(exact.prediction, certificates.prediction)
    assert (certificates.radius <= exact.radius).all()
    assert (certificates.radius_upper >= exact.radius).all()
    for t, witness in enumerate(model.worst_flips(X_test)):
        assert len(witness) == certificates.radius_upper[t] + 1
        after = flipcert.PartitionEnsemble(base, n_partitions, classes=[0, 1, 2]).fit(X, witness.apply(y))
        assert after.predict(X_test[t : t + 1])[0] == certificates.target[t] != certificates.prediction[t]
    if n_partitions == 1:
        alone = flipcert.SmoothedLinear(0.001, 0.1, method, classes=[0, 1, 2]).fit(X, y).certify(X_test)
        assert np.array_equal(alone.radius, certificates.radius)
        assert np.array_equal(alone.radius_upper, certificates.radius_upper)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"flip_probability": 0.0}, "flip_probability must be a positive number; got 0.0"),
        ({"flip_probability": 0.7}, "flip_probability must be below 0.666667 for 3 classes .*; got 0.7"),
        ({"flip_probability": 0.5, "method": "published"}, "flip_probability must be below 0.5 for 3 classes"),
        ({"flip_probability": 1e-200}, "flip_probability must be at least 1e-100"),
        ({"flip_probability": "low"}, "flip_probability must be a positive number; got 'low'"),
        ({"reg": 0.0}, "reg must be a positive number; got 0.0"),
        ({"method": "exact"}, "method must be one of 'white-box', 'neyman-pearson', 'kl', 'published'; got 'exact'"),
    ],
)
def test_bad_parameters(parameters, message, blobs):
    X, y, _, _ = blobs
    with pytest.raises(ValueError, match=message):
        flipcert.SmoothedLinear(**parameters, classes=np.unique(y)).fit(X, y)


def test_noise_that_two_classes_would_not_survive(blobs):
    """Flips may leave two classes of three; `fit` must not refuse what an attacker can make of the labels."""
    X, y, _, _ = blobs
    with pytest.raises(ValueError, match=r"flip_probability must be below 0\.5 for a label space that is read from y"):
        flipcert.SmoothedLinear(0.6).fit(X, y)
    flipcert.SmoothedLinear(0.6, classes=np.unique(y)).fit(X, y)

"""Weighted neighbours: as scikit-learn finds them, and what ties and units do."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

import flipcert
from flipcert.kernels import RBF
from tests.helpers.models import weights_of


@pytest.mark.parametrize("n_neighbors", [1, 4, 7])
@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_neighbors_predict_as_scikit_learn(n_neighbors, weights):
    rng = np.random.default_rng(0)
    X, y, X_test = rng.normal(size=(200, 5)), rng.integers(0, 4, 200), rng.normal(size=(100, 5))
    model = flipcert.WeightedNeighbors(n_neighbors, weights).fit(X, y)
    reference = KNeighborsClassifier(n_neighbors, weights=weights).fit(X, y)
    assert np.allclose(model.decision_function(X_test), reference.predict_proba(X_test))
    assert np.array_equal(model.predict(X_test), reference.predict(X_test))


def test_neighbors_that_tie_share_the_last_places():
    X = np.array([[0.0], [1.0], [-1.0], [1.0], [5.0]])
    model = flipcert.WeightedNeighbors(n_neighbors=3).fit(X, [0, 1, 1, 0, 0])
    weights = weights_of(model, np.array([[0.0]]))
    assert weights.tolist() == [[3.0, 2.0, 2.0, 2.0, 0.0]]
    assert model.decision_function(np.array([[0.0]]))[0] == pytest.approx(4 / 9 - 5 / 9)
    # Neither labels nor row order matter.
    order = np.array([3, 4, 1, 0, 2])
    shuffled = flipcert.WeightedNeighbors(n_neighbors=3).fit(X[order], [1, 1, 0, 1, 0])
    assert weights_of(shuffled, np.array([[0.0]]))[0].tolist() == weights[0][order].tolist()


def test_neighbors_at_distance_zero_outweigh_all_others():
    X = np.array([[0.0], [0.0], [1e-100], [1.0]])
    model = flipcert.WeightedNeighbors(n_neighbors=None, weights="distance").fit(X, [0, 1, 1, 1])
    assert weights_of(model, np.array([[0.0]])).tolist() == [[1.0, 1.0, 0.0, 0.0]]
    assert np.isfinite(weights_of(model, np.array([[1e-310]]))).all()


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_subnormal_inputs(weights, blobs):
    X, y, X_test, _ = (np.round(part) for part in blobs)  # on a grid, which the smallest numbers can hold
    reference = flipcert.WeightedNeighbors(5, weights).fit(X, y).certify(X_test)
    tiny = flipcert.WeightedNeighbors(5, weights).fit(X * 5e-324, y).certify(X_test * 5e-324)
    assert np.array_equal(tiny.radius, reference.radius)
    assert np.array_equal(tiny.prediction, reference.prediction)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [2.0**-80, 1.0, 2.0**60])
def test_neighbors_do_not_depend_on_the_unit(scale, dtype, blobs):
    X, y, X_test, _ = (part.astype(dtype) if part.dtype.kind == "f" else part for part in blobs)
    for weights in ("uniform", "distance"):
        reference = flipcert.WeightedNeighbors(5, weights).fit(X, y).certify(X_test)
        scaled = flipcert.WeightedNeighbors(5, weights).fit(X * dtype(scale), y).certify(X_test * dtype(scale))
        assert np.array_equal(scaled.radius, reference.radius)


@pytest.mark.parametrize("model", [flipcert.WeightedNeighbors(), flipcert.LabelSpreading()])
def test_one_far_row_does_not_make_all_others_alike_in_silence(model, blobs):
    X, y, X_test, _ = blobs
    far = np.vstack([X, np.full((1, X.shape[1]), 1e100)])
    if isinstance(model, flipcert.WeightedNeighbors):  # a graph would join it with others
        expected = model.fit(X, y).predict(X_test)
        np.testing.assert_array_equal(model.fit(far, np.append(y, 0)).predict(X_test), expected)
    assert np.unique(model.fit(far, np.append(y, 0)).predict(X_test)).size == 3
    far[-1] = 1e165
    with pytest.raises(ValueError, match=f"distances underflow: {len(X)} of {len(X) + 1} inputs are so much smaller"):
        model.fit(far, np.append(y, 0))


def test_neighbors_too_far_away(blobs):
    X, y, X_test, _ = blobs
    with pytest.raises(ValueError, match="distances overflow"), np.errstate(over="ignore"):
        flipcert.WeightedNeighbors().fit(X, y).predict(X_test * 1e200)


def test_neighbors_with_kernel_weights(blobs):
    X, y, X_test, _ = blobs
    model = flipcert.WeightedNeighbors(n_neighbors=None, weights=RBF(0.5)).fit(X, y)
    svm = flipcert.KernelSVM(kernel=RBF(0.5)).fit(X, y)
    assert np.array_equal(model.certify(X_test).radius, svm.certify(X_test).radius)
    near = flipcert.WeightedNeighbors(n_neighbors=4, weights=RBF(0.5)).fit(X, y)
    assert ((weights_of(near, X_test) > 0).sum(axis=1) == 4).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors must be a positive whole number or None; got 0"),
        ({"n_neighbors": 2.5}, "n_neighbors must be a positive whole number or None; got 2.5"),
        ({"n_neighbors": 31}, "n_neighbors=31 is more than the 30 training samples"),
        ({"weights": "inverse"}, 'weights must be "uniform", "distance" or a kernel object; got .inverse'),
        ({"weights": None}, 'weights must be "uniform", "distance" or a kernel object; got None'),
    ],
)
def test_bad_neighbors(options, message, blobs):
    X, y, _, _ = blobs
    with pytest.raises(ValueError, match=message):
        flipcert.WeightedNeighbors(**options).fit(X, y)

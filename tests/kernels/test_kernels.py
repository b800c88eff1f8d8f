"""Kernels against neural-tangents, scikit-learn and their own feature maps."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF as SklearnRBF
from sklearn.metrics.pairwise import rbf_kernel

import flipcert
from flipcert.kernels import NTK, RBF, Kernel, Linear
from flipcert.kernels.base import as_kernel
from tests.helpers.paths import DATA

GOLDEN = json.loads((DATA / "dense-ntk.json").read_text())


@pytest.mark.parametrize("kind", ["ntk", "nngp"])
@pytest.mark.parametrize("setting", GOLDEN, ids=lambda s: f"{s['activation']}-{s['depth']}")
def test_dense_kernels_equal_neural_tangents(setting, kind):
    with np.load(DATA / "dense-ntk.npz") as golden:
        X, Z, values = golden["X"], golden["Z"], golden[f"{setting['key']}_{kind}"]
    kernel = NTK(**{name: value for name, value in setting.items() if name != "key"}, kind=kind)
    scale = np.sqrt(np.outer(kernel.diag(X), kernel.diag(Z)))
    assert np.abs((kernel(X, Z) - values) / scale).max() < 1e-7
    assert np.allclose(np.diag(kernel(X)), kernel.diag(X), rtol=1e-14)
    assert np.allclose(kernel(X), kernel(X).T, rtol=1e-13)


def test_one_linear_hidden_layer_is_twice_the_mean_product():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(4, 7)), rng.normal(size=(3, 7))
    assert np.allclose(NTK(weight_std=1, bias_std=0)(X, Z), 2 * X @ Z.T / 7, rtol=1e-15)


@pytest.mark.parametrize("kernel", [Linear(), NTK(), NTK(depth=3, weight_std=1.3, bias_std=0.4), NTK(depth=0)])
def test_feature_maps(kernel):
    rng = np.random.default_rng(1)
    X, Z = rng.normal(size=(5, 6)), rng.normal(size=(4, 6))
    assert np.allclose(kernel.features(X) @ kernel.features(Z).T, kernel(X, Z), rtol=1e-13)
    assert kernel.features(X).shape[1] == kernel.n_features(6)


@pytest.mark.parametrize("kernel", [NTK(activation="relu"), NTK(activation="erf"), RBF()])
def test_kernels_without_finite_features_say_so(kernel):
    assert kernel.n_features(3) is None
    with pytest.raises(AttributeError, match="no finite feature map"):
        kernel.features(np.ones((2, 3)))


@pytest.mark.parametrize("kernel", [Linear(), RBF(0.3), NTK(), NTK(2, "relu", 1.2, 0.1), NTK(2, "erf")])
def test_precision_is_kept(kernel):
    X = np.random.default_rng(2).normal(size=(6, 5))
    assert kernel(X).dtype == kernel.diag(X).dtype == np.float64
    single = kernel(X.astype(np.float32))
    assert single.dtype == np.float32
    # A single-precision product is good to sqrt(eps) near the diagonal, where the angle is close to zero.
    assert np.allclose(single, kernel(X), rtol=2e-3)


@pytest.mark.parametrize("kernel", [Linear(), RBF(0.001), NTK(), NTK(1, "relu")])
def test_inputs_of_any_number_type(kernel):
    X = np.array([[1, 2, 0, 3], [3, 4, 1, 200]])
    expected = kernel(X.astype(float))
    for other in (X, X.astype(np.uint8), X.tolist(), np.asfortranarray(X)):
        assert np.array_equal(kernel(other), expected)
        assert np.array_equal(kernel(other, other[:1]), kernel(X.astype(float), X[:1].astype(float)))
        assert np.array_equal(kernel.diag(other), kernel.diag(X.astype(float)))
    with pytest.raises(ValueError, match="X must be a matrix of numbers; got shape"):
        kernel(X[0])


def test_zero_inputs_are_harmless():
    X = np.zeros((2, 3))
    for activation in ("linear", "relu", "erf"):
        assert np.array_equal(NTK(activation=activation)(X, X), np.zeros((2, 2)))
        assert np.isfinite(NTK(activation=activation, bias_std=0.5)(X, X)).all()


def test_rbf():
    X = np.random.default_rng(3).normal(size=(6, 4))
    assert np.allclose(RBF()(X), rbf_kernel(X))
    assert np.allclose(RBF(gamma=0.7)(X, X[:2]), rbf_kernel(X, X[:2], gamma=0.7))


def test_kernels_are_cloned_and_searched_like_estimators():
    kernel = NTK(depth=2, activation="erf")
    assert clone(kernel).get_params() == kernel.get_params()
    model = flipcert.KernelSVM(kernel=NTK())
    model.set_params(kernel__depth=3)
    assert model.kernel.depth == 3


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [(None, NTK), ("ntk", NTK), ("linear", Linear), ("rbf", RBF), (SklearnRBF(), Kernel), (rbf_kernel, Kernel)],
)
def test_ways_to_name_a_kernel(kernel, expected):
    assert isinstance(as_kernel(kernel), expected)


def test_user_kernels(blobs):
    X, y, X_test, _ = blobs
    reference = flipcert.KernelSVM(kernel=RBF(gamma=0.5)).fit(X, y)
    for kernel in (SklearnRBF(1.0), lambda A, B: rbf_kernel(A, B, gamma=0.5)):
        model = flipcert.KernelSVM(kernel=kernel).fit(X, y)
        assert np.allclose(model.decision_function(X_test), reference.decision_function(X_test))
        assert pytest.approx(reference.C_max_) == model.C_max_
        assert np.array_equal(model.certify(X_test).radius, reference.certify(X_test).radius)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ("gauss", "kernel must be None, one of 'ntk', 'linear', 'rbf', 'precomputed'"),
        (3.0, "kernel must be None"),
        (NTK(depth=-1), "depth must be a whole number of hidden layers, at least 0; got -1"),
        (NTK(depth=1.5), "depth must be a whole number"),
        (NTK(activation="tanh"), "activation must be one of 'linear', 'relu', 'leaky_relu', 'erf', 'gelu'; got 'tanh'"),
        (NTK(kind="cntk"), "kind must be one of 'ntk', 'nngp'; got 'cntk'"),
        (NTK(weight_std=0), "weight_std must be a positive number; got 0"),
        (NTK(bias_std=-1), "bias_std must be a number that is not negative; got -1"),
        (RBF(gamma=0), "gamma must be a positive number; got 0"),
        (lambda A, B: np.ones(3), r"kernel returned an array of shape \(3,\)"),
        (lambda A, B: np.full((len(A), len(B)), np.nan), "kernel returned nan"),
        (lambda A, B: A @ B.T * 1j, "kernel returned values of type complex128"),
        (NTK(weight_std="a"), "weight_std must be a positive number; got 'a'"),
        (RBF(gamma="scale"), "gamma must be a positive number; got 'scale'"),
    ],
)
def test_bad_kernels(kernel, message, blobs):
    X, y, X_test, _ = blobs
    with pytest.raises(ValueError, match=message):
        flipcert.KernelSVM(kernel=kernel).fit(X, y).predict(X_test)

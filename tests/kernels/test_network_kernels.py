"""Kernels of wide networks: against neural-tangents, textbook formulas in many digits, and at the ends of the range."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erf
from sklearn.base import clone

import flipcert
from flipcert.engine.blocks import one_blas_thread
from flipcert.kernels import NTK, ConvNTK, conv_ntk
from flipcert.kernels._jit.dual import dual_row
from tests.helpers import network_oracle
from tests.helpers.paths import DATA

GOLDEN = json.loads((DATA / "conv-ntk.json").read_text())
ACTIVATIONS = ("linear", "relu", "leaky_relu", "erf", "gelu")
CURVED = ACTIVATIONS[1:]


def scale_of(kernel, X, Z):
    return np.sqrt(np.outer(kernel.diag(X), kernel.diag(Z)))


def oracle(kernel, x, z):
    parameters = kernel.get_params()
    for name in ("weight_std", "bias_std"):
        parameters[name] = np.broadcast_to(parameters[name], kernel.depth + 1)
    slow = network_oracle.conv if isinstance(kernel, ConvNTK) else network_oracle.dense
    return float(slow(x, z, **parameters))


@pytest.mark.parametrize("kind", ["ntk", "nngp"])
@pytest.mark.parametrize("setting", GOLDEN, ids=lambda s: f"{s['activation']}-{s['depth']}-{s['pooling']}")
def test_convolutional_kernels_equal_neural_tangents(setting, kind):
    with np.load(DATA / "conv-ntk.npz") as golden:
        X, Z, values = golden["I"], golden["J"], golden[f"{setting['key']}_{kind}"]
    kernel = ConvNTK(**{name: value for name, value in setting.items() if name != "key"}, kind=kind)
    assert np.abs((kernel(X, Z) - values) / scale_of(kernel, X, Z)).max() < 1e-13
    assert np.array_equal(kernel(X), kernel(X).T)
    assert np.allclose(np.diag(kernel(X)), kernel.diag(X), rtol=1e-13)


@pytest.mark.parametrize("activation", CURVED)
def test_duals_are_expectations(activation):
    """Against quadrature over two normal numbers."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    u, v = np.meshgrid(nodes, nodes)
    density = np.outer(weights, weights) / (2 * np.pi)
    functions = {
        "relu": (lambda t: np.maximum(t, 0), lambda t: t > 0, 0, 0.0, 2e-2),
        "leaky_relu": (lambda t: np.where(t > 0, t, 0.1 * t), lambda t: np.where(t > 0, 1, 0.1), 0, 0.1, 2e-2),
        "erf": (erf, lambda t: 2 / np.sqrt(np.pi) * np.exp(-t * t), 1, 0.0, 1e-9),
        "gelu": (lambda t: t * normal(t), lambda t: normal(t) + t * density_of(t), 2, 0.0, 1e-9),
    }
    function, derivative, code, leak, tolerance = functions[activation]
    for x_std, z_std, cosine in [(0.8, 1.3, 0.6), (1.1, 0.4, -0.9), (0.5, 0.5, 0.0), (0.9, 0.7, 0.999)]:
        first, second = x_std * u, z_std * (cosine * u + np.sqrt(1 - cosine**2) * v)
        covariance, theta, gap = np.array([x_std * z_std * cosine]), np.ones(1), np.array([1 - abs(cosine)])
        dual_row(covariance, theta, gap, x_std, np.array([z_std]), code, leak)
        assert covariance[0] == pytest.approx(np.sum(density * function(first) * function(second)), abs=tolerance)
        assert theta[0] == pytest.approx(np.sum(density * derivative(first) * derivative(second)), abs=tolerance)


def normal(t):
    return (1 + erf(t / np.sqrt(2))) / 2


def density_of(t):
    return np.exp(-t * t / 2) / np.sqrt(2 * np.pi)


networks = st.fixed_dictionaries(
    {
        "depth": st.integers(1, 3),
        "activation": st.sampled_from(ACTIVATIONS),
        "kind": st.sampled_from(["ntk", "nngp"]),
        "weight_std": st.lists(st.sampled_from([0.5, 1.0, 1.7]), min_size=4, max_size=4),
        "bias_std": st.lists(st.sampled_from([0.0, 0.0, 0.3, 2.0]), min_size=4, max_size=4),
    }
)


def in_layers(network):
    n_layers = network["depth"] + 1
    return network | {name: tuple(network[name][:n_layers]) for name in ("weight_std", "bias_std")}


@st.composite
def neighbours(draw, size):
    """Two inputs: independent, nearly equal, nearly opposite, or one nearly a multiple of the other."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    x = rng.normal(size=size) * draw(st.sampled_from([1.0, 1e-3, 30.0]))
    towards = draw(st.sampled_from([0.0, 1.0, -1.0, 3.0]))
    apart = 10.0 ** draw(st.integers(-16, 0))
    return x, towards * x + apart * np.abs(x).max() * rng.normal(size=size)


@given(networks, neighbours(5))
def test_dense_kernels_to_ten_digits(network, inputs):
    """Near equal and opposite inputs too, where an arc cosine of rounded numbers is good to half the digits."""
    kernel = NTK(**in_layers(network))
    x, z = inputs
    value = kernel(x[None], z[None])[0, 0]
    scale = scale_of(kernel, x[None], z[None])[0, 0]
    assert abs(value - oracle(kernel, x, z)) <= 1e-12 * scale


@settings(max_examples=40)
@given(networks, neighbours(8), st.sampled_from([None, "average"]), st.sampled_from([1, 3, 5]))
def test_convolutional_kernels_to_ten_digits(network, inputs, pooling, filter_size):
    network = network | {"depth": min(network["depth"], 2)}
    kernel = ConvNTK((2, 2, 2), filter_size, pooling=pooling, **in_layers(network))
    x, z = inputs
    value = kernel(x[None], z[None])[0, 0]
    assert abs(value - oracle(kernel, x, z)) <= 1e-12 * scale_of(kernel, x[None], z[None])[0, 0]


@pytest.mark.parametrize("pooling", [None, "average"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_many_channels_are_multiplied_by_blas(pooling, dtype):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(3, 120)).astype(dtype), rng.normal(size=(4, 120)).astype(dtype)
    Z[0], Z[1] = X[0], X[1] * dtype(1.001)
    kernel = ConvNTK((10, 3, 4), depth=2, pooling=pooling, bias_std=0.1)
    slow = np.array([[oracle(kernel, x, z) for z in Z[:2]] for x in X[:2]])
    assert np.abs(kernel(X[:2], Z[:2]) - slow).max() <= {8: 1e-12, 4: 1e-6}[X.itemsize] * slow.max()
    assert kernel(X, Z).dtype == dtype


@pytest.mark.parametrize("pooling", [None, "average"])
@pytest.mark.parametrize("channels", [1, 10])
def test_tiles_make_no_difference(pooling, channels, monkeypatch):
    """Rows and columns in any tiles, blank images and equal backgrounds among them."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(70, channels, 4, 3))
    X[::2, :, :, 0] = 0.5
    X[3] = 0.0
    X = X.reshape(70, -1)
    kernel = ConvNTK((channels, 4, 3), depth=2, pooling=pooling)
    whole = kernel(X[:40], X)
    for name, size in (("_SHEET", 60), ("_PIXELS", 300), ("_PRODUCTS", 700)):
        monkeypatch.setattr(conv_ntk, name, size)
    assert np.allclose(kernel(X[:40], X), whole, rtol=1e-13, atol=0)
    single = np.array([[kernel(x[None], z[None])[0, 0] for z in X[:6]] for x in X[:6]])
    assert np.allclose(single, whole[:6, :6], rtol=1e-13, atol=0)
    assert np.allclose(kernel(X)[:40], whole, rtol=1e-13, atol=0)


def test_dense_chunks_make_no_difference():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(600, 7))
    kernel = NTK(2, "relu", bias_std=0.2)
    values = kernel(X)
    assert np.array_equal(values, values.T)
    assert np.allclose(kernel(X[5:6], X), values[5:6], rtol=1e-13)
    with one_blas_thread:
        assert np.array_equal(kernel(X), values)


KERNELS = [
    *(NTK(3, activation, 1.2, bias) for activation in CURVED for bias in (0.0, 0.3)),
    *(
        ConvNTK((2, 3, 3), 3, 2, activation, pooling, 1.2, bias)
        for activation in ACTIVATIONS
        for pooling, bias in ((None, 0.0), ("average", 0.3))
    ),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_positive_semidefinite_with_duplicates(kernel):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(12, 18))
    X = np.concatenate([X, X[:3], -X[:3], X[:3] * 2, X[:3] + 1e-9 * rng.normal(size=(3, 18)), np.zeros((1, 18))])
    for kind in ("ntk", "nngp"):
        values = clone(kernel).set_params(kind=kind)(X)
        assert np.array_equal(values, values.T)
        assert np.linalg.eigvalsh(values).min() >= -1e-13 * np.trace(values)
        assert np.allclose(np.diag(values), clone(kernel).set_params(kind=kind).diag(X), rtol=1e-13, atol=0)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_ends_of_the_range(kernel, dtype):
    """Zero, huge, tiny, identical, opposite: always a number, and never beyond what variances allow."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=18)
    huge, tiny = (1e140, 1e-153) if dtype == np.float64 else (1e17, 1e-18)
    X = np.array([x, x, -x, 0 * x, huge * x, -huge * x, huge * rng.normal(size=18), tiny * x, -tiny * x], dtype)
    with np.errstate(all="raise", under="ignore"):
        values = kernel(X)
    assert np.isfinite(values).all()
    assert np.isfinite(kernel(np.array([x, 1e-160 * x, -1e-170 * x], dtype))).all()
    diagonal = np.sqrt(kernel.diag(X).astype(float))
    assert (np.abs(values) <= np.outer(diagonal, diagonal) * (1 + 16 * np.finfo(dtype).eps)).all()
    assert np.allclose(values[0, 1], kernel.diag(X[:1]), rtol=8 * np.finfo(dtype).eps)


@pytest.mark.parametrize("pooling", [None, "average"])
@pytest.mark.parametrize(
    "kernel", [NTK(1, "relu"), ConvNTK((1, 2, 2)), ConvNTK((1, 2, 2), activation="linear")], ids=str
)
def test_no_inputs_have_no_kernel(kernel, pooling):
    if isinstance(kernel, ConvNTK):
        kernel = clone(kernel).set_params(pooling=pooling)
    none, some = np.empty((0, 4)), np.ones((3, 4))
    assert kernel(none, some).shape == (0, 3)
    assert kernel(some, none).shape == (3, 0)
    assert kernel(none).shape == (0, 0)
    assert kernel.diag(none).shape == (0,)


def test_inputs_beyond_the_range_are_refused():
    for kernel in (NTK(1, "relu"), ConvNTK((1, 2, 2)), ConvNTK((1, 2, 2), pooling="average")):
        for dtype, huge in ((np.float64, 1e200), (np.float32, 1e25)):
            with pytest.raises(
                ValueError, match=f"X must hold finite numbers whose squares fit {np.dtype(dtype)}; got"
            ):
                kernel(np.full((1, 4), huge, dtype))
        with pytest.raises(ValueError, match="Rescale the features"):
            kernel.diag(np.full((1, 4), np.nan))


def test_pixels_of_a_linear_network_count_as_often_as_patches_hold_them():
    rng = np.random.default_rng(5)
    X, Z = rng.normal(size=(3, 2, 4, 5)), rng.normal(size=(2, 2, 4, 5))
    patches = np.outer([2, 3, 3, 2], [2, 3, 3, 3, 2])
    expected = np.einsum("ichw,jchw,hw->ij", X, Z, patches) * 2 / (9 * 2 * 20)
    kernel = ConvNTK((2, 4, 5), activation="linear")
    assert np.allclose(kernel(X.reshape(3, -1), Z.reshape(2, -1)), expected, rtol=1e-13)


@pytest.mark.parametrize("kind", ["ntk", "nngp"])
@pytest.mark.parametrize("bias", [0.0, (0.3, 0.0, 0.2)])
@pytest.mark.parametrize("pooling", [None, "average"])
def test_linear_networks_have_finite_features(kind, bias, pooling, digits):
    kernel = ConvNTK((1, 8, 8), 3, 2, "linear", pooling, (1.1, 0.9, 1.3), bias, kind)
    X, y, X_test, _ = digits
    features = kernel.features(X[:50])
    assert features.shape[1] == kernel.n_features(64) <= 64 + (bias != 0.0)
    assert np.allclose(features @ features.T, kernel(X[:50]), rtol=1e-12)
    assert np.allclose(np.diag(kernel(X[:50])), kernel.diag(X[:50]), rtol=1e-12)
    assert kernel.features(X[:2].astype(np.float32)).dtype == np.float32
    slow = network_oracle.conv(X[0], X[1], **kernel.get_params() | {"bias_std": np.broadcast_to(bias, 3)})
    assert kernel(X[:1], X[1:2])[0, 0] == pytest.approx(float(slow), rel=1e-12)
    for model in (flipcert.KernelSVM(kernel), flipcert.KernelRidge(kernel)):
        through_features = model.fit(X, y)
        assert through_features.label_linear_.weights.product is not None
        plain = clone(model).set_params(kernel=lambda A, B: kernel(A, B)).fit(X, y)
        assert np.allclose(through_features.decision_function(X_test), plain.decision_function(X_test), rtol=1e-8)
        assert np.array_equal(through_features.certify(X_test).radius, plain.certify(X_test).radius)
    assert flipcert.KernelRidge(kernel).fit(X, y).solver_ == "primal"


def test_filters_of_one_pixel_scale_the_inner_product():
    assert ConvNTK((1, 2, 3), 1, activation="linear").product_scale(6) == pytest.approx(2 / 6)
    assert ConvNTK((1, 2, 3), 3, activation="linear").product_scale(6) is None
    assert ConvNTK((1, 2, 3), 1, activation="linear", pooling="average").product_scale(6) is None

"""Kernels of networks in use: what is refused, how rounding is estimated, and certificates that hold."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import flipcert
from flipcert.engine.rounding import SAFETY, Factor
from flipcert.kernels import NTK, ConvNTK, conv_ntk
from tests.helpers.models import weights_of

CURVED = ("relu", "leaky_relu", "erf", "gelu")


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (ConvNTK((1, 4)), r"image_shape must be \(channels, height, width\); got \(1, 4\)"),
        (ConvNTK((1, 0, 4)), "image_shape must be at least 1; got 0"),
        (ConvNTK(4), "image_shape must be one-dimensional"),
        (ConvNTK((1, 8, 9)), r"X has rows of 64 numbers, but image_shape=\(1, 8, 9\) needs .* = 72"),
        (ConvNTK((1, 8, 9), activation="linear"), r"X has rows of 64 numbers"),
        (
            ConvNTK((1, 8, 8), filter_size=4),
            "filter_size must be odd, so that a filter has a centre; got 4. Use 3 or 5",
        ),
        (ConvNTK((1, 8, 8), filter_size=2.5), "filter_size must hold whole numbers; got 2.5"),
        (ConvNTK((1, 8, 8), depth=0), "depth must be a whole number of hidden layers, at least 1; got 0"),
        (ConvNTK((1, 8, 8), pooling="max"), "pooling must be None or \"average\"; got 'max'"),
        (ConvNTK((1, 8, 8), activation="tanh"), "activation must be one of"),
        (
            ConvNTK((1, 8, 8), weight_std=(1.0, 1.0, 1.0)),
            r"weight_std must be one number, or one for each of the depth",
        ),
        (NTK(2, bias_std=(0.1, 0.2)), r"depth \+ 1 = 3 layers .* got 2"),
        (NTK(1, bias_std=(0.1, -0.2)), "bias_std must be a number that is not negative; got -0.2"),
        (NTK(1, "leaky_relu", negative_slope=1.5), "negative_slope must be at most 1; got 1.5"),
        (NTK(1, "leaky_relu", negative_slope=-0.1), "negative_slope must be a number that is not negative"),
    ],
)
def test_bad_networks(kernel, message, digits):
    X, y, X_test, _ = digits
    with pytest.raises(ValueError, match=message):
        flipcert.KernelSVM(kernel=kernel).fit(X[:20], y[:20]).predict(X_test[:2])


def test_rows_that_are_no_images_are_refused_when_a_model_is_fitted(digits):
    X, y, _, _ = digits
    for activation in ("linear", "relu"):
        for model in (flipcert.KernelSVM, flipcert.KernelRidge):
            with pytest.raises(ValueError, match="X has rows of 64 numbers"):
                model(ConvNTK((1, 8, 9), activation=activation)).fit(X, y)


def test_pooling_that_does_not_fit_the_memory_is_refused(monkeypatch):
    monkeypatch.setattr(conv_ntk, "available_memory", lambda: 1e9)
    with pytest.raises(ValueError, match=r"average pooling over 4900 positions needs 1\.\d GB of memory for a pair"):
        ConvNTK((1, 70, 70), pooling="average")(np.ones((1, 4900)))


def test_networks_are_cloned_and_searched_like_estimators():
    kernel = ConvNTK((1, 8, 8), 3, 2, "gelu", "average", (1.0, 1.1, 1.2), 0.1, "nngp", 0.2)
    assert clone(kernel).get_params() == kernel.get_params()
    model = flipcert.KernelSVM(kernel=ConvNTK((1, 8, 8))).set_params(kernel__depth=3, kernel__pooling="average")
    assert (model.kernel.depth, model.kernel.pooling) == (3, "average")


@pytest.mark.parametrize(
    "kernel", [*(NTK(2, a) for a in CURVED), *(ConvNTK((1, 8, 8), 3, 2, a) for a in CURVED)], ids=str
)
def test_rounding_is_estimated_from_above(kernel, digits):
    """Single precision against double: no row is further off than the estimate, safety included."""
    X, _, X_test, _ = digits
    X, X_test = X[:200], X_test[:40]
    narrow = kernel(X_test.astype(np.float32), X.astype(np.float32)).astype(float)
    wide = kernel(X_test.astype(np.float32).astype(float), X.astype(np.float32).astype(float))
    estimate = kernel.rounding(X_test.astype(np.float32), Factor.of(X.astype(np.float32) * np.float32(1.1)))
    off = np.linalg.norm(narrow - wide, axis=1)
    assert (off <= SAFETY * estimate).all()
    assert (estimate < 1e-2 * np.linalg.norm(wide, axis=1)).all()


@pytest.mark.parametrize(
    "kernel", [NTK(2, "gelu", bias_std=0.1), ConvNTK((1, 8, 8)), ConvNTK((1, 8, 8), activation="linear")]
)
def test_certificates_with_network_kernels(kernel, digits):
    """Flips of the witness change the prediction; an ensemble certifies too."""
    X, y, X_test, _ = digits
    model = flipcert.KernelRidge(kernel).fit(X[:300], y[:300])
    certificates = model.certify(X_test[:10])
    assert weights_of(model, X_test[:2]).dtype == np.float64
    for t, witness in enumerate(model.worst_flips(X_test[:10])):
        assert len(witness) == certificates.radius[t] + 1
        flipped = clone(model).fit(X[:300], witness.apply(y[:300]))
        assert flipped.predict(X_test[t : t + 1])[0] != certificates.prediction[t]
    ensemble = flipcert.PartitionEnsemble(flipcert.KernelSVM(kernel), n_partitions=5, classes=range(10))
    radius = ensemble.fit(X[:300], y[:300]).certify(X_test[:10])
    assert (radius.radius >= radius.blackbox_radius).all()

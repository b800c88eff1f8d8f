"""The system behind kernel ridge regression: solved in tiles, in the precision that fits the memory, without a copy."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import flipcert
from flipcert.kernels import NTK
from flipcert.linear import solved_system
from tests.helpers.models import weights_of


def test_ridge_solves_many_tiles_with_any_number_of_threads(digits):
    X, y, X_test, _ = digits
    kernel = NTK(activation="relu")
    models = [flipcert.KernelRidge(kernel, reg=0.1, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2)]
    weights = [weights_of(model, X_test[:256]) for model in models]
    expected = np.linalg.solve(kernel(X) + 0.1 * np.eye(len(X)), kernel(X, X_test[:256])).T
    assert models[0].precision_ == "float64"
    assert np.array_equal(*weights)
    assert np.allclose(weights[0], expected, atol=1e-11)
    assert (
        models[0].label_linear_.weights.spread
        == models[1].label_linear_.weights.spread
        == pytest.approx(np.abs(kernel(X)).sum(axis=1).max())
    )


def has_memory(monkeypatch, gigabytes):
    monkeypatch.setattr(solved_system, "available_memory", lambda: gigabytes * 1e9)


def test_ridge_in_the_precision_that_fits(digits, monkeypatch):
    X, y, X_test, _ = digits
    model = flipcert.KernelRidge(NTK(activation="relu"), reg=0.1).fit(X, y)
    weights = weights_of(model, X_test)
    tolerance = model.label_linear_.weights.rounding(X_test, weights)
    has_memory(monkeypatch, 0.009)
    model.fit(X, y)
    single = weights_of(model, X_test)
    assert model.precision_ == "float32"
    assert 0 < np.abs(single - weights).max() < 1e-4 * np.abs(weights).max()
    distance = np.sqrt(((single - weights) ** 2).sum(axis=1))
    assert np.all(distance < model.label_linear_.weights.rounding(X_test, single))
    assert np.all(distance > tolerance)
    has_memory(monkeypatch, 0.004)
    with pytest.raises(ValueError, match="available; use PartitionEnsemble or a kernel with finite features"):
        model.fit(X, y)


@pytest.mark.parametrize(("gigabytes", "precision"), [(17, "float64"), (15, "float32"), (9, "float32"), (7, None)])
def test_room_for_60000_samples(gigabytes, precision, monkeypatch):
    has_memory(monkeypatch, gigabytes)
    if precision is None:
        with pytest.raises(ValueError, match=r"of 60000 samples needs 8\.1 GB of memory .* but 7\.0 GB are available"):
            solved_system.widest_precision(60_000)
    else:
        assert solved_system.widest_precision(60_000) == precision


def test_kernel_too_large_for_single_precision(digits, monkeypatch):
    X, y, _, _ = digits
    has_memory(monkeypatch, 0.009)
    with pytest.raises(ValueError, match=r"overflowed: .*; rescale the features"):
        flipcert.KernelRidge(NTK(activation="relu")).fit(X * 1e20, y)


def test_ridge_makes_no_second_copy_of_the_kernel():
    X = np.random.default_rng(0).normal(size=(3000, 10))
    y = np.arange(3000) % 3
    for kernel, inputs in ((NTK(activation="relu"), X), ("precomputed", X @ X.T)):
        tracemalloc.start()
        try:
            flipcert.KernelRidge(kernel, n_jobs=2).fit(inputs, y).predict(inputs[:256])
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        # Half a square, and tiles and blocks of rows at work.
        assert peak < 0.9 * 3000**2 * 8

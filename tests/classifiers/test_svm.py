"""Kernel SVMs: the small-C theorem and its threshold."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import flipcert
from flipcert.kernels import NTK
from flipcert.kernels.base import as_kernel


def dual_variables(Q, signs, C):
    """Dual of the soft-margin SVM without bias, by a bounded quasi-Newton solver from the middle of the box."""
    H = signs[:, None] * Q * signs

    def objective(a):
        return 0.5 * a @ H @ a - a.sum(), H @ a - 1

    return minimize(
        objective, np.full(len(signs), C / 2), jac=True, bounds=[(0, C)] * len(signs), method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-12, "maxiter": 5000},
    ).x  # fmt: skip


@pytest.mark.parametrize("kernel", ["linear", "rbf", NTK(activation="relu", bias_std=0.3)])
def test_small_C_theorem(kernel, blobs):
    X, y, _, _ = blobs
    rng = np.random.default_rng(0)
    model = flipcert.KernelSVM(kernel=kernel).fit(X, y)
    Q = as_kernel(model.kernel)(X)
    assert pytest.approx(1 / np.abs(Q).sum(axis=1).max()) == model.C_max_
    C = 0.999 * model.C_max_
    for _ in range(10):
        signs = rng.choice([-1.0, 1.0], len(y))
        assert np.allclose(dual_variables(Q, signs, C), C, rtol=1e-9)
    flipcert.KernelSVM(kernel=kernel, C=C).fit(X, y)
    flipcert.KernelSVM(kernel=kernel, C=1 / np.abs(Q).sum(axis=1).max()).fit(X, y)
    with pytest.raises(ValueError, match=rf"C_max_={model.C_max_:.6g}"):
        flipcert.KernelSVM(kernel=kernel, C=1.001 * model.C_max_).fit(X, y)


def test_C_above_the_threshold_is_not_always_harmless(blobs):
    """Far above it the dual variables do depend on the labels: the refusal is not pedantry."""
    X, y, _, _ = blobs
    model = flipcert.KernelSVM(kernel="linear").fit(X, y)
    C = 50 * model.C_max_
    assert not np.allclose(dual_variables(as_kernel(model.kernel)(X), np.where(y == 0, 1.0, -1.0), C), C, rtol=1e-3)


def test_C_max_from_feature_sums_equals_that_from_the_kernel():
    X = np.random.default_rng(0).random((40, 5))
    y = np.arange(40) % 2
    streamed = flipcert.KernelSVM(kernel=lambda A, B: 2 * A @ B.T / 5).fit(X, y)
    assert flipcert.KernelSVM().fit(X, y).C_max_ == pytest.approx(streamed.C_max_)
    assert flipcert.KernelSVM().fit(np.zeros((4, 2)), [0, 1, 0, 1]).C_max_ == np.inf


def test_C_max_follows_a_new_fit(blobs):
    X, y, _, _ = blobs
    model = flipcert.KernelSVM().fit(X, y)
    before = model.C_max_
    assert model.fit(2 * X, y).C_max_ == pytest.approx(before / 4)


@pytest.mark.parametrize("C", [0, -1.0, "small", np.nan, True])
def test_bad_C(C, blobs):
    X, y, _, _ = blobs
    with pytest.raises(ValueError, match='C, if not "auto", must be a positive number; got'):
        flipcert.KernelSVM(C=C).fit(X, y)


def test_ties_survive_the_scale_of_a_kernel():
    """Votes of -1 and 1 in seven features: two in seven is no round number, but ties are ties."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (60, 7)) * 2.0 - 1, rng.integers(0, 3, 60)
    model = flipcert.KernelSVM().fit(X, y)
    counts = np.stack([(X[:20] @ X[y == c].T).sum(axis=1) for c in range(3)], axis=1)
    assert np.array_equal(model.predict(X[:20]), counts.argmax(axis=1))
    assert np.allclose(model.decision_function(X[:20]), counts * 2 / 7)
    assert not model.certify(X[:20]).rounding_sensitive.any()

"""Kernel ridge regression: as scikit-learn does it, dual and primal."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge as SklearnRidge

import flipcert
from flipcert.kernels import NTK
from flipcert.kernels.base import as_kernel
from tests.helpers.models import weights_of


@pytest.mark.parametrize("reg", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_ridge_predicts_as_scikit_learn(reg, dtype, digits):
    X, y, X_test, _ = (part.astype(dtype) if part.dtype.kind == "f" else part for part in digits)
    model = flipcert.KernelRidge(kernel="linear", reg=reg).fit(X, y)
    reference = SklearnRidge(alpha=reg, kernel="linear").fit(X.astype(float), np.eye(10)[y])
    scores = reference.predict(X_test.astype(float))
    assert model.solver_ == "primal"
    assert np.allclose(model.decision_function(X_test), scores, atol=1e-9 if dtype == np.float64 else 2e-2)
    assert (model.predict(X_test) == scores.argmax(axis=1)).mean() > (0.999 if dtype == np.float64 else 0.98)


def test_ridge_dual_and_primal_agree(digits):
    X, y, X_test, _ = digits
    for kernel in (NTK(), NTK(depth=2, bias_std=0.5), "linear"):
        primal = flipcert.KernelRidge(kernel=kernel, reg=0.5).fit(X, y)
        function = as_kernel(kernel)
        dual = flipcert.KernelRidge(kernel=lambda A, B, k=function: k(A, B), reg=0.5).fit(X, y)
        assert (primal.solver_, dual.solver_) == ("primal", "dual")
        assert np.allclose(weights_of(primal, X_test), weights_of(dual, X_test), atol=1e-9)
        assert np.array_equal(primal.predict(X_test), dual.predict(X_test))
        assert np.array_equal(primal.certify(X_test).radius, dual.certify(X_test).radius)


def test_ridge_takes_the_smaller_system(blobs):
    X, y, _, _ = blobs
    assert flipcert.KernelRidge(kernel="linear").fit(X, y).solver_ == "primal"
    assert flipcert.KernelRidge(kernel="linear").fit(np.tile(X, 20), y).solver_ == "dual"
    assert flipcert.KernelRidge(kernel="rbf").fit(X, y).solver_ == "dual"


@pytest.mark.parametrize("reg", [0, -1.0, "1", np.inf, np.nan])
def test_bad_reg(reg, blobs):
    X, y, _, _ = blobs
    finite = ", and finite" if reg == np.inf else ""
    with pytest.raises(ValueError, match=f"reg must be a positive number{finite}; got"):
        flipcert.KernelRidge(reg=reg).fit(X, y)


def test_ridge_refuses_what_is_not_a_kernel(blobs):
    X, y, _, _ = blobs
    with pytest.raises(ValueError, match="not positive definite"):
        flipcert.KernelRidge(kernel=lambda A, B: -A @ B.T, reg=1e-3).fit(X, y)


def test_ridge_of_a_precomputed_kernel(digits):
    X, y, X_test, _ = digits
    kernel = NTK(activation="relu")
    matrix, rows = kernel(X), kernel(X_test, X)
    given = rows.copy()
    model = flipcert.KernelRidge("precomputed", reg=0.1).fit(matrix, y)
    reference = flipcert.KernelRidge(kernel, reg=0.1).fit(X, y)
    assert np.allclose(weights_of(model, rows), weights_of(reference, X_test), atol=1e-11)
    assert np.array_equal(rows, given)
    matrix[1200, 3] += 1e-3
    for asymmetric in (matrix, matrix.T):
        with pytest.raises(ValueError, match="X must be symmetric"):
            flipcert.KernelRidge("precomputed", reg=0.1).fit(asymmetric, y)

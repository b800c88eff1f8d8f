"""Numbers too small to be told from zero are noticed: a model of zeros would look safe from everybody."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import config_context

import flipcert
from flipcert.engine import tiles
from flipcert.engine.rounding import Factor, norms_vanish, products_vanish, row_norms
from flipcert.kernels import NTK, RBF, ConvNTK, Linear

TINY = {np.float64: 1e-170, np.float32: 1e-25}
MODELS = {
    "linear": flipcert.KernelSVM("linear"),
    "relu": flipcert.KernelSVM(NTK(activation="relu")),
    "convolution": flipcert.KernelSVM(ConvNTK((1, 1, 2), filter_size=1)),
    "ridge": flipcert.KernelRidge("linear"),
    "dual ridge": flipcert.KernelRidge(NTK(activation="relu")),
    "neighbours": flipcert.WeightedNeighbors(3, Linear()),
    "smoothing": flipcert.SmoothedLinear(),
    "any C": flipcert.MilpSVM("linear"),
    "ensemble": flipcert.PartitionEnsemble(flipcert.KernelSVM("linear"), 3),
    "ensemble of solved systems": flipcert.PartitionEnsemble(flipcert.KernelRidge(NTK(activation="relu")), 3),
    "ensemble of smoothing": flipcert.PartitionEnsemble(flipcert.SmoothedLinear(), 3),
}


@pytest.mark.parametrize("dtype", TINY)
@pytest.mark.parametrize("name", MODELS)
def test_tiny_inputs_are_refused_by_every_question(name, dtype, blobs):
    X, y, X_test, _ = (part.astype(dtype) if part.dtype.kind == "f" else part for part in blobs)
    if dtype == np.float32 and name in ("smoothing", "any C", "ensemble of smoothing"):
        X, X_test = X.astype(np.float64) * 1e-150, X_test.astype(np.float64) * 1e-150
    model = MODELS[name].fit(X * dtype(TINY[dtype]), y)
    for ask in (model.certify, model.predict, model.flip_costs, model.worst_flips):
        with pytest.raises(ValueError, match=r"weights of .* rows underflowed.* rescale the features"):
            ask(X_test * dtype(TINY[dtype]))


def test_inputs_far_from_all_others_are_refused(blobs):
    X, y, X_test, _ = blobs
    model = flipcert.KernelSVM(RBF(gamma=1.0)).fit(X, y)
    model.certify(X_test)
    far = X_test.copy()
    far[3] += 100
    with pytest.raises(ValueError, match="weights of 1 of 15 rows underflowed"):
        model.certify(far)


def test_kernels_of_others_are_flagged(blobs):
    """Nobody knows whether a user's function underflowed, or whether its values are zero."""
    X, y, X_test, _ = blobs
    model = flipcert.KernelSVM(lambda A, B: A @ B.T).fit(X * 1e-170, y)
    assert model.certify(X_test * 1e-170).rounding_sensitive.all()
    assert not flipcert.KernelSVM(lambda A, B: A @ B.T).fit(X, y).certify(X_test).rounding_sensitive.any()


def test_norms_that_overflow_at_large_C():
    X, y = np.array([[1.0], [2.0], [-1.0], [-2.0]]), [0, 0, 1, 1]
    model = flipcert.MilpSVM("linear", C=1.0, classes=[0, 1]).fit(X, y)
    with pytest.raises(ValueError, match="squared norms of the test points overflowed; rescale the features"):
        model.certify([[1e160]])


def test_kernels_whose_scale_underflows():
    for weight_std in (1e-120, [1.0, 1e-150]):
        with pytest.raises(ValueError, match="weight_std must not be so small that the kernel underflows; got"):
            NTK(weight_std=weight_std)(np.ones((2, 2)))


def test_streamed_rows_that_underflow(blobs, monkeypatch):
    X, y, X_test, _ = blobs
    monkeypatch.setattr(tiles, "COLUMNS", 8)
    for kernel, scale in (("linear", 1e-300), (RBF(gamma=1.0), 1e3)):
        model = flipcert.KernelSVM(kernel).fit(X, y)
        with (
            config_context(working_memory=4 * 32 * 8 * 8 / 2**20),
            pytest.raises(ValueError, match="rows underflowed"),
        ):
            model.certify(X_test * scale + (scale > 1) * scale)


def test_zeros_are_zeros(blobs):
    """A row of zeros, or one that shares no feature with any training row, lost nothing."""
    X, y, _, _ = blobs
    for kernel in ("linear", NTK(activation="relu")):
        assert (flipcert.KernelSVM(kernel, classes=[0, 1, 2]).fit(X, y).certify(np.zeros((2, 2))).radius == 30).all()
    apart = np.hstack([X, np.zeros((30, 1))])
    model = flipcert.KernelRidge("linear", classes=[0, 1, 2]).fit(apart, y)
    assert model.certify([[0.0, 0.0, 5.0]]).radius.tolist() == [30]
    # Whole numbers that cancel.
    model = flipcert.KernelSVM("linear", classes=[0, 1]).fit([[1.0, -1.0], [2.0, -2.0]], [0, 1])
    assert model.certify([[1.0, 1.0]]).radius.tolist() == [2]


def test_small_numbers_that_meet_large_ones(blobs):
    """Only products count: small test points with large training inputs certify as ever."""
    X, y, X_test, _ = blobs
    usual = flipcert.KernelSVM("linear").fit(X, y).certify(X_test)
    scaled = flipcert.KernelSVM("linear").fit(X * 2.0**600, y).certify(X_test * 2.0**-900)
    assert np.array_equal(usual.radius, scaled.radius)
    assert np.array_equal(usual.rounding_sensitive, scaled.rounding_sensitive)


def test_products_that_vanish():
    def lost(x, *factors):
        return products_vanish(np.array([x]), [Factor.of(np.array(own)) for own in factors]).tolist()

    assert lost([1e-170, 0.0], [[1e-170, 0.0], [0.0, 1.0]]) == [True]
    assert lost([1e-170, 1.0], [[1e-170, 0.0], [0.0, 1.0]]) == [False]
    assert lost([1.0, 0.0], [[0.0, 1.0]]) == [False]
    assert lost([1.0, 1e-320], [[0.0, 1e-320]]) == [True]
    # One of two models is enough.
    assert lost([1e-170, 0.0], [[1.0, 0.0]], [[1e-170, 0.0]]) == [True]
    assert norms_vanish(np.array([[1e-170], [1.0], [0.0]]), Factor.of(np.array([[1.0]]))).tolist() == [
        True,
        False,
        False,
    ]
    assert norms_vanish(np.array([[1.0]]), Factor.of(np.array([[1e-170]]))).tolist() == [True]


def test_norms_of_small_numbers():
    rows = np.array([[3e-200, 4e-200], [3.0, 4.0], [0.0, 0.0], [3e-320, 4e-320]])
    assert np.allclose(row_norms(rows), [5e-200, 5.0, 0.0, 5e-320], rtol=1e-3)
    assert row_norms(np.array([[3e-30, 4e-30]], np.float32))[0] == pytest.approx(5e-30)

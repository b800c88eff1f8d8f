"""Numbers too small to be told from zero are noticed: a model of zeros would look safe from everybody."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn import clone, config_context

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


OUT_OF_RANGE = {
    "reg": (
        flipcert.KernelRidge("linear", reg=1e300),
        1.0,
        r"underflowed, or nearly so: reg=1e\+300 is too large beside the kernel",
    ),
    "reg of a dual": (flipcert.KernelRidge(NTK(activation="relu"), reg=1e300), 1.0, r"reg=1e\+300 is too large"),
    "reg of rbf": (flipcert.KernelRidge(RBF(0.1), reg=1e308), 1.0, r"reg=1e\+308 is too large.* take a smaller reg"),
    "reg of smoothing": (flipcert.SmoothedLinear(reg=1e300), 1.0, r"reg=1e\+300 is too large"),
    "small reg": (flipcert.KernelRidge("linear", reg=1e-320), 1e-170, r"overflowed.* is too small beside .*larger reg"),
    "gamma": (
        flipcert.KernelSVM(RBF(1e300)),
        1.0,
        r"gamma=1e\+300 times the squared distances .* take a smaller gamma",
    ),
    "gamma of a ridge": (flipcert.KernelRidge(RBF(1e300)), 1.0, r"gamma=1e\+300 times the squared distances"),
    "gamma of neighbours": (flipcert.WeightedNeighbors(3, RBF(1e300)), 1.0, r"gamma=1e\+300 times the squared"),
    "gamma at any C": (flipcert.MilpSVM(RBF(1e300)), 1.0, r"gamma=1e\+300 times the squared distances"),
    "weight_std": (
        flipcert.KernelSVM(NTK(2, "relu", weight_std=1e60)),
        1.0,
        "weight_std must not be so large that the",
    ),
    "larger weight_std": (
        flipcert.KernelRidge(NTK(0, "relu", weight_std=1e152)),
        1e5,
        r"weight_std=1e\+152 makes .*smaller weight_std",
    ),
    "smaller weight_std": (
        flipcert.KernelSVM(NTK(0, "relu", weight_std=1e-99)),
        1e-60,
        "weight_std=1e-99 makes .* take a larger weight_std",
    ),
    "bias_std": (flipcert.KernelRidge(NTK(bias_std=1e160)), 1.0, "bias_std must not be so large that the kernel overf"),
    "smaller bias_std": (
        flipcert.KernelRidge(NTK(0, "relu", bias_std=1.3e154)),
        1.0,
        r"bias_std=1.3e\+154 makes .*smaller bias_std",
    ),
    "features": (
        flipcert.KernelRidge("linear"),
        1e160,
        "kernel of the training set overflowed: products .* rescale the fe",
    ),
    "features of rbf": (
        flipcert.KernelSVM("rbf"),
        1e160,
        "squared distances of the inputs overflowed; rescale the feat",
    ),
    "small features": (
        flipcert.KernelRidge("linear"),
        1e-170,
        "underflowed, or nearly so: products .* type; rescale the features",
    ),
    "C": (flipcert.MilpSVM("linear", C=1e300), 1e10, r"C=1e\+300 times the kernel .* take a smaller C or rescale"),
}


@pytest.mark.parametrize("in_ensemble", [False, True], ids=["one", "ensemble"])
@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_the_true_cause_is_named_and_nothing_else_is_said(name, in_ensemble, blobs):
    """Neither are features blamed for what a parameter did, nor does NumPy speak first."""
    model, scale, told = OUT_OF_RANGE[name]
    X, y, X_test, _ = blobs
    X, y, X_test = X[:12], y[:12], X_test + 1e-3
    if in_ensemble:
        model = flipcert.PartitionEnsemble(model, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=told):
            clone(model).set_params(classes=[0, 1, 2]).fit(X * scale, y).certify(X_test * scale)


@pytest.mark.parametrize("scale", [1.0, 1e19])
def test_weights_that_a_regularisation_took_are_not_zeros(scale, blobs):
    """In single precision 1 / 1e300 is zero: a model without weights would look safe from everybody."""
    X, y, X_test, _ = blobs
    X, X_test = (np.float32(scale) * part.astype(np.float32) for part in (X, X_test))
    for kernel in ("linear", NTK(activation="relu") if scale == 1.0 else "linear"):
        base = flipcert.KernelRidge(kernel, reg=1e300, classes=[0, 1, 2])
        for model in (base, flipcert.PartitionEnsemble(base, 3, classes=[0, 1, 2])):
            with pytest.raises(
                ValueError, match=r"weights of 15 of 15 rows underflowed, or nearly so: reg=1e\+300 is too large"
            ):
                clone(model).fit(X, y).certify(X_test)


def test_a_feature_that_no_sample_has_was_not_lost():
    """Columns of zeros are zeros, whatever the regularisation; only what was there can vanish."""
    X = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]], np.float32)
    model = flipcert.KernelRidge("linear", reg=1e60, classes=[0, 1]).fit(X, [0, 1, 1])
    assert model.certify(np.array([[0.0, 5.0]], np.float32)).radius.tolist() == [3]
    with pytest.raises(ValueError, match="weights of 1 of 2 rows underflowed"):
        model.certify(np.array([[0.0, 5.0], [1.0, 5.0]], np.float32))


def test_thresholds_that_overflow_are_told():
    """A kernel of non-negative features too large to add up had a threshold of zero."""
    model = flipcert.KernelSVM("linear", classes=[0, 1]).fit([[1e153], [1.2e154], [1.2e154]], [0, 1, 1])
    with pytest.raises(ValueError, match="the kernel of the training set overflowed: products"):
        _ = model.C_max_
    tiny = flipcert.KernelSVM(NTK(0, weight_std=1e-30), classes=[0, 1])
    X = np.array([[1.0], [-2.0]], np.float32)
    assert tiny.fit(X, [0, 1]).C_max_ == pytest.approx(1 / 6e-60)

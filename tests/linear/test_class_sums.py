"""Predictions by class sums: those of the stored weights, added up exactly, whatever the inputs look like."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st

import flipcert
from flipcert.flips._jit.ladder import UNDECIDED
from flipcert.linear.class_sums import in_their_places
from flipcert.linear.product import Product

MODELS = {
    "svm": flipcert.KernelSVM,
    "ridge": flipcert.KernelRidge,
    "affine": lambda: flipcert.KernelSVM(kernel=flipcert.kernels.NTK(bias_std=1.0)),
}


def inputs(rng, kind, n_rows, n_features, dtype, scale):
    """Rows with ties, duplicates, zeros and numbers of all sizes."""
    rows = {
        "normal": lambda: rng.standard_normal((n_rows, n_features)),
        "positive": lambda: np.abs(rng.standard_normal((n_rows, n_features))) + 100.0,
        "whole": lambda: rng.integers(-2, 3, (n_rows, n_features)).astype(float),
        "wide": lambda: rng.standard_normal((n_rows, n_features)) * 10.0 ** rng.integers(-12, 12, (n_rows, n_features)),
    }[kind]()
    rows[rng.random(n_rows) < 0.2] = 0.0
    copies = rng.integers(0, n_rows, n_rows // 3)
    rows[copies] = rows[rng.integers(0, n_rows, copies.size)]
    rows[rng.random(n_rows) < 0.1] *= -1.0
    # Sums of inputs that overflow would be refused already in fit.
    most = float(np.finfo(dtype).max) / 1e4
    with np.errstate(over="ignore"):
        return np.clip(rows * scale, -most, most).astype(dtype)


def exact_winners(model, X, rows=None):
    """Highest exact sum of the weights that a job on X forms, of some rows; ties to the smaller class."""
    linear = model.label_linear_
    winners = []
    for row in linear.formed(X, np.arange(len(X)) if rows is None else rows):
        sums = [Fraction(0)] * linear.labels.n_classes
        for c, weight in zip(linear.labels.codes.tolist(), row.tolist(), strict=True):
            sums[c] += Fraction(weight)
        winners.append(sums.index(max(sums)))
    return np.array(winners)


@settings(max_examples=120, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    name=st.sampled_from(sorted(MODELS)),
    kind=st.sampled_from(["normal", "positive", "whole", "wide"]),
    dtype=st.sampled_from([np.float32, np.float64]),
    scale=st.sampled_from([1.0, 1e-3, 1e-18, 1e-30, 1e18, 1e-150, 1e-160, 1e150, 1e300, 1e-310]),
    trusts=st.booleans(),
)
def test_predictions_are_those_of_the_exact_sums_of_the_stored_weights(seed, name, kind, dtype, scale, trusts):
    rng = np.random.default_rng(seed)
    n, d, n_classes = int(rng.integers(2, 40)), int(rng.integers(1, 9)), int(rng.integers(2, 5))
    if dtype is np.float32:
        scale = {1e-150: 1e-20, 1e-160: 1e-38, 1e150: 1e20, 1e300: 1e30, 1e-310: 1e-44}.get(scale, scale)
    X, test = (inputs(rng, kind, size, d, dtype, scale) for size in (n, 37))
    # Mirrored samples of the other class: scores that cancel, and ties.
    y = rng.integers(0, n_classes, n)
    y[:2] = 0, 1
    X[1] = X[0]
    trusted = rng.random(n) < 0.3 if trusts else None
    try:
        model = MODELS[name]().fit(X, y, trusted=trusted)
    except ValueError:
        return
    try:
        _, expected = model.label_linear_.scores(test)
    except ValueError:
        with pytest.raises(ValueError, match=r"out of range|beyond the range|too (small|large)"):
            model.predict(test)
        return
    np.testing.assert_array_equal(model.predict(test), model.classes_[expected])
    np.testing.assert_array_equal(expected, exact_winners(model, test))


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), dtype=st.sampled_from([np.float32, np.float64]), fused=st.booleans())
def test_no_order_of_additions_moves_a_score_past_the_bound(seed, dtype, fused):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 12)), int(rng.integers(1, 12))
    X, x = inputs(rng, rng.choice(["normal", "whole", "wide"]), n, d, dtype, 1.0), rng.standard_normal(d).astype(dtype)
    y = rng.integers(0, 2, n)
    y[:2] = 0, 1
    sums = flipcert.KernelSVM().fit(X, y).label_linear_.class_sums
    scores = [Fraction(0), Fraction(0)]
    for row, c in zip(X, y.tolist(), strict=True):
        scores[c] += Fraction(float(rounded_product(rng, x, row, fused)))
    plain, magnitudes = sums._sums
    near, size = x.astype(np.float64) @ plain, np.abs(x).astype(np.float64) @ magnitudes
    for c in range(2):
        bound = Fraction(float(sums._relative_error * size[c] + sums._underflow))
        assert abs(scores[c] - Fraction(float(near[c]))) <= bound


def rounded_product(rng, x, row, fused):
    """An inner product whose terms are added up in some random tree, each step rounded; the first is fused or not."""
    terms = [a * b for a, b in zip(x, row, strict=True)]
    if fused:
        # Products of two float32 are exact in float64; rounding once is what a fused operation does.
        terms = [x.dtype.type(np.float64(a) * np.float64(b)) for a, b in zip(x, row, strict=True)]
    while len(terms) > 1:
        i, j = rng.choice(len(terms), 2, replace=False)
        total = terms[i] + terms[j]
        terms = [term for k, term in enumerate(terms) if k not in (i, j)] + [total]
    return terms[0]


def test_weights_are_formed_only_of_near_ties_in_as_few_blocks_as_their_places_allow(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 20)) + np.repeat([[1.0], [-1.0]], 250, axis=0)
    y = np.repeat([0, 1], 250)
    model = flipcert.KernelSVM().fit(X, y)
    test = rng.standard_normal((4 * 512, 20)) + 1.0
    formed, form = [], Product.tile_writer

    def counted(self, left):
        formed.append(len(left))
        return form(self, left)

    monkeypatch.setattr(Product, "tile_writer", counted)
    expected = model.decision_function(test) > 0
    assert formed == [512] * 4
    formed.clear()
    np.testing.assert_array_equal(model.predict(test), expected)
    assert formed == []
    # A point at right angles to the difference of the two sums: no bound tells which is larger.
    plain, _ = model.label_linear_.class_sums._sums
    normal = plain[:, 0] - plain[:, 1]
    test[600] -= normal * (test[600] @ normal) / (normal @ normal)
    assert model.label_linear_.class_sums.predict(test)[600] == UNDECIDED
    expected = model.decision_function(test) > 0
    formed.clear()
    np.testing.assert_array_equal(model.predict(test), expected)
    assert formed == [512]
    # Those of other blocks go with it, but for one at the same place of its block.
    test[[5, 1024 + 88, 1900]] = test[600]
    expected = model.decision_function(test) > 0
    formed.clear()
    np.testing.assert_array_equal(model.predict(test), expected)
    assert formed == [512] * 2


@given(rows=st.sets(st.integers(0, 300), min_size=1), height=st.sampled_from([1, 2, 32, 512]))
def test_every_row_is_in_its_place_of_some_block(rows, height):
    rows = np.array(sorted(rows))
    held, where = in_their_places(rows, height)
    np.testing.assert_array_equal(held[where], rows)
    np.testing.assert_array_equal(where % height, rows % height)
    assert np.isin(held, rows).all()
    assert -(-held.size // height) == np.bincount(rows % height).max()


@pytest.mark.parametrize("budget", [1, 1024])
def test_near_ties_are_those_of_the_whole_job(budget):
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((3000, 5)).astype(np.float32), rng.integers(0, 2, 3000)
    test = rng.standard_normal((700, 5)).astype(np.float32)
    with sklearn.config_context(working_memory=budget):
        model = flipcert.KernelSVM().fit(X, y)
        plain, _ = model.label_linear_.class_sums._sums
        normal = (plain[:, 0] - plain[:, 1]).astype(np.float64)
        close = test - np.outer(test @ normal, normal) / (normal @ normal)
        test[::90] = close[::90].astype(np.float32)
        certificates = model.certify(test)
        winners = model.predict(test)
        np.testing.assert_array_equal(winners, certificates.prediction)
        near = np.arange(0, 700, 90)
        assert np.any(model.label_linear_.class_sums.predict(test[near]) == UNDECIDED)
        np.testing.assert_array_equal(exact_winners(model, test, near), winners[near])

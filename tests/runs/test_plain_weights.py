"""Weights are computed once more in plain numpy, which notices those of another model."""

from __future__ import annotations

import numpy as np
import pytest

import flipcert
from flipcert.ensemble.formed_weights import formed_weights
from flipcert.runs.plain_weights import weights_are_right


@pytest.mark.parametrize(
    "base",
    [
        flipcert.KernelSVM("rbf"),
        flipcert.KernelSVM(),
        flipcert.KernelSVM(flipcert.kernels.NTK(activation="relu")),
        flipcert.KernelRidge("rbf", reg=0.1),
        flipcert.KernelRidge(reg=1e-3),
        flipcert.WeightedNeighbors(7),
        flipcert.WeightedNeighbors(7, weights="distance"),
        flipcert.LabelSpreading(5),
        flipcert.LabelSpreading(3, alpha=0.99),
    ],
    ids=repr,
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_in_plain_numpy(base, dtype, digits):
    X, y, x, _ = (own[:300] for own in digits)
    X, x = X.astype(dtype), x.astype(dtype)
    rows = np.array([3, 100, 250])
    ((members, weights),) = formed_weights(base.fit(X, y), x, rows)
    assert np.array_equal(members, np.arange(300))
    right = weights_are_right(base, X, x[rows], weights, str(weights.dtype))
    assert right.all()
    # Weights of other points are noticed, and so are those of another order of training rows.
    assert not weights_are_right(base, X, x[rows + 1], weights, str(weights.dtype)).any()
    assert not weights_are_right(base, X, x[rows], weights[:, ::-1], str(weights.dtype)).any()


def test_weights_of_another_regularisation_are_noticed(digits):
    X, y, x, _ = (own[:300] for own in digits)
    ((_, weights),) = formed_weights(flipcert.KernelRidge("rbf", reg=0.1).fit(X, y), x, np.array([0]))
    assert not weights_are_right(flipcert.KernelRidge("rbf", reg=0.11), X, x[:1], weights, "float64").any()


def test_weights_of_another_spreading_are_noticed(digits):
    X, y, x, _ = (own[:300] for own in digits)
    ((_, weights),) = formed_weights(flipcert.LabelSpreading().fit(X, y), x, np.array([0]))
    for other in (flipcert.LabelSpreading(alpha=0.9001), flipcert.LabelSpreading(9)):
        assert not weights_are_right(other, X, x[:1], weights, "float64").any()


@pytest.mark.parametrize("alpha", [1e-9, 0.3, 0.9, 0.95, 0.999, 0.99999])
def test_spreading_with_ties_and_few_rows_in_plain_numpy(alpha):
    rng = np.random.default_rng(0)
    for n, scale in ((1, 1.0), (2, 1e-200), (40, 1e200), (40, 1.0)):
        X, x = scale * rng.integers(0, 3, (n, 3)), scale * rng.integers(0, 3, (5, 3))
        base = flipcert.LabelSpreading(4, alpha, classes=[0, 1])
        ((_, weights),) = formed_weights(base.fit(X, np.arange(n) % 2), x, np.arange(5))
        assert weights_are_right(base, X, x, weights, "float64").all()


def test_weights_that_cancel_to_zero_are_right_whatever_rounding_leaves_of_them():
    """One-hot features: many weights are zero in theory, and some rounding of the others in practice."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        X = np.column_stack([rng.integers(0, 4, 9), np.eye(3)[rng.integers(0, 3, 9)]]).astype(float)
        x = np.column_stack([rng.integers(0, 4, 3), np.eye(3)[rng.integers(0, 3, 3)]]).astype(float)
        base = flipcert.KernelRidge("linear")
        weights = base.fit(X, np.arange(9) % 2).label_linear_.formed(x, np.arange(3))
        assert weights_are_right(base, X, x, weights, "float64").all()
        assert not weights_are_right(base, X, x, weights + 1e-6, "float64").any()

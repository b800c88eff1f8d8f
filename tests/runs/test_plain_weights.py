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

"""Weights that are formed for a second opinion are those that the job used, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn

import flipcert
from flipcert.engine import tiles
from flipcert.engine.blocks import map_blocks
from flipcert.ensemble.formed_weights import formed_weights
from flipcert.verify.exact import Voter


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("n_partitions", [1, 3])
def test_formed_weights_are_those_of_the_job(kernel, n_partitions, digits):
    """To the last bit, not those of a smaller batch, which may round differently."""
    X, y, x = digits[0].astype(np.float32), digits[1], digits[2].astype(np.float32)
    model = flipcert.KernelRidge(kernel)
    if n_partitions == 1:
        job = np.concatenate(model.fit(X, y).label_linear_.map_weights(x, lambda block: block.weights.copy()))
    else:
        model = flipcert.PartitionEnsemble(model, n_partitions).fit(X, y)
        electorate = model.electorate_

        def weigh(rows, n_rows):
            return electorate.weights._form(rows, n_rows, np.empty((len(rows), len(X)), electorate.weights._dtype))[0]

        job = np.concatenate(map_blocks(weigh, x, electorate.bytes_per_row, 1))
    rows = np.array([5, 200, 201, 359])
    formed = formed_weights(model, x, rows)
    assert sorted(np.concatenate([members for members, _ in formed])) == list(range(len(X)))
    assert np.array_equal(np.concatenate([weights for _, weights in formed], axis=1), job[rows])


def test_formed_weights_of_very_many_samples(monkeypatch):
    """Weights that are streamed in tiles."""
    rng = np.random.default_rng(0)
    X, x = rng.normal(size=(700, 5)).astype(np.float32), rng.normal(size=(90, 5)).astype(np.float32)
    model = flipcert.KernelSVM("linear", classes=[0, 1, 2]).fit(X, rng.integers(3, size=700))
    monkeypatch.setattr(tiles, "COLUMNS", 256)
    with sklearn.config_context(working_memory=0.3):
        radius = model.certify(x).radius
        ((members, weights),) = formed_weights(model, x, np.array([0, 50]))
    labels = model.label_linear_.labels.codes[members].tolist()
    voters = [Voter.of(own.tolist(), labels, [True] * 700, 3) for own in weights]
    assert [voter.change_cost(open_space=False) - 1 for voter in voters] == radius[[0, 50]].tolist()
    assert formed_weights(flipcert.MilpSVM(), x, np.array([0])) is None

"""Weights of annotations: bits, tiles, memory, and what is said of rounding and of numbers out of range."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone

import flipcert
from flipcert.engine import tiles as grid
from flipcert.flips.streamed_rows import StreamedRows
from flipcert.kernels import RBF
from flipcert.linear.kernel_rows import KernelRows
from flipcert.linear.shared_rows import SharedRows, shared_weights
from flipcert.linear.weights import Weights


class Given(Weights):
    """Test inputs are the weights, the rounding is what was said, and scores have an offset."""

    def __init__(self, n_samples, dtype=np.float64):
        self.n_samples, self.dtype = n_samples, np.dtype(dtype)
        self.seen = None

    def form(self, X, out):
        out[:] = X

    def rounding(self, X, formed):
        self.seen = formed
        return np.full(X.shape[0], 0.25)

    def offset(self, X, n_classes):
        return np.ones((X.shape[0], n_classes))

    def in_unit_of_users(self, scores, formed):
        self.seen = formed
        return 3.0 * scores


ROW = np.array([2, 0, 1, 2, 1, 2])
SHARE = np.array([0.2, 1.0, 0.5, 0.0, 0.5, 0.8])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_each_has_its_share_rounded_once(dtype):
    X = np.array([[1.0, -3.0, 0.1], [0.0, 2.0, -7.3]], dtype)
    weights = SharedRows(Given(3, dtype), ROW, SHARE)
    weights.form(X, out := np.empty((2, 6), dtype))
    assert out.tolist() == [[float(x[i] * dtype(share)) for i, share in zip(ROW, SHARE, strict=True)] for x in X]
    assert weights.n_samples == 6
    assert weights.bytes_per_row == 9 * np.dtype(dtype).itemsize


def test_rows_are_seen_as_they_were():
    X = np.array([[1.0, -3.0, 0.1], [0.0, 2.0, -7.3]])
    of_rows = Given(3)
    weights = SharedRows(of_rows, ROW, SHARE)
    weights.form(X, out := np.empty((2, 6)))
    # A weight that moves by a bit moves products with shares, which are rounded again.
    assert weights.rounding(X, out).tolist() == [0.5, 0.5]
    assert np.allclose(of_rows.seen, X, rtol=1e-15)
    assert weights.in_unit_of_users(np.ones((2, 2)), out).tolist() == [[3.0, 3.0]] * 2
    assert np.allclose(of_rows.seen, X, rtol=1e-15)
    halves = SharedRows(of_rows, ROW, np.array([0.25, 1.0, 0.5, 0.0, 0.5, 0.5]))
    assert halves.rounding(X, None).tolist() == [0.25, 0.25]
    assert of_rows.seen is None


def test_offsets_are_those_of_the_rows():
    assert SharedRows(Given(3), ROW, SHARE).has_offset
    assert SharedRows(Given(3), ROW, SHARE).offset(np.zeros((2, 3)), 4).tolist() == [[1.0] * 4] * 2
    assert not SharedRows(KernelRows(None, np.eye(3)), ROW, SHARE).has_offset


def test_one_annotation_each_is_no_share_at_all():
    of_rows = Given(3)
    assert shared_weights(of_rows, np.arange(3), np.ones(3)) is of_rows
    assert isinstance(shared_weights(of_rows, np.array([0, 2, 1]), np.ones(3)), SharedRows)
    assert isinstance(shared_weights(of_rows, ROW, SHARE), SharedRows)


@pytest.mark.parametrize("tiny", [5e-324, 1e-310])
def test_weights_that_vanish_when_they_are_shared_are_refused(tiny):
    """Halves of the smallest number are zero, and a model of zeros would look safe from everybody."""
    annotations = flipcert.Annotations([0, 0, 1, 1], [0, 1, 0, 1])
    model = flipcert.KernelSVM("precomputed").fit(np.eye(2), annotations)
    with pytest.raises(ValueError, match="the weights of 1 of 2 rows underflowed"):
        model.certify([[tiny, -tiny], [1.0, 1.0]])
    # Nothing was lost of zeros, nor of what is not shared.
    assert model.certify([[0.0, 0.0]]).prediction.tolist() == [0]
    alone = flipcert.KernelSVM("precomputed").fit(np.eye(2), flipcert.Annotations([1, 0], [1, 0]))
    assert alone.certify([[-tiny, tiny]]).prediction.tolist() == [1]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("model", [flipcert.KernelSVM(), flipcert.KernelSVM(RBF(0.1)), flipcert.KernelRidge()], ids=str)
def test_streamed_annotations(model, dtype, digits, monkeypatch):
    """Annotations in the order of their rows come in tiles, from the products that whole rows are made of."""
    monkeypatch.setattr(grid, "COLUMNS", 512)
    X, y, X_test, _ = digits
    X, X_test = X.astype(dtype), X_test[:40].astype(dtype)
    rng = np.random.default_rng(0)
    row = np.sort(np.append(np.arange(len(X)), rng.integers(0, len(X), 1500)))
    label = np.where(rng.random(row.size) < 0.2, rng.integers(0, 10, row.size), y[row])
    source = rng.integers(0, 50, row.size)
    annotations = flipcert.Annotations(row, label, source, trusted=np.arange(row.size) % 7 == 0)
    model = clone(model).fit(X, annotations)
    held, flips, sources = model.certify(X_test), model.worst_flips(X_test), model.certify(X_test, threat="sources")
    asked = []
    monkeypatch.setattr(StreamedRows, "radii", lambda rows, radii=StreamedRows.radii: asked.append(rows) or radii(rows))
    budget = 4 * 32 * 512 * np.dtype(dtype).itemsize
    with config_context(working_memory=budget / 2**20):
        certificates = model.certify(X_test)
        assert np.array_equal(model.certify(X_test, threat="sources").radius, sources.radius)
        for one, other in zip(model.worst_flips(X_test), flips, strict=True):
            assert len(one) == len(other)
    assert asked
    for name in ("prediction", "radius", "runner_up"):
        assert np.array_equal(getattr(certificates, name), getattr(held, name))
    # In any other order they are held.
    order = rng.permutation(row.size)
    shuffled = clone(model).fit(X, flipcert.Annotations(row[order], label[order], trusted=annotations.trusted[order]))
    del asked[:]
    with config_context(working_memory=budget / 2**20):
        other = shuffled.certify(X_test)
    assert not asked
    assert np.array_equal(other.radius, held.radius)
    assert np.array_equal(other.prediction, held.prediction)

"""Results that depend on the data, not on the machine, the batch or the order of rows."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from joblib import parallel_config
from sklearn import config_context
from sklearn.base import clone
from threadpoolctl import threadpool_limits

import flipcert
from flipcert.engine import blocks, tiles
from flipcert.engine.rounding import Factor, quantum, row_norms
from flipcert.kernels import NTK, RBF
from flipcert.linear.product import Product

MODELS = [
    flipcert.KernelSVM(),
    flipcert.KernelSVM(NTK(activation="relu")),
    flipcert.KernelSVM(RBF(0.05)),
    flipcert.KernelRidge(reg=1.0),
    flipcert.KernelRidge(NTK(activation="relu"), reg=1.0),
    flipcert.WeightedNeighbors(9),
    flipcert.WeightedNeighbors(9, "distance"),
    flipcert.PartitionEnsemble(flipcert.KernelSVM(), n_partitions=10),
    flipcert.PartitionEnsemble(flipcert.KernelRidge(reg=1.0), n_partitions=10),
    flipcert.PartitionEnsemble(flipcert.KernelRidge(reg=1.0), n_partitions=50),
]


def assert_same(one, other, where=slice(None)):
    for name in ("prediction", "radius", "radius_upper"):
        assert np.array_equal(getattr(one, name)[where], getattr(other, name)[where]), name


@pytest.fixture(scope="module")
def ragged(digits):
    """Digits with features that are no round numbers, so that products do round."""
    X, y, X_test, y_test = digits
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(64, 64)))[0]
    return X @ turn, y, X_test @ turn, y_test


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_number_of_threads(model, ragged):
    X, y, X_test, _ = ragged
    model = clone(model)
    reference = model.set_params(n_jobs=1).fit(X, y).certify(X_test)
    for n_jobs in (2, 3, None):
        assert_same(model.set_params(n_jobs=n_jobs).fit(X, y).certify(X_test), reference)
    with threadpool_limits(1), parallel_config(n_jobs=2):
        certificates = model.set_params(n_jobs=None).fit(X, y).certify(X_test)
    assert_same(certificates, reference)
    assert np.array_equal(certificates.rounding_sensitive, reference.rounding_sensitive)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_batches_and_row_order_matter_only_where_flagged(model, dtype, ragged, monkeypatch):
    X, y, X_test, _ = ragged
    X, X_test = X.astype(dtype), X_test[:150].astype(dtype)
    reference = clone(model).fit(X, y).certify(X_test)
    steady = ~reference.rounding_sensitive
    fitted = clone(model).fit(X, y)
    monkeypatch.setattr(blocks, "LARGEST_BLOCK", 32)
    assert_same(fitted.certify(X_test), reference, steady)
    monkeypatch.undo()
    order = np.random.default_rng(1).permutation(len(y))
    assert_same(clone(model).fit(X[order], y[order]).certify(X_test), reference, steady)
    for t in range(0, 150, 30):
        alone = fitted.certify(X_test[t : t + 1])
        if steady[t]:
            assert alone.radius[0] == reference.radius[t]
        assert fitted.predict(X_test[t : t + 1])[0] == alone.prediction[0]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_the_flag_is_rare_on_digits(model, digits, ragged):
    for X, y, X_test, _ in (digits, ragged):
        certificates = clone(model).fit(X, y).certify(X_test)
        assert certificates.rounding_sensitive.mean() <= 0.01


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_predict_and_certify_agree(model, digits):
    X, y, X_test, _ = digits
    model = clone(model).fit(X, y)
    assert np.array_equal(model.predict(X_test), model.certify(X_test).prediction)


def test_precision_of_the_weights_follows_the_features(digits):
    X, y, X_test, _ = digits
    for dtype in (np.float32, np.float64):
        for model in (flipcert.KernelSVM(), flipcert.KernelRidge(), flipcert.KernelRidge("rbf")):
            model.fit(X.astype(dtype), y)
            assert model.label_linear_.map_weights(X_test.astype(dtype), lambda block: block.weights.dtype)[0] == dtype


def test_a_near_tie_is_flagged():
    """Two classes apart by less than rounding: another batch could see another winner."""
    X = np.array([[1 / 3, 1 / 7, 1 / 9], [1 / 9, 1 / 3, 1 / 7]])
    model = flipcert.KernelSVM("linear").fit(X, [0, 1])
    certificates = model.certify(np.ones((1, 3)) / 11)
    assert certificates.rounding_sensitive.all()
    # Whole numbers do not round, and a tie is a tie in every batch.
    model = flipcert.KernelSVM("linear").fit(np.array([[1.0, 2.0], [2.0, 1.0]]), [1, 0])
    certificates = model.certify(np.ones((1, 2)))
    assert certificates.prediction.tolist() == [0]
    assert not certificates.rounding_sensitive.any()


def test_quantum_and_product_error():
    assert quantum(np.array([[3.0, 0.0]])) == 0
    assert quantum(np.array([[0.75], [6.0]])) == -2
    assert quantum(np.zeros((2, 2))) > 500
    assert quantum(np.array([5e-324])) == -1074
    rng = np.random.default_rng(0)
    whole = rng.integers(0, 17, (20, 64)).astype(float)
    assert (Factor.of(whole).product_error(whole) == 0).all()
    assert (Factor.of(whole).product_error(whole / 3) > 0).all()
    real = rng.normal(size=(50, 64)).astype(np.float32)
    error = Factor.of(real).product_error(real)
    actual = np.sqrt(((real @ real.T - real.astype(float) @ real.T.astype(float)) ** 2).sum(axis=1))
    assert (actual < error).all()
    assert (error < 1e3 * actual).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_block_that_is_alone_is_formed_on_all_cores_to_the_same_numbers(dtype, ragged, monkeypatch):
    monkeypatch.setattr(tiles, "COLUMNS", 256)
    X, y, X_test, _ = ragged
    model = flipcert.KernelSVM(n_jobs=3).fit(X.astype(dtype), y).label_linear_
    rows, seen, write = X_test[:64].astype(dtype), set(), Product.tile_writer

    def noted(self, left):
        def of_tile(*arguments):
            seen.add(threading.get_ident())
            write(self, left)(*arguments)

        return of_tile

    together = model.map_weights(rows, lambda block: block.weights.copy())
    monkeypatch.setattr(Product, "tile_writer", noted)
    for weights, own in zip(together, (rows[:32], rows[32:]), strict=True):
        seen.clear()
        (alone,) = model.map_weights(own, lambda block: block.weights.copy())
        assert threading.get_ident() not in seen
        np.testing.assert_array_equal(alone, weights)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_factor_is_measured_alike_on_any_number_of_threads(dtype, monkeypatch):
    monkeypatch.setattr("flipcert.engine.rounding._CACHED", 2**10)
    monkeypatch.setattr("flipcert.engine.rounding._TASK", 2**12)
    X = np.random.default_rng(0).normal(size=(1001, 7)).astype(dtype)
    one, many = Factor.of(X), Factor.of(X, 3)
    assert (one.frobenius, one.largest_norm, one.quantum) == (many.frobenius, many.largest_norm, many.quantum)
    assert one.largest_norm == row_norms(X).max()
    for factor in (one, many):
        np.testing.assert_array_equal(factor.columns, np.abs(X).max(axis=0))
    assert Factor.of(X[:0]).largest_norm == 0.0


def test_blocks_cover_all_rows():
    X = np.arange(10.0).reshape(10, 1)
    with config_context(working_memory=16):
        seen = blocks.map_blocks(lambda block, n_rows: (block.shape, block[:n_rows, 0].tolist()), X, 2**20, 2)
    assert [shape for shape, _ in seen] == [(4, 1)] * 3
    assert [row for _, rows in seen for row in rows] == list(range(10))
    assert blocks.block_rows(10**6, 2**40) == 1


def test_blocks_in_work_at_the_same_time_fit_the_budget():
    lock, running, most = threading.Lock(), 0, 0

    def work(block, n_rows):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.01)
        with lock:
            running -= 1

    with config_context(working_memory=16):
        blocks.map_blocks(work, np.zeros((64, 1)), 2**22, 8)
    assert most <= 4

"""Sparse rows as the second factor of products: against dense products, and on their way to another process."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from flipcert.engine._jit.sparse import places_of_entries, squared_apart
from flipcert.engine.cluster.packing import SelectedRows, pack, unpack
from flipcert.engine.question import Asked, Question
from flipcert.engine.rounding import Factor, row_norms
from flipcert.engine.sparse import SparseRows, canonical, changed_rows, dense, largest_by_column
from flipcert.engine.tiles import tiles
from flipcert.kernels import NTK, RBF, ConvNTK, Linear, StoredKernel
from tests.helpers.sparse import FORMS, mostly_zeros


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_one_form_for_all(form, dtype):
    X = mostly_zeros(np.random.default_rng(0), 9, 7, dtype)
    rows = canonical(FORMS[form](X))
    assert rows.format == "csr"
    assert rows.dtype == dtype
    assert rows.has_canonical_format
    assert np.all(rows.data != 0)
    assert np.array_equal(rows.toarray(), X)


def test_products_and_measures(monkeypatch):
    monkeypatch.setattr("flipcert.engine.tiles.COLUMNS", 4)
    monkeypatch.setattr("flipcert.engine.sparse.COLUMNS", 4)
    rng = np.random.default_rng(1)
    for _ in range(50):
        Z, X = mostly_zeros(rng, 11, 6), mostly_zeros(rng, 5, 6)
        rows = SparseRows(canonical(sparse.csr_array(Z)))
        for tile in tiles(11):
            out = np.full((5, 11), np.nan)
            rows[tile].multiply(X, out[:, tile])
            assert np.array_equal(out[:, tile], X @ Z[tile].T)
            assert rows[tile] is rows[tile]
        assert np.array_equal(dense(rows[3:9]), Z[3:9])
        assert np.array_equal(rows.squares, (Z**2).sum(axis=1))
        assert np.array_equal(rows.largest_entries, np.abs(Z).max(axis=1))
        assert np.array_equal(largest_by_column(rows.csr), np.abs(Z).max(axis=0))
        assert np.allclose(row_norms(rows), np.linalg.norm(Z, axis=1))
        for x in X:
            for i in range(11):
                measured = [squared_apart(x, np.flatnonzero(x), 0.3, own, i, 0.7) for own in (Z, rows.arrays)]
                assert measured[0] == measured[1]
        one, other = Factor.of(rows), Factor.of(Z)
        assert one.quantum == other.quantum
        assert np.array_equal(one.columns, other.columns)
        assert np.isclose(one.frobenius, other.frobenius)


def test_small_and_empty_rows():
    Z = np.array([[3e-200, 4e-200], [0.0, 0.0], [3e200, 4e200], [0.0, 5e-324]])
    assert row_norms(SparseRows(sparse.csr_array(Z))) == pytest.approx([5e-200, 0.0, 5e200, 5e-324], rel=1e-12)
    none = SparseRows(sparse.csr_array((3, 2)))
    none.multiply(np.ones((2, 2)), out := np.ones((2, 3)))
    assert not out.any()
    assert not none.largest_entries.any()


@pytest.mark.parametrize("kernel", [Linear(), RBF(), NTK(), NTK(2, "relu"), NTK(bias_std=1.0), NTK(activation="gelu")])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_kernels(kernel, dtype):
    rng = np.random.default_rng(2)
    X, Z = mostly_zeros(rng, 9, 6, dtype, whole=False), mostly_zeros(rng, 7, 6, dtype, whole=False)
    Z[0], Z[1] = X[0], -X[1]  # angles of zero and of pi
    near = 1e-5 if dtype == np.float32 else 1e-12
    for form in (sparse.csr_array, sparse.csc_matrix):
        assert np.allclose(kernel(form(X), form(Z)), kernel(X, Z), rtol=near, atol=near)
        assert np.allclose(kernel(X, form(Z)), kernel(X, Z), rtol=near, atol=near)
        assert np.allclose(kernel(form(X), Z), kernel(X, Z), rtol=near, atol=near)
        own = kernel(form(X))
        assert own.dtype == dtype
        assert np.array_equal(own, own.T)
        assert np.allclose(own, kernel(X), rtol=near, atol=near)
        assert np.allclose(kernel.diag(form(X)), kernel.diag(X), rtol=near, atol=near)


@pytest.mark.parametrize("kernel", [ConvNTK((1, 2, 3)), ConvNTK((1, 2, 3), activation="linear")])
def test_kernels_of_dense_inputs_say_so(kernel):
    X = sparse.csr_array(np.eye(6))
    for ask in (kernel, kernel.diag):
        with pytest.raises(TypeError, match=r"X must be dense for this kernel; got a sparse csr_array\. Pass X"):
            ask(X)
    with pytest.raises(TypeError, match="X_test must be dense to store its kernel; got a sparse csr_array"):
        _ = StoredKernel(RBF(), np.eye(6), X, "kernel.npy").train_rows


def test_equal_inputs_are_at_distance_zero():
    X = mostly_zeros(np.random.default_rng(3), 30, 50, whole=False)
    rows = sparse.csr_array(X)
    assert np.all(np.diagonal(RBF(1e3)(rows, rows.copy())) == 1.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_places_of_entries(dtype):
    rows = [*mostly_zeros(np.random.default_rng(5), 30, 9), np.array([]), np.array([0.0, -0.0, np.nan, np.inf])]
    for row in rows:
        own = row.astype(dtype)
        np.testing.assert_array_equal(places_of_entries(own), np.flatnonzero(own))


def test_rows_that_come_and_go():
    X = mostly_zeros(np.random.default_rng(4), 6, 4)
    for new in (np.empty((0, 4)), np.ones((2, 4))):
        for gone in (np.empty(0, np.int64), np.array([1, 4])):
            after = changed_rows(sparse.csr_matrix(X), gone, new)
            assert np.array_equal(after.toarray(), changed_rows(X, gone, new))


def test_rows_on_their_way():
    X = canonical(sparse.csr_array(mostly_zeros(np.random.default_rng(5), 20, 6)))
    rows = SparseRows(X)
    rows[slice(None)].multiply(np.ones((1, 6)), np.empty((1, 20)))  # what is kept of that stays here
    assert np.array_equal(dense(unpack(pack(rows))), X.toarray())
    some = SelectedRows(X, np.arange(0, 20, 2))
    held = {"model": SparseRows(some.values), "seen": some.values}
    packed = pack(held, [some])
    assert packed.nbytes < some.values.data.nbytes
    again = unpack(packed, [some])
    assert again["seen"] is some.values
    assert again["model"].csr is some.values
    assert np.array_equal(unpack(pack(some)).values.toarray(), some.values.toarray())


def test_questions_about_sparse_rows_are_known_by_their_numbers():
    X = canonical(sparse.csr_array(mostly_zeros(np.random.default_rng(6), 8, 5)))

    def name(training, rows):
        return Question(Asked(SparseRows(training).multiply, 1), rows).name

    first = name(X, X[:4])
    used = SparseRows(X)
    used.multiply(np.ones((1, 5)), np.empty((1, 8)))
    assert Question(Asked(used.multiply, 1), X[:4]).name == first
    assert name(X.copy(), sparse.csr_array(X)[:4]) == first
    other = X.copy()
    other.data[-1] += 1
    assert name(other, X[:4]) != first
    assert name(X, other[4:]) != first

"""The Cholesky factorisation in place: as scipy does it, on any grid, with any number of threads, in half a square."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from flipcert.engine.cholesky import Cholesky, tile_size, triangle_bytes

DTYPES = [np.float64, np.float32]


def positive_matrix(size, dtype, seed=0):
    X = np.random.default_rng(seed).normal(size=(size, size + 5)).astype(dtype)
    return X @ X.T / size


def factorised(matrix, shift, tile, n_jobs=2):
    system = Cholesky(matrix.shape[0], matrix.dtype, tile)
    system.fill(lambda rows, columns: matrix[rows, columns], n_jobs)
    system.factorise(shift, n_jobs)
    return system


def solved(system, rows):
    solution = rows.copy()
    system.solve(solution)
    return solution


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 7, 8, 9, 15, 16, 17, 63, 64, 65, 129, 200, 301])
@pytest.mark.parametrize("tile", [8, 64, 100, None])
def test_solves_as_scipy(size, tile, dtype):
    matrix = positive_matrix(size, dtype)
    rows = np.random.default_rng(1).normal(size=(5, size)).astype(dtype)
    expected = cho_solve(cho_factor(matrix.astype(float) + 0.5 * np.eye(size), lower=True), rows.T.astype(float)).T
    solution = solved(factorised(matrix, 0.5, tile), rows)
    assert solution.dtype == dtype
    assert np.allclose(solution, expected, rtol=0, atol=(1e-12 if dtype == np.float64 else 1e-4))


@pytest.mark.parametrize("dtype", DTYPES)
def test_threads_change_no_bit(dtype):
    matrix = positive_matrix(330, dtype)
    rows = np.random.default_rng(1).normal(size=(40, 330)).astype(dtype)
    alone, together = (solved(factorised(matrix, 1.0, 32, n_jobs), rows) for n_jobs in (1, 2))
    assert np.array_equal(alone, together)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("place", [0, 9, 39])
def test_not_positive_definite(place, n_jobs):
    matrix = positive_matrix(40, np.float64)
    matrix[place, place] = -1.0
    with pytest.raises(LinAlgError):
        factorised(matrix, 1e-3, 8, n_jobs)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("tile", [7, 8, 30])
def test_only_the_lower_triangle_counts(tile, dtype):
    matrix = positive_matrix(30, dtype)
    lower = np.tril(matrix) + np.triu(np.full((30, 30), np.nan), 1).astype(dtype)
    asked = []

    def values(rows, columns):
        asked.append((rows.start, columns.start))
        return lower[rows, columns]

    system = Cholesky(30, dtype, tile)
    sums = system.fill(values, n_jobs=1)
    symmetric = np.tril(matrix) + np.tril(matrix, -1).T
    assert all(row >= column for row, column in asked)
    assert len(set(asked)) == len(asked)
    assert sums.dtype == np.float64
    assert np.allclose(sums, np.abs(symmetric.astype(float)).sum(axis=1), rtol=1e-12)
    system.factorise(1.0, n_jobs=1)
    rows = np.ones((2, 30), dtype)
    assert np.array_equal(solved(system, rows), solved(factorised(symmetric, 1.0, tile), rows))


@pytest.mark.parametrize("dtype", DTYPES)
def test_holds_half_a_square_and_copies_none(dtype):
    size = 3000
    X = np.random.default_rng(0).normal(size=(size, 10)).astype(dtype)
    tracemalloc.start()
    try:
        system = Cholesky(size, dtype)
        system.fill(lambda rows, columns: X[rows] @ X[columns].T, n_jobs=2)
        system.factorise(1.0, n_jobs=2)
        system.solve(np.ones((4, size), dtype))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    held = triangle_bytes(size, dtype)
    assert held < 0.6 * size**2 * np.dtype(dtype).itemsize
    assert peak < held + 12 * tile_size(size) ** 2 * 8


def test_memory_of_a_matrix():
    system = Cholesky(2000, np.float32)
    assert abs(sum(row.nbytes for row in system._rows) / triangle_bytes(2000, np.float32) - 1) < 0.05
    # 60,000 samples: double precision leaves room in 18 GB, single precision in 9.
    assert triangle_bytes(60_000, np.float64) < 14.7e9
    assert triangle_bytes(60_000, np.float32) < 7.4e9


@pytest.mark.parametrize(("dtype", "condition"), [(np.float64, 1e12), (np.float64, 1e6), (np.float32, 1e5)])
@pytest.mark.parametrize("size", [40, 150])
def test_error_is_no_more_than_the_condition_allows(size, dtype, condition):
    rng = np.random.default_rng(size)
    basis = np.linalg.qr(rng.normal(size=(size, size)))[0]
    matrix = ((basis * np.geomspace(1 / condition, 1, size)) @ basis.T).astype(dtype)
    matrix = (matrix + matrix.T) / 2
    solution = rng.normal(size=(6, size))
    rows = (solution.astype(np.longdouble) @ matrix.astype(np.longdouble)).astype(dtype)
    error = np.linalg.norm(solved(factorised(matrix, 0.0, None), rows) - solution, axis=1)
    allowed = np.finfo(dtype).eps / 2 * condition * np.sqrt(size) * np.linalg.norm(solution, axis=1)
    assert (error <= allowed).all()

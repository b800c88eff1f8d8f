"""Inputs that are mostly zeros, dense and in all the forms that a sparse matrix can have."""

from __future__ import annotations

import numpy as np
from scipy import sparse


def mostly_zeros(rng, n_rows, n_features, dtype=np.float64, whole=True, filled=0.4):
    """Whole numbers, of which all products are exact, or any; the latter half of the rows repeats some of the first."""
    X = rng.integers(-3, 4, (n_rows, n_features)).astype(dtype)
    if not whole:
        X *= rng.standard_normal((n_rows, n_features)).astype(dtype)
    X[rng.random((n_rows, n_features)) >= filled] = 0
    again = rng.random(n_rows) < 0.2
    X[again] = X[rng.integers(0, n_rows, int(again.sum()))]
    return X


def untidy(X):
    """The same numbers with columns out of order, entries in two parts, and zeros of both signs that are kept."""
    values, rows, columns = [], [], []
    for i, row in enumerate(X):
        for j in reversed(range(row.size)):
            parts = [row[j]] if row[j] % 2 else [row[j] / 2, row[j] / 2] if row[j] else [-0.0] * (j % 2)
            values += parts
            rows += [i] * len(parts)
            columns += [j] * len(parts)
    begins = np.append(0, np.cumsum(np.bincount(np.array(rows, int), minlength=X.shape[0])))
    return sparse.csr_matrix((np.array(values, X.dtype), np.array(columns, np.int32), begins), shape=X.shape)


def long_indices(X):
    """With indices of 64 bits, as very large matrices have."""
    rows = sparse.csr_array(X)
    rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    return rows


FORMS = {
    "csr_matrix": sparse.csr_matrix,
    "csr_array": sparse.csr_array,
    "csc_array": sparse.csc_array,
    "coo_matrix": sparse.coo_matrix,
    "lil_array": sparse.lil_array,
    "dia_matrix": sparse.dia_matrix,
    "untidy": untidy,
    "long indices": long_indices,
}

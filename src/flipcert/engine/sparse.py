"""Inputs that are mostly zeros: kept as they are; only blocks of the rows that are asked about become dense.

Two kinds of rows are told apart. Rows that somebody asks about are dense, one block at a time, so that whatever looks
at them need not know. Training rows, which are many, stay sparse: ``SparseRows`` is what a product is taken with.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import csr_array, issparse, vstack

from flipcert.engine._jit.sparse import multiply_columns, squares_of_entries
from flipcert.engine.magnitude import BY_FEATURES
from flipcert.engine.tiles import COLUMNS

# Dense copies of a row while a block is worked on: the inputs, their magnitudes, what a kernel makes of them.
_COPIES = 3


def canonical(X: Any) -> Any:
    """Rows of a sparse matrix of any kind: columns in order, each named once, and nothing kept that is zero."""
    rows = X.tocsr()
    if rows.has_canonical_format and np.all(rows.data != 0):
        return rows
    rows = rows.copy() if rows is X else rows
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows


def indexable(X: Any) -> Any:
    """Inputs of which rows can be picked, which not all sparse matrices allow; all others as they are."""
    return X.tocsr() if issparse(X) else X


def dense(rows: Any) -> NDArray[Any]:
    """The rows as an array; an array as it is."""
    if isinstance(rows, SparseRows):
        rows = rows.csr
    return rows.toarray(order="C") if issparse(rows) else rows


def dense_bytes(X: Any) -> int:
    """Memory that a row takes while it is dense, if it is not dense as it is."""
    return _COPIES * X.shape[1] * X.dtype.itemsize if issparse(X) else 0


def of_type(X: Any, dtype: DTypeLike) -> Any:
    """The same numbers in another precision."""
    return X.astype(dtype, copy=False) if issparse(X) else np.asarray(X, dtype)


def changed_rows(X: Any, deleted: NDArray[np.int64], inserted: NDArray[Any]) -> Any:
    """X without some rows, and with others after the last one."""
    if not issparse(X):
        kept = np.delete(np.asarray(X), deleted, axis=0)
        return np.concatenate([kept, inserted.astype(kept.dtype)]) if len(inserted) else kept
    kept = X.tocsr()[np.delete(np.arange(X.shape[0]), deleted)]
    return vstack([kept, csr_array(inserted.astype(kept.dtype))], format="csr") if len(inserted) else kept


class SparseRows:
    """Training inputs of mostly zeros, as the second factor of products.

    A product takes the features of a test input one after the other, and adds to the training inputs that have them:
    it costs as much as there are pairs of entries that meet.

    Parameters
    ----------
    csr : sparse matrix or array
        In canonical form.
    """

    def __init__(self, csr: Any) -> None:
        self.csr = csr
        self._tiles: dict[int, SparseRows] = {}

    def __reduce__(self) -> Any:
        return SparseRows, (self.csr,)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features."""
        return self.csr.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers."""
        return self.csr.dtype

    @property
    def arrays(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Where rows begin, columns of the entries, and the entries, for compiled code."""
        return self.csr.indptr, self.csr.indices, self.csr.data

    def __getitem__(self, rows: slice) -> SparseRows:
        """Rows one after the other, which are no copy; tiles of the grid are kept, with all that is known of them."""
        start, stop, _ = rows.indices(self.shape[0])
        of_grid = start % COLUMNS == 0 and stop == min(start + COLUMNS, self.shape[0])
        if of_grid and start in self._tiles:
            return self._tiles[start]
        begins, columns, values = self.arrays
        entries = slice(begins[start], begins[stop])
        csr = csr_array((values[entries], columns[entries], begins[start : stop + 1] - begins[start]),
                        shape=(stop - start, self.shape[1]))  # fmt: skip
        part = SparseRows(csr)
        if of_grid:
            self._tiles[start] = part
        return part

    @classmethod
    def join(cls, parts: list[SparseRows]) -> SparseRows:
        """All rows one after the other."""
        return cls(vstack([part.csr for part in parts], format="csr"))

    @cached_property
    def _columns(self) -> Any:
        return self.csr.tocsc()

    @cached_property
    def squares(self) -> NDArray[np.float64]:
        """Squared norm of each row, in double precision."""
        return squares_of_entries(self.csr.indptr, self.csr.data)

    @property
    def largest_entries(self) -> NDArray[Any]:
        """Largest magnitude in each row."""
        return largest_by_column(self.csr.T)

    def scaled(self, factor: float) -> SparseRows:
        """The same in double precision, times a number."""
        begins, columns, values = self.arrays
        return SparseRows(csr_array((values.astype(np.float64) * factor, columns, begins), shape=self.shape))

    def multiply(self, left: NDArray[Any], out: NDArray[Any]) -> None:
        """Write the products of dense rows with all of these to ``out``."""
        columns = self._columns
        multiply_columns(np.ascontiguousarray(left), columns.indptr, columns.indices, columns.data, out)


def training_rows(X: Any) -> Any:
    """Training inputs as the second factor of products: an array as it is."""
    return SparseRows(X) if issparse(X) else X


def write_product(left: NDArray[Any], right: Any, out: NDArray[Any]) -> None:
    """Write ``left @ right.T`` to ``out``, whatever the second factor is."""
    if isinstance(right, SparseRows):
        right.multiply(left, out)
    else:
        np.matmul(left, right.T, out=out)


def largest_by_column(rows: Any) -> NDArray[Any]:
    """Largest magnitude in each column of a sparse matrix."""
    largest = np.zeros(rows.shape[1], rows.dtype)
    columns = rows.tocsc()
    filled = np.flatnonzero(np.diff(columns.indptr))
    if filled.size:
        largest[filled] = np.maximum.reduceat(np.abs(columns.data), columns.indptr[filled])
    return largest


def norms_of_rows(rows: Any) -> NDArray[np.float64]:
    """Euclidean norm of each row of a sparse matrix, in double precision; squares neither overflow nor vanish."""
    begins = rows.indptr
    exponents = np.frexp(largest_by_column(rows.T).astype(np.float64))[1]
    scaled = np.ldexp(rows.data.astype(np.float64), -np.repeat(exponents, np.diff(begins)))
    with np.errstate(over="ignore"):
        return np.ldexp(np.sqrt(squares_of_entries(begins, scaled)), exponents)


def reason_for(why: Callable[[Any, bool], str], X: Any, small: bool) -> str:
    """What ``why`` says of rows out of range; of sparse ones some at a time, and the first that names a cause."""
    if not issparse(X):
        return why(X, small)
    height = max(1, 2**24 // (8 * X.shape[1]))
    reasons = (why(dense(X[start : start + height]), small) for start in range(0, X.shape[0], height))
    return next((reason for reason in reasons if reason != BY_FEATURES), BY_FEATURES)

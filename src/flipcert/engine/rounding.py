"""How far another rounding of a matrix product could move a row of weights.

The certificate itself never uses this: it is exact for the weights as they are. But another batching of the same
points, another BLAS or another order of the training rows may round the weights differently, and a comparison closer
than that could come out differently: such points are flagged ``rounding_sensitive``.

These are estimates, not bounds: rounding errors of a sum of d products behave like a random walk, so they grow with
the square root of d, and independent errors of n weights add up to the root of their sum of squares. ``SAFETY`` is
how many times larger than that a real difference may be and still be caught.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.engine._jit.bits import lowest_bit
from flipcert.engine.blocks import map_threads
from flipcert.engine.mapped import row_pieces
from flipcert.engine.sparse import SparseRows, largest_by_column, norms_of_rows

SAFETY = 16.0
# Bytes of rows that are measured together, which stay in the cache of a core, and of those that make a task.
_CACHED, _TASK = 2**18, 2**24


@dataclass(frozen=True)
class Factor:
    """What the rounding of ``X @ Z.T`` needs to know about Z: its size in all, by rows and by columns, its bits."""

    frobenius: float
    largest_norm: float
    columns: NDArray[Any]
    quantum: int
    shape: tuple[int, int]
    unit: float
    # Columns that are zero only because there are no smaller numbers.
    vanished: NDArray[np.bool_] | None = None

    @classmethod
    def of(cls, Z: Any, n_jobs: int | None = 1) -> Factor:
        """Measure the rows of Z."""
        norms, columns, numbers = _measured(Z, n_jobs)
        largest = float(norms.max(initial=0.0))
        stop = _hopeless(largest, Z.dtype)
        lowest = 1000
        for some in numbers:
            lowest = min(lowest, quantum(some, stop))
            if lowest <= stop:
                break
        with np.errstate(over="ignore"):
            frobenius = float(np.sqrt(np.sum(norms**2)))
        return cls(
            frobenius=frobenius,
            largest_norm=largest,
            columns=columns,
            quantum=lowest,
            shape=(Z.shape[0], Z.shape[1]),
            unit=float(np.finfo(Z.dtype).eps) / 2,
        )

    @property
    def square_error(self) -> float:
        """Root of the sum of squared errors of the squared norms of the rows of Z."""
        return float(np.finfo(np.float64).eps) / 2 * float(np.sqrt(self.shape[1])) * self.largest_norm * self.frobenius

    def product_error(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Root of the sum of squared errors in each row of ``X @ Z.T``; zero where no rounding can happen."""
        return product_errors(X, [self])[:, 0]


def _measured(Z: Any, n_jobs: int | None) -> tuple[NDArray[np.float64], NDArray[Any], Iterable[NDArray[Any]]]:
    """Norms of the rows of Z, the largest magnitude in each column, and the numbers in it, some at a time."""
    if isinstance(Z, SparseRows):
        return row_norms(Z), largest_by_column(Z.csr), [Z.csr.data]

    norms, columns = np.empty(Z.shape[0]), np.zeros(Z.shape[1], Z.dtype)
    step = max(1, _TASK // max(1, Z.dtype.itemsize * Z.shape[1]))

    def largest(start: int) -> NDArray[Any]:
        own = np.zeros_like(columns)
        for place, rows in row_pieces(Z[start : start + step], _CACHED):
            norms[start + place.start : start + place.stop] = row_norms(rows)
            np.maximum(own, np.abs(rows).max(axis=0), out=own)
        return own

    for own in map_threads(largest, range(0, Z.shape[0], step), n_jobs):
        np.maximum(columns, own, out=columns)
    return norms, columns, (rows for _, rows in row_pieces(Z))


def squares_are_exact(norms: Any, lowest: int) -> Any:
    """Where squared norms of rows are sums without rounding, in double precision; all entries are multiples of 2**q."""
    with np.errstate(over="ignore"):
        return norms**2 < np.ldexp(1.0 / float(np.finfo(np.float64).eps), 2 * lowest)


def product_errors(X: NDArray[Any], factors: list[Factor]) -> NDArray[np.float64]:
    """``product_error`` for several factors Z, all of the same width: one column each."""
    norms = row_norms(X)[:, None]
    unit, width = factors[0].unit, factors[0].shape[1]
    frobenius = np.array([factor.frobenius for factor in factors])
    largest = np.array([factor.largest_norm for factor in factors])
    quanta = np.array([factor.quantum for factor in factors])
    lowest = quantum(X, _never_whole(norms, largest, quanta, unit)) + quanta
    # Products and sums of multiples of a power of two are exact while they fit the mantissa.
    with np.errstate(over="ignore"):
        whole = norms * largest < np.ldexp(0.5 / unit, lowest)
        return np.where(whole, 0.0, unit * np.sqrt(width) * norms * frobenius)


def _never_whole(norms: NDArray[np.float64], largest: NDArray[np.float64], quanta: NDArray[Any], unit: float) -> int:
    """A lowest bit of X from which on no product is exact, by the exponents of all norms: it need not be known better.

    2**(exponent - 1) is at most the number; zeros have errors of zero either way.
    """
    sizes, others = np.frexp(norms[norms > 0])[1], np.frexp(largest)[1] - quanta
    digits = int(np.frexp(0.5 / unit)[1])
    return int(sizes.min(initial=1100)) + int(others.min(initial=1100)) - 2 - digits


def _hopeless(largest_norm: float, dtype: np.dtype[Any]) -> int:
    """A lowest bit so far below the largest norm that no product is exact, and it does not matter how far."""
    return int(np.frexp(largest_norm)[1]) - np.finfo(dtype).nmant - 2 if largest_norm < np.inf else -2000


def row_norms(X: Any) -> NDArray[np.float64]:
    """Euclidean norm of each row, in double precision.

    >>> row_norms(np.array([[3e-200, 4e-200]])).tolist()
    [5e-200]
    """
    if isinstance(X, SparseRows):
        return norms_of_rows(X.csr)
    with np.errstate(over="ignore"):
        norms = np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64))
    # Squares of small numbers lose bits, or vanish.
    small = np.flatnonzero(norms < 1e-140)
    if small.size:
        rows = X[small].astype(np.float64)
        exponents = np.frexp(np.abs(rows).max(axis=1, initial=0.0))[1]
        rows = np.ldexp(rows, -exponents[:, None])
        norms[small] = np.ldexp(np.sqrt(np.einsum("ij,ij->i", rows, rows)), exponents)
    return norms


def products_vanish(X: NDArray[Any], factors: list[Factor]) -> NDArray[np.bool_]:
    """Rows of X whose products with all entries of some factor Z are so small that their bits are lost.

    A product with zero is zero, and nothing is lost.
    """
    size = np.abs(X)
    largest = np.array([factor.columns.max(initial=0.0) for factor in factors])
    lost = _too_small(size.max(axis=1, initial=0.0)[:, None], largest, X.dtype).any(axis=1)
    gone = np.zeros(X.shape[1], np.bool_)
    for factor in factors:
        if factor.vanished is not None:
            gone |= factor.vanished
            lost |= not factor.columns.any() and np.any(size[:, factor.vanished], axis=1)
    # Large numbers may meet only zeros: entries count with those of their own column.
    columns = np.max([factor.columns for factor in factors], axis=0)
    unit = min(int(np.frexp(columns.max(initial=0.0))[1]), 1023)  # 2**1024 is no double
    meeting = (size * np.ldexp(columns.astype(np.float64), -unit)).max(axis=1, initial=0.0)
    met = np.any((size > 0) & ((columns > 0) | gone), axis=1) if np.any(meeting == 0) else meeting > 0
    return lost | (met & ((meeting == 0) | _too_small(meeting, np.ldexp(1.0, unit), X.dtype)))


def norms_vanish(X: NDArray[Any], train: Factor, scale: float = 1.0) -> NDArray[np.bool_]:
    """Rows of X whose squared norm, or that of all training inputs, is so small that its bits are lost.

    Some ``scale`` may make them smaller still.
    """
    size = np.abs(X).max(axis=1, initial=0.0)
    largest = train.columns.max(initial=0.0)
    both = (size > 0) & (largest > 0)
    least = min(scale, 1.0)
    return both & (_too_small(size, size, X.dtype, least) | _too_small(largest[None], largest, X.dtype, least))


def _too_small(one: NDArray[Any], other: Any, dtype: np.dtype[Any], scale: float = 1.0) -> NDArray[np.bool_]:
    """Where a product of positive numbers has fewer bits than others of its type; by exponents, which do not vanish."""
    limit = np.frexp(np.finfo(dtype).tiny)[1] + np.finfo(dtype).nmant
    together = np.frexp(one.astype(np.float64))[1] + np.frexp(np.asarray(other, np.float64))[1] + np.frexp(scale)[1]
    return np.asarray((one > 0) & (np.asarray(other) > 0) & (together < limit))


def quantum(X: NDArray[Any], stop: int = -2000) -> int:
    """Largest q such that every entry is a multiple of 2**q (or at most ``stop``).

    >>> quantum(np.array([[0.75, 2.0]]))
    -2
    """
    return int(lowest_bit(np.ravel(X), 1000, stop))

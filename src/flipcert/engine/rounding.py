"""How far another rounding of a matrix product could move a row of weights.

The certificate itself never uses this: it is exact for the weights as they are. But another batching of the same
points, another BLAS or another order of the training rows may round the weights differently, and a comparison closer
than that could come out differently: such points are flagged ``rounding_sensitive``.

These are estimates, not bounds: rounding errors of a sum of d products behave like a random walk, so they grow with
the square root of d, and independent errors of n weights add up to the root of their sum of squares. ``SAFETY`` is
how many times larger than that a real difference may be and still be caught.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.engine._bits import lowest_bit
from flipcert.engine.mapped import row_pieces

SAFETY = 16.0


@dataclass(frozen=True)
class Factor:
    """What the rounding of ``X @ Z.T`` needs to know about Z."""

    frobenius: float
    largest_norm: float
    quantum: int
    shape: tuple[int, int]
    unit: float

    @classmethod
    def of(cls, Z: NDArray[Any]) -> Factor:
        """Measure the rows of Z."""
        norms = np.empty(Z.shape[0])
        for place, rows in row_pieces(Z):
            norms[place] = row_norms(rows)
        largest = float(norms.max(initial=0.0))
        stop = _hopeless(largest, Z.dtype)
        lowest = 1000
        for _, rows in row_pieces(Z):
            lowest = min(lowest, quantum(rows, stop))
            if lowest <= stop:
                break
        with np.errstate(over="ignore"):
            frobenius = float(np.sqrt(np.sum(norms**2)))
        return cls(
            frobenius=frobenius,
            largest_norm=largest,
            quantum=lowest,
            shape=(Z.shape[0], Z.shape[1]),
            unit=float(np.finfo(Z.dtype).eps) / 2,
        )

    def product_error(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Root of the sum of squared errors in each row of ``X @ Z.T``; zero where no rounding can happen."""
        return product_errors(X, [self])[:, 0]


def product_errors(X: NDArray[Any], factors: list[Factor]) -> NDArray[np.float64]:
    """``product_error`` for several factors Z, all of the same width: one column each."""
    norms = row_norms(X)[:, None]
    unit, width = factors[0].unit, factors[0].shape[1]
    frobenius = np.array([factor.frobenius for factor in factors])
    largest = np.array([factor.largest_norm for factor in factors])
    lowest = quantum(X) + np.array([factor.quantum for factor in factors])
    # Products and sums of multiples of a power of two are exact while they fit the mantissa.
    with np.errstate(over="ignore"):
        whole = norms * largest < np.ldexp(0.5 / unit, lowest)
        return np.where(whole, 0.0, unit * np.sqrt(width) * norms * frobenius)


def _hopeless(largest_norm: float, dtype: np.dtype[Any]) -> int:
    """A lowest bit so far below the largest norm that no product is exact, and it does not matter how far."""
    return int(np.frexp(largest_norm)[1]) - np.finfo(dtype).nmant - 2 if largest_norm < np.inf else -2000


def row_norms(X: NDArray[Any]) -> NDArray[np.float64]:
    """Euclidean norm of each row, in double precision."""
    with np.errstate(over="ignore"):
        return np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64))


def quantum(X: NDArray[Any], stop: int = -2000) -> int:
    """Largest q such that every entry is a multiple of 2**q (or at most ``stop``).

    >>> quantum(np.array([[0.75, 2.0]]))
    -2
    """
    return int(lowest_bit(np.ravel(X), 1000, stop))

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

SAFETY = 16.0
_PIECE = 2**17


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
        norms = row_norms(Z)
        return cls(
            frobenius=float(np.sqrt(np.sum(norms**2))),
            largest_norm=float(norms.max(initial=0.0)),
            quantum=quantum(Z),
            shape=(Z.shape[0], Z.shape[1]),
            unit=float(np.finfo(Z.dtype).eps) / 2,
        )

    def product_error(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Root of the sum of squared errors in each row of ``X @ Z.T``; zero where no rounding can happen."""
        norms = row_norms(X)
        error = self.unit * np.sqrt(self.shape[1]) * norms * self.frobenius
        # Products and sums of multiples of a power of two are exact while they fit the mantissa.
        with np.errstate(over="ignore"):
            whole = norms * self.largest_norm < np.ldexp(0.5 / self.unit, quantum(X) + self.quantum)
        return np.where(whole, 0.0, error)


def row_norms(X: NDArray[Any]) -> NDArray[np.float64]:
    """Euclidean norm of each row, in double precision."""
    return np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64))


def quantum(X: NDArray[Any]) -> int:
    """Largest q such that every entry is a multiple of 2**q.

    >>> quantum(np.array([[0.75, 2.0]]))
    -2
    """
    numbers = X.ravel()
    # Piece by piece: the temporaries would be several times as large as X.
    return min((_quantum(numbers[start : start + _PIECE]) for start in range(0, numbers.size, _PIECE)), default=1000)


def _quantum(numbers: NDArray[Any]) -> int:
    mantissas, exponents = np.frexp(numbers[numbers != 0].astype(np.float64))
    if mantissas.size == 0:
        return 1000
    whole = (mantissas * 2.0**53).astype(np.int64)
    lowest_bits = np.log2((whole & -whole).astype(np.float64)).astype(np.int64)
    return int((exponents - 53 + lowest_bits).min())

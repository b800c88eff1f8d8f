"""How far sums and products in doubles may be off: the standard model of rounding, every bound rounded up itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Half a unit in the last place of 1; and what many products that underflow amount to at most.
UNIT = 2.0**-53
UNDERFLOW = 1e-290
# Rows that are added up at a time: the error of a sum grows with the longest chain of additions, not with all of them.
ROWS = 1024


def gamma(n: float) -> float:
    """Relative error of n operations one after the other: n units, and the little that they compound to."""
    return n * UNIT / (1.0 - n * UNIT)


def above(value: Any, operations: int = 16) -> Any:
    """No less than a non-negative number that so many operations on non-negative numbers computed."""
    return value * (1.0 + 4.0 * operations * UNIT) + UNDERFLOW


def row_norms(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Norms of rows, rounded up."""
    norms: NDArray[np.float64] = above(np.sqrt(np.einsum("ij,ij->i", X, X)), X.shape[1] + 4)
    return norms


def size(array: NDArray[np.float64]) -> float:
    """Euclidean (Frobenius) norm, rounded up."""
    flat = array.ravel()
    # A sum of squares in pieces: pairwise within NumPy, and no longer than all of it in any case.
    return float(above(np.sqrt(np.sum(np.square(flat))), min(flat.size, 2**40)))

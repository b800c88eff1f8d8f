"""Inputs of bounded norm: which are accepted, the largest of each direction, and how far products of them round."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.rounding import row_norms


def norm_rounding(n_inputs: int, dtype: Any) -> float:
    """By how much, beside itself, rounding may have moved the norm of an input that was scaled to a given norm."""
    return (n_inputs + 4) * float(np.finfo(dtype).eps) / 2


def product_rounding(n_terms: int, dtype: Any) -> float:
    """By how much a sum of so many products errs at most, in any order, beside the product of the two norms.

    This is a bound, not an estimate: infinite for sums so long that rounding could do anything.
    """
    errors = n_terms * float(np.finfo(dtype).eps) / 2
    return errors / (1.0 - errors) if errors < 1.0 else np.inf


def rounded_up(values: NDArray[np.float64], X: NDArray[Any], errors: float, constant: bool) -> NDArray[np.float64]:
    """Bounds that hold for computed kernels of X with inputs whose norms are rounded too; ``errors`` is beside them.

    Without a ``constant`` that all kernels have, rows of zeros have a kernel of zero with all inputs, never rounded.
    """
    n_inputs, dtype = X.shape[1], X.dtype
    with np.errstate(over="ignore", invalid="ignore"):
        factor = (
            (1.0 + norm_rounding(n_inputs, dtype)) * (1.0 + errors) * (1.0 + product_rounding(2 * n_inputs + 16, float))
        )
        bounds = np.nextafter(values * factor + n_inputs * float(np.finfo(dtype).smallest_subnormal), np.inf)
    return bounds if constant else np.where(X.any(axis=1), bounds, 0.0)


def onto_sphere(X: NDArray[Any], norm: float) -> NDArray[Any]:
    """Each row scaled to this norm, or, as rounding has it, next to nothing below; zero becomes the first axis."""
    norms = row_norms(X)
    directions = X.astype(np.float64)
    directions[norms == 0.0] = 0.0
    directions[norms == 0.0, 0] = 1.0
    norms[norms == 0.0] = 1.0
    unit = float(np.finfo(X.dtype).eps) / 2
    scaled = (directions * (norm / norms)[:, None]).astype(X.dtype)
    # Rounded, a row may have become longer; a few units of rounding less are enough.
    for shorter in (2.0, 4.0, 8.0, 16.0 + X.shape[1]):
        long = np.flatnonzero(row_norms(scaled) > norm)
        if not long.size:
            break
        factor = norm / norms[long] * (1.0 - shorter * unit)
        scaled[long] = (directions[long] * factor[:, None]).astype(X.dtype)
    return scaled

"""Metrics over certified predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flipcert.labels.validation import check_choice, check_integers


def certified_accuracy(correct: ArrayLike, radius: ArrayLike, flips: ArrayLike) -> Any:
    """Share of points that are correct and certified against each number of flips.

    Parameters
    ----------
    correct : array-like of bool of shape (n_test,)
        Whether each prediction is right.
    radius : array-like of int of shape (n_test,)
        Certified radii.
    flips : int or array-like of int
        Numbers r of flipped labels.

    Returns
    -------
    float or ndarray of float
        Share of points with ``correct`` and ``radius >= r``; a float for a single r.

    See Also
    --------
    median_certified_robustness : The same in one number.
    Certificates : Has both as methods.

    References
    ----------
    Levine and Feizi, *Deep Partition Aggregation: Provable Defenses against General Poisoning Attacks*, 2021.

    Examples
    --------
    >>> import flipcert
    >>> flipcert.certified_accuracy([True, True, False, True], [0, 3, 9, 5], [0, 1, 4])
    array([0.75, 0.5 , 0.25])
    """
    right, radii = _check(correct, radius)
    budgets = np.asarray(flips)
    whole = check_integers(budgets.ravel(), "flips", minimum=0, ndim=1)
    kept = np.sort(radii[right])
    shares = (kept.size - np.searchsorted(kept, whole, side="left")) / right.size
    return float(shares[0]) if budgets.ndim == 0 else shares.reshape(budgets.shape)


def median_certified_robustness(correct: ArrayLike, radius: ArrayLike, *, over: str = "correct") -> int:
    """Largest r such that at least half of the points are correct and withstand r flips.

    Parameters
    ----------
    correct : array-like of bool of shape (n_test,)
        Whether each prediction is right.
    radius : array-like of int of shape (n_test,)
        Certified radii.
    over : {"correct", "all"}, default="correct"
        Half of the correct points (the EnsembleCert paper), or half of all points (as SS-DPA reports it).

    Returns
    -------
    int
        0 where no point is correct, or, over all points, where fewer than half are.

    See Also
    --------
    certified_accuracy : The whole curve.

    References
    ----------
    Levine and Feizi, *Deep Partition Aggregation: Provable Defenses against General Poisoning Attacks*, 2021.

    Examples
    --------
    >>> import flipcert
    >>> flipcert.median_certified_robustness([True, True, True, True, False], [1, 2, 3, 4, 9])
    3
    """
    check_choice(over, "over", ("correct", "all"))
    right, radii = _check(correct, radius)
    kept = np.sort(radii[right])[::-1]
    half = -(-(kept.size if over == "correct" else right.size) // 2)
    return int(kept[half - 1]) if 0 < half <= kept.size else 0


def _check(correct: ArrayLike, radius: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    right = np.asarray(correct)
    if right.dtype != np.bool_ or right.ndim != 1:
        raise ValueError(f"correct must be a one-dimensional boolean array; got shape {right.shape} of {right.dtype}.")
    radii = check_integers(radius, "radius", minimum=0, ndim=1)
    if right.shape != radii.shape:
        raise ValueError(f"correct has {right.size} entries, but radius has {radii.size}.")
    if right.size == 0:
        raise ValueError("correct is empty; give at least one test point.")
    return right, radii

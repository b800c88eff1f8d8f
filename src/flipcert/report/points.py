"""Which test points deserve a look."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flipcert.report.series import counted
from flipcert.results.certificates import Certificates


def notable_points(
    certificates: Certificates, y: ArrayLike | None = None, *, count: int = 5, preferred: Collection[int] = ()
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of the most fragile and of the most robust predictions, the most extreme first.

    Only correct predictions are considered where true labels are known.

    Parameters
    ----------
    certificates : Certificates
        What was proven.
    y : array-like of shape (n_test,), default=None
        True labels.
    count : int, default=5
        Number of rows of each kind; no row is of both kinds.
    preferred : collection of int
        Rows to take first among equals, such as those whose attack is known; then the smaller row.

    Returns
    -------
    fragile, robust : ndarray of int64
    """
    rows = np.flatnonzero(counted(certificates, y))
    later = ~np.isin(rows, list(preferred))
    radius, upper = certificates.radius[rows], certificates.radius_upper[rows]
    fragile = rows[np.lexsort((rows, later, upper, radius))][:count]
    robust = rows[np.lexsort((rows, later, -upper, -radius))]
    return fragile, robust[~np.isin(robust, fragile)][:count]

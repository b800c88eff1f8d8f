"""Which test points and which training labels deserve a look."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flipcert.certificates import Certificates
from flipcert.evaluation.result import Attack
from flipcert.evaluation.series import counted


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


@dataclass(frozen=True)
class Suspect:
    """A training label that known attacks flip: how many of them, and the size of the smallest."""

    index: int
    label: Any
    n_attacks: int
    smallest: int


def most_attacked(attacks: Sequence[Attack], count: int = 10) -> list[Suspect]:
    """Training labels that appear in the most attacks; among equals those of smaller attacks first.

    Parameters
    ----------
    attacks : sequence of Attack
        Known attacks, each on one test point.
    count : int, default=10
        Number of labels.
    """
    if not attacks:
        return []
    indices = np.concatenate([attack.indices for attack in attacks])
    sizes = np.repeat([attack.indices.size for attack in attacks], [attack.indices.size for attack in attacks])
    found, first, inverse, times = np.unique(indices, return_index=True, return_inverse=True, return_counts=True)
    smallest = np.full(found.size, np.iinfo(np.int64).max)
    np.minimum.at(smallest, inverse, sizes)
    old = [label for attack in attacks for label in attack.old]
    order = np.lexsort((found, smallest, -times))[:count]
    return [Suspect(int(found[i]), old[first[i]], int(times[i]), int(smallest[i])) for i in order]

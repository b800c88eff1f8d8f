"""Long rows of numbers made short, by chance that a seed settles, so that inner products stay nearly the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array


class Sketch:
    r"""A random linear map S from long rows to short ones: each number is added to, or taken from, one place.

    Inner products of short rows are right on average over seeds, with a variance of
    :math:`(\|u\|^2 \|v\|^2 + \langle u, v\rangle^2 - 2 \sum_i u_i^2 v_i^2) / m`, so a standard deviation of at most
    :math:`\sqrt{2 / m}\, \|u\| \|v\|`. The map has one entry for each number of a long row, so it is drawn when it is
    used, and never held for all of them.

    Parameters
    ----------
    n_long, n_short : int
        Lengths of the rows.
    seeds : sequence of tuples of int
        What settles the map. With several, long rows come one after the other, and their short ones are added up.
    """

    def __init__(self, n_long: int, n_short: int, seeds: Sequence[tuple[int, ...]]) -> None:
        drawn = [np.random.default_rng(seed) for seed in seeds]
        places = np.concatenate([rng.integers(0, n_short, n_long, dtype=np.int32) for rng in drawn])
        signs = np.concatenate([1.0 - 2.0 * rng.integers(0, 2, n_long, dtype=np.int8) for rng in drawn])
        by_long = csr_array((signs, places, np.arange(places.size + 1, dtype=np.int32)), shape=(places.size, n_short))
        self._map: Any = by_long.T

    def __call__(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Short rows of long ones."""
        return np.asarray((self._map @ np.ascontiguousarray(rows.T)).T)

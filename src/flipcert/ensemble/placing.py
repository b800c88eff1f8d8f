"""Rows that an attacker adds to one partition of a hash: the last bits of an input decide where it goes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.ensemble.partition import content_hash

# So many variations are tried for each partition there is; each has the same chance.
_TRIES = 64
# Entries above so many times the smallest number have last bits to spare.
_LARGE = 2.0**30


def placed(row: NDArray[Any], number: int, n_partitions: int) -> Iterator[NDArray[Any]]:
    """Inputs next to a row, the row itself first if it can be, that lie in one partition and are no longer than it."""
    for variation in _variations(row, _TRIES * n_partitions):
        if content_hash(variation) % n_partitions == number:
            yield variation


def room_for_placing(dtype: Any) -> float:
    """By which part of itself the weight of an input may shrink when it is moved into a partition.

    Far more than it does: what attacks are found with, so that they work wherever the input has to go.
    """
    return float(2.0 ** (np.log2(float(np.finfo(dtype).eps)) * 0.4))


def _variations(row: NDArray[Any], count: int) -> Iterator[NDArray[Any]]:
    """The row, and rows that differ from it by the last bits of one entry, which becomes smaller unless all are 0."""
    yield row
    entries, step = np.flatnonzero(np.abs(row) > _LARGE * float(np.finfo(row.dtype).tiny)), -1
    if entries.size == 0:
        entries, step = np.flatnonzero(row == 0), 1
    for k in range(count if entries.size else 0):
        other = np.array(row)
        bits = other.view(np.int64 if other.dtype.itemsize == 8 else np.int32)
        bits[entries[k % entries.size]] += step * (1 + k // entries.size)
        yield other

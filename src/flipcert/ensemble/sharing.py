"""Finite Aggregation: small buckets of the training set, each of which several voters are trained on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from flipcert.ensemble.partition import assign_partitions


def check_copies(copies: Any, n_partitions: Any, random_state: Any) -> int:
    """How many voters are trained on each row, a whole number; a ValueError if that makes no sense."""
    if not _is_whole(copies) or copies < 1:
        raise ValueError(
            f"copies must be a whole number of at least 1, how many voters each row is given to; got {copies!r}."
        )
    if copies == 1:
        return 1
    if not _is_whole(n_partitions) or n_partitions < 1:
        raise ValueError(f"n_partitions must be a whole number of at least 1; got {n_partitions!r}.")
    if not _is_whole(random_state):
        raise ValueError(
            f"random_state must be a whole number, so that with copies={copies} every fit gives rows to the same "
            f"voters; got {random_state!r}."
        )
    return int(copies)


def users_of_buckets(n_partitions: int, copies: int, random_state: int) -> NDArray[np.int64]:
    """Voters that are trained on each of ``n_partitions * copies`` buckets, one row a bucket, by the seed alone.

    There are as many voters as buckets, and each is trained on ``copies`` of them. Bucket h goes to the voters
    h + s, counted in a circle, for as many different shifts s. With one copy they are partitions, and s is 0.

    >>> users_of_buckets(2, 1, random_state=0).tolist()
    [[0], [1]]
    >>> users_of_buckets(2, 2, random_state=0).tolist()
    [[2, 3], [3, 0], [0, 1], [1, 2]]
    """
    n_buckets = n_partitions * copies
    shifts = np.zeros(1, np.int64)
    if copies > 1:
        shifts = np.sort(check_random_state(random_state).permutation(n_buckets)[:copies])
    return (np.arange(n_buckets)[:, None] + shifts) % n_buckets


def assign_buckets(
    X: NDArray[Any], n_partitions: int, copies: int, partition: Any, random_state: int, sources: Any
) -> NDArray[np.int64]:
    """Bucket of each training row, or partition, with one copy; labels are not looked at."""
    if copies == 1:
        return assign_partitions(X, n_partitions, partition, random_state, sources)
    n_buckets = n_partitions * copies
    by_hash = isinstance(partition, str) and partition == "hash"
    if n_buckets > X.shape[0] and not by_hash:
        raise ValueError(
            f"n_partitions={n_partitions} and copies={copies} cut rows into {n_buckets} buckets, but there are only "
            f"{X.shape[0]} rows; use fewer of either."
        )
    try:
        return assign_partitions(X, n_buckets, partition, random_state, sources)
    except ValueError as error:
        raise ValueError(
            f"n_partitions={n_partitions} and copies={copies} cut rows into {n_buckets} buckets, each of which is a "
            f"partition here: {error}"
        ) from error


def _is_whole(number: Any) -> bool:
    return isinstance(number, (int, np.integer)) and not isinstance(number, (bool, np.bool_))

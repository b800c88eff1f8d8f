"""Rules that cut the training set into partitions without looking at a label."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils import check_random_state

from flipcert.engine.cluster.packing import SelectedRows
from flipcert.engine.mapped import give_back, is_large, row_pieces, scratch
from flipcert.engine.sparse import canonical
from flipcert.ensemble.source_partition import partition_by_source
from flipcert.labels.validation import check_choice, check_integers

RULES = ("sorted", "hash", "random", "source")


def assign_partitions(
    X: ArrayLike, n_partitions: int, partition: Any = "sorted", random_state: int = 0, source: Any = None
) -> NDArray[np.int64]:
    """Partition of each training row, as :class:`PartitionEnsemble` assigns it; labels are not looked at.

    For models that see something else than what their partitions are to go by, such as features of images, or the row
    numbers of a :class:`flipcert.kernels.StoredKernel`: give them ``partition=assign_partitions(images, N)``.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        What the partitions go by; a sparse matrix is cut as its dense copy.
    n_partitions : int
        Number of partitions.
    partition : {"sorted", "hash", "random", "source"} or array-like of int of shape (n_samples,), default="sorted"
        Dealt out in lexicographic order of the rows, by a hash of each row, at random, by source, or as given. "sorted"
        and "hash" keep identical rows together, so that nothing but the features decides; "source" keeps all labels of
        a source together.
    random_state : int, default=0
        Seed of the "random" rule.
    source : array-like of shape (n_samples,), optional
        Who gave the label of each row: what the rule "source" goes by.

    Returns
    -------
    ndarray of int64 of shape (n_samples,)
        Numbers from 0 to ``n_partitions - 1``. No partition is empty, except under "hash": there a row has its place
        whatever others there are.

    See Also
    --------
    PartitionEnsemble : The estimator that cuts like this.

    References
    ----------
    Levine and Feizi, *Deep Partition Aggregation: Provable Defenses against General Poisoning Attacks*, 2021.

    Examples
    --------
    >>> import flipcert
    >>> flipcert.assign_partitions([[3.0], [1.0], [2.0], [0.0]], n_partitions=2)
    array([1, 1, 0, 0])
    """
    X = canonical(X) if issparse(X) else X if isinstance(X, np.ndarray) else np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, one row a sample; got shape {X.shape}.")
    rule, n_rows = partition, X.shape[0]
    whole = isinstance(n_partitions, (int, np.integer)) and not isinstance(n_partitions, bool)
    by_hash = isinstance(rule, str) and rule == "hash"
    if not whole or n_partitions < 1 or (n_partitions > n_rows and not by_hash):
        samples = "1 sample" if n_rows == 1 else f"{n_rows} samples"
        raise ValueError(
            f"n_partitions must be a whole number from 1 to the number of rows; got {n_partitions!r} for {samples}."
        )
    if isinstance(rule, str):
        check_choice(rule, "partition", RULES)
        if rule == "random":
            if not isinstance(random_state, (int, np.integer)) or isinstance(random_state, bool):
                raise ValueError(
                    f"random_state must be a whole number, so that every fit cuts alike; got {random_state!r}."
                )
            numbers = np.empty(n_rows, np.int64)
            numbers[check_random_state(random_state).permutation(n_rows)] = np.arange(n_rows) % n_partitions
        elif rule == "sorted":
            numbers = lexicographic_places(X) % n_partitions
        elif rule == "source":
            numbers = partition_by_source(source, n_rows, n_partitions)
        else:
            hashes = (content_hash(row) % n_partitions for _, rows in row_pieces(X) for row in rows)
            numbers = np.fromiter(hashes, np.int64, n_rows)
    else:
        numbers = check_integers(rule, "partition", minimum=0, maximum=n_partitions - 1, ndim=1)
        if numbers.size != n_rows:
            raise ValueError(f"partition has {numbers.size} entries, but X has {n_rows} rows.")
    sizes = np.bincount(numbers, minlength=n_partitions)
    if not sizes.all() and not by_hash:
        reason = "the given array" if not isinstance(rule, str) else f"{rule!r}, which keeps identical rows together"
        raise ValueError(
            f"partition {int(np.argmin(sizes))} of n_partitions={n_partitions} would be empty under {reason}; "
            "use fewer partitions."
        )
    return numbers


class RowsByPartition:
    """The rows of each partition, in their own order, in one scratch file.

    SelectedRows are read in order and each partition grows in order, so no pass jumps about in a file.
    """

    def __init__(self, X: NDArray[Any], numbers: NDArray[np.int64], n_partitions: int) -> None:
        self._bounds = np.append(0, np.cumsum(np.bincount(numbers, minlength=n_partitions)))
        place = np.empty(numbers.size, np.int64)
        place[np.argsort(numbers, kind="stable")] = np.arange(numbers.size)
        self._rows = scratch(X.shape, X.dtype)
        for source, rows in row_pieces(X):
            self._rows[place[source]] = rows
            give_back(self._rows)

    def __getitem__(self, number: int) -> SelectedRows:
        return SelectedRows(self._rows, slice(self._bounds[number], self._bounds[number + 1]))


def lexicographic_places(X: NDArray[Any]) -> NDArray[np.int64]:
    """Place of each row among the different rows, sorted by the first feature, then the second, and so on.

    Only rows that still tie are looked at further, so this mostly takes a few sorts of numbers, not one of rows.

    >>> lexicographic_places(np.array([[2.0, 1.0], [1.0, 9.0], [2.0, 0.0], [1.0, 9.0]]))
    array([2, 0, 1, 0])
    """
    # How many rows come before: equal for rows that tie so far.
    before = np.zeros(X.shape[0], np.int64)
    tied = np.arange(X.shape[0])
    entries, n_columns = (_sparse_entries, _sparse_width(X)) if issparse(X) else (_entries, X.shape[1])
    for feature in range(n_columns):
        values = entries(X, tied, feature)
        if tied.size == 0:
            break
        if np.all(values == values[0]):
            continue
        order = np.lexsort((values, before[tied]))
        rows, values = tied[order], values[order]
        group = before[rows]
        new_group = np.append(True, group[1:] != group[:-1])
        new_row = new_group | np.append(True, values[1:] != values[:-1])
        position = np.arange(rows.size)
        first_of_group = np.maximum.accumulate(np.where(new_group, position, 0))
        first_alike = np.maximum.accumulate(np.where(new_row, position, 0))
        before[rows] = group + first_alike - first_of_group
        alone = new_row & np.append(new_row[1:], True)
        tied = rows[~alone]
    return np.unique(before, return_inverse=True)[1].astype(np.int64)


def _entries(X: NDArray[Any], rows: NDArray[np.int64], feature: int) -> NDArray[Any]:
    """One feature of some rows, in their order; many rows of a large file are read as they come."""
    if not is_large(X) or rows.size < X.shape[0] // 64:
        values = X[rows, feature]
        give_back(X)
        return values
    values = np.empty(X.shape[0], X.dtype)
    for place, part in row_pieces(X):
        values[place] = part[:, feature]
    return values[rows]


def _sparse_width(X: Any) -> int:
    """Number of columns that tell sparse rows apart as below: two for each entry of the fullest row."""
    return 2 * int(np.diff(X.indptr).max(initial=0))


def _sparse_entries(X: Any, rows: NDArray[np.int64], column: int) -> NDArray[Any]:
    """One of the columns by which sparse rows, in canonical form, are ordered as their dense copies are.

    Where rows are alike up to their k-th entries, the one that has a negative entry first is the smallest, and the one
    that has a positive entry first is the largest; who has no further entry is between them. So column 2 k is a signed
    place, which is the larger the earlier the entry is, and column 2 k + 1 is the entry itself.
    """
    place = X.indptr[rows] + column // 2
    there = place < X.indptr[rows + 1]
    values = np.zeros(rows.size, X.dtype)
    values[there] = X.data[place[there]]
    if column % 2:
        return values
    signed = np.zeros(rows.size, np.int64)
    signed[there] = np.where(values[there] > 0, 1, -1) * (X.shape[1] - X.indices[place[there]].astype(np.int64))
    return signed


def content_hash(row: NDArray[Any]) -> int:
    """A hash of the numbers in a row: the same on every machine, for float32 and float64 alike."""
    content = (row.astype("<f8") + 0.0).tobytes()
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")

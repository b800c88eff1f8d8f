"""Folders of files that are read as one table: shards, in the order of their names.

Shards are read piece by piece into one array, which lies in memory if it fits the memory budget and in a scratch file
(in ``TMPDIR``) otherwise. Parquet has to be unpacked anyway, and everything else then meets one mapped array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.datasets.table import Table
from flipcert.engine.mapped import give_back, room_for, row_pieces

# Rows of a parquet file that are unpacked at a time.
_ROWS = 2**14

Reader = Callable[[Path], Iterator[Table]]


def shard_files(folder: Path) -> list[Path]:
    """Files of a folder that are shards, in order; with ``X-000.npy``, its labels ``y-000.npy`` if they are there."""
    features = sorted(folder.glob("X?*.npy"))
    if features:
        labels = [path.with_name(f"y{path.name[1:]}") for path in features]
        return [
            path for pair in zip(features, labels, strict=True) for path in pair if path == pair[0] or path.exists()
        ]
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in (".parquet", ".pq"))


def npy_pieces(load: Callable[[Path], NDArray[Any]]) -> Reader:
    """Read pieces of a memory-mapped shard, with its labels from the file beside it."""

    def pieces(path: Path) -> Iterator[Table]:
        X = load(path)
        beside = path.with_name(f"y{path.name[1:]}")
        y = np.array(load(beside)) if beside.exists() else None
        if X.ndim != 2 or (y is not None and y.shape != (X.shape[0],)):
            Table(str(path), X, y).checked()  # says what is wrong
        for place, rows in row_pieces(X):
            yield Table(str(path), rows, None if y is None else y[place])

    return pieces


def parquet_pieces(table_of: Callable[[Any, str], Table]) -> Reader:
    """Read pieces of a parquet file."""

    def pieces(path: Path) -> Iterator[Table]:
        import pyarrow as pa
        from pyarrow import parquet

        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_ROWS):
                yield table_of(pa.Table.from_batches([batch]), str(path))

    return pieces


def read_shards(source: str, paths: Sequence[Path], count: Callable[[Path], int], pieces: Reader) -> Table:
    """One table from all shards; ``count`` tells the rows of each."""
    firsts = [first for first in (next(pieces(path), None) for path in paths) if first is not None]
    if not firsts:
        raise ValueError(f"{source} has no rows; it must hold at least one.")
    for first in firsts[1:]:
        _refuse_unlike(first, firsts[0])
    dtype = np.float32 if all(first.X.dtype in (np.float16, np.float32) for first in firsts) else np.float64
    X = room_for((sum(map(count, paths)), firsts[0].X.shape[1]), dtype)
    labels, trusted = [], []
    begin = 0
    for path in paths:
        for piece in pieces(path):
            place = X[begin : begin + piece.X.shape[0]]
            place[:] = piece.X
            give_back(place)
            begin += piece.X.shape[0]
            labels.append(piece.y)
            trusted.append(piece.trusted)
    return Table(source, X, _joined(labels), firsts[0].names, _joined(trusted))


def _joined(parts: list[NDArray[Any] | None]) -> NDArray[Any] | None:
    return None if parts[0] is None else np.concatenate([part for part in parts if part is not None])


def _refuse_unlike(shard: Table, first: Table) -> None:
    """Raise ValueError if a shard does not go with the first one."""
    names = shard.aligned_to(first).names
    if names != shard.names:
        raise ValueError(f"the columns of {shard.source} are in another order than those of {first.source}; use one.")
    if (shard.y is None) != (first.y is None):
        without, labelled = (shard, first) if shard.y is None else (first, shard)
        raise ValueError(f"{without.source} has no labels, but {labelled.source} has; give all shards labels, or none.")
    if shard.y is not None and first.y is not None and (shard.y.dtype.kind in "US") != (first.y.dtype.kind in "US"):
        raise ValueError(
            f"{shard.source} has labels of type {shard.y.dtype}, but {first.source} of type {first.y.dtype}; use one."
        )

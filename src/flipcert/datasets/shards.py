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

from flipcert.datasets.room import Unreadable, check_room
from flipcert.datasets.table import Table, check_exact
from flipcert.engine.mapped import give_back, room_for, row_pieces

# Rows of a parquet file that are unpacked at a time, if they are not wide: then fewer, of so many bytes.
_ROWS, _BYTES = 2**14, 2**26

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
        y = labels_from(load(beside), beside) if beside.exists() else None
        if X.ndim != 2 or X.dtype.kind not in "fiub" or (y is not None and y.shape != (X.shape[0],)):
            Table(str(path), X, y).checked()  # says what is wrong
        for place, rows in row_pieces(X):
            check_exact(rows, str(path), first_row=place.start)
            yield Table(str(path), rows, None if y is None else y[place])

    return pieces


def labels_from(mapped: NDArray[Any], path: Path) -> NDArray[Any]:
    """Labels of a mapped file, in memory."""
    check_room(f"{path}, as labels,", mapped.nbytes, "give labels that are numbers or short words")
    return np.array(mapped)


def parquet_pieces(table_of: Callable[[Any, str, int], Table]) -> Reader:
    """Read pieces of a parquet file; ``table_of`` is given each, and the number of its first row."""

    def pieces(path: Path) -> Iterator[Table]:
        import pyarrow as pa

        first_row = 0
        try:
            with _parquet(path) as file:
                for batch in file.iter_batches(batch_size=_rows_at_a_time(file.metadata)):
                    yield table_of(pa.Table.from_batches([batch]), str(path), first_row)
                    first_row += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise Unreadable(error, path) from error

    return pieces


def count_parquet_rows(path: Path) -> int:
    """Rows that a parquet file announces."""
    import pyarrow as pa

    try:
        with _parquet(path) as file:
            return int(file.metadata.num_rows)
    except (pa.ArrowException, OSError) as error:
        raise Unreadable(error, path) from error


def parquet_names(path: Path) -> list[str]:
    """Names of the columns that a parquet file announces."""
    import pyarrow as pa

    try:
        with _parquet(path) as file:
            return list(file.schema_arrow.names)
    except (pa.ArrowException, OSError) as error:
        raise Unreadable(error, path) from error


def _parquet(path: Path) -> Any:
    """A parquet file whose texts stay as packed as they are: few bytes can stand for many long ones."""
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        texts = [column.path for column in map(file.schema.column, range(len(file.schema))) if _is_text(column)]
    return parquet.ParquetFile(path, read_dictionary=texts)


def _is_text(column: Any) -> bool:
    return bool(column.physical_type == "BYTE_ARRAY")


def _rows_at_a_time(metadata: Any) -> int:
    """So many rows that their numbers, eight bytes each, are not too large together."""
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    numbers = sum(group.column(j).num_values for group in groups for j in range(group.num_columns))
    return max(1, min(_ROWS, _BYTES * metadata.num_rows // max(1, 8 * numbers)))


def read_shards(source: str, paths: Sequence[Path], count: Callable[[Path], int], pieces: Reader) -> Table:
    """One table from all shards; ``count`` tells the rows of each."""
    firsts = [first for first in (next(pieces(path), None) for path in paths) if first is not None]
    if not firsts:
        raise ValueError(f"{source} has no rows; it must hold at least one.")
    for first in firsts[1:]:
        _refuse_unlike(first, firsts[0])
    dtype = np.float32 if all(first.X.dtype in (np.float16, np.float32) for first in firsts) else np.float64
    n_rows = sum(map(count, paths))
    if firsts[0].y is not None:
        # Features that do not fit the memory go to a scratch file, labels do not.
        check_room(f"{source}, with its {n_rows:,} labels,", 16.0 * n_rows, "take fewer rows")
    X = room_for((n_rows, firsts[0].X.shape[1]), dtype)
    beside: dict[str, list[NDArray[Any] | None]] = {name: [] for name in ("y", "trusted", "givers", "ids")}
    texts: dict[str, list[NDArray[Any]]] = {name: [] for name in firsts[0].texts}
    begin = 0
    for path in paths:
        for piece in pieces(path):
            if piece.X.shape[1] != X.shape[1]:
                _refuse_unlike(piece, firsts[0])
            place = X[begin : begin + piece.X.shape[0]]
            if place.shape[0] < piece.X.shape[0]:
                raise Unreadable("it has more rows than it announces", path)
            place[:] = piece.X
            give_back(place)
            begin += piece.X.shape[0]
            for name, parts in beside.items():
                parts.append(getattr(piece, name))
            for name, own in texts.items():
                own.append(piece.texts[name])
    if begin < X.shape[0]:
        raise Unreadable("there are fewer rows than announced")
    y, trusted, givers, ids = map(_joined, beside.values())
    told: dict[str, Any] = {"tabular": firsts[0].tabular, "kinds": firsts[0].kinds}
    if firsts[0].X.shape[0] == X.shape[0]:
        told["different"] = firsts[0].different
    told["texts"] = {name: np.concatenate(parts) for name, parts in texts.items()}
    return Table(source, X, y, firsts[0].names, trusted, givers=givers, ids=ids, **told)


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

"""Reading features and labels from files: npz, npy, csv, parquet, svmlight. Nothing is unpickled."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.datasets.named import named_part
from flipcert.datasets.shards import npy_pieces, parquet_pieces, read_shards, shard_files
from flipcert.datasets.table import Table


@dataclass(frozen=True)
class Columns:
    """What the columns of a file mean.

    Attributes
    ----------
    label : str
        Column of the labels (csv, parquet).
    drop : sequence of str
        Columns that are not features.
    ignore : sequence of str
        Columns that are not features either, if they are there at all.
    trusted : str or None
        Column that says which labels are trusted (csv, parquet), or array (npz).
    required : bool
        Whether there must be labels.
    """

    label: str = "label"
    drop: Sequence[str] = ()
    ignore: Sequence[str] = ()
    trusted: str | None = None
    required: bool = False


def read_table(
    source: str | os.PathLike[str], columns: Columns | None = None, *, labelled: bool, n_features: int | None = None
) -> Table:
    """Read a file of features, by the ending of its name.

    Parameters
    ----------
    source : str or path-like
        ``.npz`` with arrays X and y; ``.csv``, ``.tsv`` or ``.parquet`` with a column of labels; ``X.npy``, a pair
        ``X.npy,y.npy`` or a folder that holds both, memory-mapped; a folder of shards, ``X-000.npy, y-000.npy, ...``
        or ``000.parquet, ...``, in the order of their names; ``.svmlight``, ``.libsvm`` or ``.svm``. Or a part of a
        data set by name: ``mnist:train``, ``mnist:test``.
    columns : Columns, optional
        What the columns mean.
    labelled : bool
        Whether there must be labels.
    n_features : int, optional
        Width of svmlight files, which do not say it themselves.

    Returns
    -------
    Table
    """
    columns = replace(columns or Columns(), required=labelled)
    name = os.fspath(source)
    named = named_part(name)
    if named is not None:
        if columns.trusted is not None:
            raise ValueError(f"{name} cannot say which labels are trusted; put the data into one .npz file.")
        # Bytes are exact in single precision.
        return (replace(named, X=named.X.astype(np.float32)) if named.X.dtype == np.uint8 else named).checked()
    for path in parts_of(name):
        if not path.exists():
            raise ValueError(f"{path} does not exist; give the path of a file with features.")
    try:
        table = _reader(name)(name, columns, n_features)
    except (OSError, EOFError, zipfile.BadZipFile, _Unreadable) as error:
        if isinstance(error, PermissionError):
            raise ValueError(f"{name} may not be read; change its permissions.") from error
        raise ValueError(f"{name} cannot be read as {_kind(name)}: {_first_line(error)}.") from error
    if labelled and table.y is None:
        raise ValueError(_no_labels(name, columns))
    return table.checked()


def _no_labels(name: str, columns: Columns) -> str:
    return f"{name} has no labels; {_HOW_LABELS[_kind(name)].format(label=columns.label)}."


def parts_of(source: str) -> list[Path]:
    """The files that a source consists of.

    >>> [path.name for path in parts_of("data/X.npy,data/y.npy")]
    ['X.npy', 'y.npy']
    """
    if "," in source and not Path(source).exists():
        return [Path(part) for part in source.split(",")]
    path = Path(source)
    if path.is_dir():
        whole = [path / name for name in ("X.npy", "y.npy") if (path / name).exists()]
        files = whole if path / "X.npy" in whole else shard_files(path)
        if not files:
            raise ValueError(f"{path} holds no X.npy, no X-000.npy, ... and no .parquet files; give a folder with one.")
        return files
    return [path]


def _in_shards(source: str) -> bool:
    return Path(source).is_dir() and parts_of(source)[0].name != "X.npy"


def digest(source: str) -> str:
    """SHA-256 of the contents of a source: of all its files, one after the other, or of the numbers of a named one."""
    named = named_part(source)
    if named is not None:
        return hashlib.sha256(named.X.tobytes() + np.asarray(named.y).tobytes()).hexdigest()
    sums = []
    for path in parts_of(source):
        with open(path, "rb") as file:
            sums.append(hashlib.file_digest(file, "sha256").hexdigest())
    return sums[0] if len(sums) == 1 else hashlib.sha256("".join(sums).encode()).hexdigest()


class _Unreadable(Exception):
    """A file is not what its ending says."""


_KINDS = {
    "npz": (".npz",),
    "npy": (".npy",),
    "csv": (".csv", ".csv.gz", ".tsv", ".tsv.gz"),
    "parquet": (".parquet", ".pq"),
    "svmlight": (".svmlight", ".libsvm", ".svm"),
}
_HOW_LABELS = {
    "npz": "it must hold an array y beside X",
    "npy": "give features and labels as X.npy,y.npy",
    "csv": "it must have a column {label!r}, or name another with --label",
    "parquet": "it must have a column {label!r}, or name another with --label",
    "svmlight": "every line must begin with one",
}


def _kind(name: str) -> str:
    parts = parts_of(name)
    first = parts[0].name.lower()
    for kind, endings in _KINDS.items():
        if first.endswith(endings):
            if len(parts) > (2 if kind == "npy" else 1) and not _in_shards(name):
                raise ValueError(f"{name} names {len(parts)} files; only a pair X.npy,y.npy belongs together.")
            return kind
    known = ", ".join(ending for own in _KINDS.values() for ending in own if not ending.endswith(".gz"))
    raise ValueError(f"{name} has an ending that is not known; use one of {known}.")


def _reader(name: str) -> Callable[[str, Columns, int | None], Table]:
    readers = {"npz": _npz, "npy": _npy, "csv": _csv, "parquet": _parquet, "svmlight": _svmlight}
    return readers[_kind(name)]


def _npz(name: str, columns: Columns, n_features: int | None) -> Table:
    if not zipfile.is_zipfile(name):
        raise _Unreadable("it is no archive, or only a part of one")
    try:
        with open(name, "rb") as file, np.load(file, allow_pickle=False) as stored:
            held = stored.files
            if "X" not in held:
                raise ValueError(f"{name} must hold an array X; it holds {', '.join(held) or 'nothing'}.")
            if columns.trusted is not None and columns.trusted not in held:
                raise ValueError(
                    f"{name} has no array {columns.trusted!r} of trusted labels; it holds {', '.join(held)}."
                )
            wanted = [key for key in ("X", "y", columns.trusted) if key is not None and key in held]
            read = {key: _plain(stored, key, name) for key in wanted}
    except zipfile.BadZipFile as error:
        raise _Unreadable(str(error)) from error
    return Table(name, read["X"], read.get("y"), trusted=read.get(columns.trusted or ""))


def _plain(stored: Any, key: str, name: str) -> NDArray[Any]:
    """One array of an archive, unless it could only be unpickled."""
    try:
        return np.asarray(stored[key])
    except ValueError as error:
        if "pickle" in str(error).lower():
            raise ValueError(
                f"the array {key} of {name} holds Python objects, which are not unpickled; save numbers or strings."
            ) from error
        raise _Unreadable(str(error)) from error


def _npy(name: str, columns: Columns, n_features: int | None) -> Table:
    if columns.trusted is not None:
        raise ValueError(f"{name} cannot say which labels are trusted; put the data into one .npz file.")
    if _in_shards(name):
        features = [path for path in parts_of(name) if path.name.startswith("X")]
        return read_shards(name, features, lambda path: _mapped(path).shape[0], npy_pieces(_mapped))
    arrays = [_mapped(path) for path in parts_of(name)]
    return Table(name, arrays[0], np.array(arrays[1]) if len(arrays) > 1 else None)


def _mapped(path: Path) -> NDArray[Any]:
    """A memory-mapped array."""
    if path.suffix.lower() != ".npy":
        raise ValueError(f"{path} must be a .npy file like the features beside it.")
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError as error:
        if "pickle" in str(error).lower() or "object" in str(error).lower():
            raise ValueError(
                f"{path} holds Python objects or is no .npy file; nothing is unpickled, so save numbers or strings."
            ) from error
        raise _Unreadable(str(error)) from error
    return array


def _csv(name: str, columns: Columns, n_features: int | None) -> Table:
    from pyarrow import ArrowInvalid, csv

    tabs = ".tsv" in Path(name).name.lower()
    try:
        table = csv.read_csv(name, parse_options=csv.ParseOptions(delimiter="\t" if tabs else ","))
    except ArrowInvalid as error:
        raise _Unreadable(str(error)) from error
    return _from_arrow(table, name, columns)


def _parquet(name: str, columns: Columns, n_features: int | None) -> Table:
    from pyarrow import ArrowInvalid, parquet

    try:
        if _in_shards(name):
            pieces = parquet_pieces(lambda table, source: _from_arrow(table, source, columns))
            return read_shards(name, parts_of(name), lambda path: parquet.read_metadata(path).num_rows, pieces)
        table = parquet.ParquetFile(name).read()
    except ArrowInvalid as error:
        raise _Unreadable(str(error)) from error
    return _from_arrow(table, name, columns)


def _from_arrow(table: Any, name: str, columns: Columns) -> Table:
    """Features, labels and names of the columns of a table."""
    held = table.column_names
    twice = sorted({column for column in held if held.count(column) > 1})
    if twice:
        raise ValueError(f"{name} has more than one column {twice[0]!r}; rename or drop the others.")
    if columns.required and columns.label not in held:
        raise ValueError(_no_labels(name, columns))
    wanted = [*columns.drop, *([columns.trusted] if columns.trusted is not None else [])]
    for column in wanted:
        if column not in held:
            raise ValueError(f"{name} has no column {column!r}; it has {_some(held)}.")
    aside = {columns.label, *wanted, *columns.ignore}
    names, values = [], []
    for column in held:
        if column not in aside:
            own = _numbers(table.column(column), column, name)
            names += [column] if own.ndim == 1 else [f"{column}.{i}" for i in range(own.shape[1])]
            values.append(own if own.ndim == 2 else own[:, None])
    if not values:
        raise ValueError(f"{name} has no columns of features beside {columns.label!r}; it has {_some(held)}.")
    X = np.concatenate(values, axis=1, dtype=np.result_type(*{own.dtype for own in values}))
    y = _labels(table.column(columns.label), name) if columns.label in held else None
    trusted = None if columns.trusted is None else table.column(columns.trusted).to_numpy()
    return Table(name, X, y, names=tuple(names), trusted=trusted)


def _numbers(column: Any, column_name: str, name: str) -> NDArray[Any]:
    """A column of numbers, or a matrix for a column of vectors."""
    from pyarrow import types

    kind = column.type
    vectors = types.is_fixed_size_list(kind) or types.is_list(kind) or types.is_large_list(kind)
    inner = kind.value_type if vectors else kind
    if not (types.is_integer(inner) or types.is_floating(inner) or types.is_boolean(inner) or types.is_null(inner)):
        raise ValueError(
            f"column {column_name!r} of {name} holds {inner}, not numbers; name the labels with --label, "
            "and leave out other columns with --drop."
        )
    if not vectors:
        values = column.to_numpy()
        return values.astype(np.float64) if values.dtype.kind in "Ob" else values
    rows = column.combine_chunks()
    lengths = np.unique(rows.value_lengths().to_numpy(zero_copy_only=False)) if len(rows) else np.array([0])
    if rows.null_count or lengths.size != 1:
        raise ValueError(f"the vectors in column {column_name!r} of {name} must all have the same length.")
    flat = rows.flatten().to_numpy(zero_copy_only=False)
    return np.asarray(flat.astype(np.float64) if flat.dtype.kind == "O" else flat).reshape(len(rows), -1)


def _labels(column: Any, name: str) -> NDArray[Any]:
    """Labels as an array of numbers or strings."""
    from pyarrow import types

    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise ValueError(f"{name} has no label in row {row}; fill it in or drop the row.")
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    values = column.to_numpy()
    return np.asarray(values.astype(str) if values.dtype.kind == "O" else values)


def _svmlight(name: str, columns: Columns, n_features: int | None) -> Table:
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(name, n_features=n_features)
    except ValueError as error:
        raise _Unreadable(str(error)) from error
    whole = y == np.floor(y)
    return Table(name, X.toarray(), y.astype(np.int64) if whole.all() else y)


def _some(names: Sequence[str], most: int = 5) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__

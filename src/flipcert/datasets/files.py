"""Reading features and labels from files: npz, npy, csv, parquet, svmlight. Nothing is unpickled."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.datasets.archives import names_in, read_arrays
from flipcert.datasets.columns import HOW_LABELLED, Columns, table_of
from flipcert.datasets.delimited import names_on_top, read_delimited
from flipcert.datasets.room import Unreadable, check_room, refuse_what_is_no_file
from flipcert.datasets.shards import (
    count_parquet_rows,
    labels_from,
    npy_pieces,
    parquet_names,
    parquet_pieces,
    read_shards,
    shard_files,
)
from flipcert.datasets.table import LARGEST_WHOLE, Table, is_inexact, too_large
from flipcert.engine.sparse import canonical

__all__ = ["Columns", "arrays_in", "columns_in", "digest", "is_table", "parts_of", "read_table"]


def read_table(
    source: str | os.PathLike[str], columns: Columns | None = None, *, labelled: bool, n_features: int | None = None
) -> Table:
    """Read a file of features, by the ending of its name.

    Parameters
    ----------
    source : str or path-like
        ``.npz`` with arrays X and y; ``.csv``, ``.tsv`` or ``.parquet`` with a column of labels; ``X.npy``, a pair
        ``X.npy,y.npy`` or a folder that holds both, memory-mapped; a folder of shards, ``X-000.npy, y-000.npy, ...``
        or ``000.parquet, ...``, in the order of their names; ``.svmlight``, ``.libsvm`` or ``.svm``.
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
    with _in_a_sentence(name):
        for part in parts_of(name):
            refuse_what_is_no_file(part)
        if not is_table(name):
            columns.check_names(name, arrays=_kind(name) == "npz")
        table = _reader(name)(name, columns, n_features)
    if labelled and table.y is None:
        raise ValueError(f"{name} has no labels; {_HOW_LABELLED[_kind(name)].format(label=columns.label_column)}.")
    return table if columns.everything else replace(table, gaps=columns.impute).checked()


def arrays_in(source: str) -> list[str]:
    """Names of the arrays of an ``.npz`` file; no other file has any."""
    if _kind(source) != "npz":
        return []
    with _in_a_sentence(source):
        refuse_what_is_no_file(Path(source))
        return names_in(source)


def columns_in(source: str) -> list[str]:
    """Names of the columns of a csv, tsv or parquet file, or of shards; others have none."""
    if not is_table(source):
        return []
    with _in_a_sentence(source):
        first = parts_of(source)[0]
        refuse_what_is_no_file(first)
        return names_on_top(str(first)) if _kind(source) == "csv" else parquet_names(first)


@contextmanager
def _in_a_sentence(name: str) -> Iterator[None]:
    """Say what is wrong with a file that cannot be read."""
    try:
        yield
    except PermissionError as error:
        raise ValueError(f"{error.filename or name} may not be read; change its permissions.") from error
    except (OSError, Unreadable) as error:
        path = error.path if isinstance(error, Unreadable) else None
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ValueError(f"{path or name} cannot be read as {_kind(name)}: {reason}.") from error


def parts_of(source: str) -> list[Path]:
    """The files that a source consists of.

    >>> [path.name for path in parts_of("data/X.npy,data/y.npy")]
    ['X.npy', 'y.npy']
    """
    if not source or ("," in source and not Path(source).exists()):
        if not all(source.split(",")):
            raise ValueError(f"{source!r} leaves out the name of a file; give the path of a file with features.")
        return [Path(part) for part in source.split(",")]
    path = Path(source)
    if path.is_dir():
        whole = [path / name for name in ("X.npy", "y.npy") if (path / name).exists()]
        files = whole if path / "X.npy" in whole else shard_files(path)
        if not files:
            raise ValueError(f"{path} holds no X.npy, no X-000.npy, ... and no .parquet files; give a folder with one.")
        return files
    return [path]


def is_table(source: str) -> bool:
    """Whether columns of a source have names: csv, parquet."""
    return _kind(source) in ("csv", "parquet")


def _in_shards(source: str) -> bool:
    return Path(source).is_dir() and parts_of(source)[0].name != "X.npy"


def digest(source: str, what: str = "features") -> str:
    """SHA-256 of the contents of a source of features, or what else it is: of all its files, one after the other."""
    sums = []
    for path in parts_of(source):
        refuse_what_is_no_file(path, what)
        with open(path, "rb") as file:
            sums.append(hashlib.file_digest(file, "sha256").hexdigest())
    return sums[0] if len(sums) == 1 else hashlib.sha256("".join(sums).encode()).hexdigest()


# Share of entries that are not zero up to which features stay sparse; products of fuller ones are faster dense.
_SPARSE = 0.1
# Rows of them that are dense at the same time, at least.
_DENSE_ROWS = 4

_KINDS = {
    "npz": (".npz",),
    "npy": (".npy",),
    "csv": (".csv", ".csv.gz", ".tsv", ".tsv.gz"),
    "parquet": (".parquet", ".pq"),
    "svmlight": (".svmlight", ".libsvm", ".svm"),
}
_HOW_LABELLED = {
    "npz": "it must hold an array y beside X",
    "npy": "give features and labels as X.npy,y.npy",
    "csv": HOW_LABELLED,
    "parquet": HOW_LABELLED,
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
    held = names_in(name)
    if "X" not in held:
        raise ValueError(f"{name} must hold an array X; it holds {', '.join(held) or 'nothing'}.")
    for option, own in columns.beside.items():
        if own not in held:
            what = {"--trusted": "trusted labels", "--source": "sources", "--id": "ids"}[option]
            raise ValueError(f"{name} has no array {own!r} of {what}; it holds {', '.join(held)}.")
    label = columns.label_among(held, "y")
    if columns.label is not None and columns.required and label not in held:
        raise ValueError(f"{name} has no array {label!r} of labels; it holds {', '.join(held)}.")
    for option, own in columns.beside.items():
        if own in ("X", label):
            what = "the features" if own == "X" else "the labels"
            raise ValueError(f"{option} {own} is the array of {what} of {name}; name another one.")
    id_array = columns.id_among(held)
    read = read_arrays(name, dict.fromkeys(["X", label, *columns.beside.values(), *([id_array] if id_array else [])]))
    trusted, givers, ids = (read.get(own or "") for own in (columns.trusted, columns.giver, id_array))
    return Table(name, read["X"], read.get(label), trusted=trusted, givers=givers, ids=ids)


def _npy(name: str, columns: Columns, n_features: int | None) -> Table:
    _refuse_other_columns(name, columns)
    if _in_shards(name):
        features = [path for path in parts_of(name) if path.name.startswith("X")]
        return read_shards(name, features, lambda path: _mapped(path).shape[0], npy_pieces(_mapped))
    X, *labels = parts_of(name)
    return Table(name, _mapped(X), labels_from(_mapped(labels[0]), labels[0]) if labels else None)


def _refuse_other_columns(name: str, columns: Columns) -> None:
    """Raise ValueError if a file that holds features and labels only is asked for more."""
    for option in columns.beside:
        what = {
            "--trusted": "which labels are trusted",
            "--source": "who gave its labels",
            "--id": "what its rows are called",
        }[option]
        raise ValueError(f"{name} cannot say {what}; put the data into one .npz file.")


def _mapped(path: Path) -> NDArray[Any]:
    """A memory-mapped array of one or more dimensions."""
    if path.suffix.lower() != ".npy":
        raise ValueError(f"{path} must be a .npy file like the features beside it.")
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except PermissionError:
        raise
    except (ValueError, EOFError, OSError, OverflowError, SyntaxError, TypeError) as error:
        if "pickle" in str(error).lower() or "object" in str(error).lower():
            raise ValueError(
                f"{path} holds Python objects or is no .npy file; nothing is unpickled, so save numbers or strings."
            ) from error
        raise Unreadable(error, path) from error
    return np.atleast_1d(array)


def _csv(name: str, columns: Columns, n_features: int | None) -> Table:
    return read_delimited(name, columns)


def _parquet(name: str, columns: Columns, n_features: int | None) -> Table:
    pieces = parquet_pieces(lambda held, path, first_row: table_of(held, path, columns, first_row))
    return read_shards(name, parts_of(name), count_parquet_rows, pieces)


def _svmlight(name: str, columns: Columns, n_features: int | None) -> Table:
    from sklearn.datasets import load_svmlight_file

    _refuse_other_columns(name, columns)
    try:
        X, y = load_svmlight_file(name)
    except (ValueError, OverflowError) as error:
        raise Unreadable(error) from error
    width = max(X.shape[1], n_features or 0)
    stays_sparse = X.nnz <= _SPARSE * X.shape[0] * width
    # A line may name a large column: then there is a row of zeros for every line, or for a few of them at a time.
    check_room(name, 8.0 * width * (_DENSE_ROWS if stays_sparse else X.shape[0]))
    X.resize(X.shape[0], width)
    largest = np.abs(y).max(initial=0)
    if max(np.abs(X.data).max(initial=0), largest) >= LARGEST_WHOLE:
        _refuse_lost_digits(name)
    whole = (y == np.floor(y)).all() and largest <= LARGEST_WHOLE
    return Table(name, canonical(X) if stays_sparse else X.toarray(), y.astype(np.int64) if whole else y)


def _refuse_lost_digits(name: str) -> None:
    """Refuse whole numbers in a text that doubles cannot tell apart."""
    with open(name, "rb") as file:
        for row, line in enumerate(file):
            for place, number in re.findall(r"(?:^|\s(\d+):)([+-]?\d+)(?=\s|$)", line.decode(errors="replace")):
                if is_inexact(number):
                    raise too_large(name, number, row, place or "of the labels")

"""Text files with a column for each feature: csv and tsv, compressed or not."""

from __future__ import annotations

import csv
import gzip
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, cast

import numpy as np

from flipcert.datasets.columns import Columns, table_of
from flipcert.datasets.room import Unreadable, check_room
from flipcert.datasets.table import LARGEST_WHOLE, Table, is_inexact, too_large
from flipcert.engine.memory import available_memory

# Bytes of memory for a number, however short it is spelled: parsed, as a column, as a feature. A cell has two or more
# characters, with what ends it.
_CELL = 3 * 8
# Bytes of text that are looked at together. A row is not longer than a block.
_PIECE, _BLOCK = 2**20, 2**24


def is_delimited(name: str) -> bool:
    """Whether this is the name of such a file."""
    return name.lower().endswith((".csv", ".csv.gz", ".tsv", ".tsv.gz"))


def read_delimited(name: str, columns: Columns) -> Table:
    """Read a csv or tsv file with a line of names on top."""
    import pyarrow as pa

    # What a label is shows only in its spelling, and an id is a text.
    ids = (columns.giver, columns.id, columns.id_if_there)
    texts = [*columns.label_columns, *(own for own in ids if own is not None), *(columns.texts or ())]
    held = _columns(name, {} if columns.everything else dict.fromkeys(texts, pa.string()))
    table = table_of(held, name, columns, spelled=True)
    if not columns.everything:
        _refuse_lost_digits(table, _separator(name))
    return table


def columns_of_text(name: str) -> Any:
    """All columns of a csv or tsv file as texts, as they are spelled (an arrow table)."""
    import pyarrow as pa

    return _columns(name, None, kind=pa.string())


def _columns(name: str, types: dict[str, Any] | None, kind: Any = None) -> Any:
    separator = _separator(name)
    _measure(name, separator)
    with _text(name):
        if types is None:
            names = _parsed(name, separator, {}).column_names
            types = dict.fromkeys(names, kind)
        held = _parsed(name, separator, types)
        list(held.column_names)  # names that are no UTF-8 are found out here
    _refuse_other_separator(name)
    return held


def _refuse_other_separator(name: str) -> None:
    """Refuse a file whose first line is clearly not separated as its name says."""
    separator = _separator(name)
    with _opened(name) as file:
        line = file.readline(_BLOCK).decode("utf-8", "replace")
    found = line.count(separator)
    # A name may have such a mark; what separates columns is far more frequent than what is taken to do so.
    may_be = ";\t|" if found else ";\t,|"
    other = next((mark for mark in may_be if mark != separator and line.count(mark) > 2 * found), None)
    if other is not None:
        raise Unreadable(f"its columns are separated by {other!r}; they must be by {separator!r}")


def names_on_top(name: str) -> list[str]:
    """The names that the first line of a csv or tsv file has; nothing else is read."""
    with _opened(name) as file:
        text = io.TextIOWrapper(file, "utf-8-sig", errors="replace", newline="")
        try:
            return next(csv.reader(text, delimiter=_separator(name)), [])
        except csv.Error:
            return []  # whoever reads the whole file tells what is wrong with it


def _opened(name: str) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(name) if _compressed(name) else open(name, "rb"))


def _separator(name: str) -> str:
    return "\t" if ".tsv" in os.path.basename(name).lower() else ","


def _parsed(name: str, separator: str, types: dict[str, Any], only: list[str] | None = None) -> Any:
    import pyarrow as pa
    from pyarrow import csv as arrow

    compression = "gzip" if _compressed(name) else None
    with pa.input_stream(name, compression=compression) as file:
        return arrow.read_csv(
            file,
            read_options=arrow.ReadOptions(block_size=_BLOCK),
            parse_options=arrow.ParseOptions(delimiter=separator),
            convert_options=arrow.ConvertOptions(column_types=types, include_columns=only),
        )


def _compressed(name: str) -> bool:
    return name.lower().endswith(".gz")


def _measure(name: str, separator: str) -> None:
    """Refuse a file whose numbers do not fit the memory; a compressed one is unpacked once to tell, piece by piece."""
    if not _compressed(name) and os.path.getsize(name) * (1 + _CELL / 2) <= available_memory():
        return
    size = cells = 0
    try:
        with gzip.open(name) if _compressed(name) else open(name, "rb") as file:
            while piece := file.read(_PIECE):
                size += len(piece)
                cells += piece.count(separator.encode()) + piece.count(b"\n")
                check_room(name, size + _CELL * cells)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise Unreadable(error) from error


@contextmanager
def _text(name: str) -> Iterator[None]:
    """Say what is wrong with a text."""
    from pyarrow import ArrowException

    with gzip.open(name) if _compressed(name) else open(name, "rb") as file:
        wide = file.read(2) in (b"\xff\xfe", b"\xfe\xff")
    try:
        yield
    except (ArrowException, UnicodeError) as error:
        if wide or isinstance(error, UnicodeError) or "utf8" in str(error).lower():
            found = "UTF-16" if wide else "no UTF-8"
            raise Unreadable(f"it is {found} text; save it as UTF-8 (iconv does that)") from error
        _refuse_other_separator(name)
        raise Unreadable(error) from error


def _refuse_lost_digits(table: Table, separator: str) -> None:
    """Refuse whole numbers that doubles cannot tell apart: if they are long enough, they were parsed as doubles."""
    import pyarrow as pa

    assert table.names is not None
    largest = np.fmax.reduce(np.abs(table.X), axis=0, initial=0)  # not of what is missing
    suspects = [name for name, size in zip(table.names, largest, strict=True) if size >= LARGEST_WHOLE]
    if not suspects:
        return
    texts = _parsed(table.source, separator, dict.fromkeys(suspects, pa.string()), suspects)
    for name in suspects:
        for row, text in enumerate(texts.column(name).to_pylist()):
            if is_inexact(text):
                raise too_large(table.source, text.strip(), row, repr(name))

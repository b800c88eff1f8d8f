"""A second file about the rows of a training set: its columns, and which row each line is about."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.datasets.room import Unreadable, check_room
from flipcert.datasets.table import Table
from flipcert.datasets.tasks import some


def columns_of_parquet(name: str) -> Any:
    """All columns of a parquet file that fits the memory (an arrow table)."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(name) as file:
            groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
            check_room(name, sum(group.total_byte_size for group in groups), "take fewer lines")
            return file.read()
    except pa.ArrowException as error:
        raise Unreadable(error) from error


def rows_of(train: Table, ids: NDArray[Any], source: str, what: str, *, by_number: bool) -> NDArray[np.int64]:
    """The training row of each line of a file.

    Parameters
    ----------
    train : Table
        The training set, with ids unless lines tell numbers of rows.
    ids : ndarray
        Of each line, what it is about.
    source : str
        The file, for messages.
    what : str
        What a line is, for messages, such as "an annotation".
    by_number : bool
        Whether ids are numbers of rows, counted from 0.
    """
    n_rows = train.X.shape[0]
    if by_number:
        try:
            numbers = np.array([int(own) for own in ids.tolist()], np.int64)
            wrong = (numbers < 0) | (numbers >= n_rows)
        except (ValueError, OverflowError):
            numbers, wrong = np.zeros(ids.size, np.int64), np.array([not _is_row(own, n_rows) for own in ids])
        if wrong.any():
            raise ValueError(
                f"{source} has {what} of row {some([ids[wrong.argmax()]])}, but {train.source} has "
                f"rows 0 to {n_rows - 1}; count rows from 0, or join both files with --id."
            )
        return numbers
    known = _rows_by_id(train)
    rows = np.array([known.get(own, -1) for own in texts(ids)], np.int64)
    if (rows < 0).any():
        stray = some([texts(ids)[int((rows < 0).argmax())]])
        raise ValueError(
            f"{source} has {what} of {stray}, which is no id of {train.source}; remove it, or add the row."
        )
    return rows


def texts(ids: NDArray[Any]) -> list[str]:
    """Ids as text, so that those of two files of different kinds can be compared: 7 of one is "7" of another."""
    return [str(own) for own in ids.tolist()]


def _rows_by_id(train: Table) -> dict[str, int]:
    assert train.ids is not None, "read with the same option"
    known: dict[str, int] = {}
    for row, own in enumerate(texts(train.ids)):
        if own in known:
            raise ValueError(
                f"{train.source} has the id {own!r} in rows {known[own]} and {row}; each must be there once."
            )
        known[own] = row
    return known


def _is_row(own: object, n_rows: int) -> bool:
    try:
        return 0 <= int(str(own)) < n_rows
    except ValueError:
        return False

"""Files of labels that somebody checks: written with an empty column, read again when it is filled in."""

from __future__ import annotations

import csv
import io
import os
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.datasets.delimited import columns_of_text, is_delimited
from flipcert.datasets.joining import columns_of_parquet, rows_of, texts
from flipcert.datasets.room import Unreadable, refuse_what_is_no_file
from flipcert.datasets.spelling import first_missing
from flipcert.datasets.table import LARGEST_WHOLE, Table, no_id
from flipcert.datasets.tasks import some
from flipcert.engine.files import whole_file

# Columns of such a file; "row" is the number of the training row, unless rows have ids.
ROW, LABEL, CHECKED = "row", "label", "checked"


@dataclass(frozen=True, eq=False)
class CheckedLabels:
    """What a file says about some training labels, a line each, in the order of its lines.

    Attributes
    ----------
    source : str
        The file, for messages.
    rows : ndarray of int64
        The training row of each line; no row is there twice.
    present : list of str
        What the file says the present label is, as text.
    looked : ndarray of bool
        Whether somebody has looked at the label: the others have an empty cell, which says nothing.
    labels : ndarray
        What is right where somebody has looked, and the present label elsewhere.
    wrong : ndarray of bool
        Whether the present label turned out to be another.
    beside : mapping of str to list of str
        Other columns that were asked for, as text.
    """

    source: str
    rows: NDArray[np.int64]
    present: list[str]
    looked: NDArray[np.bool_]
    labels: NDArray[Any]
    wrong: NDArray[np.bool_]
    beside: Mapping[str, list[str]]

    def corrected(self, train: Table) -> Table:
        """The training table with wrong labels corrected, and trust in all labels that somebody has looked at."""
        own = np.asarray(train.y)
        y = own.astype(np.result_type(own.dtype, self.labels.dtype))
        y[self.rows] = self.labels
        trusted = np.zeros(y.size, np.bool_) if train.trusted is None else train.trusted.copy()
        trusted[self.rows[self.looked]] = True
        return replace(train, y=y, trusted=trusted)


def read_checked(
    source: str | os.PathLike[str],
    train: Table,
    *,
    id: str | None = None,
    classes: Sequence[Any] | None = None,
    beside: Sequence[str] = (),
    whatever_is_present: bool = False,
) -> CheckedLabels:
    """Read a file of checked labels: ids or rows, present labels, and labels as they should be.

    Parameters
    ----------
    source : str or path-like
        ``.csv``, ``.tsv`` or ``.parquet`` with columns "label" and "checked", and "row" or the ids.
    train : Table
        The training set, with ids if lines are found by them. One label a row.
    id : str, optional
        Column of the ids, in both files; numbers of rows if it is not given.
    classes : sequence, optional
        The label space; the labels of the training set if it is not given.
    beside : sequence of str
        Other columns to read.
    whatever_is_present : bool, default=False
        Whether :func:`refuse_other_labels` is asked later, when it is known what other files have corrected.

    Returns
    -------
    CheckedLabels
        A label is found whatever the file makes of a number: 7, 7.0 and 07 are the same where labels are numbers.
    """
    name = os.fspath(source)
    held = columns_of_checks(name)
    wanted = [ROW if id is None else id, LABEL, CHECKED]
    if len(set(wanted)) < len(wanted):
        raise ValueError(f"--id {id} is the name of another column of {name}; rename the column of ids.")
    for own in (*wanted, *beside):
        if own not in held:
            raise ValueError(f"{name} has no column {own!r}; it must be a file of labels to check, filled in.")
    ids, present, given = (np.array(held[own], np.str_) for own in wanted)
    if ids.size == 0:
        raise ValueError(f"{name} has no labels; it must hold at least one.")
    missing = first_missing(ids)
    if missing is not None:
        raise ValueError(no_id(name, "row number" if id is None else "id", missing))
    rows = rows_of(train, ids, name, "a check", by_number=id is None)
    ordered, counts = np.unique(rows, return_counts=True)
    if ordered.size < rows.size:
        twice = ids[rows == ordered[counts.argmax()]][0]
        raise ValueError(f"{name} has {_line(twice, id)} more than once; leave one line for each label.")
    y = np.asarray(train.y)
    space = np.unique(y).tolist() if classes is None else list(classes)
    known = _Spellings(space, y.dtype.kind)
    labels, looked = y[rows].tolist(), np.zeros(rows.size, np.bool_)
    for line, after in enumerate(given.tolist()):
        if after.strip() or after in space:
            found = known.label(after)
            if found is None:
                which, where = _line(ids[line], id), train.source if classes is None else "--classes"
                strangers = dict.fromkeys(
                    own.strip() for own in given.tolist() if own.strip() and known.label(own) is None
                )
                raise ValueError(
                    f"{name} says that the label of {which} should be {some([after])}, which is no label of {where} "
                    f"({some(space)}); correct it, or name all labels with --classes{_naming(space, strangers)}."
                )
            labels[line], looked[line] = found, True
    right = np.array(labels, _room_for(space, y.dtype))
    others = {own: held[own] for own in beside}
    checked = CheckedLabels(name, rows, present.tolist(), looked, right, right != y[rows], others)
    if not whatever_is_present:
        refuse_other_labels(checked, train, {}, id, classes)
    return checked


def refuse_other_labels(
    checked: CheckedLabels, train: Table, corrections: Mapping[int, Any], id: str | None, classes: Sequence[Any] | None
) -> None:
    """Raise ValueError unless present labels are those of the training set, or of its rows that were corrected."""
    y = np.asarray(train.y)
    known = _Spellings(np.unique(y).tolist() if classes is None else list(classes), y.dtype.kind)
    for row, before in zip(checked.rows.tolist(), checked.present, strict=True):
        own = y[row].item()
        if known.label(before) not in (own, corrections.get(row, own)):
            raise ValueError(
                f"{checked.source} says that the label of {called(train, row, id)} is {some([before])}, but in "
                f"{train.source} it is {some([own])}; give the training file that it was made from."
            )


def called(train: Table, row: int, id: str | None) -> str:
    """What a training row is called, for messages."""
    return _line(row if id is None else texts(np.asarray(train.ids)[[row]])[0], id)


def write_to_check(
    path: str | os.PathLike[str],
    train: Table,
    rows: NDArray[np.int64],
    *,
    id: str | None = None,
    checked: Sequence[str] | None = None,
    beside: Mapping[str, Sequence[Any]] | None = None,
) -> None:
    """Write a file of labels to check (csv), whole or not at all; one that somebody has filled in is not replaced.

    Parameters
    ----------
    path : str or path-like
        Where to write.
    train : Table
        The training set, with ids if rows are called by them.
    rows : ndarray of int64
        Training rows whose labels are to be checked, one line each.
    id : str, optional
        Name of the column of ids; numbers of rows if it is not given.
    checked : sequence of str, optional
        What is filled in already; nothing if it is not given.
    beside : mapping of str to sequence, optional
        Other columns.
    """
    beside = beside or {}
    if Path(path).suffix.lower() != ".csv":
        raise ValueError(f"--out {os.fspath(path)} must end in .csv: it is a table to fill in.")
    _refuse_to_replace(path)
    names = [ROW if id is None else id, LABEL, CHECKED, *beside]
    if len(set(names)) < len(names):
        raise ValueError(f"--id {id} is the name of another column of {os.fspath(path)}; rename the column of ids.")
    if id is not None:
        rows_of(train, np.empty(0, np.str_), train.source, "a check", by_number=False)  # each id must be there once
    ids = texts(rows) if id is None else texts(np.asarray(train.ids)[rows])
    columns = [ids, texts(np.asarray(train.y)[rows]), checked or [""] * rows.size, *beside.values()]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for line in zip(*columns, strict=True):
        if any(mark in str(cell) for cell in line for mark in "\r\n"):
            raise ValueError(f"row {line[0]!r} of {train.source} has a line break in its id or label; remove it.")
        writer.writerow(line)
    with whole_file(path) as file:
        file.write(text.getvalue().encode())


def columns_of_checks(name: str) -> dict[str, list[str]]:
    """All columns of a file of labels to check, as text."""
    try:
        refuse_what_is_no_file(Path(name), "checked labels")
        if is_delimited(name):
            held = columns_of_text(name)
        elif name.lower().endswith((".parquet", ".pq")):
            held = columns_of_parquet(name)
        else:
            raise ValueError(f"{name} has an ending that is not known; use .csv, .tsv or .parquet.")
    except PermissionError as error:
        raise ValueError(f"{error.filename or name} may not be read; change its permissions.") from error
    except (OSError, Unreadable) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ValueError(f"{name} cannot be read: {reason}.") from error
    twice = [own for own in held.column_names if held.column_names.count(own) > 1]
    if twice:
        raise ValueError(f"{name} has more than one column {twice[0]!r}; rename or drop the others.")
    return {own: [_text(cell) for cell in held.column(own).to_pylist()] for own in held.column_names}


def _text(cell: Any) -> str:
    return "" if cell is None or cell != cell else str(cell)


def _room_for(space: Sequence[Any], dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type of the labels, or a wider one of its kind if the label space has longer words or larger numbers."""
    if dtype.kind == "U":
        return np.result_type(dtype, np.array(space).dtype)
    if dtype.kind in "iu" and not all(np.iinfo(dtype).min <= label <= np.iinfo(dtype).max for label in space):
        return np.dtype(np.int64)
    return dtype


def _naming(space: Sequence[Any], strangers: Collection[str]) -> str:
    """What to give with --classes, where that is short and would be understood."""
    named = ",".join([*map(str, space), *strangers])
    understood = isinstance(space[0], str) or all(own.isdecimal() for own in strangers)
    plain = named.count(",") < len(space) + len(strangers)
    return f" {shlex.quote(named)}" if understood and plain and len(named) < 200 else ""


def _line(id_: Any, column: str | None) -> str:
    return f"row {id_}" if column is None else some([id_])


def _refuse_to_replace(path: str | os.PathLike[str]) -> None:
    """Raise ValueError if a file would be lost: one that was filled in, or that is something else."""
    name = os.fspath(path)
    if not Path(name).absolute().parent.is_dir():
        raise ValueError(f"--out {name}: the folder {Path(name).parent} does not exist; make it first.")
    if not os.path.lexists(name):
        return
    if Path(name).is_dir():
        raise ValueError(f"--out {name} is a folder; name the file to write.")
    try:
        held = columns_of_checks(name)
        filled = [cell for cell in held[CHECKED] if cell.strip()]
    except (ValueError, KeyError):
        raise ValueError(f"--out {name} is there, and no file of labels to check; name another one.") from None
    if filled:
        raise ValueError(
            f"--out {name} has been filled in ({len(filled):,} of {len(held[CHECKED]):,} lines) and is not replaced; "
            "name another file."
        )


class _Spellings:
    """The labels of a label space by how they may be spelled."""

    def __init__(self, space: Sequence[Any], kind: str) -> None:
        self._kind = kind
        self._known = {str(label): label for label in space}
        # Beyond, several whole numbers share a double, so only their own spelling will do.
        few = [label for label in space if kind in "iuf" and abs(label) < LARGEST_WHOLE]
        self._numbers = {float(label): label for label in few}
        self._flags = {str(label).lower(): label for label in space} if kind == "b" else {}

    def label(self, text: str) -> Any:
        """The label that a text spells; None if there is no such label."""
        for spelled in (text, text.strip()):
            if spelled in self._known:
                return self._known[spelled]
        if self._kind == "b":
            return self._flags.get(text.strip().lower())
        try:
            return self._numbers.get(float(text))
        except ValueError:
            return None

"""Several labels a row: a second table, or a file of Label Studio, joined to the rows of a training set."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.datasets.arrow_columns import ids_of, labels_of
from flipcert.datasets.delimited import columns_of_text, is_delimited
from flipcert.datasets.joining import columns_of_parquet, rows_of
from flipcert.datasets.label_studio import is_label_studio, read_label_studio
from flipcert.datasets.room import Unreadable, refuse_what_is_no_file
from flipcert.datasets.spelling import labels_of_text
from flipcert.datasets.table import Table
from flipcert.datasets.tasks import Given, some

# Columns that are looked for if nobody names them.
ROW, LABEL, SOURCES = "row", "label", ("source", "annotator")


@dataclass(frozen=True)
class AnnotationColumns:
    """What the columns of a file of annotations mean, where they are named.

    Attributes
    ----------
    id : str or None
        Column that this file and the training file have in common; without it, "row" holds numbers of training rows.
    label : str or None
        Column of the labels; "label" if it is not named.
    giver : str or None
        Column that says who gave each label; "source" or "annotator", if there is one, if it is not named.
    trusted : str or None
        Column that says which labels are trusted.
    cap : int or None
        Labels that a source may have until each of them counts less.
    """

    id: str | None = None
    label: str | None = None
    giver: str | None = None
    trusted: str | None = None
    cap: int | None = None


def with_annotations(train: Table, source: str | os.PathLike[str], columns: AnnotationColumns) -> Table:
    """The training table with labels from a file of annotations, one or more a row, instead of its own.

    Parameters
    ----------
    train : Table
        Features, and ids of rows if annotations are joined by them.
    source : str or path-like
        ``.csv``, ``.tsv`` or ``.parquet`` with one annotation a line, or ``.json`` as exported by Label Studio.
    columns : AnnotationColumns
        What its columns mean.

    Returns
    -------
    Table
        With one label, one giver, one entry of trust for each annotation, and the row of each.
    """
    name = os.fspath(source)
    try:
        refuse_what_is_no_file(Path(name), "annotations")
        given = _read(name, columns, train)
    except PermissionError as error:
        raise ValueError(f"{error.filename or name} may not be read; change its permissions.") from error
    except (OSError, Unreadable) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ValueError(f"--annotations {name} cannot be read: {reason}.") from error
    if columns.cap is not None and given.giver is None:
        raise ValueError(
            f"--cap {columns.cap} weighs labels by their source, and {name} does not name any; give --source."
        )
    rows = rows_of(train, given.id, given.source, "an annotation", by_number=given.by_number)
    counts = np.bincount(rows, minlength=train.X.shape[0])
    if not counts.all():
        row = int(counts.argmin())
        called = "" if train.ids is None else f" ({some([train.ids[row]])})"
        raise ValueError(
            f"row {row} of {train.source}{called} has no annotation in {name}; annotate it, or leave the row out."
        )
    return replace(
        train,
        y=given.label,
        trusted=given.trusted,
        givers=given.giver,
        rows=rows,
        spelled=given.spelled,
        cap=columns.cap,
    )


def _read(name: str, columns: AnnotationColumns, train: Table) -> Given:
    ending = Path(name).name.lower()
    if is_label_studio(name):
        for option, own, field in (
            ("--source", columns.giver, "completed_by says who gave each label"),
            ("--trusted", columns.trusted, "ground_truth says which labels are trusted"),
        ):
            if own is not None:
                raise ValueError(
                    f"{option} {own} does not apply to {name}: in a file of Label Studio {field}; leave it out."
                )
        return read_label_studio(name, columns.id, columns.label, train.X.shape[0])
    if is_delimited(ending):
        return _of_table(columns_of_text(name), name, columns, spelled=True)
    if ending.endswith((".parquet", ".pq")):
        return _of_table(columns_of_parquet(name), name, columns, spelled=False)
    raise ValueError(f"--annotations {name} has an ending that is not known; use .csv, .tsv, .parquet, or .json.")


def _of_table(held: Any, name: str, columns: AnnotationColumns, spelled: bool) -> Given:
    """Annotations of an arrow table; in a text file, all its columns are text."""
    names = held.column_names
    giver = columns.giver
    if giver is None:
        found = [own for own in SOURCES if own in names]
        if len(found) > 1:
            raise ValueError(f"{name} has columns {some(found)}; say with --source which of them gave the labels.")
        giver = found[0] if found else None
    wanted = {
        "--id": ROW if columns.id is None else columns.id,
        "--label": LABEL if columns.label is None else columns.label,
        "--source": giver,
        "--trusted": columns.trusted,
    }
    for option, own in wanted.items():
        if own is not None and names.count(own) != 1:
            many = "more than one" if own in names else "no"
            raise ValueError(f"{name} has {many} column {own!r}; name it with {option}; it has {some(names)}.")
    twice = [own for own in wanted.values() if own is not None]
    if len(set(twice)) < len(twice):
        own = next(own for own in twice if twice.count(own) > 1)
        options = " and ".join(option for option, other in wanted.items() if other == own)
        raise ValueError(f"{options} both name the column {own!r} of {name}; each is a column of its own.")
    if held.num_rows == 0:
        raise ValueError(f"{name} has no annotations; it must hold at least one.")
    label = labels_of(held.column(wanted["--label"]), str(wanted["--label"]), name)
    return Given(
        source=name,
        id=ids_of(held.column(wanted["--id"]), str(wanted["--id"]), name, 0, "id"),
        label=_checked(labels_of_text(label, name) if spelled else label, name),
        giver=None if giver is None else ids_of(held.column(giver), giver, name, 0, "source"),
        trusted=None if columns.trusted is None else _flags(held.column(columns.trusted), columns.trusted, name),
        by_number=columns.id is None,
        spelled=spelled,
    ).checked()


def _checked(label: NDArray[Any], name: str) -> NDArray[Any]:
    """Labels, as far as they can be used."""
    return np.asarray(Table(name, np.zeros((label.size, 1)), label).checked().y)


def _flags(column: Any, name: str, source: str) -> NDArray[np.bool_]:
    """A column of true and false."""
    values = [{"true": True, "false": False, "1": True, "0": False}.get(str(own).lower()) for own in column.to_pylist()]
    if None in values:
        row = values.index(None)
        raise ValueError(f"column {name!r} of {source} must hold true or false; row {row} has {column[row]}.")
    return np.array(values, np.bool_)

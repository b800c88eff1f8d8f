"""Tables with named columns (csv, parquet): which of them are features, which are labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.datasets.room import check_room
from flipcert.datasets.spelling import labels_of_text
from flipcert.datasets.table import Table, check_exact, no_id

HOW_LABELLED = "it must have a column {label!r}, or name another with --label"


@dataclass(frozen=True)
class Columns:
    """What the columns of a file mean.

    Attributes
    ----------
    label : str or None
        Column (csv, parquet) or array (npz) of the labels; "label", or the array y, if it is not named.
    drop : sequence of str
        Columns that are not features.
    ignore : sequence of str
        Columns that are not features either, if they are there at all.
    trusted : str or None
        Column that says which labels are trusted (csv, parquet), or array (npz).
    required : bool
        Whether there must be labels.
    giver : str or None
        Column that says who gave each label (csv, parquet), or array (npz): its source.
    id : str or None
        Column that says what each row is called (csv, parquet), or array (npz).
    or_default : bool
        Whether labels are where they are if nothing is named, in a file that has not what is named.
    """

    label: str | None = None
    drop: Sequence[str] = ()
    ignore: Sequence[str] = ()
    trusted: str | None = None
    required: bool = False
    giver: str | None = None
    id: str | None = None
    or_default: bool = False

    @property
    def beside(self) -> dict[str, str]:
        """Columns that are neither features nor labels, by the option that names them."""
        named = {"--trusted": self.trusted, "--source": self.giver, "--id": self.id}
        return {option: name for option, name in named.items() if name is not None}

    @property
    def label_column(self) -> str:
        """Column of the labels, where columns have names."""
        return "label" if self.label is None else self.label

    @property
    def label_columns(self) -> tuple[str, ...]:
        """Columns that may be that of the labels."""
        return (self.label_column, "label") if self.or_default else (self.label_column,)

    def label_among(self, names: Sequence[str], default: str = "label") -> str:
        """Which of some columns, or arrays, is that of the labels, if it is there."""
        return default if self.label is None or (self.or_default and self.label not in names) else self.label

    def check_names(self, source: str, arrays: bool) -> None:
        """Raise ValueError if columns of a source without names are named; it may have ``arrays`` with names."""
        if self.drop:
            raise ValueError(
                f"--drop {self.drop[0]} names a column, but the features of {source} are columns without names; leave "
                "it out, or drop the column in the file."
            )
        if self.label is not None and self.required and not arrays:
            raise ValueError(
                f"--label {self.label} names a column, but those of {source} have no names, and its labels are known; "
                "leave it out."
            )


def table_of(held: Any, source: str, columns: Columns, first_row: int = 0, spelled: bool = False) -> Table:
    """Features, labels and names of the columns of an arrow table.

    Parameters
    ----------
    held : pyarrow.Table
        The columns.
    source : str
        Where they come from, for messages.
    columns : Columns
        What they mean.
    first_row : int
        Number of the first row, for messages, if this is a part of a file.
    spelled : bool
        Whether labels are read from their spelling, as in a text file.
    """
    names = held.column_names
    twice = sorted(column for column, count in Counter(names).items() if count > 1)
    if twice:
        raise ValueError(f"{source} has more than one column {twice[0]!r}; rename or drop the others.")
    label = columns.label_among(names)
    if columns.required and label not in names:
        raise ValueError(f"{source} has no labels; {HOW_LABELLED.format(label=label)}; it has {_some(names)}.")
    options = [("--drop", name) for name in columns.drop] + list(columns.beside.items())
    for option, column in options:
        if column == label and label in names:
            raise ValueError(
                f"{option} {label} is the column of the labels of {source}; name another with {option} or --label."
            )
        if column not in names:
            raise ValueError(f"{source} has no column {column!r}; it has {_some(names)}.")
    wanted = [column for _, column in options]
    aside = {label, *wanted, *columns.ignore}
    features, values = [], []
    for column in names:
        if column not in aside:
            own = _numbers(held.column(column), column, source, first_row)
            features += [column] if own.ndim == 1 else [f"{column}.{i}" for i in range(own.shape[1])]
            values.append(own if own.ndim == 2 else own[:, None])
    if not values:
        raise ValueError(f"{source} has no columns of features beside {label!r}; it has {_some(names)}.")
    X = np.concatenate(values, axis=1, dtype=np.result_type(*{own.dtype for own in values}))
    y = None
    if label in names:
        y = _labels(held.column(label), label, source, first_row)
        if spelled:
            y = labels_of_text(y, source)
    trusted = None if columns.trusted is None else held.column(columns.trusted).to_numpy()
    givers, ids = (
        None if name is None else ids_of(held.column(name), name, source, first_row, what)
        for name, what in ((columns.giver, "source"), (columns.id, "id"))
    )
    return Table(source, X, y, names=tuple(features), trusted=trusted, spelled=spelled, givers=givers, ids=ids)


def _numbers(column: Any, name: str, source: str, first_row: int) -> NDArray[Any]:
    """A column of numbers, or a matrix for a column of vectors."""
    from pyarrow import types

    kind = column.type
    vectors = types.is_fixed_size_list(kind) or types.is_list(kind) or types.is_large_list(kind)
    inner = kind.value_type if vectors or types.is_dictionary(kind) else kind
    numeric = types.is_integer(inner) or types.is_floating(inner) or types.is_boolean(inner) or types.is_null(inner)
    if not numeric or types.is_dictionary(kind):
        raise ValueError(
            f"column {name!r} of {source} holds {inner}, not numbers; name the labels with --label, "
            "and leave out other columns with --drop."
        )
    if not vectors:
        values = column.to_numpy()
        numbers = values.astype(np.float64) if values.dtype.kind in "Ob" else values
        check_exact(numbers[:, None], source, (name,), first_row)
        return np.asarray(numbers)
    rows = column.combine_chunks()
    lengths = np.unique(rows.value_lengths().to_numpy(zero_copy_only=False)) if len(rows) else np.array([0])
    if rows.null_count or lengths.size != 1:
        raise ValueError(f"the vectors in column {name!r} of {source} must all have the same length.")
    flat = rows.flatten().to_numpy(zero_copy_only=False)
    matrix = np.asarray(flat.astype(np.float64) if flat.dtype.kind == "O" else flat).reshape(len(rows), -1)
    check_exact(matrix, source, tuple(f"{name}.{i}" for i in range(matrix.shape[1])), first_row)
    return matrix


def ids_of(column: Any, name: str, source: str, first_row: int, what: str) -> NDArray[Any]:
    """Ids of rows or of sources, as an array of numbers or strings."""
    if column.null_count:
        row = first_row + int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise ValueError(no_id(source, what, row))
    return _labels(column, name, source, first_row, f"{what}s", "--source" if what == "source" else "--id")


def labels_of(column: Any, name: str, source: str) -> NDArray[Any]:
    """Labels of a column, as an array of numbers or strings."""
    return _labels(column, name, source, 0)


def _labels(
    column: Any, name: str, source: str, first_row: int, what: str = "labels", option: str = "--label"
) -> NDArray[Any]:
    """Labels, or ids, as an array of numbers or strings."""
    import pyarrow as pa
    from pyarrow import compute, types

    packed = types.is_dictionary(column.type)
    kind = column.type.value_type if packed else column.type
    numbers = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    texts = types.is_string(kind) or types.is_large_string(kind)
    spelled = types.is_decimal(kind) or types.is_binary(kind) or types.is_large_binary(kind)
    if texts or types.is_binary(kind) or types.is_large_binary(kind):
        different = pa.chunked_array([part.dictionary for part in column.chunks], kind) if packed else column
        longest = compute.max(compute.binary_length(different)).as_py() or 0
        # NumPy gives every label the room of the longest one.
        check_room(
            f"column {name!r} of {source}, with {what} of up to {longest:,} characters,",
            4.0 * longest * len(column),
            f"shorten them, or name another column with {option}",
        )
    column = column.cast(kind)
    if column.null_count:
        row = first_row + int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise ValueError(f"{source} has no label in row {row}; fill it in or drop the row.")
    if numbers:
        return np.asarray(column.to_numpy())
    if not texts and not spelled:
        raise ValueError(
            f"the {what} in column {name!r} of {source} are {kind}, not numbers or strings; name another with {option}."
        )
    try:
        column = column.cast(pa.string())
    except pa.ArrowInvalid:
        raise ValueError(
            f"the {what} in column {name!r} of {source} are bytes that are no UTF-8 text; save them as text."
        ) from None
    if compute.any(compute.match_substring(column, "\0")).as_py():
        raise ValueError(f"the {what} in column {name!r} of {source} hold a zero byte, which ends a text; remove it.")
    return np.asarray(column.to_numpy().astype(str))


def _some(names: Sequence[str], most: int = 5) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")

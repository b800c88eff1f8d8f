"""Tables with named columns (csv, parquet): which of them are features, which are labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.datasets.arrow_columns import (
    count_beyond_doubles,
    ids_of,
    is_boolean,
    is_numeric,
    is_text,
    labels_of,
    numbers_of,
    texts_of,
    type_of,
)
from flipcert.datasets.spelling import labels_of_text
from flipcert.datasets.table import Table

# What columns hold; others go by their type.
NUMBERS, BOOLEANS, TEXT, VECTORS = "numbers", "true or false", "text", "vectors of length {}"
UNEVEN, BYTES = "vectors, not of one length in every row", "binary"
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
    elsewhere : sequence of str
        Columns of another file, which ``drop`` may name as well, whether or not they are here.
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
    id_if_there : str or None
        The same as ``id`` for a file that need not have it.
    encode : bool
        Whether columns of text are features, which are going to be encoded.
    texts : sequence of str or None
        With ``encode``, which columns are read as text, whatever they hold; None: those that hold text.
    impute : bool
        Whether numbers may be missing, as they are going to be filled in.
    everything : bool
        Whether all columns of numbers and of text are wanted as they are, whatever they mean, and whatever is wrong.
    """

    label: str | None = None
    drop: Sequence[str] = ()
    ignore: Sequence[str] = ()
    trusted: str | None = None
    required: bool = False
    giver: str | None = None
    id: str | None = None
    or_default: bool = False
    id_if_there: str | None = None
    encode: bool = False
    texts: Sequence[str] | None = None
    impute: bool = False
    everything: bool = False
    elsewhere: Sequence[str] = ()

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

    def dropped(self, names: Sequence[str]) -> list[str]:
        """Columns to leave out: what was given with commas is several names, unless a column is called so.

        >>> Columns(drop=("a,b", "c,d")).dropped(["a", "b", "c,d", "e"])
        ['a', 'b', 'c,d']
        >>> Columns(drop=("a,z",), elsewhere=["a", "z"]).dropped(["a", "b"])
        ['a']
        """
        return [
            name for name in _apart(self.drop, [*names, *self.elsewhere]) if name not in {*self.elsewhere} - {*names}
        ]

    def ignored(self, names: Sequence[str]) -> list[str]:
        """The same for columns that need not be there."""
        return _apart(self.ignore, names)

    def id_among(self, names: Sequence[str]) -> str | None:
        """The column of ids, if it is named, and there if it need not be."""
        return self.id_if_there if self.id is None and self.id_if_there in names else self.id

    def check_names(self, source: str, arrays: bool) -> None:
        """Raise ValueError if columns of a source without names are named; it may have ``arrays`` with names."""
        if self.drop:
            raise ValueError(
                f"--drop {self.drop[0]} names a column, but the features of {source} are columns without names; leave "
                "it out, or drop the column in the file."
            )
        if self.encode:
            raise ValueError(
                f"--encode is for columns of text, and {source} has none: its features are numbers; leave it out."
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
    if columns.everything:
        return _everything(held, source)
    label = columns.label_among(names)
    if columns.required and label not in names:
        raise ValueError(f"{source} has no labels; {HOW_LABELLED.format(label=label)}; it has {_some(names)}.")
    options = [("--drop", name) for name in columns.dropped(names)] + list(columns.beside.items())
    for option, column in options:
        if column == label and label in names:
            raise ValueError(
                f"{option} {label} is the column of the labels of {source}; name another with {option} or --label."
            )
        if column not in names:
            raise ValueError(f"{source} has no column {column!r}; it has {_some(names)}.")
    wanted = [column for _, column in options]
    id_column = columns.id_among(names)
    aside = {label, *wanted, *columns.ignored(names), id_column}
    features, values = [], []
    texts: dict[str, NDArray[Any]] = {}
    tabular = False
    for column in names:
        if column in aside:
            continue
        if columns.encode and (is_text(held.column(column)) if columns.texts is None else column in columns.texts):
            texts[column] = texts_of(held.column(column), column, source)
        else:
            may_encode = columns.texts is None and not columns.encode
            own = numbers_of(held.column(column), column, source, first_row, may_encode=may_encode)
            features += [column] if own.ndim == 1 else [f"{column}.{i}" for i in range(own.shape[1])]
            values.append(own if own.ndim == 2 else own[:, None])
            tabular |= own.ndim == 1
    if not values and not texts:
        raise ValueError(f"{source} has no columns of features beside {label!r}; it has {_some(names)}.")
    values = values or [np.empty((held.num_rows, 0))]
    X = np.concatenate(values, axis=1, dtype=np.result_type(*{own.dtype for own in values}))
    y = None
    if label in names:
        y = labels_of(held.column(label), label, source, first_row)
        if spelled:
            y = labels_of_text(y, source)
    trusted = None if columns.trusted is None else held.column(columns.trusted).to_numpy()
    givers, ids = (
        None if name is None else ids_of(held.column(name), name, source, first_row, what)
        for name, what in ((columns.giver, "source"), (id_column, "id"))
    )
    told: dict[str, Any] = {"trusted": trusted, "givers": givers, "ids": ids, "spelled": spelled}
    return Table(source, X, y, names=tuple(features), texts=texts, tabular=tabular or bool(texts), **told)


def _everything(held: Any, source: str) -> Table:
    """All columns of numbers and of text, and what all columns hold."""
    features, values = [], [np.empty((held.num_rows, 0))]
    texts: dict[str, NDArray[Any]] = {}
    kinds: dict[str, str] = {}
    different: dict[str, int] = {}
    for name in held.column_names:
        column = held.column(name)
        kinds[name] = type_of(column)
        if is_text(column):
            texts[name] = texts_of(column, name, source)
            kinds[name] = TEXT
        elif is_numeric(column.type):
            try:
                own = numbers_of(column, name, source, 0, exact=False)
            except ValueError:
                kinds[name] = UNEVEN
                continue
            one = BOOLEANS if is_boolean(column.type) else NUMBERS
            kinds[name] = one if own.ndim == 1 else VECTORS.format(own.shape[1])
            if (count := count_beyond_doubles(column)) is not None:
                different[name] = count
            features += [name] if own.ndim == 1 else [f"{name}.{i}" for i in range(own.shape[1])]
            values.append(own[:, None] if own.ndim == 1 else own)
    X = np.concatenate(values, axis=1, dtype=np.float64)
    return Table(source, X, None, names=tuple(features), texts=texts, kinds=kinds, different=different)


def _apart(given: Sequence[str], names: Sequence[str]) -> list[str]:
    return [part for own in given for part in ([own] if own in names else own.split(","))]


def _some(names: Sequence[str], most: int = 5) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")

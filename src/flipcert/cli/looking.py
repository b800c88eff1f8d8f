"""A look at the data of a command: all that stands in the way at once, and the options that would work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from flipcert.cli.labels import OneClass, label_space, labels_of_no_class
from flipcert.cli.options import DataOptions
from flipcert.cli.reading import read_labelled, read_tables
from flipcert.datasets.advice import advise
from flipcert.datasets.array_advice import advise_on_arrays
from flipcert.datasets.files import Columns, is_table, read_table
from flipcert.datasets.meaning import Advice, Meaning
from flipcert.datasets.table import Table


class Obstacles(ValueError):
    """What is wrong with the data of a command: the first fault, all of them, and options that mend them all.

    Attributes
    ----------
    advice : Advice
        All that stands in the way.
    mended : DataOptions or None
        Options with which the data can be read; None if there are none.
    """

    def __init__(self, sentence: str, advice: Advice, mended: DataOptions | None) -> None:
        super().__init__(sentence)
        self.advice = advice
        self.mended = mended


def read_data(train: str, test: str, data: DataOptions) -> tuple[Table, Table]:
    """Training and test data, as numbers without gaps; what is wrong with a table is told at once."""
    with _explained(train, test, data):
        return read_tables(train, test, data)


def read_labels(train: str, data: DataOptions) -> Table:
    """Training data with their labels, one a row; what is wrong with a table is told at once."""
    with _explained(train, None, data):
        return read_labelled(train, data)


@contextmanager
def _explained(train: str, test: str | None, data: DataOptions) -> Iterator[None]:
    """Let an error say all that is wrong."""
    try:
        yield
    except ValueError as error:
        try:
            advice, mended = look(train, test, data)
        except (ValueError, OSError):
            raise error from None
        if not advice.obstacles:
            raise
        raise Obstacles(str(error), advice, mended) from error


def look(train: str, test: str | None, data: DataOptions) -> tuple[Advice, DataOptions | None]:
    """What there is to say about a file, and options with which it can be read; None if there are none."""
    given = Meaning(data.label, data.id, data.source, data.trusted, tuple(data.drop or ()), data.encode, data.impute)
    unreadable = None
    if not is_table(train):
        advice = advise_on_arrays(train, given, test)
    else:
        other = None
        try:
            other = _everything(test) if test is not None and is_table(test) else None
        except ValueError as error:
            unreadable = str(error)
        if data.annotations is not None:  # who gave labels, and which are trusted, is in that file
            given = replace(given, source=None, trusted=None)
        advice = advise(_everything(train), given, other, labelled=data.annotations is None)
    if unreadable is not None:
        advice.obstacles.append(unreadable.rstrip("."))
        return advice, None
    mended = _options(advice, data)
    files = (train, train if test is None else test)
    try:
        try:
            first, second = read_tables(*files, mended, tell=False)
        except OneClass as error:
            advice.obstacles.append(str(error).rstrip("."))
            mended = replace(mended, classes=error.example)
            first, second = read_tables(*files, mended, tell=False)
        foreign = labels_of_no_class(first, second, label_space(mended.classes, first) or ())
        advice.notes += [] if foreign is None else [foreign]
    except ValueError as error:
        if not advice.hopeless:
            advice.obstacles.append(str(error).rstrip("."))
        return advice, None
    return advice, mended


def _everything(source: str) -> Table:
    return read_table(source, Columns(everything=True), labelled=False)


def _options(advice: Advice, data: DataOptions) -> DataOptions:
    """Options that say what is advised."""
    own = advice.advised
    names = [column.name for column in advice.columns]
    told: dict[str, Any] = {
        "label": own.label,
        "id": own.id,
        "encode": own.encode,
        "impute": own.impute,
        "drop": _list(own.drop, names),
    }
    if data.annotations is None:
        told |= {"source": own.source, "trusted": own.trusted}
    return replace(data, **told)


def _list(drop: Sequence[str], names: Sequence[str]) -> list[str] | None:
    """Columns as one list with commas, but for those whose names would not survive that."""
    odd = [name for name in drop if not name or "," in name]
    plain = ",".join(name for name in drop if name not in odd)
    together = (
        [plain] if plain and (plain not in names or plain in drop) else [name for name in drop if name not in odd]
    )
    return [*together, *odd] or None

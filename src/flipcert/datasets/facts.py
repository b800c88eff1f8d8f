"""What the columns of a table look like: numbers or text, gaps, ids, constants, copies of the label."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.datasets.columns import BOOLEANS, NUMBERS, TEXT, VECTORS
from flipcert.datasets.preparation import MOST_CATEGORIES
from flipcert.datasets.table import LARGEST_WHOLE, Table
from flipcert.engine.mapped import row_pieces

# With fewer rows, whole numbers may well differ by chance, and columns agree.
_FEW = 20
# Rows by which it is decided whether to count the different numbers of a column at all.
_SAMPLE = 10_000
# What columns of ids are often called: id, sample_id, PassengerId, or nothing, as data frames write their index.
_IDS = re.compile(r"(?i:(.*[\W_])?(id|rowid|uuid|guid|key|index))|.*[a-z]I[dD]|")
# Numbers with a comma for the point, or between thousands; or with none, beside such.
_COMMAS = re.compile(r"\s*[-+]?\d[\d.,]*\s*")


@dataclass(frozen=True)
class Column:
    """What a column looks like.

    Attributes
    ----------
    name, kind : str
        What it is called, and what it holds: "numbers", "whole numbers", "true or false", "text", "vectors of length
        384", or its type.
    n_rows, missing : int
        Number of values, and of those that are missing.
    different : int or None
        Number of different values; None if they were not counted, as there are many.
    infinite, too_large : bool
        Whether there are infinite numbers, or whole ones that doubles cannot tell apart.
    stray : str or None
        Of a text of which most values are numbers, the first that is none.
    wordy : bool
        Whether texts have more than three words on average: they say something, and name nothing.
    commas : bool
        Whether texts are numbers that are written with commas, such as 12,5 and 1.000,00.
    """

    name: str
    kind: str
    n_rows: int
    missing: int = 0
    different: int | None = None
    infinite: bool = False
    too_large: bool = False
    stray: str | None = None
    wordy: bool = False
    commas: bool = False

    @property
    def usable(self) -> bool:
        """Whether it can be made a feature at all."""
        return self.kind in (NUMBERS, WHOLE, BOOLEANS, TEXT) or self.has_vectors

    @property
    def has_vectors(self) -> bool:
        """Whether it holds vectors of one length."""
        return self.kind.startswith(VECTORS.format(""))

    @property
    def is_id(self) -> bool:
        """Whether it looks like ids: texts, or whole numbers, that all differ."""
        return (
            self.kind in (TEXT, WHOLE)
            and self.different == self.n_rows >= _FEW
            and not self.wordy
            and self.stray is None
            and not self.commas
        )

    @property
    def is_called_id(self) -> bool:
        """Whether ids are often called so."""
        return _IDS.fullmatch(self.name) is not None

    @property
    def is_empty(self) -> bool:
        """Whether all of its values are missing."""
        return self.missing == self.n_rows

    @property
    def is_constant(self) -> bool:
        """Whether it has one value."""
        return self.different == 1 and self.missing == 0

    @property
    def has_categories(self) -> bool:
        """Whether it is text with few enough different values to be categories."""
        few = min(MOST_CATEGORIES, max(2, self.n_rows // 2))
        return self.kind == TEXT and self.different is not None and self.different <= few

    @property
    def is_encodable(self) -> bool:
        """Whether it is text that can be encoded, be it wise or not."""
        return self.kind == TEXT and (self.different or 0) <= MOST_CATEGORIES

    @property
    def may_be_label(self) -> bool:
        """Whether its values could be classes."""
        few = self.different is not None and 2 <= self.different <= max(2, min(100, self.n_rows // 2))
        return few and self.kind in (TEXT, WHOLE, BOOLEANS) and self.missing == 0

    @property
    def told(self) -> str:
        """What it holds, for readers."""
        if self.is_empty:
            return "nothing"
        parts = [self.kind]
        if self.different is not None and (self.kind not in (NUMBERS, BOOLEANS) or self.is_constant):
            all_of_them = self.different == self.n_rows > 1
            parts.append(f"all {self.different:,} different" if all_of_them else f"{self.different:,} different")
        if self.missing:
            parts.append(f"{self.missing:,} missing")
        return ", ".join(parts)


WHOLE = "whole numbers"


def facts(table: Table) -> list[Column]:
    """What the columns of a table look like, in the order of the file."""
    kinds = table.kinds or dict.fromkeys(table.names or (), NUMBERS) | dict.fromkeys(table.texts, TEXT)
    missing, infinite, whole = _of_numbers(table.X)
    n_rows, place, found = table.X.shape[0], 0, []
    for name, kind in kinds.items():
        if kind == TEXT:
            found.append(_text(name, table.texts[name]))
        elif kind in (NUMBERS, BOOLEANS):
            values = table.X[:, place]
            whole_here = bool(whole[place]) and missing[place] < n_rows
            large = whole_here and bool(np.fmax.reduce(np.abs(values), initial=0) >= LARGEST_WHOLE)
            found.append(
                Column(
                    name,
                    WHOLE if whole_here and kind == NUMBERS else kind,
                    n_rows,
                    int(missing[place]),
                    table.different.get(name) if large else _count(values, whole_here),
                    infinite=bool(infinite[place]),
                    too_large=large,
                )
            )
            place += 1
        elif kind.startswith(VECTORS.format("")):
            width = int(kind.split()[-1])
            own = slice(place, place + width)
            gaps = int(missing[own].max(initial=0))
            found.append(Column(name, kind, n_rows, gaps, infinite=bool(infinite[own].any())))
            place += width
        else:
            found.append(Column(name, kind, n_rows))
    return found


def copies(table: Table, label: str, columns: list[Column]) -> list[str]:
    """Columns that have one value for each class, and another for each other class."""
    labels = _values(table, label)
    if labels is None or labels.size < _FEW:
        return []
    classes, codes = np.unique(labels, return_inverse=True)
    found = []
    for column in columns:
        if column.name != label and column.different == classes.size > 1 and not column.missing:
            values = _values(table, column.name)
            if values is not None:
                _, own = np.unique(values, return_inverse=True)
                if np.unique(own * classes.size + codes).size == classes.size:
                    found.append(column.name)
    return found


def _values(table: Table, name: str) -> NDArray[Any] | None:
    """Values of a column, as numbers or as text."""
    if name in table.texts:
        return np.asarray([text or "" for text in table.texts[name]], str)
    return table.X[:, table.names.index(name)] if name in (table.names or ()) and table.names else None


def _of_numbers(X: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """For each column: missing values, whether some are infinite, whether all others are whole."""
    missing, infinite, whole = np.zeros(X.shape[1], np.int64), np.zeros(X.shape[1], bool), np.ones(X.shape[1], bool)
    for _, rows in row_pieces(X):
        gaps = np.isnan(rows)
        missing += gaps.sum(axis=0)
        infinite |= np.isinf(rows).any(axis=0)
        whole &= (gaps | (rows == np.floor(rows))).all(axis=0)
    return missing, infinite, whole & ~infinite


def _count(values: NDArray[Any], whole: bool) -> int | None:
    """Number of different values that are there; None where they are many, and some of them the same or not whole."""
    present = values[~np.isnan(values)]
    sample, different = present[:_SAMPLE].size, np.unique(present[:_SAMPLE]).size
    if different > min(MOST_CATEGORIES, max(2, sample // 2)) and (not whole or different < sample == _SAMPLE):
        return None
    return int(np.unique(present).size)


def _text(name: str, texts: NDArray[Any]) -> Column:
    present = [text for text in texts.tolist() if text is not None]
    different = set(present)
    others = [text for text in different if not is_number(text)]
    mostly_numbers = bool(others) and len(others) * 2 < len(different)
    stray = next(text for text in present if text in set(others)) if mostly_numbers else None
    wordy = sum(len(text.split()) for text in different) > 3 * len(different)
    commas = bool(present) and any("," in text for text in different) and all(map(_COMMAS.fullmatch, different))
    missing = texts.size - len(present)
    return Column(name, TEXT, texts.size, missing, len(different), stray=stray, wordy=wordy, commas=commas)


def is_number(text: str) -> bool:
    """Whether a text spells a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True

"""Annotations as they were given, before they are joined to rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.datasets.spelling import first_missing
from flipcert.datasets.table import no_id


@dataclass(frozen=True, eq=False)
class Given:
    """Labels of a file, one entry an annotation.

    Attributes
    ----------
    source : str
        The file, for messages.
    id : ndarray
        What is annotated: the id of a row, or its number.
    label : ndarray
        What it is said to be.
    giver : ndarray or None
        Who said it, if that is known.
    trusted : ndarray of bool or None
        Which labels are trusted, if that is known.
    by_number : bool
        Whether ids are numbers of rows.
    spelled : bool
        Whether labels that are numbers were text.
    """

    source: str
    id: NDArray[Any]
    label: NDArray[Any]
    giver: NDArray[Any] | None
    trusted: NDArray[np.bool_] | None
    by_number: bool
    spelled: bool

    def checked(self) -> Given:
        """The same, if no id is missing."""
        for ids, what in ((self.id, "id"), (self.giver, "source")):
            if ids is None:
                continue
            row = first_missing(ids) if ids.dtype.kind == "U" else None
            if ids.dtype.kind == "f" and np.isnan(ids).any():
                row = int(np.isnan(ids).argmax())
            if row is not None:
                raise ValueError(no_id(self.source, what, row))
        return self


def some(values: Sequence[Any], most: int = 5) -> str:
    """Some values in a sentence, however long they are."""
    plain = [own.item() if isinstance(own, np.generic) else own for own in values[:most]]
    shown = ", ".join(repr(own if len(str(own)) < 60 else f"{str(own)[:57]}...") for own in plain)
    return shown + (f" and {len(values) - most} more" if len(values) > most else "")

"""Labels in text files: numbers where that loses nothing, else the text as it is spelled."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

# What stands for a missing value in a column of numbers. Among words, "NA" is a word.
_MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "-nan", "-NaN", "#N/A", "n/a", "<NA>"})
_WHOLE = np.iinfo(np.int64)


def labels_of_text(spelled: NDArray[Any], source: str) -> NDArray[Any]:
    """Labels from their spellings.

    ``7``, ``07`` and ``7.0`` are three labels, and would be one number. So labels are read as numbers only if each is
    spelled as that number is printed; :func:`text_of_labels` then gives the spelling back.

    >>> labels_of_text(np.array(["7", "08"]), "train.csv").tolist()
    ['7', '08']
    >>> labels_of_text(np.array(["7", "8"]), "train.csv").tolist()
    [7, 8]
    """
    broken = np.char.find(spelled, "\n") >= 0
    if broken.any():
        raise ValueError(
            f"{source} has a label with a line break in row {broken.argmax()}; perhaps a quote is left open."
        )
    missing, kind = _missing(spelled)
    if missing.any():
        row, count = missing.argmax(), missing.sum()
        more = f", and in {count - 1:,} more" if count > 1 else ""
        told, remedy = "", "fill them in or drop these rows" if more else "fill it in or drop the row"
        if spelled[row]:
            told = f", where {str(spelled[row])!r} reads as a missing one"
            them = "them in, drop these rows" if more else "it in, drop the row"
            remedy = f"fill {them}, or, if that is a class, give it another name"
        raise ValueError(f"{source} has no label in row {row}{told}{more}; {remedy}.")
    return spelled if kind is None else spelled.astype(np.int64 if kind is int else np.float64)


def like_missing(labels: NDArray[Any]) -> dict[str, int]:
    """Classes among others that are called as many programs call what is missing, and how many labels each has.

    >>> like_missing(np.array(["yes", "no", "NA", "NA"]))
    {'NA': 2}
    """
    if labels.dtype.kind != "U":
        return {}
    names, counts = np.unique(labels, return_counts=True)
    told = dict(zip(names.tolist(), counts.tolist(), strict=True))
    return {name: count for name, count in told.items() if name in _MISSING} if told.keys() - _MISSING else {}


def first_missing(spelled: NDArray[Any]) -> int | None:
    """The first row of a column of ids in which there is none; None if all are there. Ids stay text."""
    missing, _ = _missing(spelled)
    return int(missing.argmax()) if missing.any() else None


def _missing(spelled: NDArray[Any]) -> tuple[NDArray[np.bool_], type[int] | type[float] | None]:
    """Where a value is missing, and which numbers the others are, if they are numbers."""
    present = set(np.unique(spelled).tolist()) - _MISSING
    kind = next((kind for kind in (int, float) if present and all(_is_printed(text, kind) for text in present)), None)
    return np.isin(spelled, list(_MISSING if kind is not None or not present else {""})), kind


def text_of_labels(labels: NDArray[Any]) -> NDArray[Any]:
    """The spelling of labels that were read by :func:`labels_of_text`."""
    return labels if labels.dtype.kind == "U" else np.array([str(label) for label in labels.tolist()])


def _is_printed(text: str, kind: Callable[[str], Any]) -> bool:
    """Whether a text is what Python prints for a number."""
    try:
        number = kind(text)
    except ValueError:
        return False
    return str(number) == text and (math.isfinite(number) if kind is float else _WHOLE.min <= number <= _WHOLE.max)

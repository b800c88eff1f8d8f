"""Labels of two files and of the shell: the label space, and test labels that no training point has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flipcert.datasets.table import Table
from flipcert.engine.words import plural


def labels_of_no_class(train: Table, test: Table, classes: tuple[Any, ...]) -> str | None:
    """Refuse test labels of which none can be predicted; say how many cannot be, or None if all can."""
    if test.y is None:
        return None
    known = {*np.unique(np.asarray(train.y)).tolist(), *classes}
    foreign = [label for label in np.unique(test.y).tolist() if label not in known]
    count = int(np.isin(test.y, np.array(foreign, test.y.dtype)).sum()) if foreign else 0
    if count == test.y.size:
        raise ValueError(
            f"none of the labels of {test.source} (such as {_examples(foreign)}) occurs in {train.source} (such as "
            f"{_examples(sorted(known))}); write them alike, or leave the labels of {test.source} out."
        )
    if not count:
        return None
    return (
        f"{count:,} of the {plural(test.y.size, 'test point')} of {test.source} {'has' if count == 1 else 'have'} "
        f"a label that no training point has (such as {_examples(foreign)}); {'it' if count == 1 else 'they'} can "
        "never be predicted right"
    )


def _examples(labels: Sequence[Any]) -> str:
    return ", ".join(repr(label) for label in labels[:3])


class OneClass(ValueError):
    """Training labels are all of one class, and no others are named.

    Attributes
    ----------
    example : str
        What could be said of the label space, with a made-up class.
    """

    def __init__(self, source: str, only: Any) -> None:
        other = "other" if isinstance(only, str) else not only if isinstance(only, bool) else only + 1
        self.example = f"{only},{other}"
        super().__init__(
            f"{source} has one class only ({only!r}), so no prediction could change; name all classes that there are "
            f"with --classes, such as --classes {self.example}."
        )


def label_space(given: str | None, train: Table) -> tuple[Any, ...] | None:
    """The label space in the type of the labels."""
    present = np.unique(np.asarray(train.y))
    if given is None:
        if present.size < 2:
            raise OneClass(train.source, present[0].item())
        return None
    try:
        classes = tuple(_LABEL_OF[present.dtype.kind](name) for name in given.split(","))
    except (KeyError, ValueError):
        raise ValueError(
            f"--classes {given} must name labels like those of {train.source}, such as "
            f"{_examples(present.tolist())}, with commas between them."
        ) from None
    for place, label in enumerate(classes):
        if label in classes[:place]:
            raise ValueError(f"--classes {given} names {label!r} twice; name each label once.")
    for label in present.tolist():
        if label not in classes:
            raise ValueError(f"--classes {given} does not name {label!r}, which is a label of {train.source}.")
    return classes


def _word(text: str) -> str:
    if not text:
        raise ValueError("an empty label")
    return text


def _finite(text: str) -> float:
    if not np.isfinite(float(text)):
        raise ValueError(text)
    return float(text)


# How a label is read that is given in the shell, by the kind of the labels in the file.
_LABEL_OF: dict[str, Callable[[str], Any]] = {
    "U": _word, "i": int, "u": int, "f": _finite, "b": {"True": True, "False": False}.__getitem__
}  # fmt: skip

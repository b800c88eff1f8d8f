"""Parts that files of results have in common: labels, the description of a model, how much can be attacked."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from reprlib import repr as short
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.files import refuse_odd_files, whole_file
from flipcert.engine.npz import read_arrays
from flipcert.labels.threats import SOURCES, THREATS
from flipcert.results.columns import SPACE

Made = TypeVar("Made")

# Kinds of labels, as NumPy calls them: booleans, numbers, strings, bytes, dates; and those that are Python's objects.
_PLAIN, _OBJECTS = "biufUSmM", "OT"


def write_stored(path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays to a file, whole or not at all."""
    with whole_file(path) as file:
        np.savez_compressed(file, **cast(dict[str, Any], dict(arrays)))


def read_stored(path: str | os.PathLike[str], make: Callable[[dict[str, NDArray[Any]]], Made], called: str) -> Made:
    """What ``make`` makes of the arrays in a file; a ValueError that says what the file is not, if it makes nothing."""
    refuse_odd_files(path)
    with open(path, "rb") as file:
        try:
            return make(read_arrays(file))
        except ValueError as error:
            raise ValueError(f"path={os.fspath(path)!r} is not a file of {called}: {error}.") from error


def told_in(header: NDArray[Any] | None) -> tuple[str, dict[str, Any]]:
    """The format that a header names, and all else that it tells."""
    try:
        told = json.loads(str(header))
        return told.pop("format"), told
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise ValueError("it has no header") from None


def check_exposure(told: Mapping[str, Any]) -> None:
    """Refuse a header that cannot say how many labels, or sources, can be attacked, and by what."""
    n_labels, n_attackable = told["n_labels"], told["n_attackable"]
    if type(n_labels) is not int or type(n_attackable) is not int or not 0 <= n_attackable <= n_labels < 2**62:
        raise ValueError(f"{short(n_attackable)} of {short(n_labels)} labels cannot be those to attack")
    if told["threat"] not in tuple(THREATS):
        raise ValueError(f"this version does not know the threat {short(told['threat'])}")
    n_sources = told.get("n_sources")
    if n_sources is None and told["threat"] == SOURCES.name:
        raise ValueError("its radii count sources, but it does not say how many there are")
    if n_sources is not None and (type(n_sources) is not int or not 1 <= n_sources <= n_labels):
        raise ValueError(f"{n_labels} labels cannot come from {short(n_sources)} sources")


def check_space(classes: NDArray[Any], labels: Mapping[str, NDArray[Any]]) -> None:
    """Refuse a label space that does not hold the labels, each class once."""
    if classes.ndim != 1 or classes.dtype.kind != labels["prediction"].dtype.kind:
        raise ValueError(f"{SPACE} must be one list of labels of the same kind as prediction")
    check_labels(SPACE, classes)
    known = set(classes.tolist())
    if len(known) != classes.size:
        raise ValueError(f"{SPACE} names a label twice")
    for name, own in labels.items():
        if not known.issuperset(np.ma.compressed(own).tolist()):
            raise ValueError(f"{name} holds a label that is not among {SPACE}")


def check_labels(name: str, labels: NDArray[Any]) -> None:
    """Refuse what cannot be labels: objects, numbers that are none, characters that do not exist."""
    if labels.dtype.kind not in _PLAIN + _OBJECTS:
        raise ValueError(f"{name} holds {labels.dtype}; labels must be numbers, booleans or strings")
    if labels.dtype.kind in "fmM" and np.any(labels != labels):
        raise ValueError(f"{name} holds a label that is no number or no date")
    if labels.dtype.kind == "U":
        try:
            "".join(labels.tolist()).encode()
        except ValueError:
            raise ValueError(f"{name} holds characters that do not exist") from None


def check_model(described: Any) -> None:
    """Refuse a description of a model that is not names of parameters with plain values, or lists of them."""
    if not isinstance(described, dict) or not all(isinstance(name, str) for name in described):
        raise ValueError(f"model must map names to plain values, and is {short(described)}")
    for name, value in described.items():
        if not _is_plain(value):
            raise ValueError(
                f"model must hold numbers, strings, booleans, None or lists, not {short(value)} for {name!r}"
            )
    partitions = described.get("partitions", 1)
    if type(partitions) is not int or partitions < 1:
        raise ValueError(f"model must name a number of partitions that is at least 1, not {short(partitions)}")


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str))


def storable_labels(columns: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Labels of all columns as arrays that need no pickle, and from which they come back as they are."""
    together = np.concatenate(list(columns.values()))
    if together.dtype.kind in _OBJECTS:
        together = _told_apart(together.tolist(), listed(list(columns), "or"))
    ends = np.cumsum([labels.size for labels in columns.values()])
    return dict(zip(columns, np.split(together, ends[:-1]), strict=True))


def _told_apart(labels: list[Any], names: str) -> NDArray[Any]:
    """Labels of these columns that are Python's objects as an array of NumPy, in which 1 and "1" would be the same."""
    labels = [label.item() if isinstance(label, np.generic) else label for label in labels]
    for label in labels:
        if type(label) not in (str, bool, int, float):
            raise ValueError(f"labels must be numbers, booleans or strings; got {short(label)}")
    stored = np.array(labels or [""])[: len(labels)]
    if stored.dtype.kind not in _PLAIN:
        raise ValueError("a label is a whole number of more than 64 bits")
    for label, back in zip(labels, stored.tolist(), strict=True):
        if type(label) is not type(back) or label != back:
            raise ValueError(f"the label {short(label)} would come back as {short(back)}; use labels of one kind")
    check_labels(names, stored)
    return stored


def listed(names: list[str], last: str) -> str:
    """Names in a sentence: one, two and three."""
    return f" {last} ".join(filter(None, [", ".join(names[:-1]), names[-1]]))

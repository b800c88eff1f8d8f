"""Sources: who gave each training label. Whoever is a source, or bribes it, controls all of its labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flipcert.engine.words import plural
from flipcert.labels.validation import missing_in


@dataclass(frozen=True, eq=False)
class Sources:
    """Where labels come from.

    Attributes
    ----------
    ids : ndarray of shape (n_sources,)
        Each source once, as users name it, sorted.
    codes : ndarray of int64 of shape (n_labels,)
        The source of each label, as a place in ``ids``.
    """

    ids: NDArray[Any]
    codes: NDArray[np.int64]

    def __len__(self) -> int:
        return self.ids.size

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Number of labels of each source."""
        return np.bincount(self.codes, minlength=len(self))


def check_sources(source: ArrayLike | None, n_labels: int) -> Sources | None:
    """Read one id a label, of any kind that can be hashed; None if nobody named any."""
    if source is None:
        return None
    if np.ma.is_masked(source):
        raise ValueError("source has masked entries; name the source of every label.")
    # NumPy would write numbers among strings as strings, and round large ones: 1 and "1" are two sources.
    given = _as_objects(source) if isinstance(source, (list, tuple)) else np.asarray(source)
    if given.ndim != 1:
        raise ValueError(f"source must be one-dimensional, one id a label; got shape {given.shape}.")
    if given.size != n_labels:
        entries = plural(given.size, "entry")
        raise ValueError(f"source has {entries} for {plural(n_labels, 'label')}; give one id a label.")
    _refuse_missing(given)
    if given.dtype.kind != "O":
        ids, codes = np.unique(given, return_inverse=True)
        return Sources(ids, codes.astype(np.int64))
    try:
        places = {own: place for place, own in enumerate(_in_order(set(given.tolist())))}
    except TypeError as error:
        raise ValueError(f"source must hold ids that can be hashed, such as strings or numbers: {error}.") from None
    codes = np.fromiter((places[own] for own in given.tolist()), np.int64, given.size)
    return Sources(_plain(list(places)), codes)


def _plain(ids: list[Any]) -> NDArray[Any]:
    """Ids as an array of NumPy if all are of one kind that it keeps as it is, or else as objects."""
    if len({type(own) for own in ids}) == 1 and type(ids[0]) in (str, int, float):
        stored = np.array(ids)
        if stored.dtype.kind in "Uif" and stored.tolist() == ids:
            return stored
    return _as_objects(ids)


def _as_objects(values: Any) -> NDArray[Any]:
    """A list as an array of its very entries."""
    array = np.empty(len(values), object)
    array[:] = values
    return array


def _in_order(ids: set[Any]) -> list[Any]:
    """Ids in their own order, or, where they have none among each other, by kind and by how they are written."""
    try:
        return sorted(ids)
    except TypeError:
        return sorted(ids, key=lambda own: (type(own).__name__, repr(own)))


def _refuse_missing(ids: NDArray[Any]) -> None:
    """Raise ValueError at the first label without a source."""
    missing = missing_in(ids)
    if missing.any():
        place = int(np.argmax(missing))
        raise ValueError(
            f"source must name the source of every label, and entry {place} is {ids[place]!r}; give labels of unknown "
            "origin an id of their own, or one in common."
        )

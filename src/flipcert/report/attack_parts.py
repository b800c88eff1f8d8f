"""The parts of an attack, one line each: labels that are flipped, sources that lie, rows that come and go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from flipcert.labels.threats import REPLACEMENTS, SOURCES
from flipcert.report.result import Attack
from flipcert.report.words import outside, plural, shorten

_LONGEST = 16  # letters of a label, or of an id


@dataclass(frozen=True)
class Part:
    """One part of an attack.

    Attributes
    ----------
    name : str
        What it is about.
    said : str
        What happens to it, short enough for a list.
    full : str
        The same at full length.
    row : int or None
        The training row, if it is about one.
    """

    name: str
    said: str
    full: str
    row: int | None = None


def row_name(row: int, ids: Mapping[int, Any]) -> str:
    """Number of a row, and what it is called if that is known."""
    return f"{row:,} ({shorten(ids[row], _LONGEST)})" if row in ids else f"{row:,}"


def parts_of(attack: Attack, ids: Mapping[int, Any] | None = None) -> list[Part]:
    """All parts, in the order of the attack; ``ids`` say what training rows are called."""
    ids = ids or {}
    if attack.threat == SOURCES.name:
        return [_source(attack, own) for own in attack.sources.tolist()]
    changes = zip(attack.training_rows.tolist(), attack.old.tolist(), attack.new.tolist(), strict=True)
    flips = [_change(f"row {row_name(row, ids)}", old, new, row) for row, old, new in changes]
    gone = list(zip(attack.deleted.tolist(), attack.deleted_labels.tolist(), strict=True))
    if attack.threat == REPLACEMENTS.name:
        swaps = zip(gone, attack.inserted_labels.tolist(), strict=True)
        return [_change(f"row {row_name(index, ids)} replaced", old, new, index) for (index, old), new in swaps]
    flips += [Part(f"row {row_name(i, ids)} deleted", shorten(old, _LONGEST), outside(old), i) for i, old in gone]
    return flips + _added(attack)


def inputs_told(attack: Attack) -> str:
    """What the inputs of rows that replace others have in common, as a sentence; nothing where parts tell."""
    count = len(attack.inserted)
    if attack.threat != REPLACEMENTS.name or count < 2:
        return ""
    kinds = len(np.unique(attack.inserted, axis=0))
    return "All new rows have the same input." if kinds == 1 else f"The new rows have {kinds:,} different inputs."


def _added(attack: Attack) -> list[Part]:
    """Rows that are added, once for all that are the same: attacks mostly repeat one row."""
    copies: dict[tuple[object, bytes], int] = {}
    for new, x in zip(attack.inserted_labels.tolist(), attack.inserted, strict=True):
        copies[new, x.tobytes()] = copies.get((new, x.tobytes()), 0) + 1
    parts = []
    for (new, _), count in copies.items():
        name = "row added" if count == 1 else f"{count:,} rows added"
        how = "labelled" if count == 1 else "all with the same input, labelled"
        parts.append(Part(name, f"{how} {shorten(new, _LONGEST)}", f"{how} {outside(new)}"))
    return parts


def _change(name: str, old: object, new: object, row: int) -> Part:
    short = f"{shorten(old, _LONGEST)} → {shorten(new, _LONGEST)}"
    return Part(name, short, f"{outside(old)} → {outside(new)}", row)


def _source(attack: Attack, source: object) -> Part:
    own = np.array([by == source for by in attack.by.tolist()], bool)
    changed = plural(int(own.sum()), "label")
    to = np.unique(attack.new[own]) if own.any() else attack.new[:0]
    into = f", to {shorten(to[0], _LONGEST)}" if to.size == 1 else ""
    return Part(shorten(source, 24), f"changes {changed}{into}", f"{outside(source)} changes {changed}{into}")

"""What an attacker may do to the training set, and what a radius counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.labels.labels import Labels


@dataclass(frozen=True)
class Threat:
    """What an attacker may do: here, change labels to other classes of the label space.

    Attributes
    ----------
    name : str
        What users call it, as in ``certify(X, threat=name)``.
    unit : str
        What a radius counts, in the singular.
    changes_rows : bool
        Whether rows come or go, so that inputs are no longer those that were fitted.
    """

    name: str
    unit: str
    changes_rows: bool = False

    def __reduce__(self) -> tuple[Any, ...]:
        # Threats are told apart by what they are: those that were sent to another process are still the same.
        return _named, (self.name,)

    def limit(self, labels: Labels) -> int:
        """The largest radius there is: not even changing all labels does it."""
        return labels.n_labels

    def unreachable(self, labels: Labels) -> int:
        """The cost that stands for 'no attack does it'."""
        return self.limit(labels) + 1

    def useful(self, labels: Labels) -> int:
        """How many units can have any effect: who withstands so many withstands all."""
        return labels.n_movable

    def to_empty(self, labels: Labels) -> NDArray[np.int64]:
        """Units that leave no label of each class, where the label space depends on that; else unreachable."""
        return labels.flips_to_empty

    def to_remove(self, labels: Labels) -> NDArray[np.int64]:
        """Units after which each class is no longer part of the label space; else unreachable.

        Of two classes none can go: labels of one class only are no training set.
        """
        return self.to_empty(labels) if labels.n_classes > 2 else np.full(labels.n_classes, self.unreachable(labels))

    def to_remove_another(self, labels: Labels) -> NDArray[np.int64]:
        """For each class, units that remove whichever *other* class is the first to go: no costs beyond are proven."""
        most = self.unreachable(labels)
        others = np.tile(self.to_remove(labels), (labels.n_classes, 1))
        np.fill_diagonal(others, most)
        return others.min(axis=1, initial=most)


class BySource(Threat):
    """All labels of a source are in one hand, and changed as the attacker likes."""

    def limit(self, labels: Labels) -> int:
        """All sources; not even all of them together do it."""
        assert labels.n_sources is not None, "checked before"
        return labels.n_sources

    def useful(self, labels: Labels) -> int:
        """Sources that hold a label which can be changed."""
        assert labels.sources is not None, "checked before"
        return np.unique(labels.sources.codes[labels.coded.movable]).size

    def to_empty(self, labels: Labels) -> NDArray[np.int64]:
        """Sources that hold a label of each class; none goes that has a trusted label."""
        assert labels.sources is not None, "checked before"
        counts = np.full(labels.n_classes, self.unreachable(labels))
        for c in np.flatnonzero(labels.flips_to_empty < labels.unreachable).tolist():
            counts[c] = np.unique(labels.sources.codes[labels.codes == c]).size
        return counts


class ByInsertion(Threat):
    """Rows are added, as many as the attacker likes."""

    def useful(self, labels: Labels) -> int:
        """There are always more rows to add."""
        return self.limit(labels)


class ByInsertionOnly(ByInsertion):
    """Rows are added, and those that are there stay."""

    def to_empty(self, labels: Labels) -> NDArray[np.int64]:
        """No class goes."""
        return np.full(labels.n_classes, self.unreachable(labels))


FLIPS = Threat("flips", "label")
SOURCES = BySource("sources", "source")
DELETIONS = Threat("deletions", "row", changes_rows=True)
INSERTIONS = ByInsertionOnly("insertions", "row", changes_rows=True)
REPLACEMENTS = Threat("replacements", "row", changes_rows=True)
EDITS = ByInsertion("edits", "row", changes_rows=True)
# What a replacement is in an ensemble, where the new row may land in another partition: one of each. No user asks for
# it by name.
MOVES = ByInsertion("deletions and insertions", "row", changes_rows=True)
THREATS = {threat.name: threat for threat in (FLIPS, SOURCES, DELETIONS, INSERTIONS, REPLACEMENTS, EDITS)}


def _named(name: str) -> Threat:
    return MOVES if name == MOVES.name else THREATS[name]


def check_threat(threat: str) -> Threat:
    """The threat of this name; a ValueError if there is none."""
    if not isinstance(threat, str) or threat not in THREATS:
        *names, last = (f'"{name}"' for name in THREATS)
        raise ValueError(f"threat must be {', '.join(names)} or {last}; got {threat!r}.")
    return THREATS[threat]

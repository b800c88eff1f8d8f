"""Which voters each unit of a threat reaches, where that may be several."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from flipcert.labels.labels import Labels
from flipcert.labels.threats import EDITS, INSERTIONS, REPLACEMENTS, SOURCES, Threat


@dataclass(frozen=True, eq=False)
class Reach:
    """Unit h reaches the voters ``touched[starts[h]:starts[h + 1]]``."""

    starts: NDArray[np.int64]
    touched: NDArray[np.int64]

    @classmethod
    def of(cls, voters: list[NDArray[np.int64]]) -> Reach:
        """The reach of units, given the voters of each."""
        starts = np.append(0, np.cumsum([own.size for own in voters], dtype=np.int64))
        return cls(starts, np.concatenate([np.empty(0, np.int64), *voters]))


@dataclass(eq=False)
class Buckets:
    """Parts of the training set that never share a row, each of which some voters are trained on.

    Attributes
    ----------
    of_labels : ndarray of shape (n_labels,)
        Bucket of each label.
    users : ndarray of shape (n_buckets, n_copies)
        Voters that are trained on each bucket.
    labels : Labels
        All training labels.
    """

    of_labels: NDArray[np.int64]
    users: NDArray[np.int64]
    labels: Labels

    def reach(self, threat: Threat) -> Reach:
        """Which voters a unit of the threat reaches; a replacement is two units, a row that goes and one that comes."""
        if threat is SOURCES:
            return self._of_sources
        # New rows go to any bucket.
        return self._of_any if threat in (INSERTIONS, REPLACEMENTS, EDITS) else self._of_labels

    @cached_property
    def _of_any(self) -> Reach:
        return Reach.of(list(self.users))

    @cached_property
    def _of_labels(self) -> Reach:
        """A trusted label is no way into a bucket."""
        return Reach.of(list(self.users[np.unique(self.of_labels[self.labels.coded.movable])]))

    @cached_property
    def _of_sources(self) -> Reach:
        assert self.labels.sources is not None, "checked before"
        movable = np.flatnonzero(self.labels.coded.movable)
        n_buckets = self.users.shape[0]
        pairs = np.unique(self.labels.sources.codes[movable] * n_buckets + self.of_labels[movable])
        source, bucket = np.divmod(pairs, n_buckets)
        held = np.split(bucket, np.flatnonzero(np.diff(source)) + 1)
        return Reach.of([np.unique(self.users[own]) for own in held])

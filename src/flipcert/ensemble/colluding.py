"""Attacks on votes by sources that have labels in many partitions: greedy, and replayed before they are told of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.ensemble._jit.colluding import collude, scores_of_voters, strengths
from flipcert.flips.rows import IntegerRow
from flipcert.labels.labels import Labels
from flipcert.labels.threats import SOURCES
from flipcert.results.witness import Witness, classes_after


class Collusion:
    """All labels of label-linear voters by source.

    Parameters
    ----------
    labels : Labels
        All training labels, with their sources.
    parts : list of Labels
        Those of each voter.
    members : list of ndarray
        Places of the labels of each voter.
    """

    def __init__(self, labels: Labels, parts: list[Labels], members: list[NDArray[np.int64]]) -> None:
        assert labels.sources is not None, "checked before"
        self._labels, self._parts = labels, parts
        self._bounds = np.cumsum([0] + [own.size for own in members])
        self._members = np.concatenate(members)
        self._part = np.repeat(np.arange(len(members)), np.diff(self._bounds))
        self._codes = labels.codes[self._members]
        movable = np.flatnonzero(labels.coded.movable[self._members])
        source = labels.sources.codes[self._members[movable]]
        # By source, then voter by voter.
        self._columns = movable[np.argsort(source, kind="stable")]
        self._starts = np.append(0, np.cumsum(np.bincount(source, minlength=len(labels.sources))))

    def attack(self, row: NDArray[Any], first: int, most: int) -> tuple[Witness, int] | None:
        """The smallest attack that is found, of at most so many sources, and who wins then."""
        n_voters, n_classes = len(self._parts), self._labels.n_classes
        start, scores, sizes = np.empty((n_voters, n_classes)), np.empty((n_voters, n_classes)), np.empty(n_voters)
        scores_of_voters(row, self._part, self._codes, start, sizes)
        votes = start.argmax(axis=1)
        after, best = self._codes.copy(), None
        strength, taken = np.empty(self._starts.size - 1), np.empty(self._starts.size - 1, np.int64)
        for target in range(n_classes):
            if target == first:
                continue
            known = (row, self._part, self._codes, self._starts, self._columns)
            strengths(*known, start, votes, first, target, strength)
            order = np.argsort(-strength, kind="stable")
            count = collude(*known, order, -1, start, first, target, most, scores, after, taken)
            if count < 0:
                continue
            # Whoever is not needed stays out of it.
            order = taken[:count].copy()
            for j in order[::-1].tolist():
                if collude(*known, order, j, start, first, target, order.size, scores, after, taken) > 0:
                    order = order[order != j]
            count = collude(*known, order, -1, start, first, target, order.size, scores, after, taken)
            found = self._replayed(row, after, taken[:count].copy(), first)
            if found is not None:
                best, most = found, count - 1
            if most == 0:
                break
        return best

    def _replayed(
        self, row: NDArray[Any], after: NDArray[np.int64], sources: NDArray[np.int64], first: int
    ) -> tuple[Witness, int] | None:
        """An attack that works, and who wins then; sums that doubles leave open are added up exactly."""
        n_voters, n_classes = len(self._parts), self._labels.n_classes
        scores, sizes = np.empty((n_voters, n_classes)), np.empty(n_voters)
        scores_of_voters(row, self._part, after, scores, sizes)
        votes = scores.argmax(axis=1)
        second, highest = np.partition(scores, -2, axis=1)[:, -2:].T
        rounding = 2.0 * (np.diff(self._bounds) + 4) * float(np.finfo(np.float64).eps) * sizes
        for i in np.flatnonzero(highest - second <= rounding).tolist():
            own = slice(int(self._bounds[i]), int(self._bounds[i + 1]))
            votes[i] = IntegerRow(row[own], self._parts[i], np.zeros(n_classes)).winner_under(after[own])
        winner = int(np.bincount(votes, minlength=n_classes).argmax())
        changed = np.flatnonzero(after != self._codes)
        witness = Witness(self._members[changed], after[changed], sources=sources, threat=SOURCES.name)
        if winner == first or not (self._labels.space_is_fixed or classes_after(witness, self._labels).all()):
            return None
        return witness, winner

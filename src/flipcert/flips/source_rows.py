"""A block of rows whose labels are changed source by source."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.blocks import memory_budget
from flipcert.flips._jit.ladder import UNDECIDED, sums_are_exact
from flipcert.flips._jit.sources import source_power_rows, source_radius_rows
from flipcert.flips.costs import Radii
from flipcert.flips.source_attack import (
    SourceChange,
    attack_of_change,
    cheapest_change_by_sources,
    lawful_change_by_sources,
    powers_of,
    removal,
    winner_after,
)
from flipcert.flips.source_costs import total_of
from flipcert.flips.whole_rows import Rows, RowsBehind
from flipcert.labels.labels import Labels
from flipcert.labels.threats import SOURCES
from flipcert.results.witness import Witness

# Part of the memory budget for sums of cells, of which a row has two each.
_PART, _BYTES = 16, 16


class SourceRows(RowsBehind):
    """Rows as any others, whose costs count sources.

    Parameters
    ----------
    rows : Rows
        The rows, held or met tile by tile.
    labels : Labels
        Training labels, with their sources.
    offset : ndarray of shape (n_rows, n_classes)
        Label-independent part of the scores.
    """

    def __init__(self, rows: Rows, labels: Labels, offset: NDArray[np.float64]) -> None:
        super().__init__(rows)
        self._labels = labels
        self._offset = offset

    def radii(self) -> Radii:
        """Exact cost of changing the prediction of each row, in sources."""
        return self._radii_and_others()[0]

    def witnesses(self) -> list[Witness | None]:
        """Fewest sources that change the prediction of each row, with the labels they change; None if nothing does."""
        radii, others = self._radii_and_others()
        return [others[t] if t in others else self._witness(t, radii) for t in range(radii.cost.size)]

    def powers(self) -> NDArray[np.bool_]:
        """Whether each source alone changes the prediction of each row, of shape (n_rows, n_sources)."""
        n_rows, labels = self._offset.shape[0], self._labels
        powers = np.zeros((n_rows, labels.cells.n_sources), np.int64)
        for rows, sums in self._sums():
            source_power_rows(*sums, labels.cells, self._offset[rows], labels.n_labels, False, powers[rows])
        _, prediction = self.scores()
        in_doubt = powers == UNDECIDED
        if not labels.space_is_fixed:
            in_doubt[:, _holds_all_of_a_class(labels)] = True
        for t in np.flatnonzero(in_doubt.any(axis=1)).tolist():
            asked = np.flatnonzero(in_doubt[t])
            powers[t, asked] = powers_of(self.row(t), labels, self._offset[t], int(prediction[t]), asked)
        return powers == 1

    def _radii_and_others(self) -> tuple[Radii, dict[int, Witness | None]]:
        """Radii, and the attacks on rows whose cheapest change is another than in a fixed label space."""
        radii, decided = self._radii()
        for t in np.flatnonzero(~decided).tolist():
            self._decide(t, radii)
        others = {}
        for t, change in self._other_changes(radii):
            radii.cost[t], radii.target[t] = change.cost, change.winner
            others[t] = change.witness
        return radii, others

    def _witness(self, t: int, radii: Radii) -> Witness | None:
        if radii.target[t] < 0:
            return None
        known = int(radii.cost[t]), int(radii.prediction[t]), int(radii.target[t])
        return attack_of_change(self.row(t), self._labels, self._offset[t], *known)

    def _sums(self) -> Iterator[tuple[slice, tuple[NDArray[np.float64], NDArray[np.float64]]]]:
        """Sums of cells, of as many rows at a time as there is memory for."""
        n_rows, cells = self._offset.shape[0], self._labels.cells
        n_cells = cells.source.size + self._labels.n_classes
        together = max(1, memory_budget() // _PART // (_BYTES * n_cells))
        for begin in range(0, n_rows, together):
            rows = slice(begin, min(begin + together, n_rows))
            yield rows, self.cell_sums(rows, cells.of, n_cells)

    def _radii(self) -> tuple[Radii, NDArray[np.bool_]]:
        """Radii in a fixed label space as far as doubles decide them, and where they do."""
        n_rows = self._offset.shape[0]
        prediction, runner_up, cost, target = (np.zeros(n_rows, np.int64) for _ in range(4))
        radii = Radii(prediction, runner_up, cost, target, margin=np.zeros(n_rows))
        decided = np.zeros(n_rows, np.bool_)
        # Whether some label counts for a class, or is trusted and stays.
        trusted = np.bincount(self._labels.codes[~self._labels.coded.movable], minlength=self._labels.n_classes) > 0
        self._counts_for = np.tile(trusted, (n_rows, 1))
        for rows, (plus, minus) in self._sums():
            self._settle(rows, (plus, minus), False, radii, decided)
            for c, (first, last) in enumerate(pairwise(self._labels.cells.bounds.tolist())):
                self._counts_for[rows, c] |= (plus[:, first:last] > 0).any(axis=1)
        return radii, decided

    def _settle(self, rows: slice, sums: Any, exactly: bool, radii: Radii, decided: NDArray[np.bool_]) -> None:
        """Radii of some rows from the sums of their cells."""
        labels, unreachable = self._labels, SOURCES.unreachable(self._labels)
        source_radius_rows(
            *sums, labels.cells, self._offset[rows], labels.n_labels, unreachable, exactly,
            radii.prediction[rows], radii.runner_up[rows], radii.cost[rows], radii.target[rows], radii.margin[rows],
            decided[rows],
        )  # fmt: skip

    def _decide(self, t: int, radii: Radii) -> None:
        """The radius of a row that doubles with an error bound cannot decide."""
        weights, offset = self.row(t).astype(np.float64), self._offset[t]
        if sums_are_exact(weights, offset, total_of(weights, offset)):
            own, n_cells = slice(t, t + 1), self._labels.cells.source.size + self._labels.n_classes
            sums = self.cell_sums(own, self._labels.cells.of, n_cells)
            self._settle(own, sums, True, radii, np.zeros(radii.cost.size, np.bool_))
            return
        change = cheapest_change_by_sources(weights, self._labels, offset)
        radii.prediction[t], radii.runner_up[t], radii.margin[t] = change.prediction, change.runner_up, change.margin
        radii.cost[t], radii.target[t] = change.cost, change.winner

    def _other_changes(self, radii: Radii) -> Iterator[tuple[int, SourceChange]]:
        """Rows whose cheapest change is another if the label space is read from the labels, and the change.

        Nothing is cheaper than what is cheapest in a fixed label space, but for the removal of the predicted class.
        """
        if self._labels.space_is_fixed:
            return
        holders = SOURCES.to_remove(self._labels)[radii.prediction]
        removed = (holders <= radii.cost) & (holders <= SOURCES.limit(self._labels))
        for t in np.flatnonzero(removed | ~self._is_lawful(radii)).tolist():
            weights, offset = self.row(t), self._offset[t]
            if removed[t]:
                witness = removal(self._labels, int(radii.prediction[t]), int(radii.runner_up[t]))
                winner = winner_after(weights, self._labels, offset, witness)
                yield t, SourceChange(len(witness), winner, witness)
            else:
                yield t, lawful_change_by_sources(weights, self._labels, offset)

    def _is_lawful(self, radii: Radii) -> NDArray[np.bool_]:
        """Where the cheapest change surely leaves a label of the class that it lifts, and one of another class.

        No label that counts for a class is moved away from it by those who lift it, and some honest source holds a
        label of another class if there are more sources that hold one.
        """
        labels, lifted = self._labels, np.maximum(radii.target, 0)
        assert labels.sources is not None
        others = np.empty(labels.n_classes, np.int64)
        for c in range(labels.n_classes):
            trusted = np.any((labels.codes != c) & ~labels.coded.movable)
            holders = np.unique(labels.sources.codes[labels.codes != c]).size
            others[c] = SOURCES.unreachable(labels) if trusted else holders
        kept = np.take_along_axis(self._counts_for, lifted[:, None], axis=1)[:, 0]
        return (radii.target < 0) | (kept & (radii.cost < others[lifted]))


def _holds_all_of_a_class(labels: Labels) -> NDArray[np.bool_]:
    """Which sources hold all labels of some class, so that they could leave none of it."""
    assert labels.sources is not None
    alone = np.zeros(len(labels.sources), np.bool_)
    for c in np.flatnonzero(SOURCES.to_empty(labels) == 1).tolist():
        alone[labels.sources.codes[labels.codes == c][0]] = True
    # Who holds everything but one class leaves one class only.
    for c in range(labels.n_classes):
        holders = np.unique(labels.sources.codes[labels.codes != c])
        if holders.size == 1:
            alone[holders] = True
    return alone

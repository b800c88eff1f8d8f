"""A block of rows whose weights are all there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from flipcert.flips._jit.sources import add_cells
from flipcert.flips.attack import change_predictions
from flipcert.flips.costs import Radii, radius_block, score_block
from flipcert.labels.labels import Labels
from flipcert.results.witness import Witness


class Rows(Protocol):
    """What can be asked about a block of rows, held (``WholeRows``) or met tile by tile (``StreamedRows``)."""

    @property
    def weights(self) -> NDArray[Any] | None:
        """All weights, if they are held."""

    def scores(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Scores (rounded) and predictions (exact)."""

    def radii(self) -> Radii:
        """Exact cost of changing the prediction of each row."""

    def witnesses(self) -> list[Witness | None]:
        """Fewest flips that change the prediction of each row; None if nothing does."""

    def cell_sums(
        self, rows: slice, of: NDArray[np.int64], n_cells: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Positive weights and magnitudes of negative ones of some rows, added up by the cell that each label is in."""

    def at(self, samples: NDArray[np.int64]) -> NDArray[Any]:
        """Weights of some training samples."""

    def row(self, t: int) -> NDArray[Any]:
        """All weights of one row."""


@dataclass(frozen=True)
class WholeRows:
    """Weights, training labels and offsets of a block of rows."""

    weights: NDArray[Any]
    labels: Labels
    offset: NDArray[np.float64]

    def scores(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Scores (rounded) and predictions (exact)."""
        return score_block(self.weights, self.labels, self.offset)

    def radii(self) -> Radii:
        """Exact cost of changing the prediction of each row."""
        return radius_block(self.weights, self.labels, self.offset)

    def witnesses(self) -> list[Witness | None]:
        """Fewest flips that change the prediction of each row; None if nothing does."""
        return change_predictions(self.weights, self.labels, self.offset)

    def cell_sums(
        self, rows: slice, of: NDArray[np.int64], n_cells: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Positive weights and magnitudes of negative ones of some rows, added up by the cell that each label is in."""
        own = self.weights[rows]
        plus, minus = (np.zeros((own.shape[0], n_cells)) for _ in range(2))
        add_cells(own, of, plus, minus)
        return plus, minus

    def at(self, samples: NDArray[np.int64]) -> NDArray[Any]:
        """Weights of some training samples."""
        return self.weights[:, samples]

    def row(self, t: int) -> NDArray[Any]:
        """All weights of one row."""
        return self.weights[t]


class RowsBehind:
    """What is the same for rows whatever an attacker does: answered by the rows behind."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    @property
    def weights(self) -> NDArray[Any] | None:
        """All weights, if they are held."""
        return self._rows.weights

    def scores(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Scores (rounded) and predictions (exact), as nothing is changed."""
        return self._rows.scores()

    def cell_sums(
        self, rows: slice, of: NDArray[np.int64], n_cells: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Positive weights and magnitudes of negative ones of some rows, added up by the cell that each label is in."""
        return self._rows.cell_sums(rows, of, n_cells)

    def at(self, samples: NDArray[np.int64]) -> NDArray[Any]:
        """Weights of some training samples."""
        return self._rows.at(samples)

    def row(self, t: int) -> NDArray[Any]:
        """All weights of one row."""
        return self._rows.row(t)

"""What sources of labels do to points of a label-linear model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.collective._jit.source_prices import add_source_prices, source_coefficients, source_gains
from flipcert.collective.cuts import Cuts
from flipcert.collective.effects import Columns, Effects, Seen, out_of_reach, places_in
from flipcert.collective.points import LinearPoints
from flipcert.labels.threats import SOURCES


class SourceEffects(Effects):
    """Units are sources, without options: each does whatever is worst for each point. The last rival: the class goes.

    A source has one labelling for all points, so it does less than that; but what all its labels do together to one
    point is known exactly.
    """

    def __init__(self, points: LinearPoints) -> None:
        labels = points.labels
        cells, sources = labels.cells, labels.sources
        assert sources is not None, "refused otherwise"
        n_points, n_classes = points.n_points, labels.n_classes
        self.n_units, self.n_options = cells.n_sources, 1
        gains = np.zeros((n_points, self.n_units, n_classes + 1))
        self.costs = np.full((n_points, n_classes + 1), SOURCES.unreachable(labels))

        def of_block(rows: slice, weights: NDArray[Any], offset: NDArray[np.float64]) -> None:
            own, costs = np.empty((weights.shape[0], self.n_units, n_classes)), np.empty(offset.shape, np.int64)
            source_gains(
                weights, cells, offset, points.prediction[rows], SOURCES.unreachable(labels), own, costs
            )  # fmt: skip
            gains[rows, :, :n_classes], self.costs[rows, :n_classes] = own, costs

        for _ in points.each_with_offset(of_block):
            pass
        removal = SOURCES.to_remove(labels)[points.prediction]
        self.gaps = np.column_stack([points.gaps, removal.astype(np.float64)])
        self.costs[:, -1] = removal
        self.costs = out_of_reach(self.costs, SOURCES.limit(labels))
        holds = np.zeros((self.n_units, n_classes), np.bool_)
        holds[sources.codes[labels.coded.movable], labels.codes[labels.coded.movable]] = True
        gains[:, :, -1] = holds[:, points.prediction].T
        self._gains = gains

    @staticmethod
    def size(points: LinearPoints) -> int:
        """Bytes that it takes to hold what all sources do to all points."""
        return 8 * points.n_points * SOURCES.limit(points.labels) * (points.labels.n_classes + 1)

    def prices(self, asked: Sequence[tuple[Cuts, NDArray[np.float64]]]) -> list[NDArray[np.float64]]:
        """One pass over all sources."""
        totals = []
        for cuts, shares in asked:
            prices = np.zeros(self.n_units)
            add_source_prices(self._gains, cuts.first_of(self.n_points), cuts.arrays(), shares, prices)
            totals.append(prices[:, None])
        return totals

    def seen(self, units: NDArray[np.int64]) -> Seen:
        """What some sources do."""
        return _SeenSources(units, self._gains[:, units])


class _SeenSources(Seen):
    def __init__(self, units: NDArray[np.int64], gains: NDArray[np.float64]) -> None:
        self.units, self._gains = units, gains

    def coefficients(self, cuts: Cuts, columns: Columns) -> NDArray[np.float64]:
        """Coefficients of sources in cuts."""
        out = np.empty((cuts.point.size, columns.unit.size))
        arrays = cuts._replace(left_out=places_in(self.units, cuts.left_out)).arrays()
        source_coefficients(self._gains, np.searchsorted(self.units, columns.unit), cuts.point, arrays, out)
        return out

    def most(self, point: int, places: NDArray[np.int64]) -> NDArray[np.float64]:
        """The most that a source closes of each gap."""
        return self._gains[point, places]

"""What relabellings do to points of a label-linear model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.collective._jit.prices import add_prices, coefficients
from flipcert.collective.cuts import Cuts
from flipcert.collective.effects import Columns, Effects, Seen, out_of_reach, places_in
from flipcert.collective.points import LinearPoints
from flipcert.labels.labels import Labels
from flipcert.labels.threats import FLIPS


class LabelEffects(Effects):
    """Units are training labels, options the classes they may get. The last rival: that the class itself goes."""

    def __init__(self, points: LinearPoints) -> None:
        self._points = points
        labels = self._labels = points.labels
        removal = FLIPS.to_remove(labels)[points.prediction]
        self.gaps = np.column_stack([points.gaps, removal.astype(np.float64)])
        self.costs = out_of_reach(np.column_stack([points.costs, removal]), labels.n_labels)
        self.n_units, self.n_options = labels.n_labels, labels.n_classes

    def prices(self, asked: Sequence[tuple[Cuts, NDArray[np.float64]]]) -> list[NDArray[np.float64]]:
        """One pass over all weights for all that is asked."""
        prediction, coded = self._points.prediction, self._labels.coded
        prepared = [(cuts.arrays(), cuts.first_of(self.n_points), shares) for cuts, shares in asked]

        def of_block(points: slice, weights: NDArray[Any]) -> list[NDArray[np.float64]]:
            totals = []
            for cuts, first, shares in prepared:
                prices, common = np.zeros((self.n_units, self.n_options)), np.zeros(self.n_units)
                own = first[points.start : points.stop + 1]
                add_prices(weights, coded, prediction[points], own, cuts, shares, prices, common)
                totals.append(prices + common[:, None])
            return totals

        totals = [np.zeros((self.n_units, self.n_options)) for _ in asked]
        for block in self._points.each(of_block):
            for total, own in zip(totals, block, strict=True):
                total += own
        for total in totals:
            # That a label stays as it is, is no choice.
            total[np.arange(self.n_units), self._labels.codes] = 0.0
        return totals

    def seen(self, units: NDArray[np.int64]) -> Seen:
        """Weights of some labels."""
        return _SeenLabels(units, self._points.columns(units), self._points.prediction, self._labels)


class _SeenLabels(Seen):
    def __init__(
        self, units: NDArray[np.int64], weights: NDArray[np.float64], prediction: NDArray[np.int64], labels: Labels
    ) -> None:
        self.units, self._weights, self._prediction = units, weights, prediction
        self._codes, self._n_classes = labels.codes[units], labels.n_classes

    def coefficients(self, cuts: Cuts, columns: Columns) -> NDArray[np.float64]:
        """Coefficients of relabellings in cuts."""
        out = np.empty((cuts.point.size, columns.unit.size))
        arrays = cuts._replace(left_out=places_in(self.units, cuts.left_out)).arrays()
        sample = np.searchsorted(self.units, columns.unit)
        coefficients(self._weights, self._codes, columns.option, sample, self._prediction, cuts.point, arrays, out)
        return out

    def most(self, point: int, places: NDArray[np.int64]) -> NDArray[np.float64]:
        """The most that a label closes of each gap."""
        weight, code, first = (
            self._weights[point, places][:, None],
            self._codes[places][:, None],
            self._prediction[point],
        )
        rivals = np.arange(self._n_classes)
        twice = np.where(code == first, weight, np.where(code == rivals, -weight, 0.0))
        gain = np.where((code == first) | (code == rivals), 2.0 * np.maximum(twice, 0.0), np.abs(weight))
        return np.column_stack([gain, (code == first).astype(np.float64)])

"""What relabellings do to votes of label-linear voters: the same flips serve all points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.collective._jit.ballots import add_ballot_prices, ballot_coefficients
from flipcert.collective.cuts import Cuts
from flipcert.collective.effects import Columns, Effects, Seen, places_in
from flipcert.collective.vote_effects import VoteEffects
from flipcert.collective.vote_points import VotePoints


class BallotEffects(Effects):
    """Units are training labels in the order of the voters, options the classes they may get.

    A vote may be moved in part, by the share of its gap that flips close: more than any attack does.

    Parameters
    ----------
    points : VotePoints
        Points and the weights of all voters.
    turns : VoteEffects
        Who wins, what rivals have to close, and what that costs.
    """

    def __init__(self, points: VotePoints, turns: VoteEffects) -> None:
        self._points, self._winner = points, turns.winner
        self.gaps, self.costs = turns.gaps, turns.costs
        self.n_units, self.n_options = points.labels.n_labels, points.labels.n_classes

    def prices(self, asked: Sequence[tuple[Cuts, NDArray[np.float64]]]) -> list[NDArray[np.float64]]:
        """One pass over all weights for all that is asked."""
        own = self._points
        prepared = [(cuts.arrays(), cuts.first_of(self.n_points), shares) for cuts, shares in asked]

        def of_block(points: slice, weights: NDArray[Any]) -> list[NDArray[np.float64]]:
            totals = []
            for cuts, first, shares in prepared:
                prices, common = np.zeros((self.n_units, self.n_options)), np.zeros(self.n_units)
                add_ballot_prices(
                    weights, own.labels.coded, own.bounds, own.votes[points], own.gaps[points], self._winner[points],
                    first[points.start : points.stop + 1], cuts, shares, prices, common,
                )  # fmt: skip
                totals.append(prices + common[:, None])
            return totals

        totals = [np.zeros((self.n_units, self.n_options)) for _ in asked]
        for block in own.each(of_block):
            for total, prices in zip(totals, block, strict=True):
                total += prices
        for total in totals:
            # That a label stays as it is, is no choice.
            total[np.arange(self.n_units), own.labels.codes] = 0.0
        return totals

    def seen(self, units: NDArray[np.int64]) -> Seen:
        """Weights of some labels."""
        return _SeenLabels(units, self._points, self._winner)


class _SeenLabels(Seen):
    def __init__(self, units: NDArray[np.int64], points: VotePoints, winner: NDArray[np.int64]) -> None:
        self.units, self._points, self._winner = units, points, winner
        self._weights = points.columns(units)
        self._codes, self._voter = points.labels.codes[units], points.voter[units]

    def coefficients(self, cuts: Cuts, columns: Columns) -> NDArray[np.float64]:
        """Coefficients of relabellings in cuts."""
        out = np.empty((cuts.point.size, columns.unit.size))
        arrays = cuts._replace(left_out=places_in(self.units, cuts.left_out)).arrays()
        sample = np.searchsorted(self.units, columns.unit)
        ballot_coefficients(
            self._weights, self._codes, self._voter, columns.option, sample,
            self._points.votes, self._points.gaps, self._winner, cuts.point, arrays, out,
        )  # fmt: skip
        return out

    def most(self, point: int, places: NDArray[np.int64]) -> NDArray[np.float64]:
        """The most that a label closes of each gap between the winner and a rival."""
        voter, winner = self._voter[places], self._winner[point]
        weight, code = self._weights[point, places][:, None], self._codes[places][:, None]
        vote, gaps = self._points.votes[point, voter][:, None], self._points.gaps[point, voter]
        rivals = np.arange(gaps.shape[1])
        signed = np.where(code == vote, weight, np.where(code == rivals, -weight, 0.0))
        gain = np.where((code == vote) | (code == rivals), 2.0 * np.maximum(signed, 0.0), np.abs(weight))
        moved = np.where(gain > 0.0, np.minimum(1.0, gain / gaps * (1.0 + 2.0**-50)), 0.0)
        moved[vote == rivals] = 0.0
        for_winner = np.maximum(2.0 * moved, moved.max(axis=1, keepdims=True))
        return np.where(vote == winner, for_winner, moved)

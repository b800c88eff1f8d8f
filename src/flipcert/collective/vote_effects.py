"""What it does to a vote that voters are turned, if all that is known is how many flips each turn takes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from flipcert.collective._jit.turns import add_turn_prices, most_within, turn_coefficients, turning_points
from flipcert.collective.cuts import Cuts
from flipcert.collective.effects import Columns, Effects, Seen, places_in


class VoteEffects(Effects):
    """Units are voters, option k that k + 1 flips (or other units of a threat) go to one.

    So many flips turn a voter on all points on which they could turn it on some: more than any attack does. Where
    nothing is known of voters, one flip turns them to any class.

    Parameters
    ----------
    votes : ndarray of int64 of shape (n_points, n_voters)
        Votes.
    costs : ndarray of int64 of shape (n_points, n_voters, n_classes)
        Flips that turn each voter to each class, at least.
    budget : int
        Flips in all; what takes more is out of reach.

    Attributes
    ----------
    winner : ndarray of int64 of shape (n_points,)
        The class with most votes.
    """

    def __init__(self, votes: NDArray[np.int64], costs: NDArray[np.int64], budget: int) -> None:
        within = np.where(costs <= budget, costs, 0)
        self.n_units, self.n_options = votes.shape[1], max(1, int(within.max(initial=1)))
        n_points, n_classes = votes.shape[0], costs.shape[2]
        never = max(budget, self.n_options) + 1
        self.winner = np.empty(n_points, np.int64)
        self.gaps = np.empty((n_points, n_classes))
        self.costs = np.empty((n_points, n_classes), np.int64)
        self._first, self._second = (np.full(costs.shape, never, np.int32) for _ in range(2))
        turning_points(votes, costs, never, self.winner, self.gaps, self.costs, self._first, self._second)

    @property
    def spent(self) -> NDArray[np.int64]:
        """One more than the number of the option."""
        return np.arange(1, self.n_options + 1)

    def prices(self, asked: Sequence[tuple[Cuts, NDArray[np.float64]]]) -> list[NDArray[np.float64]]:
        """One pass over all voters for each that is asked."""
        totals = []
        for cuts, shares in asked:
            prices = np.zeros((self.n_units, self.n_options))
            add_turn_prices(self._first, self._second, cuts.point, cuts.arrays(), shares, prices)
            totals.append(prices)
        return totals

    def worth(self, prices: NDArray[np.float64], budget: int, n_cuts: int) -> float:
        """The most that voters are worth on which the budget is spent, rounded up."""
        most = most_within(prices, min(budget, prices.size))
        return float(most) * (1.0 + (n_cuts + self.n_units + 32) * 2.0**-52) + 1e-300

    def seen(self, units: NDArray[np.int64]) -> Seen:
        """What some voters do."""
        return _SeenVoters(units, self._first[:, units], self._second[:, units], self.n_options)


class _SeenVoters(Seen):
    def __init__(
        self, units: NDArray[np.int64], first: NDArray[np.int32], second: NDArray[np.int32], n_options: int
    ) -> None:
        self.units, self._first, self._second, self._n_options = units, first, second, n_options

    def coefficients(self, cuts: Cuts, columns: Columns) -> NDArray[np.float64]:
        """Coefficients of turned voters in cuts."""
        out = np.empty((cuts.point.size, columns.unit.size))
        arrays = cuts._replace(left_out=places_in(self.units, cuts.left_out)).arrays()
        voter = np.searchsorted(self.units, columns.unit)
        turn_coefficients(self._first, self._second, voter, columns.option + 1, cuts.point, arrays, out)
        return out

    def most(self, point: int, places: NDArray[np.int64]) -> NDArray[np.float64]:
        """The most that a voter closes of each gap."""
        within = [own[point, places] <= self._n_options for own in (self._first, self._second)]
        return within[0].astype(np.float64) + within[1]

"""What units of an attack do to points: the interface of the linear program that bounds one attack on all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from flipcert.collective.cuts import Cuts


class Columns(NamedTuple):
    """Choices of an attacker, in ascending order: which unit, and what becomes of it."""

    unit: NDArray[np.int64]
    option: NDArray[np.int64]


class Effects(ABC):
    """Points, rivals of their predictions, and units that close the gaps between these.

    Attributes
    ----------
    gaps : ndarray of float64 of shape (n_points, n_rivals)
        What has to be closed, rounded down.
    costs : ndarray of int64 of shape (n_points, n_rivals)
        Units that it takes to make a rival win, at least.
    n_units, n_options : int
        How many things an attacker may change, and what each may become.
    """

    gaps: NDArray[np.float64]
    costs: NDArray[np.int64]
    n_units: int
    n_options: int

    @property
    def n_points(self) -> int:
        """Number of points."""
        return self.gaps.shape[0]

    @property
    def spent(self) -> NDArray[np.int64]:
        """What each option takes of the budget, in ascending order: here, any of them one."""
        return np.ones(self.n_options, np.int64)

    @abstractmethod
    def prices(self, asked: Sequence[tuple[Cuts, NDArray[np.float64]]]) -> list[NDArray[np.float64]]:
        """For each set of cuts with a share of each: shares times coefficients, added up for every choice.

        One pass over all units, of shape (n_units, n_options) each. Every sum may be off by a share
        ``(n_cuts + 8) * 2**-52`` of itself.
        """

    def worth(self, prices: NDArray[np.float64], budget: int, n_cuts: int) -> float:
        """The most that an attack can be worth at these prices of so many cuts, rounded up: here, one price a unit."""
        best = prices.max(axis=1)
        top = np.partition(best, -budget)[-budget:] if budget < best.size else best
        return float(top.sum()) * (1.0 + (n_cuts + budget + 32) * 2.0**-52) + 1e-300

    @abstractmethod
    def seen(self, units: NDArray[np.int64]) -> Seen:
        """What some units do, kept at hand."""


class Seen(ABC):
    """What some units, which ascend, do to all points."""

    units: NDArray[np.int64]

    @abstractmethod
    def coefficients(self, cuts: Cuts, columns: Columns) -> NDArray[np.float64]:
        """Coefficients of choices of these units in cuts, of shape (n_cuts, n_columns); they need no rounding."""

    @abstractmethod
    def most(self, point: int, places: NDArray[np.int64]) -> NDArray[np.float64]:
        """The most that units close of each gap of a point, whatever becomes of them: (n_places, n_rivals)."""


def out_of_reach(costs: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    """Costs, of which those above the limit are beyond any budget, however large."""
    return np.where(costs > limit, np.iinfo(np.int64).max, costs)


def places_in(all_units: NDArray[np.int64], left_out: list[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """Where units that cuts leave out are among some units; those that are not there are dropped."""
    found = []
    for own in left_out:
        place = np.searchsorted(all_units, own)
        inside = place < all_units.size
        place, own = place[inside], own[inside]
        found.append(place[all_units[place] == own])
    return found

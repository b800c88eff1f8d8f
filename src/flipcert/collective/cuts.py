"""Cuts: what every attack that changes a point has to satisfy, as one row of a linear program."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class CutArrays(NamedTuple):
    """Cuts for compiled code: of each rival a floor and an inverse, and the units that are left out, ascending."""

    floor: NDArray[np.float64]
    inverse: NDArray[np.float64]
    first_left_out: NDArray[np.int64]
    left_out: NDArray[np.int64]


class Cuts(NamedTuple):
    """Rows of the program: cut j is about point ``point[j]``, which ascend.

    A pair of the predicted class and a rival that at most r units turn round has gains R of these units that add up
    to the gap D. For any floor q and any set of units that is left out,

        sum over the other units of max(R - q, 0)  >=  D - r q - sum over those left out of max(R_max - q, 0)  =: D',

    so with D' > 0 for every rival, the largest over rivals of ``min(1, max(R - q, 0) / D')`` adds up to at least one
    over the units of an attack. ``inverse`` is 1 / D', rounded up; 0 for rivals that so few units cannot make win.
    """

    point: NDArray[np.int64]
    floor: NDArray[np.float64]
    inverse: NDArray[np.float64]
    left_out: list[NDArray[np.int64]]

    def arrays(self) -> CutArrays:
        """The same for compiled code."""
        sizes = [own.size for own in self.left_out]
        together = np.concatenate(self.left_out) if sizes else np.empty(0, np.int64)
        return CutArrays(self.floor, self.inverse, np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]), together)

    def first_of(self, n_points: int) -> NDArray[np.int64]:
        """Where the cuts of each point begin, and the last end."""
        return np.searchsorted(self.point, np.arange(n_points + 1))

    def joined(self, other: Cuts) -> Cuts:
        """These and others, in the order of their points."""
        point = np.concatenate([self.point, other.point])
        order = np.argsort(point, kind="stable")
        both = self.left_out + other.left_out
        return Cuts(
            point[order],
            np.concatenate([self.floor, other.floor])[order],
            np.concatenate([self.inverse, other.inverse])[order],
            [both[place] for place in order.tolist()],
        )

    def only(self, kept: NDArray[np.bool_]) -> Cuts:
        """Some of the cuts."""
        left_out = [own for own, keep in zip(self.left_out, kept.tolist(), strict=True) if keep]
        return Cuts(self.point[kept], self.floor[kept], self.inverse[kept], left_out)


def cuts_of(
    point: NDArray[np.int64],
    gaps: NDArray[np.float64],
    active: NDArray[np.bool_],
    budget: int,
    theta: NDArray[np.float64],
    left_out: list[NDArray[np.int64]],
    of_left_out: NDArray[np.float64] | None = None,
) -> Cuts:
    """Cuts with floors ``theta * gap / budget``; gaps of each cut's point are rounded down.

    ``of_left_out`` is, for every rival, an upper bound on what the units left out close above the floor.
    """
    floor = np.where(active, theta[:, None] * gaps / max(1, budget), 0.0)
    spent = budget * floor + (0.0 if of_left_out is None else of_left_out)
    # Four roundings, each of at most a unit roundoff of the gap, on the safe side.
    rest = (gaps - spent) * (1.0 - 2.0**-50) - gaps * 2.0**-50
    with np.errstate(divide="ignore", over="ignore"):
        inverse = np.where(active, np.nextafter(1.0 / np.maximum(rest, 0.0), np.inf), 0.0)
    return Cuts(point, floor, inverse, left_out)

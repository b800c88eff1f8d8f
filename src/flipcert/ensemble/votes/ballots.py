"""All votes on a block of test points, with what is known about changing each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flipcert.labels.labels import Labels
from flipcert.labels.threats import FLIPS, REPLACEMENTS, Threat


@dataclass
class Ballots:
    """Votes of all base classifiers.

    Attributes
    ----------
    votes : ndarray of shape (rows, voters)
    lower, upper : ndarray of shape (rows, voters, classes)
        Bounds on the units that turn a voter to a class; ``unreachable`` where nothing does or no attack is known. The
        lower ones of replacements count the rows that come and those that go, which may do so anywhere.
    can_turn : ndarray of bool of shape (voters,)
        Whether an attacker can reach a voter at all.
    labels : Labels
        All training labels.
    steady : ndarray of bool of shape (rows,)
        Whether voters whose labels are not touched vote as before even if a class is removed from the label space.
    sensitive : ndarray of bool of shape (rows,)
        Whether rounding might change a vote or a cost.
    threat : Threat
        What costs count.
    """

    votes: NDArray[np.int64]
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    can_turn: NDArray[np.bool_]
    labels: Labels
    steady: NDArray[np.bool_]
    sensitive: NDArray[np.bool_]
    threat: Threat = FLIPS

    def in_units(self, costs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Lower costs of changing a vote, in units of the threat."""
        return in_units(costs, self.threat)

    @property
    def unreachable(self) -> int:
        """The cost that stands for 'no attack does it'."""
        return self.threat.unreachable(self.labels)


def in_units(costs: NDArray[np.int64], threat: Threat) -> NDArray[np.int64]:
    """Units of a threat that so many steps take, each of which reaches one voter: a replacement makes two."""
    return (costs + 1) // 2 if threat is REPLACEMENTS else costs

"""All votes on a block of test points, with what is known about changing each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flipcert.labels.labels import Labels
from flipcert.labels.threats import FLIPS, Threat


@dataclass
class Ballots:
    """Votes of all base classifiers.

    Attributes
    ----------
    votes : ndarray of shape (rows, voters)
    lower, upper : ndarray of shape (rows, voters, classes)
        Bounds on the flips that turn a voter to a class; ``unreachable`` where nothing does or no attack is known.
    can_turn : ndarray of bool of shape (voters,)
        Whether a voter has a label that can be flipped.
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

    @property
    def unreachable(self) -> int:
        """The cost that stands for 'no attack does it'."""
        return self.threat.unreachable(self.labels)

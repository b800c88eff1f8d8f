"""What a vote is about: the labels behind it, and what an attacker may do to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from flipcert.labels.labels import Labels
from flipcert.labels.threats import Threat


class AboutLabels(Protocol):
    """Facts that decide what a cost found in a fixed label space is worth; those of ``Poll``."""

    labels: Labels
    steady: NDArray[np.bool_]
    sensitive: NDArray[np.bool_]
    threat: Threat

    @property
    def unreachable(self) -> int:
        """The cost that stands for 'no attack does it'."""


@dataclass
class Poll:
    """A vote on a block of test points.

    Attributes
    ----------
    labels : Labels
        All training labels.
    steady : ndarray of bool of shape (rows,)
        Whether voters whose labels are not touched vote as before even if a class is removed from the label space.
    sensitive : ndarray of bool of shape (rows,)
        Whether rounding might change a vote.
    threat : Threat
        What costs count.
    """

    labels: Labels
    steady: NDArray[np.bool_]
    sensitive: NDArray[np.bool_]
    threat: Threat

    @property
    def unreachable(self) -> int:
        """The cost that stands for 'no attack does it'."""
        return self.threat.unreachable(self.labels)

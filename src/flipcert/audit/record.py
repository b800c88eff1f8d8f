"""A random check that was made: how many labels were drawn and looked at, and what that proves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.audit.random_check import wrong_labels_at_most


@dataclass(frozen=True)
class RandomCheck:
    """A random check, and what it proves.

    Attributes
    ----------
    n_labels : int
        Number of labels that it was drawn from.
    n_trusted : int
        Number of labels that were trusted before; they were not drawn, and are taken to be right.
    n_drawn : int
        Number of labels that were drawn.
    n_checked : int
        Number of those that were looked at: the first ones of the draw.
    n_wrong : int
        Number of those that turned out wrong.
    n_batches : int
        In how many goes they were drawn; before all but the first, results were known.
    confidence : float
        Probability over the draw with which the bound holds.
    peeked : bool
        Whether it was not settled before the first look how many labels to check.
    seed : int
        What the draw was made from.
    """

    n_labels: int
    n_trusted: int
    n_drawn: int
    n_checked: int
    n_wrong: int
    n_batches: int
    confidence: float
    peeked: bool
    seed: int

    @cached_property
    def at_most(self) -> int:
        """How many of the labels were wrong at most, those that were found included."""
        return wrong_labels_at_most(self.n_labels, self.n_checked, self.n_wrong, self.confidence, peeking=self.peeked)

    @property
    def remaining(self) -> int:
        """How many wrong labels remain at most, once those that were found are corrected."""
        return self.at_most - self.n_wrong

    def described(self) -> dict[str, Any]:
        """The check in plain values, with what it proves."""
        return {**asdict(self), "wrong_at_most": self.at_most, "remaining_at_most": self.remaining}

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> RandomCheck:
        """The check that was described so."""
        return cls(**{name: described[name] for name in cls.__dataclass_fields__})


def draw_order(n_labels: int, seed: int) -> NDArray[np.int64]:
    """All labels in a random order: who checks m of them takes the first m, and who goes on, the next.

    Raw bits of a generator are the same in every version of NumPy and on every machine, and so is their order.
    """
    return np.argsort(np.random.PCG64(seed).random_raw(n_labels), kind="stable").astype(np.int64)

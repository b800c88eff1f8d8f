"""Rows of which only the weights that matter are held: scores come from all of them, the ladder from those chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.flips._jit.ladder import COUNT, DEEPEST, FLOOR, INDEX, new_ladder
from flipcert.flips._jit.select import build_chosen
from flipcert.flips._jit.stream import LOWEST
from flipcert.flips.rows import Integers, Row
from flipcert.labels.labels import Coded, Labels


@dataclass(frozen=True)
class Chosen:
    """The movable weights of a row above its floors: ``single``, and half of it where they may count twice.

    Those are the positive weights of class ``first`` and all negative ones. Zero chooses all.
    """

    samples: NDArray[np.int64]
    values: NDArray[Any]
    first: int
    single: float

    def values_of(self, samples: NDArray[np.int64]) -> NDArray[Any]:
        """Weights of samples that are among the chosen."""
        return self.values[np.searchsorted(self.samples, samples)]


@dataclass(frozen=True)
class ExactSums:
    """Exact scores of a row, in units of 2**LOWEST, and whether sums of its weights are exact as doubles already."""

    scores: list[int]
    fit_doubles: bool


class ChosenDoubles(Row):
    """Chosen weights as they are stored; comparisons closer than ``slack`` stay undecided."""

    def __init__(self, chosen: Chosen, labels: Labels, scores: NDArray[np.float64], slack: float) -> None:
        self.labels = labels
        self.scores = scores
        self.slack = self.rounding = slack
        size = chosen.samples.size
        coded = Coded(labels.coded.codes[chosen.samples], np.ones(size, np.bool_), False)
        self.ladder = new_ladder(size, labels.n_classes)
        build_chosen(self.ladder, chosen.values, coded, chosen.first, chosen.single, labels.n_classes)
        index = self.ladder.rungs[INDEX, : self.ladder.rungs[COUNT, 0]]
        index[:] = chosen.samples[index]


class ChosenIntegers(Integers):
    """Chosen weights in integers."""

    def __init__(self, chosen: Chosen, labels: Labels, exact: ExactSums) -> None:
        self.labels = labels
        weights = [as_fixed(value) for value in chosen.values.tolist()]
        # Small numbers are quicker to work with.
        shift = min((_trailing_zeros(number) for number in (*weights, *exact.scores) if number), default=0)
        self._exponent = LOWEST + shift
        self.scores = np.array([score >> shift for score in exact.scores], dtype=object)
        codes = labels.codes[chosen.samples].tolist()
        self._climb([weight >> shift for weight in weights], codes, chosen.samples.tolist())
        # Rounded up, so that no weight that is missing is larger.
        once, twice = (-(-as_fixed(floor) >> shift) for floor in (chosen.single, chosen.single / 2.0))
        groups = np.arange(2 * labels.n_classes)
        counts_twice = (groups == 2 * chosen.first) | (groups % 2 == 1)
        self.ladder.numbers[FLOOR, : groups.size] = [twice if own else once for own in counts_twice]
        self.ladder.numbers[DEEPEST, 0] = once


def as_fixed(number: float) -> int:
    """A finite double in units of 2**LOWEST.

    >>> as_fixed(-1.5) == -3 * 2**1125
    True
    """
    numerator, denominator = number.as_integer_ratio()
    return (numerator << -LOWEST) // denominator


def _trailing_zeros(number: int) -> int:
    return (number & -number).bit_length() - 1

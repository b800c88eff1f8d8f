"""One row of weights, in doubles or in integers, for work that goes row by row.

Doubles come first; what they cannot decide, integers do. Every double is an integer times a power of two, so a row of
weights becomes a row of Python integers by one common power of two, and all sums are exact. The algorithms are the
compiled ones, run by the interpreter: one source, two arithmetics, and no second implementation that could disagree.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.magnitude import refuse_overflow
from flipcert.engine.rounding import quantum
from flipcert.flips._jit.ladder import (
    CHOSEN,
    COUNT,
    GROUP,
    INDEX,
    NEW_CLASS,
    UNDECIDED,
    VALUE,
    Ladder,
    index_groups,
    leader,
    new_ladder,
    rounding_slack,
    runner_up,
    sums_are_exact,
)
from flipcert.flips._jit.reach import cheapest_change, row_costs
from flipcert.flips._jit.select import build, score_row
from flipcert.labels.labels import Labels
from flipcert.results.witness import Witness


@cache
def interpreted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the Python source of a compiled function, with the compiled functions that it calls interpreted too."""
    plain = getattr(function, "py_func", function)
    namespace = dict(plain.__globals__)
    for name in plain.__code__.co_names:
        if hasattr(namespace.get(name), "py_func"):
            namespace[name] = interpreted(namespace[name])
    return types.FunctionType(plain.__code__, namespace, plain.__name__, plain.__defaults__, plain.__closure__)


def as_integers(numbers: NDArray[np.float64]) -> tuple[list[int], int]:
    """Scale doubles to integers by the largest power of two that all are multiples of; return it as an exponent.

    >>> as_integers(np.array([0.5, -0.75, 0.0]))
    ([2, -3, 0], -2)
    """
    exponent = quantum(numbers)
    mantissas, exponents = np.frexp(numbers)
    whole = (mantissas * 2.0**53).astype(np.int64)
    shifts = exponents - 53 - exponent
    return [
        int(w) << int(shift) if shift >= 0 else int(w) >> int(-shift) for w, shift in zip(whole, shifts, strict=True)
    ], exponent


def recorded(ladder: Ladder, count: int) -> Witness:
    """The first ``count`` flips that the last algorithm recorded on a ladder, most influential first."""
    chosen, new_class = ladder.rungs[CHOSEN, :count], ladder.rungs[NEW_CLASS, :count]
    order = np.argsort(chosen, kind="stable")
    return Witness(indices=ladder.rungs[INDEX, chosen[order]], labels=new_class[order])


class Row:
    """A row of weights on a whole ladder, ready to run the compiled algorithms on."""

    labels: Labels
    ladder: Ladder
    scores: NDArray[Any]
    slack: float
    rounding: float

    @property
    def has_negative(self) -> bool:
        """Whether some movable weight is negative."""
        return bool(np.any(self.ladder.rungs[GROUP, : self.ladder.rungs[COUNT, 0]] & 1))

    def call(self, algorithm: Callable[..., Any], *arguments: Any) -> Any:
        """Call a compiled algorithm in the arithmetic of this row."""
        return algorithm(*arguments)

    def run(self, algorithm: Callable[..., Any], *arguments: Any) -> Any:
        """Call an algorithm that starts with (ladder, scores) on this row."""
        return self.call(algorithm, self.ladder, self.scores, *arguments)

    @property
    def prediction(self) -> int:
        """Predicted class, or UNDECIDED."""
        return int(self.call(leader, self.scores, self.slack))

    @property
    def runner_up(self) -> int:
        """Class with the second highest score."""
        return int(self.call(runner_up, self.scores, self.prediction))

    def costs(self, kind: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]] | None:
        """Lower and upper flip costs of the given kind to every class, and the margins of the lower ones.

        None if a comparison stays undecided, of whatever class.
        """
        n_classes = self.labels.n_classes
        lower, upper = np.zeros(n_classes, np.int64), np.zeros(n_classes, np.int64)
        margin = np.zeros(n_classes, self.scores.dtype)
        first = self.prediction
        if first == UNDECIDED:
            return None
        state = self.run(
            row_costs, first, self.slack, self.rounding, self.labels.unreachable, kind, self.has_negative,
            lower, upper, margin,
        )  # fmt: skip
        return (lower, upper, np.array([self.as_float(m) for m in margin])) if state == 0 else None

    def as_float(self, number: Any) -> float:
        """A sum of this row's numbers, in the unit of the weights."""
        return float(number)

    def recorded(self, count: int) -> Witness:
        """The first ``count`` flips that the last algorithm recorded, most influential first."""
        return recorded(self.ladder, count)


class DoubleRow(Row):
    """A row as it is stored; comparisons closer than ``slack`` stay undecided."""

    def __init__(self, weights: NDArray[Any], labels: Labels, offset: NDArray[np.float64]) -> None:
        self.labels = labels
        self.scores = np.empty(labels.n_classes)
        self.ladder = new_ladder(labels.n_labels, labels.n_classes)
        total, _, _ = score_row(weights, labels.coded, offset, self.scores, self.ladder)
        build(self.ladder, weights, labels.coded, 0, np.inf, np.inf, labels.n_classes)
        self.slack = self.rounding = rounding_slack(total, labels.codes.size + labels.n_classes + 8)
        if sums_are_exact(weights, offset, total):
            self.slack = 0.0


class Integers(Row):
    """A row in Python integers, where every comparison is decided."""

    slack = 0
    rounding = 0
    _exponent: int

    def _climb(self, weights: list[int], codes: list[int], samples: list[int]) -> None:
        """Put weights on the ladder, those of given samples."""
        order = sorted((i for i, weight in enumerate(weights) if weight), key=lambda i: -abs(weights[i]))
        self.ladder = new_ladder(len(order), self.labels.n_classes, object)
        self.ladder.numbers[VALUE, : len(order)] = [abs(weights[i]) for i in order]
        self.ladder.rungs[GROUP, : len(order)] = [2 * codes[i] + (weights[i] < 0) for i in order]
        self.ladder.rungs[INDEX, : len(order)] = [samples[i] for i in order]
        self.call(index_groups, self.ladder, len(order), 2 * self.labels.n_classes)

    def call(self, algorithm: Callable[..., Any], *arguments: Any) -> Any:
        """Interpret the algorithm, so that it runs on integers."""
        return interpreted(algorithm)(*arguments)

    def cheapest_change(self) -> tuple[int, int, float]:
        """Cost of the cheapest change of prediction, the class that then wins (-1: nothing changes it), the margin."""
        cost, _, winner, margin = self.run(cheapest_change, 0, self.labels.unreachable)
        return int(cost), int(winner), self.as_float(margin)

    @property
    def lead(self) -> float:
        """By how much the predicted class is ahead of the second."""
        if self.labels.n_classes == 1:
            return np.inf
        return self.as_float(self.scores[self.prediction] - self.scores[self.runner_up])

    def as_float(self, number: Any) -> float:
        """A sum of this row's integers, in the unit of the weights; infinity stays what it is."""
        if isinstance(number, float):
            return number
        try:
            return float(Fraction(number) * Fraction(2) ** self._exponent)
        except OverflowError:
            return np.inf


class IntegerRow(Integers):
    """All weights of a row in integers, with ``others`` in the same unit."""

    def __init__(
        self, weights: NDArray[Any], labels: Labels, offset: NDArray[np.float64], others: Sequence[float] = ()
    ) -> None:
        refuse_overflow(weights)
        numbers, self._exponent = as_integers(np.concatenate([weights.astype(np.float64), offset, others]))
        self.labels = labels
        self.weights = numbers[: weights.size]
        self.offset = numbers[weights.size : weights.size + offset.size]
        self.others = numbers[weights.size + offset.size :]
        self.scores = np.array(self.scores_under(labels.codes), dtype=object)
        movable = np.flatnonzero(labels.coded.movable)
        self._climb([self.weights[i] for i in movable], labels.codes[movable].tolist(), movable.tolist())

    @property
    def movable(self) -> list[tuple[int, int, int]]:
        """Sample, class and weight of every label that can be flipped to some effect, largest weight first."""
        rungs = self.ladder.rungs[:, : self.ladder.rungs[COUNT, 0]]
        rungs = zip(rungs[INDEX].tolist(), rungs[GROUP].tolist(), strict=True)
        return [(i, group >> 1, self.weights[i]) for i, group in rungs]

    def scores_under(self, codes: NDArray[np.int64]) -> list[int]:
        """Class scores if the training labels were ``codes``."""
        scores = list(self.offset)
        for weight, c in zip(self.weights, codes, strict=True):
            scores[c] += weight
        return scores

    def winner_under(self, codes: NDArray[np.int64]) -> int:
        """Predicted class if the training labels were ``codes``."""
        scores = self.scores_under(codes)
        return scores.index(max(scores))

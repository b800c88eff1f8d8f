"""One row of weights, in doubles or in integers, for work that goes row by row.

Doubles come first; what they cannot decide, integers do. Every double is an integer times a power of two, so a row of
weights becomes a row of Python integers by one common power of two, and all sums are exact. The algorithms are the
compiled ones, run by the interpreter: one source, two arithmetics, and no second implementation that could disagree.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.rounding import quantum
from flipcert.flips._blocks import row_costs
from flipcert.flips._ladder import fill_ladder, leader, rounding_slack, runner_up, sum_scores, sums_are_exact
from flipcert.flips._rival import cheapest_rival, winner_after_pair
from flipcert.flips.labels import Labels


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


class Row:
    """A row of weights with its ladder (see ``flipcert.flips._ladder``), ready to run the compiled algorithms on."""

    labels: Labels
    value: NDArray[Any]
    group: NDArray[np.int64]
    index: NDArray[np.int64]
    scores: NDArray[Any]
    slack: float

    @property
    def size(self) -> int:
        """Number of weights that can be moved."""
        return self.value.size

    @property
    def has_negative(self) -> bool:
        """Whether some movable weight is negative."""
        return bool(np.any(self.group & 1))

    def call(self, algorithm: Callable[..., Any], *arguments: Any) -> Any:
        """Call a compiled algorithm in the arithmetic of this row."""
        return algorithm(*arguments)

    def run(self, algorithm: Callable[..., Any], *arguments: Any) -> Any:
        """Call an algorithm that starts with (value, group, size, scores) on this row."""
        return self.call(algorithm, self.value, self.group, self.size, self.scores, *arguments)

    @property
    def prediction(self) -> int:
        """Predicted class, or UNDECIDED."""
        return int(self.call(leader, self.scores, self.slack))

    @property
    def runner_up(self) -> int:
        """Class with the second highest score."""
        return int(self.call(runner_up, self.scores, self.prediction))

    def records(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Room for the flips of an attack: ladder positions and new classes."""
        return np.zeros(self.size, np.int64), np.zeros(self.size, np.int64)


class DoubleRow(Row):
    """A row as it is stored; comparisons closer than ``slack`` stay undecided."""

    def __init__(self, weights: NDArray[Any], labels: Labels, offset: NDArray[np.float64]) -> None:
        self.labels = labels
        self.scores = np.empty(labels.n_classes)
        total = sum_scores(weights, labels.codes, offset, self.scores)
        room = labels.members.size
        value, group, index = np.empty(room), np.empty(room, np.int64), np.empty(room, np.int64)
        size = fill_ladder(weights, labels.members, labels.starts, value, group, index)
        self.value, self.group, self.index = value[:size], group[:size], index[:size]
        self.slack = rounding_slack(total, labels.codes.size + labels.n_classes + 8)
        if sums_are_exact(weights, offset, total):
            self.slack = 0.0


class IntegerRow(Row):
    """A row in Python integers, where every comparison is decided."""

    slack = 0

    def __init__(self, weights: NDArray[Any], labels: Labels, offset: NDArray[np.float64]) -> None:
        numbers, self._exponent = as_integers(np.concatenate([weights.astype(np.float64), offset]))
        self.labels = labels
        self.weights = numbers[: weights.size]
        self.offset = numbers[weights.size :]
        self.scores = np.array(self.scores_under(labels.codes), dtype=object)
        rungs = [
            (abs(self.weights[i]), 2 * c + (self.weights[i] < 0), int(i))
            for c in range(labels.n_classes)
            for i in labels.members[labels.starts[c] : labels.starts[c + 1]]
            if self.weights[i] != 0
        ]
        rungs.sort(key=lambda rung: -rung[0])
        self.value = np.array([rung[0] for rung in rungs], dtype=object)
        self.group = np.array([rung[1] for rung in rungs], dtype=np.int64)
        self.index = np.array([rung[2] for rung in rungs], dtype=np.int64)

    def call(self, algorithm: Callable[..., Any], *arguments: Any) -> Any:
        """Interpret the algorithm, so that it runs on integers."""
        return interpreted(algorithm)(*arguments)

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

    def cheapest_change(self) -> tuple[int, int, float]:
        """Cost of the cheapest change of prediction, the class that then wins (-1: nothing changes it), the margin."""
        first = self.prediction
        cost, winner, room = self.run(cheapest_rival, first, 0, self.labels.unreachable)
        if winner >= 0:
            winner = self.run(winner_after_pair, winner, first, cost, 0, *self.records())
        return int(cost), int(winner), min(self.as_float(room), self.lead)

    def costs(self, kind: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Lower and upper flip costs of the given kind to every class, and the margins of the lower ones."""
        n_classes = self.labels.n_classes
        lower = np.zeros(n_classes, np.int64)
        upper = np.zeros(n_classes, np.int64)
        margin = np.zeros(n_classes, dtype=object)
        self.run(
            row_costs, self.prediction, 0, self.labels.unreachable, kind, self.has_negative,
            lower, upper, margin, *self.records(),
        )  # fmt: skip
        return lower, upper, np.array([self.as_float(m) for m in margin])

    @property
    def lead(self) -> float:
        """By how much the predicted class is ahead of the second."""
        if self.labels.n_classes == 1:
            return np.inf
        return self.as_float(self.scores[self.prediction] - self.scores[self.runner_up])

    def as_float(self, number: int | float) -> float:
        """A sum of this row's integers, in the unit of the weights; infinity stays what it is."""
        try:
            return (
                float(number) if isinstance(number, float) else float(Fraction(number) * Fraction(2) ** self._exponent)
            )
        except OverflowError:
            return np.inf

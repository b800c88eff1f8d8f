"""Two times that belong together: taken in turns in one run, so that a busy machine slows both."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Spread:
    """The median of repeated measurements, and the range of their middle half."""

    median: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Median and quartiles."""
        low, median, high = np.quantile(values, [0.25, 0.5, 0.75]).tolist()
        return cls(median, low, high, len(values))


def seconds(work: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    """Time that ``work`` takes."""
    start = clock()
    work()
    return clock() - start


def compare(
    work: Callable[[], Any],
    reference: Callable[[], Any],
    pairs: int,
    clock: Callable[[], float] = time.perf_counter,
    warm: bool = True,
    rest: float = 0.0,
) -> Spread:
    """Time of ``work`` over that of ``reference``: the median over adjacent pairs, each in the other order.

    ``rest`` are seconds before each: threads of BLAS go on looking for work for a tenth of a second, on cores that a
    short job needs.
    """
    if warm:
        work()
        reference()
    ratios = []

    def rested(job: Callable[[], Any]) -> float:
        time.sleep(rest)
        return seconds(job, clock)

    for pair in range(pairs):
        # Whoever comes first finds the caches as the other one left them: take turns.
        if pair % 2 == 0:
            ours, theirs = rested(work), rested(reference)
        else:
            theirs, ours = rested(reference), rested(work)
        ratios.append(ours / theirs)
    return Spread.of(ratios)


def compare_with_fastest(work: Callable[[], Any], references: Sequence[Callable[[], Any]], pairs: int) -> Spread:
    """Time of ``work`` over that of whichever reference is fastest just then."""
    return Spread.of([seconds(work) / min(seconds(reference) for reference in references) for _ in range(pairs)])


def sweep(
    works: Sequence[Callable[[], Any]], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> NDArray[np.float64]:
    """Times of several works, all of them in every round: shape (rounds, works)."""
    for work in works:
        work()
    return np.array([[seconds(work, clock) for work in works] for _ in range(rounds)])


def exponent(sizes: Sequence[float], times: NDArray[np.float64]) -> Spread:
    """Growth exponent: the slope of log time against log size in each round of a sweep."""
    slopes = [float(np.polyfit(np.log(sizes), np.log(row), 1)[0]) for row in times]
    return Spread.of(slopes)

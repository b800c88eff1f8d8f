"""The largest number of flips at which something is proven, in few trials."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.blocks import memory_budget

Mask = NDArray[np.bool_]
# Part of the memory budget that results for other numbers of flips may take.
_PART = 8

Answer = TypeVar("Answer")


class Kept(Generic[Answer]):
    """Results by number of flips; the oldest are given up where they would take too much memory."""

    def __init__(self, bytes_each: int) -> None:
        self._most = max(1, memory_budget() // _PART // bytes_each)
        self._results: dict[int, Answer] = {}
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        # Everything can be computed again.
        return {"_most": self._most}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= {**state, "_results": {}, "_lock": threading.Lock()}

    def get(self, flips: int, make: Callable[[int], Answer]) -> Answer:
        """The result for a number of flips, made if it is not there."""
        with self._lock:
            if flips not in self._results:
                while len(self._results) >= self._most:
                    del self._results[next(iter(self._results))]
                self._results[flips] = make(flips)
            return self._results[flips]


def raise_floor(floor: NDArray[np.int64], hope: Callable[[int, Mask], NDArray[np.int64]], limit: int) -> None:
    """Raise each entry of ``floor`` to the largest number of flips, at most ``limit``, at which something is proven.

    ``hope(flips, which)`` tries a number for all entries, or at least for those asked about. An answer below it is a
    no; any other is a proof, and says up to which number another trial might be one. Only proofs are trusted: that
    there are none above a no, or above what there is hope for, is used to save trials. From the lowest floor on, they
    double until all say no; then, between a yes and a no, half-way; above a floor that was there before, the next
    number, because mostly nothing will come of it.

    >>> floor, truth = np.array([-1, 3, 2]), np.array([6, 1, 2])
    >>> raise_floor(floor, lambda flips, which: np.where(flips <= truth, 9, -1), limit=10)
    >>> floor
    array([6, 3, 2])
    """
    failed = np.full(floor.shape, limit + 1)
    given = floor.copy()

    def attempt(flips: int) -> None:
        asked = failed - floor > 1
        most = hope(flips, asked)
        proven = most >= flips
        yes = asked & proven
        floor[yes] = np.maximum(floor[yes], flips)
        end = np.maximum(np.where(proven, most + 1, flips), floor + 1)
        failed[asked] = np.minimum(failed, end)[asked]

    flips = int(floor.min()) + 1
    while flips <= limit and np.any(failed > np.maximum(floor + 1, flips)):
        attempt(flips)
        flips = limit if flips < limit < 2 * flips else max(1, 2 * flips)
    while (still_open := failed - floor > 1).any():
        first = np.argmax(still_open)
        low, high = int(floor.flat[first]), int(failed.flat[first])
        attempt(low + 1 if low == given.flat[first] else (low + high) // 2)

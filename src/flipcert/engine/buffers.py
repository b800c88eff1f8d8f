"""Large arrays that are used again and again, within a job and from job to job.

Fresh memory has to be fetched from the system page by page, which for a block of weights can take as long as the
product that fills it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

# Bytes that are kept for the next job.
KEPT = 2**28

# Memory is given back whenever a job is forgotten, maybe while this thread is at it.
_lock = threading.RLock()
_kept: list[NDArray[np.uint8]] = []


class Buffers:
    """Lends arrays to the blocks of a job; as many exist as are in use at the same time."""

    def __init__(self) -> None:
        self._idle: list[NDArray[np.uint8]] = []

    @contextmanager
    def borrow(self, shape: tuple[int, ...], dtype: DTypeLike) -> Iterator[NDArray[Any]]:
        """An array with anything in it, until the ``with`` block ends."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        with _lock:
            source = self._idle or _kept
            memory = source.pop() if source else np.empty(0, np.uint8)
        if memory.size < size:
            memory = np.empty(size, np.uint8)
        try:
            yield memory[:size].view(dtype).reshape(shape)
        finally:
            self._idle.append(memory)

    def close(self) -> None:
        """End the job: keep some memory for the next one, give back the rest."""
        with _lock:
            free = KEPT - sum(memory.size for memory in _kept)
            while self._idle:
                memory = self._idle.pop()
                if memory.size <= free:
                    _kept.append(memory)
                    free -= memory.size

    def __del__(self) -> None:
        # In another process nobody says that the job has ended.
        self.close()

    def __reduce__(self) -> tuple[type[Buffers], tuple[()]]:
        """A copy in another process starts with what is kept there."""
        return Buffers, ()

"""Large arrays that are used again and again during a job.

A fresh array costs a page fault for every few kilobytes, which for a block of weights takes about as long as a third
of the product that fills it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


class Buffers:
    """Lends arrays of one size or another; as many exist as are in use at the same time."""

    def __init__(self) -> None:
        self._idle: list[NDArray[np.uint8]] = []

    @contextmanager
    def borrow(self, shape: tuple[int, ...], dtype: DTypeLike) -> Iterator[NDArray[Any]]:
        """An array with anything in it, until the ``with`` block ends."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        try:
            memory = self._idle.pop()
        except IndexError:
            memory = np.empty(0, np.uint8)
        if memory.size < size:
            memory = np.empty(size, np.uint8)
        try:
            yield memory[:size].view(dtype).reshape(shape)
        finally:
            self._idle.append(memory)

    def __reduce__(self) -> tuple[type[Buffers], tuple[()]]:
        """A copy in another process starts with nothing to lend."""
        return Buffers, ()

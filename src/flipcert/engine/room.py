"""Room for the working memory of kernels that need much of it for a single block."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from flipcert.engine.blocks import memory_budget


class Room:
    """Keeps what all threads take together within the memory budget: whoever finds no room waits for another to leave.

    A single one that needs more than the budget gets it, alone.
    """

    def __init__(self) -> None:
        self._change = threading.Condition()
        self._taken = 0

    @contextmanager
    def take(self, size: int) -> Iterator[None]:
        """Count so many bytes as taken until the ``with`` block ends."""
        budget = memory_budget()
        with self._change:
            self._change.wait_for(lambda: self._taken == 0 or self._taken + size <= budget)
            self._taken += size
        try:
            yield
        finally:
            with self._change:
                self._taken -= size
                self._change.notify_all()


room = Room()

"""What a long command says on standard error while it works."""

from __future__ import annotations

import time

from rich.console import Console

console = Console(stderr=True, highlight=False)
# Seconds between two lines about one step.
_PAUSE = 5.0


def say(line: str) -> None:
    """Say what is begun."""
    console.print(line, soft_wrap=True)


class Lines:
    """Says now and then how much of a step is done; called with the number of units done, and of all."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._last = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        """So many units are done."""
        if time.monotonic() - self._last > _PAUSE:
            self._last = time.monotonic()
            say(f"{self._name}: {done:,} of {total:,}")

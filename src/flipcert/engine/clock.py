"""A clock that stands still while a compiler works: time limits are about a job, not about the first call of all."""

from __future__ import annotations

import time
from functools import cache

from numba.core import event


class _Compiler(event.Listener):  # type: ignore[misc]
    """Hears of every function that is compiled, and adds up how long; those that another one calls are a part of it."""

    def __init__(self) -> None:
        self._depth = 0  # numba compiles one function at a time, so no lock is needed
        self._since = self._spent = 0.0

    def on_start(self, event: event.Event) -> None:
        if self._depth == 0:
            self._since = time.monotonic()
        self._depth += 1

    def on_end(self, event: event.Event) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._spent += time.monotonic() - self._since

    def now(self) -> float:
        return (self._since if self._depth else time.monotonic()) - self._spent


@cache
def _listening() -> _Compiler:
    compiler = _Compiler()
    event.register("numba:compile", compiler)
    return compiler


def working_time() -> float:
    """Seconds on a clock of this process that stops while functions are compiled, on whichever thread."""
    return _listening().now()

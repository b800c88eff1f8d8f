"""One line for people who wait for a compiler in an interactive session; nothing anywhere else."""

from __future__ import annotations

import builtins
import sys
import time
from typing import Any

from numba.core import event

# Seconds of compiling after which somebody who waits should know why.
_PATIENCE = 2.0
_LINE = "flipcert is compiling, the first time only; `flipcert warmup` does all of it at once, on all cores."


class _Notice(event.Listener):  # type: ignore[misc]
    """Adds up how long flipcert's functions take to compile, and says so once."""

    def __init__(self) -> None:
        self._depth, self._begin, self._waited = 0, 0.0, 0.0

    def on_start(self, event: Any) -> None:
        if self._depth == 0:
            self._begin = time.perf_counter()
        self._depth += 1

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if self._depth or not event.data["dispatcher"].py_func.__module__.startswith("flipcert."):
            return
        before, self._waited = self._waited, self._waited + time.perf_counter() - self._begin
        if before <= _PATIENCE < self._waited:
            print(_LINE, file=sys.stderr)


def tell_who_waits() -> None:
    """Tell of compiling from now on, if somebody sits in front of it."""
    if hasattr(sys, "ps1") or hasattr(builtins, "__IPYTHON__"):
        event.register("numba:compile", _Notice())

"""Who looks on while a job runs: shows how far it is, and keeps what is finished.

The library itself is silent. A caller that wants to see more, such as the command line, makes itself the watcher of
all jobs that it starts::

    with watched_by(watcher):
        model.fit(X, y).certify(X_test)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flipcert.engine.question import Question


class Watcher:
    """Looks on and does nothing; a subclass overrides what it is interested in."""

    def begin(self, total: int, unit: str) -> None:
        """A step of so many units begins."""

    def advance(self, units: int) -> None:
        """So many units of the step are done."""

    def narrowed(self, budget: int, at_most: int | None = None, at_least: int | None = None) -> None:
        """More is known of what one attack within a budget changes: at most so many points, or at least; or both."""

    def recall(self, question: Question) -> Any | None:
        """What was kept as the answer to a question about a block of rows, or None if it has to be computed."""

    def keep(self, question: Question, result: Any) -> None:
        """A block of rows is finished."""

    def notice(self, message: str) -> None:
        """Something happened that the job goes on after, such as the loss of a worker."""

    def progress(self, unit: str) -> Watcher:
        """A watcher for a job of blocks that is shown here in its own unit, and not kept."""
        return _Progress(self, unit)


class _Progress(Watcher):
    def __init__(self, watcher: Watcher, unit: str) -> None:
        self._watcher = watcher
        self._unit = unit

    def begin(self, total: int, unit: str) -> None:
        self._watcher.begin(total, f"blocks of {self._unit}" if unit == "blocks" else self._unit)

    def advance(self, units: int) -> None:
        self._watcher.advance(units)

    def narrowed(self, budget: int, at_most: int | None = None, at_least: int | None = None) -> None:
        self._watcher.narrowed(budget, at_most, at_least)

    def notice(self, message: str) -> None:
        self._watcher.notice(message)


_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watched_by(watcher: Watcher) -> Iterator[None]:
    """Let ``watcher`` look on at all jobs that are started in the ``with`` block (on this thread)."""
    before = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(before)


def current_watcher() -> Watcher:
    """Whoever looks on now."""
    return _watcher.get() or Watcher()


def counted(total: int, unit: str) -> Callable[..., None]:
    """Begin a step of so many units; call what is returned when one is done."""
    watcher = current_watcher()
    watcher.begin(total, unit)
    return lambda *_: watcher.advance(1)

"""How far a job is: a bar on a terminal, a line now and then in a log, nothing when quiet."""

from __future__ import annotations

import time
from types import TracebackType

from numba.core import event
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from flipcert.cli.console import notes
from flipcert.engine.jit import full_caches
from flipcert.report.words import between
from flipcert.runs.job import Stages

# Seconds between lines in a log.
_PAUSE = 5.0
# What numba calls its event, and what a user is told of it.
_COMPILE = "numba:compile"
_FIRST_TIME = "compiling, the first time only"


class Display(Stages):
    """Shows the stages of a job, how far each is and when it waits for a compiler, and notes how long they took.

    Parameters
    ----------
    quiet : bool
        Show nothing.
    """

    def __init__(self, quiet: bool = False) -> None:
        self.timings: dict[str, float] = {}
        self._quiet = quiet
        self._stage: tuple[str, float] | None = None
        self._task: _LogTask | _BarTask | None = None
        # What is known by now of each budget of one attack: at least, at most.
        self._known: dict[int, tuple[int, int | None]] = {}
        self._compiling = _Compiling(self)
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            _DoneColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=notes,
            transient=True,
            disable=quiet or not notes.is_terminal,
            expand=True,
        )

    def __enter__(self) -> Display:
        self._progress.start()
        event.register(_COMPILE, self._compiling)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        event.unregister(_COMPILE, self._compiling)
        self._end_stage()
        if not self._progress.disable:  # else older versions of rich would print an empty line
            self._progress.stop()
        for folder in sorted(full_caches)[:1]:
            self.notice(
                f"{folder} has no space left for compiled code, so that every command compiles it again; make room "
                "there, or let NUMBA_CACHE_DIR name another folder."
            )
        full_caches.clear()

    def stage(self, name: str) -> None:
        """A stage begins, and the one before it ends."""
        self._end_stage()
        self._stage = (name, time.perf_counter())
        self._known = {}
        if self._quiet:
            return
        self._task = _BarTask(self._progress, name) if notes.is_terminal else _LogTask(name)

    def begin(self, total: int, unit: str) -> None:
        """A step of the stage begins."""
        if self._task is not None:
            self._task.begin(total, unit)

    def advance(self, units: int) -> None:
        """Some of the step is done."""
        if self._task is not None:
            self._task.advance(units)

    def narrowed(self, budget: int, at_most: int | None = None, at_least: int | None = None) -> None:
        """More is known of what one attack on all points changes: both ends are shown as they close in."""
        least, most = self._known.get(budget, (0, None))
        least = least if at_least is None else max(least, at_least)
        most = at_most if most is None or (at_most is not None and at_most < most) else most
        self._known[budget] = (least, most)
        if self._task is not None and self._stage is not None and most is not None:
            self._task.tell(self._stage[0], f"changes {between(least, most)}")

    def notice(self, message: str) -> None:
        """A line above the bar, also in a log."""
        notes.print(message, soft_wrap=True)

    def compiling(self, begins: bool) -> None:
        """A compiler begins or ends, on whichever thread; machine code from the cache needs none."""
        if self._task is not None:
            self._task.compiling(begins)

    def _end_stage(self) -> None:
        if self._stage is not None:
            name, start = self._stage
            self.timings[name] = round(time.perf_counter() - start, 3)
            self._stage = None
        if self._task is not None:
            self._task.end()
            self._task = None


class _Compiling(event.Listener):  # type: ignore[misc]
    """Hears of every function that is compiled; those that another one calls are a part of it."""

    def __init__(self, display: Display) -> None:
        self._display = display
        self._depth = 0  # numba compiles one function at a time, so no lock is needed

    def on_start(self, event: event.Event) -> None:
        self._depth += 1
        if self._depth == 1:
            self._display.compiling(True)

    def on_end(self, event: event.Event) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._display.compiling(False)


class _BarTask:
    """A stage as a bar."""

    def __init__(self, progress: Progress, name: str) -> None:
        self._progress = progress
        self._name = name.capitalize()
        self._task = progress.add_task(self._name, total=None, unit="")

    def begin(self, total: int, unit: str) -> None:
        self._progress.remove_task(self._task)
        self._task = self._progress.add_task(self._name, total=total, unit=unit)

    def compiling(self, begins: bool) -> None:
        self._progress.update(self._task, description=f"{self._name} ({_FIRST_TIME})" if begins else self._name)

    def tell(self, stage: str, said: str) -> None:
        """Say beside the name of the stage what is known by now; it stays there when another step begins."""
        self._name = f"{stage.capitalize()}: {said}"
        self._progress.update(self._task, description=self._name)

    def advance(self, units: int) -> None:
        self._progress.advance(self._task, units)

    def end(self) -> None:
        self._progress.remove_task(self._task)


class _LogTask:
    """A stage as lines."""

    def __init__(self, name: str) -> None:
        self._name = name.capitalize()
        self._total, self._done, self._unit = 0, 0, ""
        self._last = time.perf_counter()
        self._has_compiled = False
        self._untold = ""
        notes.print(f"{self._name} ...", soft_wrap=True)

    def begin(self, total: int, unit: str) -> None:
        self._total, self._done, self._unit = total, 0, unit

    def advance(self, units: int) -> None:
        self._done += units
        if self._is_time():
            notes.print(f"{self._name}: {self._done:,} of {self._total:,} {self._unit}", soft_wrap=True)

    def tell(self, stage: str, said: str) -> None:
        """Say what is known by now, now and then."""
        self._untold = f"{stage.capitalize()}: {said}"
        if self._is_time():
            self.end()

    def compiling(self, begins: bool) -> None:
        if not self._has_compiled:  # one line is enough
            self._has_compiled = True
            notes.print(f"{self._name}: {_FIRST_TIME} ...", soft_wrap=True)

    def end(self) -> None:
        """Say what is known in the end, if it was not said before."""
        if self._untold:
            notes.print(self._untold, soft_wrap=True)
        self._untold = ""

    def _is_time(self) -> bool:
        """Whether another line is due."""
        due = time.perf_counter() - self._last > _PAUSE
        if due:
            self._last = time.perf_counter()
        return due


class _DoneColumn(ProgressColumn):
    """How much is done, of how much, how fast."""

    def render(self, task: Task) -> Text:
        if task.total is None:
            return Text("")
        speed = f", {task.speed:,.0f}/s" if task.speed and task.speed >= 1 else ""
        return Text(f"{int(task.completed):,} of {int(task.total):,} {task.fields['unit']}{speed}")

"""What a user sees of a job: stages, how far they are, and that a compiler is at work, where one is."""

from __future__ import annotations

import gc
import importlib.util
import io
import sys
import threading

import pytest
from numba.core import config
from rich.console import Console

from flipcert.cli import progress
from flipcert.engine.jit import compiled


@pytest.fixture
def function(tmp_path, monkeypatch):
    """A way to a function that is new to numba; from the second time on, its machine code is in the cache."""
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "fresh.py"
    path.write_text("def add(a, b):\n    return twice(a) + b\n\ndef twice(a):\n    return 2 * a\n")

    def load():
        spec = importlib.util.spec_from_file_location("fresh", path)
        module = importlib.util.module_from_spec(spec)
        # What is in the cache is put back into the module that it came from, which numba looks up by its name.
        monkeypatch.setitem(sys.modules, "fresh", module)
        spec.loader.exec_module(module)
        module.twice = compiled(module.twice)
        return compiled(module.add)

    return load


@pytest.fixture
def shown(monkeypatch):
    """All that is shown, on a terminal or in a log."""

    def on(terminal):
        text = io.StringIO()
        monkeypatch.setattr(progress, "notes", Console(file=text, force_terminal=terminal, width=100))
        return text

    return on


def test_a_log_says_once_a_stage_that_functions_are_compiled(function, shown):
    text = shown(terminal=False)
    with progress.Display() as display:
        display.stage("fitting")
        add = function()
        assert add(1, 2) == 4
        assert add(1.5, 2.0) == 5.0
        display.stage("certifying")
        assert add(1, 2.0) == 4.0
        display.stage("looking for attacks")
        assert add(1, 2.0) == 4.0
    assert text.getvalue().splitlines() == [
        "Fitting ...",
        "Fitting: compiling, the first time only ...",
        "Certifying ...",
        "Certifying: compiling, the first time only ...",
        "Looking for attacks ...",
    ]


def test_nothing_is_said_of_machine_code_from_the_cache(function, shown):
    function()(1, 2)
    gc.collect()  # as another process would, it knows nothing of the function that was compiled
    text = shown(terminal=False)
    with progress.Display() as display:
        display.stage("fitting")
        again = function()
        assert again(1, 2) == 4
    assert sum(again.stats.cache_hits.values()) == 1
    assert "compiling" not in text.getvalue()


def test_a_bar_says_so_as_long_as_it_lasts_on_any_thread(function, shown, monkeypatch):
    text = shown(terminal=True)
    with progress.Display() as display:
        display.stage("fitting")
        seen = []
        update = display._progress.update
        monkeypatch.setattr(
            display._progress, "update", lambda task, **what: (seen.append(what["description"]), update(task, **what))
        )
        worker = threading.Thread(target=function(), args=(1, 2))
        worker.start()
        worker.join()
        # Once each, though the function calls another that is compiled within it.
        assert seen == ["Fitting (compiling, the first time only)", "Fitting"]
        display._progress.refresh()
    assert "Fitting" in text.getvalue()


def test_quiet_says_nothing(function, shown):
    text = shown(terminal=False)
    with progress.Display(quiet=True) as display:
        display.stage("fitting")
        function()(1, 2)
    assert text.getvalue() == ""


def test_nobody_listens_afterwards(function, monkeypatch):
    heard = []
    monkeypatch.setattr(progress.Display, "compiling", lambda display, begins: heard.append(begins))
    add = function()
    with progress.Display(quiet=True):
        add(1, 2)
    assert heard == [True, False]
    add(1.5, 2)
    assert heard == [True, False]

"""Peak memory of a job above its data, measured in a process of its own."""

from __future__ import annotations

import gc
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.settings import Settings

GIB = 2**30
METHOD = "highest resident memory of a process of its own, minus what was resident when the data lay ready"


def measure(prepare: Callable[[Settings], Any], work: Callable[[Any], Any], settings: Settings) -> dict[str, Any]:
    """Run ``work(prepare(settings))`` in a fresh process; peak bytes above the data, and what ``work`` returns.

    Both are functions of one module, called by name over there.
    """
    assert prepare.__module__ == work.__module__
    names = [work.__module__, prepare.__name__, work.__name__]
    command = [sys.executable, "-m", "benchmarks.peak", *names, json.dumps(asdict(settings))]
    done = subprocess.run(command, cwd=Path(__file__).parent.parent, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main(module: str, prepare: str, work: str, settings: str) -> None:
    """The other side of ``measure``."""
    jobs = import_module(module)
    data = getattr(jobs, prepare)(Settings(**json.loads(settings)))
    gc.collect()
    _forget_peak()
    before = _status("VmRSS")
    result = getattr(jobs, work)(data)
    print(json.dumps({"above_data": _status("VmHWM") - before, "result": result}))


def _status(entry: str) -> int:
    """Bytes of memory as Linux counts them.

    ``ru_maxrss`` alone will not do: a child starts with that of the process it was forked from.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith(entry):
                return int(line.split()[1]) * 1024
    highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return highest if sys.platform == "darwin" else highest * 1024


def _forget_peak() -> None:
    """Let the highest mark start anew, where the system allows it: making the data should not count."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


if __name__ == "__main__":
    main(*sys.argv[1:])

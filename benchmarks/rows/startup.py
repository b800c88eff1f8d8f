"""How long a user waits before the first certificate: import, a compiler, first call of a new process, help."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.records import Record
from benchmarks.settings import Settings
from benchmarks.timing import Spread, seconds

_IMPORT = "import time; start = time.perf_counter(); {}; print(time.perf_counter() - start)"
_FIRST = """
import time
import flipcert
from sklearn.datasets import load_digits
X, y = load_digits(return_X_y=True)
model = {}.fit(X - 8, y)
start = time.perf_counter()
model.certify(X[:100] - 8)
print(time.perf_counter() - start)
"""
# The same in processor seconds; a busy machine, where cores and caches are shared, makes two or three of one of them.
_COLD = _FIRST.replace("perf_counter", "process_time")
_DEMO = """
import contextlib, io, time
from pathlib import Path
from flipcert.cli.demo import run_demo
with contextlib.redirect_stdout(io.StringIO()):
    run_demo(Path("demo"), quiet=True)
print(time.process_time())
"""
# What is certified, and the most processor seconds that the first certificate of all may take.
_MODELS = {
    "svm": ("an SVM", "flipcert.KernelSVM()", 4.0),
    "ensemble": ("an ensemble of ridges", "flipcert.PartitionEnsemble(flipcert.KernelRidge(), n_partitions=10)", 15.0),
}


def rows(settings: Settings) -> Iterator[Record]:
    """Import ratio, first certificates, help."""
    pairs = settings.size(15, 5)
    yield Record(
        name="startup-import",
        group="startup",
        job="import flipcert over importing scikit-learn and numba",
        measured=_import_ratio("import flipcert", pairs),
        unit="×",
        target=1.2,
        method="time inside fresh processes, in turns; interpreter start left out; names are imported when first used",
        quick=settings.quick,
    )
    yield Record(
        name="startup-names",
        group="startup",
        job="import flipcert and all its public names over importing scikit-learn and numba",
        measured=_import_ratio("import flipcert; [getattr(flipcert, name) for name in flipcert.__all__]", pairs),
        unit="×",
        target=1.2,
        method="time inside fresh processes, in turns; interpreter start left out",
        quick=settings.quick,
    )
    for name, (wording, model, most) in _MODELS.items():
        _printed_seconds(_FIRST.format(model))  # compiles, if nobody has before
        yield Record(
            name=f"startup-first-{name}",
            group="startup",
            job=f"first certify of a second process after the import, {wording} on 1,797 digits",
            measured=Spread.of([_printed_seconds(_FIRST.format(model)) for _ in range(pairs)]),
            unit="s",
            target=2.0,
            method="seconds of certify on 100 points in a fresh process, compiled code cached by an earlier one",
            quick=settings.quick,
        )
        with TemporaryDirectory() as folder:
            yield Record(
                name=f"startup-cold-{name}",
                group="startup",
                job=f"first certify of all, nothing compiled yet, {wording} on 1,797 digits",
                measured=Spread.of([_cold_seconds(_COLD.format(model), folder) for _ in range(settings.size(3, 1))]),
                unit="s",
                target=most,
                method="processor seconds of certify on 100 points in a fresh process with an empty cache",
                quick=settings.quick,
            )
    with TemporaryDirectory() as folder:
        yield Record(
            name="startup-cold-demo",
            group="startup",
            job="flipcert demo with nothing compiled yet over the same with all of it compiled",
            measured=Spread.of(
                [_cold_seconds(_DEMO, folder) / _seconds_in(_DEMO, folder) for _ in range(settings.size(3, 1))]
            ),
            unit="×",
            target=2.5,
            method="processor seconds of whole processes, in turns, in a cache of their own",
            quick=settings.quick,
        )
    command = shutil.which("flipcert", path=str(Path(sys.executable).parent))
    if command is not None:
        show_help = [command, "--help"]
        _run(show_help)
        yield Record(
            name="startup-help",
            group="startup",
            job="flipcert --help",
            measured=Spread.of([seconds(lambda: _run(show_help)) for _ in range(pairs)]),
            unit="s",
            target=0.5,
            method="seconds of the whole process",
            quick=settings.quick,
        )


def _import_ratio(line: str, pairs: int) -> Spread:
    ours, theirs = (_IMPORT.format(own) for own in (line, "import sklearn, numba"))
    _printed_seconds(ours)
    _printed_seconds(theirs)
    return Spread.of([_printed_seconds(ours) / _printed_seconds(theirs) for _ in range(pairs)])


def _printed_seconds(code: str) -> float:
    return float(_run([sys.executable, "-c", code]))


def _cold_seconds(code: str, folder: str) -> float:
    """What the code prints if nothing is cached; what it compiles stays in the folder."""
    shutil.rmtree(Path(folder) / "cache", ignore_errors=True)
    return _seconds_in(code, folder)


def _seconds_in(code: str, folder: str) -> float:
    """What the code prints in a folder with a cache of its own."""
    shutil.rmtree(Path(folder) / "demo", ignore_errors=True)  # else it would only be shown again
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(Path(folder) / "cache")}
    return float(_run([sys.executable, "-c", code], cwd=folder, env=environment))


def _run(command: list[str], **options: Any) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, **options).stdout

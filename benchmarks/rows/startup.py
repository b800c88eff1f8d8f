"""How long a user waits before the first certificate: import, first call of a new process, the command line."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

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
_MODELS = {
    "svm": ("an SVM", "flipcert.KernelSVM()"),
    "ensemble": ("an ensemble of ridges", "flipcert.PartitionEnsemble(flipcert.KernelRidge(), n_partitions=10)"),
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
    for name, (wording, model) in _MODELS.items():
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


def _run(command: list[str]) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout

"""Jobs from the shell, with attacks: what the command does with its files, over the product that forms the weights."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from pyarrow import parquet

import flipcert
from benchmarks.checks import agree
from benchmarks.data import Features, synthetic
from benchmarks.product import product
from benchmarks.records import Record
from benchmarks.settings import Settings
from benchmarks.timing import Spread, seconds

# Samples, features, classes, test points; partitions; options; and what is wanted.
_JOBS = {
    "svm": ((1_000_000, 256, 100, 64), 1, ["--attacks", "10", "--memory", "512"], 5.0),
    "ensemble": ((300_000, 128, 10, 1_000), 100, ["--attacks", "10"], 6.0),
}
_QUICK = (20_000, 32, 10, 64)


def rows(settings: Settings) -> Iterator[Record]:
    """One SVM on many samples, and an ensemble on many test points."""
    command = shutil.which("flipcert", path=str(Path(sys.executable).parent))
    assert command is not None, "flipcert is not installed beside this Python"
    for name, (shape, n_partitions, options, target) in _JOBS.items():
        features = synthetic(*settings.size(shape, _QUICK))
        wording = "one SVM" if n_partitions == 1 else f"ensemble of {n_partitions} SVM"
        with TemporaryDirectory() as folder:
            run = _command([command, "certify", "train.npz", "test.npz", *options, "-n", str(n_partitions)], folder)
            _write(features, Path(folder))
            run()  # compiles, if nobody has before
            checked = _check(features, n_partitions, Path(folder) / "run")
            pairs = [_pair(run, product(features.test, features.train)) for _ in range(settings.few_pairs)]
        whole = Spread.of([all_of_it for _, all_of_it in pairs]).median
        yield Record(
            name=f"shell-{name}",
            group="shell",
            job=f"`flipcert certify {' '.join(options)}`, {wording}, {features.shape}, T = {len(features.test):,}",
            measured=Spread.of([work for work, _ in pairs]),
            unit="×",
            target=target,
            method="fitting, certifying and looking for attacks, as the command tells, over the product, in turns; the "
            f"whole process, with reading and the report, takes {whole:.3g} ×",
            data=features.name,
            checked=checked,
            quick=settings.quick,
        )


def _pair(run: Callable[[], dict[str, float]], reference: Callable[[], None]) -> tuple[float, float]:
    """What the command does once it has read its files, and all of it, over the product."""
    reference()
    theirs, start = seconds(reference), time.perf_counter()
    told = run()
    whole = time.perf_counter() - start
    return (sum(told.values()) - told["reading"]) / theirs, whole / theirs


def _write(features: Features, folder: Path) -> None:
    np.savez(folder / "train.npz", X=features.train, y=features.labels)
    np.savez(folder / "test.npz", X=features.test)


def _command(arguments: list[str], folder: str) -> Callable[[], dict[str, float]]:
    """What runs a command in a folder, each time from the start, and returns the seconds that its stages took."""

    def run() -> dict[str, float]:
        out = Path(folder) / "run"
        shutil.rmtree(out, ignore_errors=True)
        subprocess.run([*arguments, "--out", "run", "--quiet"], cwd=folder, stdout=subprocess.DEVNULL, check=True)
        return dict(json.loads((out / "summary.json").read_text())["timings"])

    return run


def _check(features: Features, n_partitions: int, folder: Path) -> str:
    """What the command stored against what the library says."""
    model = flipcert.KernelSVM()
    whole = model if n_partitions == 1 else flipcert.PartitionEnsemble(model, n_partitions)
    expected = whole.fit(features.train, features.labels).certify(features.test)
    stored = parquet.read_table(folder / "certificates.parquet")
    for column in ("prediction", "radius", "radius_upper"):
        for t, (own, other) in enumerate(zip(stored[column].to_pylist(), getattr(expected, column), strict=True)):
            agree(column, t, own, other)
    return f"all {len(features.test):,} certificates equal those of the library"

"""Train both networks on real images and see what their features are worth: ``python -m benchmarks.features``.

Writes ``docs/features.json`` and, from it, ``docs/features.md``. Checkpoints are kept, so that it goes on after a stop.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from benchmarks import features_page
from benchmarks.data import FOLDER
from flipcert.datasets import load
from flipcert.datasets.table import Table
from flipcert.engine.watch import Watcher, watched_by
from flipcert.features import RotNet, SimCLR, extract, train
from flipcert.features.method import Method, load_torch
from flipcert.features.rotnet import turn_accuracy

DOCS = Path(__file__).parent.parent / "docs"
RECORD = DOCS / "features.json"
# Relative to the number of samples.
_REGS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)


@dataclass(frozen=True)
class Job:
    """A network, and the images it learns from."""

    method: Method
    dataset: str
    batches: tuple[int, ...] | None = None

    @property
    def name(self) -> str:
        """For files and the page."""
        return f"{self.dataset}-{self.method.name}"


JOBS = (
    Job(RotNet(width=64, epochs=2), "mnist"),
    Job(SimCLR(width=16, epochs=10, batch_size=64), "cifar10", batches=(1,)),
)


def run(job: Job, folder: Path) -> dict[str, Any]:
    """Train, or go on; then measure."""
    dataset = load(job.dataset, FOLDER, batches=job.batches)
    images = dataset.train
    encoder = train(job.method, images.X, image_shape=images.image_shape, checkpoint=folder / f"{job.name}.pt")
    found = extract(encoder, dataset)
    return {
        "name": job.name,
        "method": job.method.name,
        "settings": asdict(job.method),
        "dataset": job.dataset,
        "batches": job.batches,
        "n_images": len(images.X),
        "image_shape": images.image_shape,
        "feature_shape": encoder.feature_shape,
        "losses": encoder.losses,
        "seconds": encoder.seconds,
        "threads": load_torch().get_num_threads(),
        "turns": turn_accuracy(encoder, dataset.test.X) if isinstance(job.method, RotNet) else None,
        "probe": {"pixels": probe(dataset.train, dataset.test), "features": probe(found.train, found.test)},
    }


def probe(train: Table, test: Table) -> float:
    """Accuracy of ridge regression on standardised columns; a fifth of the training set chooses the regularisation."""
    centre, scale = train.X.mean(axis=0, dtype=np.float64), train.X.std(axis=0, dtype=np.float64)
    scale[scale == 0] = 1.0
    X, X_test = (((table.X - centre) / scale).astype(np.float32) for table in (train, test))
    y, y_test = (np.asarray(table.y) for table in (train, test))
    one_hot = np.eye(int(y.max()) + 1, dtype=np.float32)[y]
    n_fit = len(X) * 4 // 5
    parts = [(X[rows].T @ X[rows], X[rows].T @ one_hot[rows]) for rows in (slice(n_fit), slice(n_fit, None))]
    fit, whole = parts[0], tuple(a + b for a, b in zip(*parts, strict=True))

    def accuracy(sums: Any, n: int, reg: float, points: NDArray[Any], truth: NDArray[Any]) -> float:
        gram, products = (part.astype(np.float64) for part in sums)
        weights = np.linalg.solve(gram + reg * n * np.eye(len(gram)), products)
        # Columns are centred on the whole training set, so that the shares of the classes are the intercept.
        scores = points @ weights + one_hot[:n].mean(axis=0)
        return float((scores.argmax(axis=1) == truth).mean())

    reg = max(_REGS, key=lambda reg: accuracy(fit, n_fit, reg, X[n_fit:], y[n_fit:]))
    return accuracy(whole, len(X), reg, X_test, y_test)


class _Lines(Watcher):
    """A line now and then."""

    def __init__(self, console: Console) -> None:
        self._console, self._done, self._total, self._unit = console, 0, 0, ""

    def begin(self, total: int, unit: str) -> None:
        self._done, self._total, self._unit = 0, total, unit

    def advance(self, units: int) -> None:
        before, self._done = self._done, self._done + units
        if 20 * before // self._total < 20 * self._done // self._total:
            self._console.print(f"{self._done:,} of {self._total:,} {self._unit}")


def main() -> None:
    """Run the chosen jobs, then write the page about all of them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.features", description=__doc__)
    known = {job.name: job for job in JOBS}
    parser.add_argument("jobs", nargs="*", metavar="JOB", help=f"of {', '.join(known)}; all by default")
    parser.add_argument("--checkpoints", type=Path, default=Path("checkpoints"), help="folder to keep the networks in")
    parser.add_argument("--page", action="store_true", help="only write the page again")
    arguments = parser.parse_args()
    for name in arguments.jobs:
        if name not in known:
            parser.error(f"{name} is not one of {', '.join(known)}")
    console = Console(highlight=False)
    records = {record["name"]: record for record in json.loads(RECORD.read_text())} if RECORD.exists() else {}
    arguments.checkpoints.mkdir(exist_ok=True)
    for name in [] if arguments.page else arguments.jobs or known:
        console.print(f"[bold]{name}[/]")
        with watched_by(_Lines(console)):
            records[name] = run(known[name], arguments.checkpoints)
        RECORD.write_text(json.dumps(_ordered(records), indent=1) + "\n")
    (DOCS / "features.md").write_text(features_page.page(_ordered(records)))


def _ordered(records: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """In the order of the jobs, whichever was run last."""
    return [records[job.name] for job in JOBS if job.name in records]


if __name__ == "__main__":
    main()

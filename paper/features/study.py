"""Train both networks on real images and see what their features are worth: ``python -m paper.features.study``.

Writes ``paper/features.json`` and, from it, ``paper/features.md``. A training that is stopped goes on from its
checkpoint.
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

from paper.data import Table, load
from paper.features import RotNet, SimCLR, extract, page, train
from paper.features.method import Method, load_torch
from paper.features.rotnet import turn_accuracy
from paper.lines import Lines

PAPER = Path(__file__).parents[1]
RECORD = PAPER / "features.json"
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
    dataset = load(job.dataset, batches=job.batches)
    images = dataset.train
    encoder = train(
        job.method,
        images.X,
        image_shape=images.image_shape,
        checkpoint=folder / f"{job.name}.pt",
        on_step=Lines("training"),
    )
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


def main() -> None:
    """Run the chosen jobs, then write the page about all of them."""
    parser = argparse.ArgumentParser(prog="python -m paper.features.study", description=__doc__)
    known = {job.name: job for job in JOBS}
    parser.add_argument("jobs", nargs="*", metavar="JOB", help=f"of {', '.join(known)}; all by default")
    parser.add_argument("--checkpoints", type=Path, default=PAPER / "checkpoints", help="folder of the networks")
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
        records[name] = run(known[name], arguments.checkpoints)
        RECORD.write_text(json.dumps(_ordered(records), indent=1) + "\n")
    (PAPER / "features.md").write_text(page.page(_ordered(records)))


def _ordered(records: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """In the order of the jobs, whichever was run last."""
    return [records[job.name] for job in JOBS if job.name in records]


if __name__ == "__main__":
    main()

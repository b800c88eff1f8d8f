"""The main job on bundled data: certify four models on handwritten digits, print a table, save a plot."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import flipcert
from flipcert.plots import plot_certified_accuracy

FLIPS = (1, 5, 10, 25, 50)


def main(folder: str = "demo") -> None:
    """Run the demo and write its plot into ``folder``."""
    console = Console()
    # Centring helps, and is allowed: it never sees a label.
    X, y = load_digits(return_X_y=True)
    X = X / 16.0 - 0.5
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=360, random_state=0)
    console.print(
        f"Handwritten digits: {len(y_train)} training labels, {len(y_test)} test points. "
        "How many labels would an attacker have to flip to change a prediction?"
    )
    ridge = flipcert.KernelRidge(flipcert.kernels.NTK(activation="relu"), reg=1.0)
    models: dict[str, Any] = {
        "SVM": flipcert.KernelSVM(flipcert.kernels.RBF(gamma=0.1)),
        "ridge": ridge,
        "ridge, 10 parts": flipcert.PartitionEnsemble(ridge, n_partitions=10),
        "ridge, 50 parts": flipcert.PartitionEnsemble(ridge, n_partitions=50),
    }

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 0), pad_edge=False)
    table.add_column("model", no_wrap=True)
    medians = ("median\nvotes", "flips\nwhite-box")
    shares = (f"\n @{flips}" for flips in FLIPS)
    headings = ("accu-\nracy", *medians, *shares, "\nexact", "\nsec.")
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    with console.status("Compiling, which only the first run has to ..."):
        start = time.perf_counter()
        for model in models.values():
            clone(model).fit(X_train, y_train).certify(X_test[:2])
        seconds = time.perf_counter() - start
    if seconds > 5:
        console.print(f"Compiled in {seconds:.0f} seconds; further runs start at once.")

    certified = {}
    for name, model in models.items():
        with console.status(f"{name} ..."):
            start = time.perf_counter()
            certificates = model.fit(X_train, y_train).certify(X_test)
            seconds = time.perf_counter() - start
        certified[name] = certificates
        correct = certificates.prediction == y_test
        votes_only = certificates.blackbox_radius
        table.add_row(
            name,
            f"{correct.mean():.3f}",
            "" if votes_only is None else str(flipcert.median_certified_robustness(correct, votes_only)),
            str(certificates.median_certified_robustness(y_test)),
            *(f"{share:.2f}" for share in certificates.certified_accuracy(y_test, FLIPS)),
            f"{certificates.exact.mean():.3f}",
            f"{seconds:.2f}",
        )
    console.print(table)
    console.print(
        "Median flips: half of the correct predictions are proven to withstand that many, by the votes alone or "
        "(white-box) by the cost of changing each vote. @r: share of test points proven correct under any r flips. "
        "Exact: share where one flip more is known to change the prediction. Seconds are for fitting and certifying."
    )
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    plot = path / "certified-accuracy.png"
    plot_certified_accuracy(certified, y_test).savefig(plot, dpi=150)
    console.print(f"Plot: {plot}")


if __name__ == "__main__":
    main()

"""The table of a figure: one row for each certified test set, with its curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

import flipcert
from flipcert import certified_accuracy, median_certified_robustness
from paper.figures.bounds import PublishedRadii
from paper.figures.source import Source
from paper.files import whole_file

Row = dict[str, Any]
# Points of a curve.
_STEPS = 160


def certified(
    certificates: flipcert.Certificates, source: Source, sizes: Mapping[str, float], reg: float | None
) -> Row:
    """What certificates say about a test set."""
    correct, n_train = certificates.correct(source.y_test), int(source.y_train.size)
    radius, upper, votes = certificates.radius, certificates.radius_upper, certificates.blackbox_radius
    row: Row = {
        "n_train": n_train,
        "n_test": int(correct.size),
        "n_classes": int(np.unique(source.y_train).size),
        "accuracy": float(correct.mean()),
        "most_frequent": most_frequent(source),
        **_medians("", correct, radius, upper),
        "median_all": median_certified_robustness(correct, radius, over="all"),
        "share_exact": float((radius == upper).mean()),
        "mean_gap": float((upper - radius)[upper < n_train].mean()) if np.any(upper < n_train) else None,
        # The last number of flips at which something is certified.
        "largest": int(radius[correct & (radius < n_train)].max(initial=0)),
        "mean_diag": sizes.get("mean_diag"),
        "C_max": sizes.get("C_max"),
    }
    if "mean_diag" in sizes and reg is not None:
        row["reg_over_diag"] = reg / sizes["mean_diag"]
    if votes is not None:
        row["median_votes"] = median_certified_robustness(correct, votes)
        row["median_all_votes"] = median_certified_robustness(correct, votes, over="all")
        row["largest_votes"] = int(votes[correct].max(initial=0))
    return row | _curves(correct, radius, upper, votes, n_train)


def most_frequent(source: Source) -> float:
    """The accuracy of always naming the most frequent class of the test set."""
    return float(np.unique(source.y_test, return_counts=True)[1].max() / source.y_test.size)


def published(bounds: PublishedRadii, correct: NDArray[Any]) -> Row:
    """What the paper's own bounds say, and how many of those who vote for the winner a single flip turns."""
    return {
        **_medians("_published", correct, bounds.radius, bounds.radius_upper),
        "share_exact_published": float((bounds.radius == bounds.radius_upper).mean()),
        "share_fragile": float(bounds.fragile.sum() / bounds.majority.sum()),
    }


def parts_of(row: Row) -> dict[str, Row]:
    """The columns of a row that each part of the work on a cell has found."""
    parts: dict[str, Row] = {"certificates": {}, "published": {}, "times": {}}
    for name, value in row.items():
        late = "published" if "_published" in name or name == "share_fragile" else "certificates"
        parts["times" if name.startswith("timed_") else late][name] = value
    return parts


def _medians(suffix: str, correct: NDArray[Any], radius: NDArray[Any], upper: NDArray[Any]) -> Row:
    return {
        f"median{suffix}": median_certified_robustness(correct, radius),
        f"median{suffix}_upper": median_certified_robustness(correct, upper),
    }


def _curves(
    correct: NDArray[Any], radius: NDArray[Any], upper: NDArray[Any], votes: NDArray[Any] | None, n_train: int
) -> Row:
    """Certified accuracy at evenly spaced numbers of flips, up to where nothing is left."""
    lines = {"certified": radius, "attacked": upper} | ({} if votes is None else {"votes": votes})
    last = max(int(values[correct & (values < n_train)].max(initial=0)) for values in lines.values()) + 1
    flips = np.unique(np.linspace(0, last, _STEPS).astype(np.int64))
    curves = {name: certified_accuracy(correct, values, flips).tolist() for name, values in lines.items()}
    return {"flips": flips.tolist(), **curves}


def write_table(rows: Sequence[Row], path: Path) -> None:
    """Write rows to a parquet file, timings last."""
    names = dict.fromkeys(name for row in rows for name in row)
    ordered = sorted(names, key=lambda name: name.startswith(("seconds", "timed")))
    table = pa.table({name: [row.get(name) for row in rows] for name in ordered})
    with whole_file(path) as file:
        pq.write_table(table, file)


def read_table(path: Path) -> list[Row]:
    """Read the rows of a table."""
    return list(pq.read_table(path).to_pylist())

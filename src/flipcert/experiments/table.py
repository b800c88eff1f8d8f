"""The table of a figure: one row for each certified test set, with its curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from flipcert.engine.files import whole_file
from flipcert.experiments.figure import Cell
from flipcert.experiments.parts import Part
from flipcert.results.metrics import certified_accuracy, median_certified_robustness

Row = dict[str, Any]
# Points of a curve.
_STEPS = 160


def row_of(cell: Cell, parts: Mapping[str, Part], described: str) -> Row:
    """All that is told about one certified test set."""
    found, facts = parts["certificates"].columns, parts["certificates"].facts
    correct, radius, upper = found["correct"], found["radius"], found["radius_upper"]
    n_train = facts["n_train"]
    row: Row = {
        **cell.identity,
        "features": described,
        "n_train": n_train,
        "n_test": int(correct.size),
        "n_classes": facts["n_classes"],
        "accuracy": float(correct.mean()),
        **_medians("", correct, radius, upper),
        "median_all": median_certified_robustness(correct, radius, over="all"),
        "share_exact": float((radius == upper).mean()),
        "mean_gap": float((upper - radius)[upper < n_train].mean()) if np.any(upper < n_train) else None,
        # The last number of flips at which something is certified.
        "largest": int(radius[correct & (radius < n_train)].max(initial=0)),
        "mean_diag": facts.get("mean_diag"),
        "C_max": facts.get("C_max"),
    }
    if "mean_diag" in facts and cell["reg"] is not None:
        row["reg_over_diag"] = cell["reg"] / facts["mean_diag"]
    votes = found.get("blackbox_radius")
    if votes is not None:
        row["median_votes"] = median_certified_robustness(correct, votes)
        row["median_all_votes"] = median_certified_robustness(correct, votes, over="all")
        row["largest_votes"] = int(votes[correct].max(initial=0))
    if "published" in parts:
        row |= _published(correct, parts["published"])
    row |= _curves(correct, radius, upper, votes, n_train)
    for part in parts.values():
        row |= {name: value for name, value in part.facts.items() if name.startswith(("seconds", "timed"))}
    return row


def _medians(suffix: str, correct: NDArray[Any], radius: NDArray[Any], upper: NDArray[Any]) -> Row:
    return {
        f"median{suffix}": median_certified_robustness(correct, radius),
        f"median{suffix}_upper": median_certified_robustness(correct, upper),
    }


def _published(correct: NDArray[Any], part: Part) -> Row:
    """The paper's own bounds, and how many of those who vote for the winner a single flip turns."""
    c = part.columns
    return {
        **_medians("_published", correct, c["radius"], c["radius_upper"]),
        "share_exact_published": float((c["radius"] == c["radius_upper"]).mean()),
        "share_fragile": float(c["fragile"].sum() / c["majority"].sum()),
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

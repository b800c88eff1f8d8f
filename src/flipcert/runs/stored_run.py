"""A finished run as its files tell it, whether they are right or not."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flipcert.runs.folder import SUMMARY
from flipcert.runs.settings import Settings
from flipcert.runs.store import ATTACKS, CERTIFICATES

# A flip: training row, label before, label after.
Flip = tuple[int, Any, Any]


@dataclass(frozen=True)
class StoredRun:
    """A finished run, believed by nobody yet.

    Attributes
    ----------
    digests : dict
        SHA-256 of the training and of the test data ("train", "test").
    data : dict
        What the files mean.
    memory : int
        MiB that blocks could take; blocks go by it, and rounding by blocks.
    versions : dict
        What computed.
    n_labels, n_attackable : int
        Number of training labels, and of those that are not trusted.
    settings : list of Settings
        Its models.
    points : list of list of dict
        For each model, a line for each test point.
    attacks : list of dict
        For each model, the attacks on some test points.
    """

    digests: dict[str, str]
    data: dict[str, Any]
    memory: int
    versions: dict[str, str]
    n_labels: int
    n_attackable: int
    settings: list[Settings]
    points: list[list[dict[str, Any]]]
    attacks: list[dict[int, list[Flip]]]

    @classmethod
    def read(cls, folder: Path) -> StoredRun:
        """Read a run, whatever its tables say."""
        from pyarrow import ArrowException, parquet

        if not (folder / SUMMARY).exists():
            raise ValueError(f"{folder} has no {SUMMARY}; give the folder of a run that has finished.")
        try:
            summary = json.loads((folder / SUMMARY).read_text())
            settings = [Settings.from_identity(identity) for identity in summary["models"]]
            points: list[list[dict[str, Any]]] = [[] for _ in settings]
            for line in parquet.ParquetFile(folder / CERTIFICATES).read().to_pylist():
                whole = {name: int(line[name]) for name in ("row", "radius", "radius_upper")}
                needed = {name: line[name] for name in ("prediction", "rounding_sensitive")}
                points[line.get("point", 0)].append({**line, **needed, **whole})
            attacks: list[dict[int, list[Flip]]] = [{} for _ in settings]
            for line in parquet.ParquetFile(folder / ATTACKS).read().to_pylist():
                flips = attacks[line.get("point", 0)].setdefault(int(line["row"]), [])
                flips.append((int(line["training_row"]), line["old_label"], line["new_label"]))
            return cls(
                digests={part: str(summary["inputs"][part]["sha256"]) for part in ("train", "test")},
                data=dict(summary["data"]),
                memory=int(summary["memory"]),
                versions=dict(summary["versions"]),
                n_labels=int(summary["n_labels"]),
                n_attackable=int(summary["n_attackable"]),
                settings=settings,
                points=points,
                attacks=attacks,
            )
        except (OSError, ArrowException, LookupError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(
                f"{folder} does not hold a complete run ({type(error).__name__}: {error}); "
                "run its command again in a new folder."
            ) from error

    def check_rows(self, n_rows: int) -> None:
        """Raise ValueError unless each model has one line for each of the test points."""
        rows = list(range(n_rows))
        for points, attacks in zip(self.points, self.attacks, strict=True):
            if [line["row"] for line in points] != rows or not set(attacks) <= set(rows):
                raise ValueError(
                    f"{CERTIFICATES} and {ATTACKS} must speak of the {n_rows} test points, each once; they "
                    "are not as the run wrote them."
                )

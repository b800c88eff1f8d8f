"""A finished run as its files tell it, whether they are right or not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from flipcert.audit.record import RandomCheck
from flipcert.engine.files import refuse_odd_files
from flipcert.labels.threats import FLIPS, SOURCES, THREATS
from flipcert.report.audit_result import Audit
from flipcert.report.result import Collective
from flipcert.report.words import Exposure, plural
from flipcert.runs.describe import BY_CHECK, COLLECTIVELY
from flipcert.runs.folder import SUMMARY, changed_files, fault_of_identity
from flipcert.runs.settings import Settings
from flipcert.runs.store import ATTACKS, CERTIFICATES
from flipcert.runs.stored_audit import AUDITED, read_audit
from flipcert.runs.stored_collective import read_collective_results

# A flip: training row, label before, label after.
Flip = tuple[int, Any, Any]
# No sweep has more.
_MOST_MODELS = 100_000


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
    threat : str
        What an attacker may do, and what radii count.
    n_sources : int or None
        Number of sources, if they are known.
    classes : list
        The label space.
    n_attacks : int
        Number of test points whose attacks were looked for.
    settings : list of Settings
        Its models.
    told : list of dict
        For each model, what the summary says of it: name, settings, metrics.
    points : list of list of dict
        For each model, a line for each test point.
    attacks : list of dict
        For each model, the attacks on some test points: flips, or, under another threat, lines of the table.
    collective : list of Collective or None
        For each model, what one attack on all test points does, if that was asked.
    check : dict or None
        The random check of labels that came before, if there was one, and what it is said to prove.
    audit : Audit or None
        Which labels to check first, if that was asked.
    changed : list of str
        Files that are not those whose digests the summary has, if labels to check were asked for.
    exact : bool
        Whether the search went on until radii were exact.
    """

    digests: dict[str, str]
    data: dict[str, Any]
    memory: int
    versions: dict[str, str]
    n_labels: int
    n_attackable: int
    threat: str
    n_sources: int | None
    classes: list[Any]
    n_attacks: int
    settings: list[Settings]
    told: list[dict[str, Any]]
    points: list[list[dict[str, Any]]]
    attacks: list[dict[int, list[Any]]]
    collective: list[Collective | None] = field(default_factory=list)
    check: dict[str, Any] | None = None
    audit: Audit | None = None
    changed: list[str] = field(default_factory=list)
    exact: bool = False

    @property
    def exposure(self) -> Exposure:
        """What can be attacked, as the run tells it."""
        n_sources = self.n_sources if self.threat == SOURCES.name else None
        return Exposure(self.n_labels, self.n_attackable, self.threat, n_sources)

    @classmethod
    def read(cls, folder: Path) -> StoredRun:
        """Read a run, whatever its tables say."""
        if not (folder / SUMMARY).exists():
            raise ValueError(f"{folder} has no {SUMMARY}; give the folder of a run that has finished.")
        try:
            summary = _summary(folder / SUMMARY)
            together = _collective(folder, len(summary["settings"])) if summary.pop("has_collective") else []
            return cls(**summary, **_tables(folder, summary["threat"]), collective=together)._matched()
        except _Damaged as error:
            raise ValueError(
                f"{folder} does not hold a complete run: {error}; run its command again in a new folder."
            ) from error

    def _matched(self) -> StoredRun:
        """The run with as many lists of points and attacks as there are models; some may be empty."""
        n_models = len(self.settings)
        for name, lists in ((CERTIFICATES, self.points), (ATTACKS, self.attacks)):
            if len(lists) > n_models:
                raise _Damaged(f"{name} speaks of {plural(len(lists), 'model')}, and {SUMMARY} of {n_models}")
        return replace(
            self,
            points=[*self.points, *([] for _ in range(len(self.points), n_models))],
            attacks=[*self.attacks, *({} for _ in range(len(self.attacks), n_models))],
            collective=self.collective or [None] * n_models,
        )

    def check_rows(self, n_rows: int) -> None:
        """Raise ValueError unless each model has one line for each of the test points."""
        rows = list(range(n_rows))
        for points, attacks in zip(self.points, self.attacks, strict=True):
            if [line["row"] for line in points] != rows or not set(attacks) <= set(rows):
                raise ValueError(
                    f"{CERTIFICATES} and {ATTACKS} must speak of the {n_rows} test points, each once; they "
                    "are not as the run wrote them."
                )


class _Damaged(Exception):
    """What is wrong with a file of a run."""


def _summary(path: Path) -> dict[str, Any]:
    """What the summary of a run tells."""
    try:
        refuse_odd_files(path)
        summary = json.loads(path.read_bytes())
        settings = [Settings.from_identity(identity) for identity in summary["models"]]
        told = [
            {"name": str(point["name"]), "settings": dict(point["settings"]), "metrics": dict(point["metrics"])}
            | {"strongest_sources": [dict(own) for own in point.get("strongest_sources", ())]}
            | {name: dict(point.get(name, {})) for name in (COLLECTIVELY, BY_CHECK, AUDITED)}
            for point in summary.get("points", [summary])
        ]
        if len(told) != len(settings):
            raise ValueError
        threat, n_sources = summary.get("threat", FLIPS.name), summary.get("n_sources")
        if threat not in THREATS or not (n_sources is None or type(n_sources) is int):
            raise ValueError
        if threat == SOURCES.name and n_sources is None:
            raise ValueError
        if (fault := fault_of_identity(path.parent, summary)) is not None:
            raise _Damaged(fault)
        return {
            "threat": threat,
            "n_sources": n_sources,
            "classes": list(summary["classes"]),
            "n_attacks": int(summary["attacks"]),
            "digests": {part: str(about["sha256"]) for part, about in summary["inputs"].items()},
            "data": dict(summary["data"]),
            "memory": int(summary["memory"]),
            "versions": dict(summary["versions"]),
            "n_labels": int(summary["n_labels"]),
            "n_attackable": int(summary["n_attackable"]),
            "settings": settings,
            "told": told,
            "has_collective": "collective" in summary,
            "check": _check(summary["check"]) if "check" in summary else None,
            "audit": _audit(path.parent, summary[AUDITED]) if "audit" in summary else None,
            "changed": changed_files(path.parent, summary) if "audit" in summary else [],
            "exact": bool(summary["exact"]),
        }
    except (OSError, LookupError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise _Damaged(f"{path.name} is not what was written") from error


def _check(told: Any) -> dict[str, Any]:
    """What is told of a random check, if it is all there."""
    RandomCheck.of(told)
    return dict(told)


def _audit(folder: Path, told: dict[str, Any]) -> Audit:
    """Which labels to check first, as the files tell it."""
    try:
        return read_audit(folder, told)
    except (OSError, ValueError) as error:
        raise _Damaged("what it tells of labels to check is missing, or not what was written") from error


def _collective(folder: Path, n_models: int) -> list[Collective | None]:
    """What one attack on all points does, as the files tell it."""
    try:
        return read_collective_results(folder, n_models)
    except (OSError, ValueError) as error:
        raise _Damaged("what it tells of one attack on all points is missing, or not what was written") from error


def _tables(folder: Path, threat: str) -> dict[str, Any]:
    """What the tables of a run hold."""
    points: list[list[dict[str, Any]]] = []
    for model, line in _lines(folder / CERTIFICATES, ("row", "radius", "radius_upper"), ("prediction",)):
        points += [[] for _ in range(len(points), model + 1)]
        points[model].append(line)
    attacks: list[dict[int, list[Any]]] = []
    flips = threat == FLIPS.name
    columns = (("row", "training_row"), ("old_label", "new_label")) if flips else (("row",), ())
    for model, line in _lines(folder / ATTACKS, *columns):
        attacks += [{} for _ in range(len(attacks), model + 1)]
        line |= {"training_row": line["annotation"]} if "annotation" in line else {}
        own = (line["training_row"], line["old_label"], line["new_label"]) if flips else line
        attacks[model].setdefault(line["row"], []).append(own)
    return {"points": points, "attacks": attacks}


def _lines(path: Path, whole: Sequence[str], labels: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Number of the model and line of a table, in which some columns hold whole numbers and others labels."""
    from pyarrow import ArrowException, parquet, types

    try:
        refuse_odd_files(path)
        table = parquet.ParquetFile(path).read()
        lines = table.to_pylist()
    except (OSError, ArrowException, ValueError, LookupError) as error:
        raise _Damaged(f"{path.name} is missing, or not what was written") from error
    flags = ("rounding_sensitive",) if path.name == CERTIFICATES else ()
    for name in (*whole, *labels, *flags):
        if name not in table.column_names:
            raise _Damaged(f"{path.name} has no column {name!r}")
        column = table.column(name)
        if column.null_count:
            raise _Damaged(f"column {name!r} of {path.name} has gaps")
        if name in whole and not types.is_integer(column.type):
            raise _Damaged(f"column {name!r} of {path.name} holds {column.type}, not whole numbers")
        if name in labels and types.is_nested(column.type):
            raise _Damaged(f"column {name!r} of {path.name} holds {column.type}, not labels")
    for line in lines:
        model = line.get("point", 0)
        if type(model) is not int or not 0 <= model < _MOST_MODELS:
            raise _Damaged(f"{path.name} speaks of a model number {model!r}")
        yield model, line

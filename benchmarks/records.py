"""Rows of the benchmark: what was measured, as JSON files that are written whole or not at all."""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.timing import Spread

RESULTS = Path(__file__).parent / "results"

described = lru_cache(maxsize=1)(machine.describe)


@dataclass
class Record:
    """One row: a job, what it is measured against, the figure, and how it was taken and checked."""

    name: str  # of the file; numbers in it sort as numbers
    group: str  # the rows that `--only` runs together
    job: str
    measured: Spread
    method: str
    unit: str = ""  # "×", "GiB", "s", or none for exponents
    target: float | None = None
    at_most: bool = True  # whether the target is a limit from above
    data: str = ""
    checked: str = ""  # what the results were compared with, and on how many points
    quick: bool = False
    others: float = 0.0  # share of the machine that other processes used meanwhile
    details: dict[str, Any] = field(default_factory=dict)
    machine: dict[str, str] = field(default_factory=described)
    date: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())

    @property
    def met(self) -> bool | None:
        """Whether the target is reached; None without one."""
        if self.target is None:
            return None
        return self.measured.median <= self.target if self.at_most else self.measured.median >= self.target


def save(record: Record, folder: Path = RESULTS) -> None:
    """Write a row; a reader never sees half of it."""
    text = json.dumps(asdict(record), indent=1)
    folder.mkdir(parents=True, exist_ok=True)
    fresh = folder / f".{record.name}.{os.getpid()}"
    fresh.write_text(text + "\n")
    fresh.replace(folder / f"{record.name}.json")


def load(folder: Path = RESULTS) -> list[Record]:
    """All rows, by name."""
    records = []
    for file in sorted(folder.glob("*.json"), key=_natural):
        fields = json.loads(file.read_text())
        records.append(Record(**fields | {"measured": Spread(**fields["measured"])}))
    return records


def _natural(file: Path) -> list[tuple[int, str]]:
    """Sort key that puts 50 before 100."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", file.stem)]

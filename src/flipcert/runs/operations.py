"""Attacks as lines of a table: what is done to which training label or row, one line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.files import whole_file
from flipcert.labels.threats import FLIPS, REPLACEMENTS, SOURCES
from flipcert.report.result import Attack

# What a line may do, where rows come or go.
FLIP, DELETE, INSERT, REPLACE = "flip", "delete", "insert", "replace"


def lines_of(attack: Attack) -> list[dict[str, Any]]:
    """The lines of an attack, most influential first; under flips and sources, every one changes a label."""
    flips = list(zip(attack.training_rows.tolist(), attack.old.tolist(), attack.new.tolist(), strict=True))
    if attack.threat in (FLIPS.name, SOURCES.name):
        changes = [_line(*flip) for flip in flips]
        if attack.rows is not None:
            numbered = zip(changes, attack.indices.tolist(), strict=True)
            changes = [line | {"annotation": index} for line, index in numbered]
        if attack.threat == FLIPS.name:
            return changes
        by = list(zip(attack.by.tolist(), changes, strict=True))
        return [line | {"source": own} for own in attack.sources.tolist() for giver, line in by if giver == own]
    rows, gone = attack.deleted.tolist(), attack.deleted_labels.tolist()
    come, inputs = attack.inserted_labels.tolist(), attack.inserted.tolist()
    if attack.threat == REPLACEMENTS.name:
        swaps = zip(rows, gone, come, inputs, strict=True)
        return [_line(row, old, new, operation=REPLACE, inserted=x) for row, old, new, x in swaps]
    lines = [_line(*flip, operation=FLIP, inserted=None) for flip in flips]
    lines += [_line(row, old, None, operation=DELETE, inserted=None) for row, old in zip(rows, gone, strict=True)]
    return lines + [_line(None, None, new, operation=INSERT, inserted=x) for new, x in zip(come, inputs, strict=True)]


def _line(row: int | None, old: Any, new: Any, **more: Any) -> dict[str, Any]:
    return {"training_row": row, "old_label": old, "new_label": new, **more}


def attack_of(row: int, threat: str, lines: Sequence[Mapping[str, Any]]) -> Attack:
    """The attack on a test point that was written as these lines."""
    operations = [line.get("operation", FLIP) for line in lines]

    def values(name: str, *kinds: str, dtype: Any = None) -> NDArray[Any]:
        own = [line[name] for line, operation in zip(lines, operations, strict=True) if operation in kinds]
        return np.array(own, dtype)

    by = values("source", FLIP) if threat == SOURCES.name else np.empty(0, np.int64)
    annotated = bool(lines) and "annotation" in lines[0]
    return Attack(
        row=row,
        indices=values("annotation" if annotated else "training_row", FLIP, dtype=np.int64),
        rows=values("training_row", FLIP, dtype=np.int64) if annotated else None,
        old=values("old_label", FLIP),
        new=values("new_label", FLIP),
        sources=np.array(list(dict.fromkeys(by.tolist())), by.dtype),
        by=by,
        deleted=values("training_row", DELETE, REPLACE, dtype=np.int64),
        deleted_labels=values("old_label", DELETE, REPLACE),
        inserted=values("inserted", INSERT, REPLACE, dtype=np.float64)
        if any(operation in (INSERT, REPLACE) for operation in operations)
        else np.empty((0, 0)),
        inserted_labels=values("new_label", INSERT, REPLACE),
        threat=threat,
    )


def columns_of_lines(lines: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, Any]:
    """Lines as columns of a table; ``names`` are those that a table without lines has."""
    import pyarrow as pa

    columns = {name: pa.array([line[name] for line in lines]) for name in (lines[0] if lines else names)}
    whole = {"point", "budget", "row", "flip", "training_row", "annotation"}
    return {name: own.cast(pa.int64()) if name in whole else own for name, own in columns.items()}


def write_parquet(path: Path, table: Any) -> None:
    """Write a table, whole or not at all."""
    from pyarrow import parquet

    with whole_file(path) as file:
        parquet.write_table(table, file, compression="zstd")

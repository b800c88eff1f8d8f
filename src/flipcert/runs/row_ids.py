"""What rows are called: ids of the training rows that attacks are about, and of all test points."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.report.result import Attack

# Columns of tables: the id of a test point, and that of a training row.
ID, TRAINING_ID = "id", "training_id"


def plain_ids(ids: NDArray[Any] | None) -> NDArray[Any] | None:
    """Ids as numbers or text; dates as they are written."""
    return ids.astype(str) if ids is not None and ids.dtype.kind in "mM" else ids


def ids_in(attacks: Iterable[Attack | None], ids: NDArray[Any] | None) -> dict[int, Any]:
    """Ids of the training rows that some attacks are about."""
    own = plain_ids(ids)
    if own is None:
        return {}
    rows = [np.append(attack.training_rows, attack.deleted) for attack in attacks if attack is not None]
    return {int(row): own[row].item() for row in np.unique(np.concatenate([np.empty(0, np.int64), *rows]))}


def with_ids(line: dict[str, Any], ids: Mapping[int, Any]) -> dict[str, Any]:
    """A line of an attack with the id of its training row, if rows have ids and it is about one."""
    return {**line, TRAINING_ID: ids.get(line["training_row"])} if ids else line


def read_ids(*tables: Path) -> dict[int, Any]:
    """Ids of training rows from tables of attacks, as far as these exist and have any."""
    from pyarrow import parquet

    found: dict[int, Any] = {}
    for path in tables:
        if path.exists() and TRAINING_ID in parquet.ParquetFile(path).schema_arrow.names:
            table = parquet.ParquetFile(path).read(columns=["training_row", TRAINING_ID])
            rows, own = (column.to_pylist() for column in table.columns)
            found |= {row: name for row, name in zip(rows, own, strict=True) if row is not None}
    return found

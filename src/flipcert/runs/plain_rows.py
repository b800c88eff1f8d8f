"""An attack of a run taken literally, whichever threat it is of: labels changed, rows dropped and appended, fitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from flipcert.datasets.table import Table
from flipcert.engine.sparse import changed_rows
from flipcert.labels.threats import DELETIONS, EDITS, FLIPS, INSERTIONS, REPLACEMENTS, SOURCES
from flipcert.runs.operations import DELETE, FLIP, INSERT, REPLACE
from flipcert.runs.training import fit

# What lines may do under each threat.
_MAY = {
    FLIPS.name: (FLIP,),
    SOURCES.name: (FLIP,),
    DELETIONS.name: (DELETE,),
    INSERTIONS.name: (INSERT,),
    REPLACEMENTS.name: (REPLACE,),
    EDITS.name: (FLIP, DELETE, INSERT),
}


def replay_lines(
    lines: Sequence[Mapping[str, Any]], threat: str, model: Any, X: NDArray[Any], train: Table
) -> tuple[Any, int]:
    """The model fitted anew after an attack, and how large the attack is; ValueError if it is none.

    A row that an attack takes is neither trusted nor taken twice, and has the label that the attack says.
    """
    y, classes = np.asarray(train.y), model.classes_.tolist()
    labels = y.astype(np.result_type(y, model.classes_))
    taken: set[int] = set()
    gone: list[int] = []
    come, come_labels = [], []
    for line in lines:
        operation, row, old, new = (line.get(name) for name in ("operation", "training_row", "old_label", "new_label"))
        operation = FLIP if operation is None and threat in (FLIPS.name, SOURCES.name) else operation
        if operation not in _MAY[threat]:
            raise ValueError(f"{operation!r} is nothing that an attacker may do here")
        if operation != DELETE and new not in classes:
            raise ValueError(f"{new!r} is no class")
        if operation != INSERT:
            row = _checked(row, old, y, train, taken)
            taken.add(row)
            if operation == FLIP:
                if new == old:
                    raise ValueError(f"training row {row} is {old} already")
                labels[row] = new
            else:
                gone.append(row)
        if operation in (INSERT, REPLACE):
            come.append(line["inserted"])
            come_labels.append(new)
    size = len(lines)
    if threat == SOURCES.name:
        size = _n_sources(lines, train)
    X = changed_rows(X, np.array(gone, np.int64), np.asarray(come, X.dtype)) if gone or come else X
    labels = np.append(np.delete(labels, gone), np.asarray(come_labels, labels.dtype)) if gone or come else labels
    trusted, givers = train.trusted, train.givers
    if gone or come:
        trusted = None if trusted is None else np.append(np.delete(trusted, gone), np.zeros(len(come), np.bool_))
        givers = None  # nobody says who gave the labels of new rows
    return fit(clone(model), X, replace(train, y=labels, trusted=trusted, givers=givers)), size


def _checked(row: Any, old: Any, y: NDArray[Any], train: Table, taken: set[int]) -> int:
    """The training row that a line speaks of; ValueError unless it may take it."""
    if type(row) is not int or not 0 <= row < y.size:
        raise ValueError(f"there is no training row {row}")
    if row in taken:
        raise ValueError(f"training row {row} is changed twice")
    if y[row] != old:
        raise ValueError(f"training row {row} is labelled {y[row]}, not {old}")
    if train.trusted is not None and train.trusted[row]:
        raise ValueError(f"training row {row} is trusted")
    return row


def _n_sources(lines: Sequence[Mapping[str, Any]], train: Table) -> int:
    """How many sources an attack takes, each label by its own."""
    assert train.givers is not None, "read with the same options"
    for line in lines:
        if train.givers[line["training_row"]] != line.get("source"):
            raise ValueError(f"the label of training row {line['training_row']} is not from {line.get('source')!r}")
    return len({line["source"] for line in lines})

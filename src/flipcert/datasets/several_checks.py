"""Several files of checked labels, read as one: where they agree; where they do not, they are refused."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from flipcert.datasets.checked import CheckedLabels, called, read_checked, refuse_other_labels
from flipcert.datasets.table import Table
from flipcert.datasets.tasks import some


def read_checks(
    sources: Sequence[str | os.PathLike[str]], train: Table, *, id: str | None, classes: Sequence[Any] | None
) -> CheckedLabels:
    """Read files of checked labels that were made from a training set, one after the other or beside each other.

    A present label is that of the training set, or what another of the files corrected it to.

    Returns
    -------
    CheckedLabels
        A line for each label that somebody has looked at, in the order of the files; a label that several files agree
        on is there once.
    """
    lists = [read_checked(own, train, id=id, classes=classes, whatever_is_present=True) for own in sources]
    said: dict[int, tuple[str, Any]] = {}
    for own in lists:
        for row, label in zip(own.rows[own.looked].tolist(), own.labels[own.looked].tolist(), strict=True):
            source, before = said.setdefault(row, (own.source, label))
            if before != label:
                raise ValueError(
                    f"{source} says that the label of {called(train, row, id)} should be {some([before])}, and "
                    f"{own.source} that it should be {some([label])}; correct one of them."
                )
    corrections = {row: label for row, (_, label) in said.items()}
    for own in lists:
        refuse_other_labels(own, train, corrections, id, classes)
    rows = np.array(list(said), np.int64)
    dtype = np.result_type(*(own.labels.dtype for own in lists))
    labels = np.array([label for _, label in said.values()], dtype)
    y = np.asarray(train.y)[rows]
    source = ", ".join(own.source for own in lists)
    return CheckedLabels(source, rows, [str(own) for own in y], np.ones(rows.size, np.bool_), labels, labels != y, {})

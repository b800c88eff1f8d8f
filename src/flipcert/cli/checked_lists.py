"""Lists of labels that were checked, as they are given: what they change in a training set; and the next one."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from flipcert.cli.options import AuditOptions, DataOptions, Proof
from flipcert.datasets.checked import CHECKED, LABEL, write_to_check
from flipcert.datasets.files import digest
from flipcert.datasets.several_checks import read_checks
from flipcert.datasets.table import Table
from flipcert.labels.threats import FLIPS, SOURCES
from flipcert.report.audit_result import Audit
from flipcert.report.audit_words import reason
from flipcert.runs.audit import AuditRequest
from flipcert.runs.stored_audit import TO_CHECK

# Columns of the list beside labels.
_REASON, _SOURCE = "reason", "source"


def requested(
    train: Table, audit: AuditOptions, data: DataOptions, proof: Proof, classes: tuple[Any, ...] | None
) -> tuple[Table, AuditRequest]:
    """The training set after all checks so far, and what is to be audited now."""
    if data.annotations is not None:
        raise ValueError("--annotations gives rows several labels, but an audit is a list of one label a row.")
    if proof.threat not in (FLIPS.name, SOURCES.name):
        raise ValueError(f"--threat must be flips or sources for an audit: these can be checked; got {proof.threat!r}.")
    columns = (LABEL, CHECKED, _REASON, *((_SOURCE,) if proof.threat == SOURCES.name else ()))
    if data.id in columns:
        raise ValueError(
            f"--id {data.id} is the name of another column of the list to check; rename the column of ids."
        )
    corrected, wrong, right = after_checks(train, audit.checked, data, classes)
    counts = (wrong, right) if audit.checked else (None, None)
    return corrected, AuditRequest(audit.labels, audit.flips, audit.suspicious, *counts)


def after_checks(
    train: Table, checked: Sequence[Path] | None, data: DataOptions, classes: tuple[Any, ...] | None
) -> tuple[Table, int, int]:
    """The training set with all that was checked corrected and trusted; how many labels were wrong, and right."""
    if not checked:
        return train, 0, 0
    found = read_checks(checked, train, id=data.id, classes=classes)
    if found.rows.size == 0:
        raise ValueError(f"--checked {checked[0]} has an empty column checked; fill in what the labels should be.")
    wrong = int(np.count_nonzero(found.wrong))
    return found.corrected(train), wrong, found.rows.size - wrong


def digest_of_checks(checked: Sequence[Path]) -> str:
    """What the files of all checks are known by, in their order."""
    sums = [digest(str(path), "checked") for path in checked]
    return sums[0] if len(sums) == 1 else hashlib.sha256("".join(sums).encode()).hexdigest()


def write_list(folder: Path, audit: Audit | None, train: Table, data: DataOptions) -> None:
    """Write the file to fill in."""
    if audit is not None:
        rows = audit.listed.indices
        told = [reason(entry) for entry in audit.entries]
        beside: dict[str, list[Any]] = {_REASON: told}
        if audit.listed.sources is not None:
            givers = np.asarray(train.givers)[rows].tolist()
            by_source = dict(zip(audit.listed.sources.tolist(), told, strict=True))
            beside = {_SOURCE: givers, _REASON: [by_source[own] for own in givers]}
        write_to_check(folder / TO_CHECK, train, rows, id=data.id, beside=beside)

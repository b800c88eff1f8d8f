"""What a run says of labels to check, looked at again: whether its files agree, and what is proven before any check."""

from __future__ import annotations

import json

import numpy as np

from flipcert.datasets.table import Table
from flipcert.runs.comparisons import BEFORE, WRITTEN, Place, Verification
from flipcert.runs.stored_audit import AUDITED, describe_audit
from flipcert.runs.stored_run import StoredRun

NOT_COMPUTED = (
    "What is proven after checks (planned, by the list, held out, at random), and which labels look wrong, was not "
    "computed again: only that files and summary are as they were written and agree, and what is proven before any "
    "check."
)


def compare_audit(run: StoredRun, train: Table, verification: Verification) -> None:
    """Compare what is told of an audit with its files, with the table of all points, and with the training labels."""
    audit, note = run.audit, verification.note
    if audit is None:
        return
    verification.leave_out(NOT_COMPUTED)
    place, told = Place(run.settings[0].name), run.told[0][AUDITED]
    note(WRITTEN, place, ", ".join(run.changed) or "all files", "all files as they were written", not run.changed)
    found = json.loads(json.dumps(describe_audit(audit)))
    for name in dict.fromkeys([*told, *found]):
        note(WRITTEN, place, f"{name} {told.get(name)}", f"{name} {found.get(name)}")
    lines, plan = run.points[0], audit.plan
    proven = sum(
        line["radius"] >= plan.flips and (not plan.counts_correct or line.get("label") == line["prediction"])
        for line in lines
    )
    share = proven / max(len(lines), 1)
    for own in (plan, audit.listed):
        before = float(own.certified[0])
        # Plans go by the radii before an exact search, which may be smaller.
        agrees = abs(before - share) < 1e-12 or (run.exact and before < share)
        note(BEFORE, place, f"{before} before any check", f"{share} before any check", agrees)
    y = np.asarray(train.y)
    for entry in audit.entries:
        if entry.row is not None:
            label = y[entry.row].item() if 0 <= entry.row < y.size else None
            note(BEFORE, place, f"row {entry.row} {entry.label}", f"row {entry.row} {label}")

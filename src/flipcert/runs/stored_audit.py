"""An audit as files of a run: what was planned and measured, and the list with its reasons."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flipcert.engine.files import refuse_odd_files
from flipcert.report.audit_result import Audit, AuditEntry
from flipcert.report.audit_words import reason
from flipcert.results.audit_plan import AuditPlan
from flipcert.runs.operations import write_parquet

PLAN, LISTED, LIST, TO_CHECK = "audit-plan.npz", "audit-list.npz", "audit.parquet", "audit.csv"
# What came of an audit, in a summary; what was asked is a setting.
AUDITED = "audit_result"
_COLUMNS = (
    "index",
    "row",
    "id",
    "label",
    "source",
    "weighs_on",
    "margin",
    "preferred",
    "n_labels",
    "n_suspects",
    "by_folds",
)


def write_audit(folder: Path, audit: Audit | None) -> list[str]:
    """Write what was planned, and the list; name the files. The one to fill in is not among them: people change it."""
    import pyarrow as pa

    if audit is None:
        return []
    audit.plan.save(folder / PLAN)
    audit.listed.save(folder / LISTED)
    columns: dict[str, Any] = {name: [getattr(entry, name) for entry in audit.entries] for name in _COLUMNS}
    columns["reason"] = [reason(entry) for entry in audit.entries]
    write_parquet(folder / LIST, pa.table({name: pa.array(own) for name, own in columns.items()}))
    return [PLAN, LISTED, LIST]


def read_audit(folder: Path, told: Mapping[str, Any]) -> Audit:
    """Read it again; ``told`` is what the summary says of it. A ValueError if it is not what was written."""
    from pyarrow import ArrowException, parquet

    try:
        refuse_odd_files(folder / LIST)
        lines = parquet.ParquetFile(folder / LIST).read().to_pylist()
        entries = tuple(AuditEntry(**{name: line[name] for name in _COLUMNS}) for line in lines)
        counts = (int(told["suspects"]), told.get("corrected"), told.get("confirmed"))
    except (ArrowException, LookupError, TypeError) as error:
        raise ValueError(f"{LIST} is not what was written.") from error
    return Audit(AuditPlan.load(folder / PLAN), AuditPlan.load(folder / LISTED), entries, *counts)


def describe_audit(audit: Audit) -> dict[str, Any]:
    """What came of it, for a summary."""
    plan = audit.plan
    shares = {"planned": plan.certified, "held_out": plan.held_out, "random": plan.random}
    told: dict[str, Any] = {
        "checks": len(plan),
        "flips": plan.flips,
        "counted": "certified_accuracy" if plan.counts_correct else "share_certified",
        "before": float(plan.certified[0]),
        "list": float(audit.listed.certified[-1]),
        **{name: float(own[-1]) for name, own in shares.items() if own is not None},
        "suspects": audit.n_suspects,
    }
    if audit.n_corrected is not None:
        told |= {"corrected": audit.n_corrected, "confirmed": audit.n_confirmed}
    return told

"""Which labels to check first: the command, and what it shows."""

from __future__ import annotations

import json
from pathlib import Path

import typer
from rich import box
from rich.markup import escape
from rich.table import Table

from flipcert.cli.commands import certify_points, tell_where
from flipcert.cli.console import results
from flipcert.cli.models import settings_of
from flipcert.cli.options import AuditOptions, ClusterOptions, DataOptions, ModelOptions, Point, Proof, RunOptions
from flipcert.cli.tables import print_summary
from flipcert.report.audit_result import Audit
from flipcert.report.audit_words import NOT_ERRORS, NOT_OTHERS, evidence, finding, reason
from flipcert.report.words import outside
from flipcert.runs.describe import describe_point
from flipcert.runs.stored_audit import TO_CHECK

# Lines of the list that are shown.
_SHOWN = 10


def audit_command(
    train: str,
    test: str,
    audit: AuditOptions,
    model: ModelOptions,
    point: Point,
    data: DataOptions,
    run: RunOptions,
    proof: Proof,
    cluster: ClusterOptions,
) -> None:
    """Say which labels to check first."""
    (result,) = certify_points(
        train, test, [settings_of(model, point, data, proof)], data, run, proof, cluster, audit=audit
    )
    assert result.audit is not None
    if run.json:
        typer.echo(json.dumps({**describe_point(result), "run": None if run.out is None else str(run.out)}, indent=2))
    else:
        print_summary(result)
        print_audit(result.audit, run.out)
        tell_where(run.out)


def print_audit(audit: Audit, out: Path | None) -> None:
    """What checking proves, and which labels to check."""
    said = " ".join([f"{finding(audit)}.", *evidence(audit)])
    results.print(said, soft_wrap=True, markup=False)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    by_source, has_ids = audit.listed.sources is not None, any(entry.id is not None for entry in audit.entries)
    headings = ("source", "labels") if by_source else ("id" if has_ids else "row", "label")
    for heading in ("check", *headings, "why"):
        table.add_column(heading, justify="right" if heading in ("check", "row", "labels") else "left")
    for place, entry in enumerate(audit.entries[:_SHOWN]):
        called = (entry.id if has_ids else entry.row, entry.label)
        called = (entry.source, f"{entry.n_labels:,}") if by_source else called
        table.add_row(str(place + 1), *(escape(outside(own)) for own in called), escape(reason(entry)))
    results.print(table)
    more = len(audit.entries) - _SHOWN
    if more > 0:
        results.print(f"and {more:,} more{'' if out is None else f' in {out / TO_CHECK}'}.", markup=False)
    results.print(f"{NOT_ERRORS} {NOT_OTHERS}", soft_wrap=True, markup=False)
    if out is not None:
        results.print(
            f"To check: {out / TO_CHECK}. Fill in the column checked, then give the same command with --checked "
            f"{out / TO_CHECK} added, and another --out.",
            soft_wrap=True,
            markup=False,
        )

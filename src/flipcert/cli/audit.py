"""What an audit found, as it is shown: the curve in a few numbers, and the head of the list."""

from __future__ import annotations

from pathlib import Path

from rich import box
from rich.markup import escape
from rich.table import Table

from flipcert.cli.console import results
from flipcert.report.audit_result import Audit
from flipcert.report.audit_words import NOT_ERRORS, NOT_OTHERS, evidence, finding, reason
from flipcert.report.words import outside
from flipcert.runs.stored_audit import TO_CHECK

# Lines of the list that are shown.
_SHOWN = 10


def print_audit(audit: Audit, out: Path | None) -> None:
    """What checking proves, and which labels to check."""
    said = " ".join([f"{finding(audit)}.", *evidence(audit)])
    results.print(said, soft_wrap=True, markup=False)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    has_ids = any(entry.id is not None for entry in audit.entries)
    for heading in ("check", "id" if has_ids else "row"):
        table.add_column(heading, justify="left" if has_ids and heading == "id" else "right", no_wrap=True)
    for heading in ("label", "why"):
        table.add_column(heading)
    for place, entry in enumerate(audit.entries[:_SHOWN]):
        called = outside(entry.id) if has_ids else str(entry.row)
        table.add_row(str(place + 1), escape(called), escape(outside(entry.label)), escape(reason(entry)))
    results.print(table)
    more = len(audit.entries) - _SHOWN
    if more > 0:
        results.print(f"and {more:,} more{'' if out is None else f' in {out / TO_CHECK}'}.", markup=False)
    results.print(f"{NOT_ERRORS} {NOT_OTHERS}", soft_wrap=True, markup=False)
    if out is not None:
        results.print(
            f"To check: {out / TO_CHECK}; fill in the column checked, then go on with --checked {out / TO_CHECK}.",
            soft_wrap=True,
            markup=False,
        )

"""Results as tables on a terminal."""

from __future__ import annotations

import csv
import json
import sys
from typing import Any

from rich import box
from rich.table import Table

from flipcert.cli.console import results
from flipcert.evaluation.report.words import headline, plural
from flipcert.evaluation.result import Result
from flipcert.evaluation.series import counted
from flipcert.evaluation.summary import summarise
from flipcert.runs.flip_list import FlipList


def print_summary(result: Result) -> None:
    """The numbers of one result, and what the median means in words."""
    summary = summarise(result)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    table.add_column(result.name, justify="right")
    for name, value in _rows(summary):
        table.add_row(name, value)
    results.print(table)
    counts = counted(result.certificates, result.labels)
    said = headline(
        summary["median_radius"], int(counts.sum()), counts.size, summary["training_labels"],
        labelled=result.labels is not None,
    )  # fmt: skip
    results.print(f"{said}.", soft_wrap=True)


def print_comparison(compared: list[Result]) -> None:
    """One row a result."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    known = compared[0].labels is not None
    regs = any("reg" in result.settings for result in compared)
    headings = [*(["reg"] if regs else []), "parti-\ntions", *(["accu-\nracy"] if known else [])]
    headings += ["median\nradius", "by votes\nalone", "largest\nradius", "\nexact", "\nseconds"]
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for result in compared:
        summary = summarise(result)
        upper = summary["median_radius_upper"]
        median = f"{summary['median_radius']:,}"
        table.add_row(
            *([f"{result.settings['reg']:g}"] if regs else []),
            str(result.n_partitions),
            *([f"{summary['accuracy']:.3f}"] if known else []),
            median if upper == summary["median_radius"] else f"{median} to {upper:,}",
            f"{summary['median_blackbox_radius']:,}" if "median_blackbox_radius" in summary else "",
            f"{summary['largest_radius']:,}",
            f"{summary['share_exact']:.3f}",
            "" if result.seconds is None else f"{result.seconds:.1f}",
        )
    results.print(table)
    whose = "correct predictions" if known else "predictions"
    results.print(f"Radius: label flips that {whose} are proven to withstand.", soft_wrap=True)


def print_flips(flips: FlipList, form: str) -> None:
    """An attack as a table, as CSV or as JSON."""
    rows = [
        {"flip": step, "training_row": index, "old_label": old, "new_label": new}
        for step, (index, old, new) in enumerate(
            zip(flips.indices.tolist(), flips.old.tolist(), flips.new.tolist(), strict=True), start=1
        )
    ]
    names = ["flip", "training_row", "old_label", "new_label"]
    if flips.leads is not None:
        names.append(f"{flips.unit}_lead")
        for row, lead in zip(rows, flips.leads[1:].tolist(), strict=True):
            row[names[-1]] = lead
    if form == "json":
        about = {
            "row": flips.row,
            "prediction": flips.prediction,
            "label": flips.label,
            "target": flips.target,
            "radius": flips.radius,
            "exact": flips.exact,
            "lead_before": None if flips.leads is None else float(flips.leads[0]),
        }
        results.print_json(json.dumps({**about, "flips": rows}), highlight=False)
    elif form == "csv":
        writer = csv.DictWriter(sys.stdout, names)
        writer.writeheader()
        writer.writerows(rows)
    else:
        _print_flip_table(flips, rows)


def _print_flip_table(flips: FlipList, rows: list[dict[str, Any]]) -> None:
    right = "" if flips.label is None else f" ({'right' if flips.label == flips.prediction else 'wrong'})"
    results.print(
        f"Row {flips.row} is predicted as {flips.prediction}{right}; no {flips.radius:,} flips change that.",
        soft_wrap=True, markup=False,
    )  # fmt: skip
    if not rows:
        results.print("No attack is known: no labelling changes it, or none was found.")
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    headings = ["flip", "training row", "label", "becomes"]
    leads = []
    if flips.leads is not None:
        headings.append(f"lead ({flips.unit})")
        leads = [f"{lead:.0f}" if flips.unit == "votes" else f"{lead:.4g}" for lead in flips.leads]
    for heading in headings:
        table.add_column(heading, justify="right")
    if leads:
        table.add_row("", "", "", "", leads[0], style="dim")
    for row, *lead in zip(rows, *([leads[1:]] if leads else []), strict=True):
        table.add_row(
            str(row["flip"]), str(row["training_row"]), *map(_plain, (row["old_label"], row["new_label"])), *lead
        )
    results.print(table)
    best = "the smallest attack" if flips.exact else "the smallest attack known"
    results.print(
        f"These {len(rows):,} flips turn it into {flips.target}; they are {best}.", soft_wrap=True, markup=False
    )


def _rows(summary: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [("test points", f"{summary['test_points']:,}"), ("training labels", f"{summary['training_labels']:,}")]
    if "accuracy" in summary:
        rows.append(("accuracy", f"{summary['accuracy']:.3f}"))
    rows.append(("median radius", f"{summary['median_radius']:,}"))
    if summary["median_radius_upper"] != summary["median_radius"]:
        rows.append(("median radius at most", f"{summary['median_radius_upper']:,}"))
    if "median_blackbox_radius" in summary:
        rows.append(("median by votes alone", f"{summary['median_blackbox_radius']:,}"))
    rows.append(("largest radius", f"{summary['largest_radius']:,}"))
    rows.append(("share exact", f"{summary['share_exact']:.3f}"))
    shares = summary.get("certified_accuracy", summary.get("share_certified", {}))
    name = "certified accuracy" if "accuracy" in summary else "certified"
    rows += [(f"{name} at {plural(int(flips), 'flip')}", f"{share:.3f}") for flips, share in shares.items()]
    return rows


def _plain(value: Any) -> str:
    from rich.markup import escape

    return escape(str(value))

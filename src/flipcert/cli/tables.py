"""Results as tables on a terminal."""

from __future__ import annotations

import csv
import json
import sys
from typing import Any

from rich import box
from rich.table import Table

from flipcert.cli.console import results
from flipcert.report.key_figures import summarise
from flipcert.report.result import Result
from flipcert.report.series import counted
from flipcert.report.words import Exposure, amount, headline, outside, plural
from flipcert.report.worth import WHAT_MENDS_IT, Standing, rule, why
from flipcert.runs.flip_list import FlipList


def print_summary(result: Result) -> None:
    """The numbers of one result, and what the median means in words."""
    summary = summarise(result)
    if "warning" in summary:
        _say(summary["warning"], style="bold")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    table.add_column(result.name, justify="right")
    for name, value in _rows(summary):
        table.add_row(name, value)
    results.print(table)
    counts = counted(result.certificates, result.labels)
    _say(f"{headline(result.certificates, counts, labelled=result.labels is not None)}.")


def print_comparison(compared: list[Result]) -> None:
    """One row a result of the same data, and which one to choose."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    known = compared[0].labels is not None
    exposure = Exposure.of(compared[0].certificates)
    regs = any("reg" in result.settings for result in compared)
    headings = [*(["reg"] if regs else []), "parti-\ntions", *(["accu-\nracy"] if known else [])]
    if exposure.n_attackable:
        headings += ["proven\nat 1 %", "mean\nto 1 %", "median\nradius", "by votes\nalone", "\nexact"]
    for heading in [*headings, "\nseconds"]:
        table.add_column(heading, justify="right", no_wrap=True)
    standings = [Standing.of(result, result.name) for result in compared]
    if not all(standing.tells for standing in standings):
        _say(f"Models marked * are no better than one answer for all test points. {WHAT_MENDS_IT}", style="bold")
    for result, standing in zip(compared, standings, strict=True):
        table.add_row(
            *([f"{result.settings['reg']:g}"] if regs else []),
            f"{result.n_partitions}{'' if standing.tells else ' *'}",
            *([f"{standing.accuracy:.3f}"] if known else []),
            *(_robustness(result, standing) if exposure.n_attackable else []),
            "" if result.seconds is None else f"{result.seconds:.1f}",
        )
    results.print(table)
    if exposure.n_attackable == 0:
        _say(f"{exposure.nothing}.")
    else:
        whose = "correct predictions" if known else "predictions"
        _say(f"Radius: label flips that {whose} are proven to withstand. {rule(known)}")
        if exposure.n_trusted:
            _say(f"An attacker can flip the {exposure.counted}{exposure.aside}.")
    if len(standings) > 1:
        _say(f"\n{why(standings)}", style="bold")


def _robustness(result: Result, standing: Standing) -> list[str]:
    """What the row of a result says of flips."""
    summary = summarise(result)
    most = summary["attackable_labels"]
    median, upper = (amount(summary[name], most) for name in ("median_radius", "median_radius_upper"))
    up_to = f"{median} or more" if upper == "any" else f"{median} to {upper}"
    return [
        f"{standing.kept:.3f}",
        f"{standing.average:.3f}",
        median if upper == median else up_to,
        amount(summary["median_blackbox_radius"], most) if "median_blackbox_radius" in summary else "",
        f"{summary['share_exact']:.3f}",
    ]


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
            "attackable_labels": flips.n_attackable,
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
    _say(f"Row {flips.row} is predicted as {outside(flips.prediction)}{right}; {_withstood(flips)}.")
    if not rows:
        if flips.radius < flips.n_attackable:
            _say("No attack is known.")
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
    turn, are = ("This flip turns", "it is") if len(rows) == 1 else (f"These {len(rows):,} flips turn", "they are")
    _say(f"{turn} it into {outside(flips.target)}; {are} {best}.")


def _withstood(flips: FlipList) -> str:
    """What one prediction withstands."""
    exposure = Exposure(flips.n_labels, flips.n_attackable)
    if exposure.n_attackable == 0:
        return f"no label can be flipped, as {exposure.all_trusted}"
    if flips.radius and not flips.proven:
        return f"by the published formula, no {plural(flips.radius, 'flip')} would change that, which is not proven"
    if flips.radius >= exposure.n_attackable:
        return f"no flips of the {exposure.counted} change that{exposure.aside}"
    none = "a single flip changes that" if flips.indices.size == 1 else "that is not proven to withstand a single flip"
    counts = {0: none, 1: "no single flip changes that"}
    said = counts.get(flips.radius, f"no {flips.radius:,} flips change that")
    return said + exposure.only(f", of the {exposure.counted}") + exposure.aside


def _rows(summary: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [("test points", f"{summary['test_points']:,}"), ("training labels", f"{summary['training_labels']:,}")]
    most = summary["attackable_labels"]
    if most < summary["training_labels"]:
        rows.append(("of them trusted", f"{summary['training_labels'] - most:,}"))
    if "accuracy" in summary:
        rows.append(("accuracy", f"{summary['accuracy']:.3f}"))
    if most == 0:
        return rows
    rows.append(("median radius", amount(summary["median_radius"], most)))
    if summary["median_radius"] != summary["median_radius_upper"] < most:
        rows.append(("median radius at most", amount(summary["median_radius_upper"], most)))
    if "median_blackbox_radius" in summary:
        rows.append(("median by votes alone", amount(summary["median_blackbox_radius"], most)))
    rows.append(("largest radius", amount(summary["largest_radius"], most)))
    rows.append(("share exact", f"{summary['share_exact']:.3f}"))
    shares = summary.get("certified_accuracy", summary.get("share_certified", {}))
    name = "certified accuracy" if "accuracy" in summary else "certified"
    rows += [(f"{name} at {plural(int(flips), 'flip')}", f"{share:.3f}") for flips, share in shares.items()]
    return rows


def _say(text: str, style: str = "") -> None:
    """Print sentences: whole words to a line on a terminal, and no breaks where they go to a file."""
    results.print(text, style=style, soft_wrap=not results.is_terminal, markup=False)


def _plain(value: Any) -> str:
    from rich.markup import escape

    return escape(outside(value))

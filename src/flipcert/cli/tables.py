"""Results as tables on a terminal."""

from __future__ import annotations

import csv
import json
import sys
from typing import Any

from rich import box
from rich.table import Table

from flipcert.cli.console import results
from flipcert.labels.threats import DELETIONS, FLIPS, SOURCES
from flipcert.report.attack_parts import inputs_told, parts_of
from flipcert.report.key_figures import rows_of, summarise
from flipcert.report.result import Result
from flipcert.report.series import counted
from flipcert.report.words import Exposure, headline, outside, plural
from flipcert.report.worth import WHAT_MENDS_IT, Standing, lopsided, rule, why
from flipcert.runs.flip_list import FlipList
from flipcert.runs.operations import lines_of
from flipcert.runs.row_ids import TRAINING_ID, with_ids


def print_summary(result: Result) -> None:
    """The numbers of one result, and what the median means in words."""
    summary = summarise(result)
    if "warning" in summary:
        say(summary["warning"], style="bold")
    if (sentence := lopsided(result)) is not None:
        say(sentence, style="bold")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    table.add_column(result.name, justify="right")
    for name, value in rows_of(summary, Exposure.of(result.certificates)):
        table.add_row(name, value)
    results.print(table)
    counts = counted(result.certificates, result.labels)
    say(f"{headline(result.certificates, counts, labelled=result.labels is not None)}.")


def print_comparison(compared: list[Result]) -> None:
    """One row a result of the same data, and which one to choose."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    known = compared[0].labels is not None
    exposure = Exposure.of(compared[0].certificates)
    regs = any("reg" in result.settings for result in compared)
    headings = [*(["reg"] if regs else []), "parti-\ntions", *(["accu-\nracy"] if known else [])]
    if exposure.reach:
        headings += ["proven\nat 1 %", "mean\nto 1 %", "median\nradius", "by votes\nalone", "\nexact"]
    for heading in [*headings, "\nseconds"]:
        table.add_column(heading, justify="right", no_wrap=True)
    standings = [Standing.of(result, result.name) for result in compared]
    if not all(standing.tells for standing in standings):
        say(f"Models marked * are no better than one answer for all test points. {WHAT_MENDS_IT}", style="bold")
    for result, standing in zip(compared, standings, strict=True):
        table.add_row(
            *([f"{result.settings['reg']:g}"] if regs else []),
            f"{result.n_partitions}{'' if standing.tells else ' *'}",
            *([f"{standing.accuracy:.3f}"] if known else []),
            *(_robustness(result, standing) if exposure.reach else []),
            "" if result.seconds is None else f"{result.seconds:.1f}",
        )
    results.print(table)
    if exposure.reach == 0:
        say(f"{exposure.nothing}.")
    else:
        whose, unit = "correct predictions" if known else "predictions", exposure.unit
        counted_in = "label flips" if unit.threat == FLIPS.name else unit.nouns
        say(f"Radius: {counted_in} that {whose} are proven to withstand. {rule(known, unit)}")
        if unit.threat == SOURCES.name:
            say(f"An attacker can control any of the {exposure.counted}{exposure.aside}.")
        elif exposure.only("so"):
            verb = {FLIPS.name: "flip", DELETIONS.name: "delete"}.get(unit.threat, "replace")
            say(f"An attacker can {verb} the {exposure.counted}{exposure.aside}.")
        elif exposure.n_trusted:
            say(f"Shares are of the {exposure.counted}{exposure.aside}.")
    if len(standings) > 1:
        say(f"\n{why(standings)}", style="bold")


def _robustness(result: Result, standing: Standing) -> list[str]:
    """What the row of a result says of flips."""
    summary, exposure = summarise(result), Exposure.of(result.certificates)
    median, upper = (exposure.amount(summary[name]) for name in ("median_radius", "median_radius_upper"))
    up_to = f"{median} or more" if upper == "any" else f"{median} to {upper}"
    return [
        f"{standing.kept:.3f}",
        f"{standing.average:.3f}",
        median if upper == median else up_to,
        exposure.amount(summary["median_blackbox_radius"]) if "median_blackbox_radius" in summary else "",
        f"{summary['share_exact']:.3f}",
    ]


def print_flips(flips: FlipList, form: str) -> None:
    """An attack as a table, as CSV or as JSON."""
    if flips.exposure.threat != FLIPS.name:
        _print_attack(flips, form)
        return
    rows = [
        with_ids({"flip": step, "training_row": index, "old_label": old, "new_label": new}, flips.train_ids)
        for step, (index, old, new) in enumerate(
            zip(flips.training_rows.tolist(), flips.old.tolist(), flips.new.tolist(), strict=True), start=1
        )
    ]
    names = list(rows[0]) if rows else ["flip", "training_row", "old_label", "new_label"]
    if flips.leads is not None:
        names.append(f"{flips.unit}_lead")
        for row, lead in zip(rows, flips.leads[1:].tolist(), strict=True):
            row[names[-1]] = lead
    if form == "json":
        about = {
            "row": flips.row,
            **({} if flips.id is None else {"id": flips.id}),
            "prediction": flips.prediction,
            "label": flips.label,
            "target": flips.target,
            "radius": flips.radius,
            "attackable_labels": flips.exposure.n_attackable,
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


def _print_attack(found: FlipList, form: str) -> None:
    """An attack under another threat than flips."""
    lines = [] if found.attack is None else [with_ids(line, found.train_ids) for line in lines_of(found.attack)]
    if form == "json":
        about = {
            "row": found.row,
            **({} if found.id is None else {"id": found.id}),
            "prediction": found.prediction,
            "label": found.label,
            "target": found.target,
            "threat": found.exposure.threat,
            "radius": found.radius,
            "limit": found.exposure.reach,
            "exact": found.exact,
            "size": 0 if found.attack is None else found.attack.size,
        }
        results.print_json(json.dumps({**about, "changes": lines}), highlight=False)
    elif form == "csv":
        writer = csv.DictWriter(sys.stdout, list(lines[0]) if lines else ["training_row", "old_label", "new_label"])
        writer.writeheader()
        writer.writerows(lines)
    else:
        _print_parts(found)


def _print_parts(found: FlipList) -> None:
    unit = found.exposure.unit
    right = "" if found.label is None else f" ({'right' if found.label == found.prediction else 'wrong'})"
    say(f"Row {_called(found)} is predicted as {outside(found.prediction)}{right}; {_withstood(found)}.")
    if found.attack is None:
        if found.radius < found.exposure.reach:
            say("No attack is known.")
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(unit.thing)
    table.add_column("")
    parts = parts_of(found.attack, found.train_ids)
    for part in parts:
        table.add_row(_plain(part.name), _plain(part.said))
    results.print(table)
    best = "the smallest attack" if found.exact else "the smallest attack known"
    size = found.attack.size
    turn = f"This {unit.noun} turns" if size == 1 else f"These {size:,} {unit.nouns} turn"
    say(f"{turn} it into {outside(found.target)}; {'it is' if size == 1 else 'they are'} {best}.")
    if len(found.attack.inserted):
        say(f"{inputs_told(found.attack)} Inputs of new rows, in numbers: --format csv.".lstrip())


def _print_flip_table(flips: FlipList, rows: list[dict[str, Any]]) -> None:
    right = "" if flips.label is None else f" ({'right' if flips.label == flips.prediction else 'wrong'})"
    say(f"Row {_called(flips)} is predicted as {outside(flips.prediction)}{right}; {_withstood(flips)}.")
    if not rows:
        if flips.radius < flips.exposure.reach:
            say("No attack is known.")
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    headings = ["flip", "training row", *(["id"] if flips.train_ids else []), "label", "becomes"]
    leads = []
    if flips.leads is not None:
        headings.append(f"lead ({flips.unit})")
        leads = [f"{lead:.0f}" if flips.unit == "votes" else f"{lead:.4g}" for lead in flips.leads]
    for heading in headings:
        table.add_column(heading, justify="right")
    if leads:
        table.add_row(*[""] * (len(headings) - 1), leads[0], style="dim")
    for row, *lead in zip(rows, *([leads[1:]] if leads else []), strict=True):
        table.add_row(
            str(row["flip"]),
            str(row["training_row"]),
            *([_plain(row[TRAINING_ID])] if flips.train_ids else []),
            *map(_plain, (row["old_label"], row["new_label"])),
            *lead,
        )
    results.print(table)
    best = "the smallest attack" if flips.exact else "the smallest attack known"
    turn, are = ("This flip turns", "it is") if len(rows) == 1 else (f"These {len(rows):,} flips turn", "they are")
    say(f"{turn} it into {outside(flips.target)}; {are} {best}.")


def _called(found: FlipList) -> str:
    return str(found.row) if found.id is None else f"{found.row} ({outside(found.id)})"


def _withstood(flips: FlipList) -> str:
    """What one prediction withstands."""
    exposure = flips.exposure
    unit, size = exposure.unit, 0 if flips.attack is None else flips.attack.size
    if exposure.reach == 0:
        return f"{unit.nothing_possible[0].lower()}{unit.nothing_possible[1:]}, as {exposure.all_trusted}"
    if flips.radius and not flips.proven:
        return f"by the published formula, no {plural(flips.radius, unit.noun)} would change that, which is not proven"
    if flips.radius >= exposure.reach:
        if unit.threat == SOURCES.name or not unit.bounded:
            what = exposure.none_of_any_size
            return f"{what[0].lower()}{what[1:]} change that{exposure.aside}"
        return f"{unit.everything.replace('any', 'no', 1)} of the {exposure.counted} change that{exposure.aside}"
    none = f"a single {unit.noun} changes that"
    none = none if size == 1 else f"that is not proven to withstand a single {unit.noun}"
    counts = {0: none, 1: f"no single {unit.noun} changes that"}
    said = counts.get(flips.radius, f"no {flips.radius:,} {unit.nouns} change that")
    among = exposure.n_sources is not None or exposure.only("so")
    return said + (f", of the {exposure.counted}" if among else "") + exposure.aside


def say(text: str, style: str = "") -> None:
    """Print sentences: whole words to a line on a terminal, and no breaks where they go to a file."""
    results.print(text, style=style, soft_wrap=not results.is_terminal, markup=False)


def _plain(value: Any) -> str:
    from rich.markup import escape

    return escape(outside(value))

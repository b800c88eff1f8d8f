"""Tables of the page: narrow rows, and below them, numbered, what was done, on what, and why a target is missed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from benchmarks.headlines import why
from benchmarks.records import Record

# Above this share for other processes, a ratio says more about the neighbours than about the code.
BUSY = 0.05
# Sizes that jobs of one table mostly have in common.
_SHAPE = re.compile(r", (n = [\d,]+, d = \d+, K = \d+)")


def rows(records: Sequence[Record], machines: Sequence[str]) -> str:
    """Job, target, figure and whether it is met, a row each; notes below."""
    notes: list[str] = []
    lines = []
    for record in records:
        shape = _SHAPE.search(record.job)
        note = _note(record, shape.group(1) if shape else "", machines)
        if note not in notes:
            notes.append(note)
        mark = " †" if record.others > BUSY else ""
        place = str(1 + notes.index(note))
        lines.append((_SHAPE.sub("", record.job), target(record), measured(record) + mark, met(record), place))
    numbered = "".join(f"{place}. {note}.\n" for place, note in enumerate(notes, 1))
    return table(("job", "wanted", "measured", "met", "note"), lines) + "\n" + numbered + _busy(records)


def _note(record: Record, shape: str, machines: Sequence[str]) -> str:
    """How a figure was taken and checked."""
    parts = [record.method, shape]
    if record.measured.count > 1:
        parts.append(f"{record.measured.count} repetitions")
    parts.append(record.data)
    share = record.details.get("share_exact")
    parts.append("" if share is None else f"exact for {100 * share:.1f} % of the points")
    parts.append(record.checked and f"checked: {record.checked}")
    parts.append("**quick run, small sizes**" if record.quick else "")
    if len(machines) > 1:
        parts.append(f"machine {machines.index(machine_of(record)) + 1}")
    reason = why(record)
    parts.append(f"missed: {reason}" if reason else "")
    return "; ".join(part for part in parts if part)


def _busy(records: Sequence[Record]) -> str:
    """What the mark of busy rows means; nothing if there are none."""
    shares = sorted(round(100 * record.others) for record in records if record.others > BUSY)
    if not shares:
        return ""
    used = f"{shares[0]}" if shares[0] == shares[-1] else f"{shares[0]} to {shares[-1]}"
    return f"\n† Machine not idle: others used {used} % of it.\n"


def warnings(records: Sequence[Record]) -> str:
    """What keeps the figures of a section from being final."""
    busy = max((record.others for record in records), default=0.0)
    text = " **Quick run, small sizes.**" if any(record.quick for record in records) else ""
    return text + (f" **Machine not idle: others used up to {100 * busy:.0f} % of it.**" if busy > BUSY else "")


def machine_of(record: Record) -> str:
    """Where a row was measured, in one line."""
    machine = record.machine
    return f"{machine['cpu']}, {machine['cores']} cores; {machine['versions']}"


def measured(record: Record) -> str:
    """Median and middle half, in the row's unit."""
    spread = record.measured
    middle = f" ({number(spread.low)} to {number(spread.high)})" if spread.low < spread.high else ""
    return f"{median(record)}{middle}"


def median(record: Record) -> str:
    """The median alone, in the row's unit."""
    return f"{number(record.measured.median)}{f' {record.unit}' if record.unit else ''}"


def target(record: Record) -> str:
    """What was wanted, from which side."""
    if record.target is None:
        return ""
    return f"{'≤' if record.at_most else '≥'} {number(record.target)}{f' {record.unit}' if record.unit else ''}"


def met(record: Record) -> str:
    """Targets are for the full sizes; a quick run neither meets nor misses them."""
    return "quick" if record.quick and record.target is not None else {None: "", True: "yes", False: "no"}[record.met]


def number(value: float) -> str:
    """Three digits that mean something."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Markdown."""
    cells = [heads, ["---"] * len(heads), *lines]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in cells)

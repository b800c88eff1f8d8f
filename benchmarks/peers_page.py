"""The part of the page about the methods that flipcert is compared with."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.records import Record
from benchmarks.rows.peers import FLIPS


def accuracies(records: Sequence[Record]) -> tuple[tuple[str, ...], list[list[str]]]:
    """Certified accuracy by method and number of flips, with the points certified in a second."""
    heads = ("method", "points per second", *(f"r = {flips}" for flips in FLIPS))
    lines = []
    for record in records:
        shares = [f"{share:.3f}" for share in record.details["certified_accuracy"]]
        lines.append([record.details["method"], f"{record.details['points_per_second']:,.0f}", *shares])
    return heads, lines


def solved(records: Sequence[Record]) -> tuple[tuple[str, ...], list[list[str]]]:
    """Share of exact radii of ``MilpSVM``: n against C times the largest row sum."""
    ratios = sorted({record.details["ratio"] for record in records})
    cells = {(record.details["n"], record.details["ratio"]): record for record in records}
    lines = []
    for n in sorted({record.details["n"] for record in records}):
        line = [str(n)]
        for ratio in ratios:
            record = cells.get((n, ratio))
            line.append("" if record is None else _share(record))
        lines.append(line)
    return ("n", *(f"{ratio:g}" for ratio in ratios)), lines


def _share(record: Record) -> str:
    gap = record.details["mean_gap"]
    return f"{record.measured.median:.1f}" + (f" (gap {gap:.1f})" if gap else "")

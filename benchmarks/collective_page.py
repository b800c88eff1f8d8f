"""The section on one attack against all points."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.records import Record

TEXT = """\
How many of the predictions that are right one attack changes: proven at most, and found by an attack that is replayed
through `fit`; point by point is how many could be changed one at a time. Seconds are those of `certify_collectively`
with the given `time_limit`, certifying point by point included: what was proven and found until then. The integer
program is the exact one (big-M rows, every relabelling of every label), for HiGHS: the best attack that it has, and its
bound.
"""
HEADS = (
    "data", "flips", "right", "point by point", "proven at most", "found", "certified accuracy", "limit", "seconds",
    "integer program",
)  # fmt: skip
_NAMES = {
    "digits": "digits, n = 600, ridge 10",
    "cifar10-500": "CIFAR-10, n = 50,000, ridge 1000, 500 points",
    "cifar10-all": "CIFAR-10, n = 50,000, ridge 1000, all points",
}


def lines(records: Sequence[Record]) -> list[list[str]]:
    """A row for each job: what is proven and found, in which time."""
    return [_line(record) for record in sorted(records, key=_order)]


def _order(record: Record) -> tuple[int, int, float]:
    told = record.details
    return list(_NAMES).index(told["data"]), told["budget"], told["limit"]


def _line(record: Record) -> list[str]:
    told, at_most = record.details, int(record.measured.median)
    program = told.get("program")
    accuracies = [(told["counted"] - lost) / told["points"] for lost in (told["alone"], at_most)]
    memory = f", {told['gib']:.1f} GiB above the data" if "gib" in told else ""
    return [
        f"{_NAMES[told['data']]}{memory}",
        f"{told['budget']}",
        f"{told['counted']:,} of {told['points']:,}",
        f"{told['alone']:,}",
        f"**{at_most:,}**",
        f"{told['found']:,}",
        f"{accuracies[1]:.3f} (point by point {accuracies[0]:.3f})",
        f"{told['limit']:g} s",
        f"{told['seconds']:.0f}",
        "" if program is None else f"{program['found']} to {program['bound']} after {program['seconds']:.0f} s",
    ]

"""What verdicts and captions measure in the rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np

from paper.figures.table import Row

# A white-box median this close to the black-box one has met it.
MET = 1.02
# A model this little of the way from always naming the most frequent class to being always right is near the former.
NEAR = 0.5
# What is set behind the name of such a model.
MARK = "†"


def ensembles(rows: Sequence[Row]) -> list[Row]:
    """The rows of more than one partition, fewest first."""
    return sorted((row for row in rows if row["partitions"] > 1), key=lambda row: row["partitions"])


def meeting(rows: Sequence[Row]) -> Row | None:
    """The first ensemble whose white-box median is the black-box one."""
    return next((row for row in ensembles(rows) if row["median"] <= MET * row["median_votes"]), None)


def before_meeting(rows: Sequence[Row]) -> list[Row]:
    """The ensembles until white-box meets black-box; the first one if that is there already."""
    met, found = meeting(rows), ensembles(rows)
    return [row for row in found if met is None or row["partitions"] < met["partitions"]] or found[:1]


def where_they_meet(rows: Sequence[Row]) -> str:
    """A sentence on where white-box meets black-box."""
    met = meeting(rows)
    if met is None:
        return "White-box stays above black-box throughout."
    fragile = met.get("share_fragile")
    known = "" if fragile is None else f", where one flip turns {fragile:.0%} of the voters for the winner"
    return f"White-box meets black-box at N = {met['partitions']}{known}."


def spread(rows: Sequence[Row]) -> tuple[float, str]:
    """The largest median over the smallest, and a sentence about it."""
    medians = [row["median"] for row in rows]
    factor = max(medians) / max(min(medians), 1)
    where = f"For N from {rows[0]['partitions']} to {rows[-1]['partitions']}"
    return factor, f"{where} the median lies between {min(medians)} and {max(medians)} flips, a factor of {factor:.2f}"


def power(first: Row, last: Row) -> float:
    """The power of N with which the median grows from one row to another."""
    return log(max(last["median"], 1) / max(first["median"], 1)) / log(last["partitions"] / first["partitions"])


def area(row: Row, curve: str = "certified") -> float:
    """Mean number of flips that a test point is certified right against: the area under its curve."""
    return float(np.trapezoid(row[curve], row["flips"]))


def gain(row: Row) -> float:
    """How many times as many flips, in the mean, white-box certifies as black-box."""
    return area(row) / max(area(row, "votes"), 1e-9)


def at(row: Row, flips: float) -> float:
    """Certified accuracy at a number of flips."""
    return float(np.interp(flips, row["flips"], row["certified"], right=0.0))


def is_near(row: Row) -> bool:
    """Whether a model is near one that always names the most frequent class of the test set."""
    largest = row.get("most_frequent")
    return largest is not None and (row["accuracy"] - largest) / (1 - largest) < NEAR

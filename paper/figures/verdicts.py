"""What the paper claims of a figure against what our tables show: one verdict for each claim and instance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from paper.figures.figure import Claim, Figure
from paper.figures.measures import MARK, is_near
from paper.figures.rules import IN_SHAPE, NOT, REPRODUCED, RULES, THEOREM
from paper.figures.table import Row
from paper.figures.words import in_words

VERDICTS = (REPRODUCED, IN_SHAPE, NOT, THEOREM)
# What tells instances of a model apart, in the order in which it is said.
SETTINGS = (
    "data", "model", "scale", "activation", "reg", "flip_probability", "method", "clip", "size", "partitions"
)  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """The verdict on one claim for one instance, and the numbers behind it."""

    claim: Claim
    instance: str
    verdict: str
    text: str


def judge(figure: Figure, rows: Sequence[Row]) -> list[Finding]:
    """Compare all that the paper claims of a figure with our rows, instance by instance."""
    return [
        Finding(claim, name, *RULES[claim.rule].judge(claim.thresholds, own))
        for claim in figure.claims
        for name, own in instances(figure, claim, rows)
    ]


def instances(figure: Figure, claim: Claim, rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """The rows of each instance that a claim is about, with its name; random partitions are bands, not instances."""
    across, needs = RULES[claim.rule].across, RULES[claim.rule].needs
    about = [row for row in rows if claim.is_about(row) and (figure.study or row.get("seed") is None)]
    told = [name for name in SETTINGS if name not in across and len({row.get(name) for row in about}) > 1]
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in about:
        groups.setdefault(tuple(row.get(name) for name in told), []).append(row)
    for key, own in groups.items():
        if all(row.get(needs) is None for row in own):
            continue
        shown = [in_words(name, value) for name, value in zip(told, key, strict=True) if value is not None]
        yield marked(", ".join(shown) or "all", figure, own), own


def marked(name: str, figure: Figure, rows: Sequence[Row]) -> str:
    """The name of an instance, with a mark if it is near the most frequent class, and when it was chosen."""
    mark = f" {MARK}" if any(map(is_near, rows)) else ""
    return f"{name}{mark}{' (chosen afterwards)' if figure.is_chosen_afterwards(rows) else ''}"

"""What a rule is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paper.figures.table import Row

REPRODUCED, IN_SHAPE, NOT = "reproduced", "reproduced in shape", "not reproduced"
# What follows from a proof cannot be evidence for a claim.
THEOREM = "a theorem, not counted"

Thresholds = Mapping[str, Any]
# A verdict, and the numbers behind it in words.
Judged = tuple[str, str]


@dataclass(frozen=True)
class Rule:
    """A rule of comparison.

    Attributes
    ----------
    demands : str
        When a claim counts as reproduced, and when in shape, with thresholds as ``{name}``; else it is not reproduced.
    judge : callable
        Takes thresholds and the rows of one instance.
    across : tuple of str
        Settings that differ among the rows of one instance.
    needs : str
        A column without which an instance is not judged.
    """

    demands: str
    judge: Callable[[Thresholds, Sequence[Row]], Judged]
    across: tuple[str, ...] = ("partitions",)
    needs: str = "partitions"

    def in_words(self, thresholds: Thresholds) -> str:
        """What is demanded, with its thresholds."""
        return self.demands.format(**thresholds)


def graded(best: bool, second: bool) -> str:
    """The verdict if the first, or at least the second, is met."""
    return REPRODUCED if best else IN_SHAPE if second else NOT

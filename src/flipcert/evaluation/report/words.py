"""Numbers and findings in words."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal
from typing import NamedTuple

from markupsafe import Markup, escape


class Sentence(NamedTuple):
    """A sentence in three parts; the middle one carries the answer."""

    start: str
    answer: str
    end: str

    def __str__(self) -> str:
        return "".join(self)


def headline(median: int, n_counting: int, n_points: int, n_labels: int, *, labelled: bool) -> Sentence:
    """Say what half of the predictions withstand."""
    if n_counting == 0:
        return Sentence("No prediction is correct", "", ", so there is no robustness to measure")
    kind = "correct prediction" if labelled else "prediction"
    if n_counting > 1:
        if median == 0:
            return Sentence(f"Fewer than half of the {kind}s are proven to withstand ", "a single flipped label", "")
        start = f"Half of the {kind}s withstand "
    else:
        subject = "The prediction" if n_points == 1 else f"The only {kind}"
        if median == 0:
            return Sentence(f"{subject} is not proven to withstand ", "a single flipped label", "")
        start = f"{subject} withstands "
    if median == n_labels:
        return Sentence(start, "any flips", f" of the {n_labels:,} training labels")
    return Sentence(start, flipped(median), f", {percent(median / n_labels)} of the training set")


def flipped(count: int) -> str:
    """Number of flipped labels."""
    return f"{count:,} flipped label" + ("" if count == 1 else "s")


def plural(count: int, noun: str) -> str:
    """A number and its noun."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def percent(share: float) -> str:
    """A share in percent, never rounded to none or all of it."""
    value = 100 * float(share)
    if value in (0.0, 100.0):
        return f"{value:.0f} %"
    if value > 99.94:
        return "over 99.9 %"
    # Halves go up, as they do when the page counts by itself.
    exact = Decimal(value)
    place = Decimal(1).scaleb(exact.adjusted()) if value < 0.095 else Decimal("0.1")
    return f"{exact.quantize(place, ROUND_HALF_UP):f} %"


def tick(share: float) -> str:
    """A share beside an axis, as short as it can be."""
    return percent(share).replace(".0 %", " %")


def unbroken(sentence: object) -> Markup:
    """A sentence that does not part a number from its unit at the end of a line."""
    return Markup(re.sub(r"([\d.,]+ %)", r'<span class="together">\1</span>', str(escape(str(sentence)))))


def setting(value: object) -> str:
    """The value of a setting; 10, not 10.0, as the names of results have it."""
    if isinstance(value, list):
        return ", ".join(map(setting, value)) or "none"
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


def between(low: int, high: int) -> str:
    """A range of whole numbers."""
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def shorten(name: object, length: int = 28) -> str:
    """A label short enough for a table, its middle left out; the full one belongs into a tooltip."""
    text = str(name)
    tail = (length - 1) // 2
    return text if len(text) <= length else f"{text[: length - 1 - tail]}…{text[-tail:]}"

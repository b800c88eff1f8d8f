"""Numbers and findings in words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import NamedTuple

from markupsafe import Markup, escape

from flipcert.results.certificates import Certificates


class Sentence(NamedTuple):
    """A sentence in three parts; the middle one carries the answer."""

    start: str
    answer: str
    end: str

    def __str__(self) -> str:
        return "".join(self)


@dataclass(frozen=True)
class Exposure:
    """The training labels that an attacker can flip, in words; the others are trusted."""

    n_labels: int
    n_attackable: int

    @classmethod
    def of(cls, certificates: Certificates) -> Exposure:
        """Take the numbers of certified predictions."""
        return cls(certificates.n_labels, certificates.n_attackable)

    @property
    def n_trusted(self) -> int:
        """Number of labels that cannot be flipped."""
        return self.n_labels - self.n_attackable

    def only(self, text: str) -> str:
        """What there is to say only if labels are trusted."""
        return text if self.n_trusted else ""

    @property
    def aside(self) -> str:
        """How many are trusted, at the end of a sentence; nothing if none is."""
        return self.only(f"; {self.n_trusted:,} {'is' if self.n_trusted == 1 else 'are'} trusted")

    @property
    def labels(self) -> str:
        """What can be flipped."""
        return "labels" + self.only(" that are not trusted")

    @property
    def counted(self) -> str:
        """The same with their number."""
        if not self.n_trusted:
            return f"{self.n_labels:,} training labels"
        return "one label that is not trusted" if self.n_attackable == 1 else f"{self.n_attackable:,} {self.labels}"

    def share(self, flips: int) -> str:
        """Flips as a share of the labels that can be flipped."""
        return percent(flips / max(self.n_attackable, 1))

    @property
    def of_all(self) -> str:
        """What shares are of, beside a number or an axis."""
        return "of those not trusted" if self.n_trusted else "of all"


def headline(median: int, n_counting: int, n_points: int, exposure: Exposure, *, labelled: bool) -> Sentence:
    """Say what half of the predictions withstand."""
    if n_counting == 0:
        return Sentence("No prediction is correct", "", ", so there is no robustness to measure")
    if exposure.n_attackable == 0:
        return Sentence("Nothing can be flipped: all ", f"{exposure.n_labels:,} training labels", " are trusted")
    kind = "correct prediction" if labelled else "prediction"
    if n_counting > 1:
        start, none = f"Half of the {kind}s withstand ", f"Fewer than half of the {kind}s are proven to withstand "
    else:
        subject = "The prediction" if n_points == 1 else f"The only {kind}"
        start, none = f"{subject} withstands ", f"{subject} is not proven to withstand "
    if median == 0:
        trusted = f", of the {exposure.counted}{exposure.aside}"
        return Sentence(none, "a single flipped label", exposure.only(trusted))
    if median >= exposure.n_attackable:
        return Sentence(start, "any flips", f" of the {exposure.counted}{exposure.aside}")
    whole = f"the {exposure.counted}{exposure.aside}" if exposure.n_trusted else "the training set"
    return Sentence(start, flipped(median), f", {exposure.share(median)} of {whole}")


def flipped(count: int) -> str:
    """Number of flipped labels."""
    return f"{count:,} flipped label" + ("" if count == 1 else "s")


def amount(radius: int, most: int) -> str:
    """How many flips are withstood, where an attack can make ``most`` of them."""
    return "any" if radius >= most else f"{radius:,}"


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

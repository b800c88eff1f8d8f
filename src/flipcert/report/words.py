"""Numbers and findings in words."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import NamedTuple

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from flipcert.results.certificates import Certificates
from flipcert.results.metrics import median_certified_robustness

# Characters that turn the text after them round (embeddings, overrides, isolates), and what separates lines.
_TURNING = re.compile("[\u202a-\u202e\u2066-\u2069\u2028\u2029]")
_ISOLATE, _END_OF_ISOLATE = "\u2068", "\u2069"


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
        """How many labels can be flipped, in words."""
        if not self.n_trusted:
            return "one training label" if self.n_labels == 1 else f"{self.n_labels:,} training labels"
        return "one label that is not trusted" if self.n_attackable == 1 else f"{self.n_attackable:,} {self.labels}"

    def share(self, flips: int) -> str:
        """Flips as a share of the labels that can be flipped."""
        return percent(flips / max(self.n_attackable, 1))

    @property
    def all_trusted(self) -> str:
        """Why nothing can be flipped, where all labels are trusted."""
        if self.n_labels == 1:
            return "the only training label is trusted"
        return f"all {self.n_labels:,} training labels are trusted"

    @property
    def nothing(self) -> Sentence:
        """The finding that nothing can be flipped, and why."""
        return Sentence("", "No label can be flipped", f": {self.all_trusted}")

    @property
    def of_all(self) -> str:
        """What shares are of, beside a number or an axis."""
        return "of those not trusted" if self.n_trusted else "of all"


def headline(certificates: Certificates, counts: NDArray[np.bool_], *, labelled: bool) -> Sentence:
    """Say what at least half of the predictions withstand, or that they do not; ``counts`` are those that count."""
    c, exposure = certificates, Exposure.of(certificates)
    kind, n = "correct prediction" if labelled else "prediction", int(counts.sum())
    if n == 0:
        wrong = "The prediction is wrong" if counts.size == 1 else "No prediction is correct"
        return Sentence(wrong, "", ", so there is no robustness to measure")
    if exposure.n_attackable == 0:
        return exposure.nothing
    median = min(median_certified_robustness(counts, c.radius), exposure.n_attackable)
    only = ("the prediction" if counts.size == 1 else f"the only {kind}") if n == 1 else None
    if median == 0:
        start, end = _not_withstood(c.radius[counts], c.radius_upper[counts], kind, only)
        said = Sentence(start, "a single flipped label", end)
        said = said._replace(end=end + exposure.only(f", of the {exposure.counted}{exposure.aside}"))
    else:
        subject = f"{part(int(np.sum(c.radius[counts] >= median)), n)} {kind}s"
        start = f"{subject if only is None else only} withstand{'' if only is None else 's'} "
        if median == exposure.n_attackable:
            said = Sentence(start, "any flips", f" of the {exposure.counted}{exposure.aside}")
        else:
            whole = f"the {exposure.counted}{exposure.aside}" if exposure.n_trusted else "the training set"
            said = Sentence(start, flipped(median), f", {exposure.share(median)} of {whole}")
    if not is_proven(c):
        return said._replace(start=f"By the published formula, {said.start}")
    if not said.start:
        return said._replace(answer=capital(said.answer))
    return said._replace(start=capital(said.start))


def _not_withstood(radius: NDArray[np.int64], upper: NDArray[np.int64], kind: str, only: str | None) -> tuple[str, str]:
    """What comes before and after "a single flipped label", where fewer than half are proven to withstand one."""
    n, broken = radius.size, int(np.sum(upper == 0))
    if only is not None:
        return ("", f" changes {only}") if broken else (f"{only} is not proven to withstand ", "")
    if 2 * broken >= n:
        return f"{part(broken, n)} {kind}s can each be changed by ", ""
    if not radius.any():
        return f"none of the {n:,} {kind}s is proven to withstand ", ""
    return f"fewer than half of the {kind}s are proven to withstand ", ""


def capital(text: str) -> str:
    """The beginning of a sentence."""
    return text[:1].upper() + text[1:]


def part(count: int, n: int) -> str:
    """At least half of several things, before their name: just half, more, or all of them."""
    if count == n:
        return "both" if n == 2 else f"all {n:,}"
    if 2 * count == n:
        return "half of the"
    return "more than half of the" if 2 * n > 3 * count else f"{count:,} of the {n:,}"


def is_proven(certificates: Certificates) -> bool:
    """Whether radii are what they are called; those of one published formula are not."""
    model = certificates.model
    return (model.get("model"), model.get("method")) != ("smoothed", "published")


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


def outside(text: object) -> str:
    """Text from elsewhere, such as the name of a class, that leaves the text around it as it is.

    Characters that would turn what follows round are shown by their number. Text that is written from right to left is
    set apart, so that words and numbers beside it keep their places.
    """
    plain = _TURNING.sub(lambda found: f"[U+{ord(found[0]):04X}]", str(text))
    if any(unicodedata.bidirectional(letter) in ("R", "AL", "AN") for letter in plain):
        return f"{_ISOLATE}{plain}{_END_OF_ISOLATE}"
    return plain


def shorten(name: object, length: int = 28) -> str:
    """A label short enough for a table, its middle left out; the full one belongs into a tooltip."""
    text = str(name)
    tail = (length - 1) // 2
    return outside(text if len(text) <= length else f"{text[: length - 1 - tail]}…{text[-tail:]}")

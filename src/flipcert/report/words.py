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

from flipcert.engine.words import plural as plural
from flipcert.labels.threats import FLIPS, SOURCES
from flipcert.report.units import Unit, unit_of
from flipcert.results.certificates import Certificates
from flipcert.results.collective_certificate import CollectiveCertificate
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
    """What an attacker can choose from, in words: labels that are not trusted, sources, or rows.

    Attributes
    ----------
    n_labels, n_attackable : int
        Number of training labels, and of those that are not trusted.
    threat : str
        What an attacker may do.
    n_sources : int or None
        Number of sources, if they are known.
    """

    n_labels: int
    n_attackable: int
    threat: str = FLIPS.name
    n_sources: int | None = None

    @classmethod
    def of(cls, certificates: Certificates | CollectiveCertificate) -> Exposure:
        """Take the numbers of certified predictions."""
        c = certificates
        return cls(c.n_labels, c.n_attackable, c.threat, c.n_sources if c.threat == SOURCES.name else None)

    @property
    def unit(self) -> Unit:
        """The words of the threat."""
        return unit_of(self.threat)

    @property
    def total(self) -> int:
        """What shares are of: the number of labels, sources or rows that an attacker can choose from."""
        if self.n_sources is not None:
            return self.n_sources
        return self.n_attackable if self.unit.spares_trusted else self.n_labels

    @property
    def reach(self) -> int:
        """The largest attack there can be, or that radii go up to; 0 where trust leaves nothing to attack."""
        return 0 if self.unit.bounded and self.n_attackable == 0 else self.total

    @property
    def n_trusted(self) -> int:
        """Number of labels that cannot be flipped."""
        return self.n_labels - self.n_attackable

    def only(self, text: str) -> str:
        """What there is to say only if trust limits what can be chosen."""
        return text if self.n_trusted and self.unit.spares_trusted else ""

    @property
    def aside(self) -> str:
        """How many are trusted, at the end of a sentence; nothing if none is."""
        if not self.n_trusted:
            return ""
        if not self.unit.bounded:
            rows = f"{plural(self.n_trusted, 'row')} {'is' if self.n_trusted == 1 else 'are'} trusted"
            return f"; {rows if self.n_attackable else self.all_trusted}"
        whose = "" if self.unit.spares_trusted else f"label{'' if self.n_trusted == 1 else 's'} "
        return f"; {self.n_trusted:,} {whose}{'is' if self.n_trusted == 1 else 'are'} trusted"

    @property
    def labels(self) -> str:
        """What can be chosen."""
        return f"{self.unit.thing}s" + self.only(" that are not trusted")

    @property
    def counted(self) -> str:
        """How many can be chosen, in words."""
        thing = self.unit.thing
        if self.only("so"):
            one = f"one {thing} that is not trusted"
            return one if self.n_attackable == 1 else f"{self.n_attackable:,} {self.labels}"
        kind = thing if self.threat == SOURCES.name else f"training {thing}"
        return f"one {kind}" if self.total == 1 else f"{self.total:,} {kind}s"

    @property
    def whole(self) -> str:
        """What a share in a sentence is of."""
        if self.unit.bounded and (self.aside or self.n_sources is not None):
            return f"the {self.counted}{self.aside}"
        return f"the training set{self.aside}"

    def share(self, flips: int) -> str:
        """An attack as a share of what can be chosen."""
        return percent(flips / max(self.total, 1))

    def amount(self, radius: int) -> str:
        """How much is withstood: a number, or that there is no larger attack."""
        if radius < self.reach:
            return f"{radius:,}"
        return "any" if self.unit.bounded else f"{self.reach:,} or more"

    @property
    def everything(self) -> str:
        """What is withstood where the radius is as large as there is."""
        return self.unit.everything if self.unit.bounded else f"{self.reach:,} or more {self.unit.everything}"

    @property
    def any_number(self) -> str:
        """The same, where attacks are counted."""
        if not self.unit.bounded:
            return self.everything
        if self.threat == SOURCES.name:
            return "any labels of all sources together"
        return f"any number of {self.unit.nouns}" + self.only(f" of {self.labels}".replace("of rows ", ""))

    @property
    def none_of_any_size(self) -> str:
        """The subject of "change 5 predictions" where no attack does."""
        if self.unit.bounded:
            return self.unit.none_of_any_size + self.only(f" of {self.labels}")
        return self.unit.none_of_any_size.replace("No ", f"No {self.reach:,} ")

    @property
    def all_trusted(self) -> str:
        """Why nothing can be done, where all labels are trusted."""
        what = "training row" if self.unit.thing == "row" else "training label"
        if self.n_labels == 1:
            return f"the only {what} is trusted"
        return f"all {self.n_labels:,} {what}s are trusted"

    @property
    def nothing(self) -> Sentence:
        """The finding that nothing can be done, and why."""
        return Sentence("", self.unit.nothing_possible, f": {self.all_trusted}")

    @property
    def of_all(self) -> str:
        """What shares are of, beside a number or an axis."""
        if not self.unit.bounded:
            return "of the training set"
        return self.only("of those not trusted") or "of all"

    @property
    def axis(self) -> str:
        """What is counted along an axis, with shares below; short enough for a phone."""
        if self.only("so"):
            return f"{self.unit.all_made}, share {self.of_all}"
        made = "flipped training labels" if self.threat == FLIPS.name else self.unit.all_made
        return f"{made}, and their share {self.of_all}"

    @property
    def axis_of_radii(self) -> str:
        """What is counted along an axis of radii, short enough for a phone."""
        if self.threat == FLIPS.name:
            return "flips that a prediction is proven to withstand"
        return f"{self.unit.nouns} proven to be withstood"

    def done(self, count: int) -> str:
        """What an attack of some size does, as a remark."""
        if self.unit.bounded:
            verb = "corrupt" if self.threat == SOURCES.name else self.unit.can
            return f"{self.share(count)} of the {self.labels} {verb}"
        return f"{self.share(count)} of the training set {self.unit.can}"


def headline(certificates: Certificates, counts: NDArray[np.bool_], *, labelled: bool) -> Sentence:
    """Say what at least half of the predictions withstand, or that they do not; ``counts`` are those that count."""
    c, exposure = certificates, Exposure.of(certificates)
    kind, n = "correct prediction" if labelled else "prediction", int(counts.sum())
    if n == 0:
        wrong = "The prediction is wrong" if counts.size == 1 else "No prediction is correct"
        return Sentence(wrong, "", ", so there is no robustness to measure")
    if exposure.reach == 0:
        return exposure.nothing
    median = min(median_certified_robustness(counts, c.radius), exposure.reach)
    only = ("the prediction" if counts.size == 1 else f"the only {kind}") if n == 1 else None
    if median == 0:
        start, end = _not_withstood(c.radius[counts], c.radius_upper[counts], kind, only)
        said = Sentence(start, f"a single {exposure.unit.made}", end)
        if not exposure.unit.bounded:
            said = said._replace(end=f"{end}{exposure.aside}")
        elif exposure.aside or exposure.n_sources is not None:
            said = said._replace(end=f"{end}, of the {exposure.counted}{exposure.aside}")
    else:
        subject = f"{part(int(np.sum(c.radius[counts] >= median)), n)} {kind}s"
        start = f"{subject if only is None else only} withstand{'' if only is None else 's'} "
        if median == exposure.reach:
            among = f" of the {exposure.counted}" if exposure.unit.bounded else ""
            said = Sentence(start, exposure.everything, f"{among}{exposure.aside}")
        else:
            said = Sentence(
                start, plural(median, exposure.unit.made), f", {exposure.share(median)} of {exposure.whole}"
            )
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

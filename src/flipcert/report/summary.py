"""What a report tells about one result."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.report.points import notable_points
from flipcert.report.result import Attack, Result
from flipcert.report.series import Bins, ClassSpread, Curves, Medians, class_spreads, counted, reach
from flipcert.report.units import Unit
from flipcert.report.words import Exposure, Sentence, headline, is_proven, part, percent
from flipcert.report.worth import Standing, lopsided, one_answer, unmatched


@dataclass(frozen=True, eq=False)
class Summary:
    """Numbers and choices of one result, each made once."""

    result: Result
    number: int
    detail: int

    @property
    def labelled(self) -> bool:
        """Whether true labels are known."""
        return self.result.labels is not None

    @property
    def proven(self) -> bool:
        """Whether radii are what they are called; those of one published formula are not."""
        return is_proven(self.result.certificates)

    @property
    def kind(self) -> str:
        """What the statements are about."""
        return "correct predictions" if self.labelled else "predictions"

    @cached_property
    def exposure(self) -> Exposure:
        """The labels that can be flipped, or what else can be attacked, in words."""
        return Exposure.of(self.result.certificates)

    @property
    def unit(self) -> Unit:
        """What radii count, in words."""
        return self.exposure.unit

    @property
    def reach(self) -> int:
        """The largest attack there can be."""
        return reach(self.result.certificates)

    @cached_property
    def counts(self) -> NDArray[np.bool_]:
        """Points that the statements are about."""
        return counted(self.result.certificates, self.result.labels)

    @property
    def accuracy(self) -> float | None:
        """Share of right predictions."""
        return float(self.counts.mean()) if self.labelled else None

    @cached_property
    def medians(self) -> Medians:
        """Median robustness: proven, at most, by votes."""
        return Medians.of(self.result.certificates, self.counts)

    @cached_property
    def curves(self) -> Curves:
        """Shares under flips."""
        return Curves.of(self.result.certificates, self.counts)

    @cached_property
    def bins(self) -> Bins:
        """Histogram of radii."""
        return Bins.of(self.result.certificates, self.counts)

    @cached_property
    def half(self) -> tuple[int, float, str] | None:
        """Flips that at least half withstand, the share of all points that do, a name; None if off the curve."""
        flips = self.medians.proven
        if not 0 < flips <= self.curves.flips[-1] or not self.counts.any():
            return None
        radius, n = self.result.certificates.radius, int(self.counts.sum())
        which = part(int(np.sum(radius[self.counts] >= flips)), n)
        # Shares beside it are of all points, right and wrong.
        which = f"{which} correct" if self.labelled else which.removesuffix(" of the")
        name = f"{which} withstand {flips:,}" if n > 1 else f"withstands {flips:,}"
        return flips, self.share(radius, flips), name

    def share(self, radii: NDArray[np.int64], flips: int) -> float:
        """Share of points that count and withstand so many flips."""
        return float(np.mean(self.counts & (radii >= flips)))

    @cached_property
    def standing(self) -> Standing:
        """How it compares with other results."""
        return Standing.of(self.result, self.result.name or f"result {self.number + 1}")

    @cached_property
    def doubt(self) -> Sentence | None:
        """That it tells no more than one answer for all, if so."""
        return one_answer(self.result)

    @cached_property
    def headline(self) -> Sentence:
        """The finding in words."""
        return headline(self.result.certificates, self.counts, labelled=self.labelled)

    @cached_property
    def unmatched(self) -> str | None:
        """That some test labels cannot be predicted, or that nearly all points get one answer, if so."""
        told = [sentence for sentence in (unmatched(self.result), lopsided(self.result)) if sentence is not None]
        return " ".join(told) or None

    @cached_property
    def milestones(self) -> list[tuple[int, str, str, str]]:
        """Rows of a table: flips, and the shares proven, under known attacks, by votes."""
        c = self.result.certificates
        last = int(c.radius[self.counts & (c.radius < self.reach)].max(initial=1))
        flips = sorted({0, 1, *(round(last * part / 10) for part in range(1, 11))})
        return [(r, *self.shares(r)) for r in flips]

    def shares(self, flips: int) -> tuple[str, str, str]:
        """Shares under so many flips: proven, under known attacks, by votes; empty where there is none."""
        c = self.result.certificates
        return (
            percent(self.share(c.radius, flips)),
            "" if self.curves.attacked is None else percent(self.share(c.radius_upper, flips)),
            "" if c.blackbox_radius is None else percent(self.share(c.blackbox_radius, flips)),
        )

    @cached_property
    def classes(self) -> list[ClassSpread]:
        """Spread of radii by true class, or by predicted class where labels are not known."""
        c = self.result.certificates
        return class_spreads(c, self.counts, c.prediction if self.result.labels is None else self.result.labels)

    @cached_property
    def attacks(self) -> dict[int, Attack]:
        """Known attacks by row."""
        return {attack.row: attack for attack in self.result.attacks}

    @cached_property
    def notable(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Most fragile and most robust rows."""
        return notable_points(self.result.certificates, self.result.labels, count=self.detail, preferred=self.attacks)

    def target(self, row: int) -> Any:
        """Class that is cheapest to reach, None where none is known."""
        target = self.result.certificates.target
        return None if np.ma.getmaskarray(target)[row] else target.data[row]

"""What a pipeline demands of a run, such as certified-accuracy@20>=0.8: read, decided exactly, and told."""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from flipcert.engine.files import whole_file
from flipcert.report.result import Result
from flipcert.report.series import counted
from flipcert.report.words import is_proven
from flipcert.results.metrics import median_certified_robustness

_RELATIONS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
# What can be demanded, whether it is told for a size of attack, and whether it needs true labels.
_METRICS = {
    "accuracy": (False, True),
    "certified-accuracy": (True, True),
    "certified-share": (True, False),
    "collective-accuracy": (True, True),
    "collective-share": (True, False),
    "median-radius": (False, False),
    "exact-share": (False, False),
}
# The one that is no share.
_IN_FLIPS = "median-radius"
_FORM = re.compile(r"\s*([a-z-]+)\s*(?:@\s*([\d_,]+)\s*)?(>=|<=|>|<)\s*([\d.]+)\s*")


@dataclass(frozen=True)
class Requirement:
    """One demand: a metric, the size of attack that it is about, how it compares with what."""

    text: str
    metric: str
    flips: int
    relation: str
    bound: Fraction

    @property
    def about(self) -> str:
        """What is compared, with the size of attack."""
        return f"{self.metric}@{self.flips:,}" if _METRICS[self.metric][0] else self.metric

    @classmethod
    def of(cls, text: str) -> Requirement:
        """Read what was typed."""
        found = _FORM.fullmatch(text)
        try:
            assert found is not None
            metric, flips, relation, bound = found.groups()
            at_size, _ = _METRICS[metric]
            assert (flips is not None) == at_size
            wanted = cls(text.strip(), metric, int((flips or "0").replace(",", "")), relation, Fraction(bound))
        except (AssertionError, KeyError, ValueError):
            names = ", ".join(f"{name}@FLIPS" if at_size else name for name, (at_size, _) in _METRICS.items())
            raise ValueError(
                f"--require must be a metric ({names}), one of >= > <= <, and a number, such as "
                f'"certified-accuracy@20>=0.8"; got {text!r}.'
            ) from None
        if metric != _IN_FLIPS and wanted.bound > 1:
            raise ValueError(
                f"--require {wanted.text} compares {metric} with {bound}, but it is a share, from 0 to 1; 80 % is 0.8."
            )
        return wanted

    def check_asked(self, budgets: Sequence[int]) -> None:
        """Raise ValueError if this is about attacks on all points of a size that is not among the budgets."""
        if self.metric.startswith("collective-") and self.flips not in budgets:
            raise ValueError(f"--require {self.text} needs --collective {self.flips}, which is not asked for.")

    def check(self, result: Result) -> Outcome:
        """Compare the metric of a result in whole numbers: no share is rounded."""
        value = self._value(result)
        shown = f"{value.numerator:,}"
        if self.metric != _IN_FLIPS:
            n_points = len(result.certificates)
            # The count as well: a share that is missed by little may look like the bound once it is rounded.
            shown = f"{float(value):.4g}, {int(value * n_points):,} of {n_points:,}"
        return Outcome(self, shown, _RELATIONS[self.relation](value, self.bound))

    def _value(self, result: Result) -> Fraction:
        c = result.certificates
        if _METRICS[self.metric][1] and result.labels is None:
            raise ValueError(
                f"--require {self.text} needs labels of the test points, and there are none; without them, "
                "certified-share@FLIPS tells which predictions are proven to stay as they are."
            )
        if self.metric != "accuracy" and not is_proven(c):
            raise ValueError(
                f"--require {self.text} is about what is proven, and the radii of the published formula are not."
            )
        if self.metric.startswith("collective-"):
            return self._collective_value(result)
        counts = counted(c, None if self.metric.endswith("-share") else result.labels)
        if self.metric == _IN_FLIPS:
            return Fraction(median_certified_robustness(counts, c.radius))
        if self.metric == "exact-share":
            counts = c.exact
        elif self.metric.startswith("certified-"):
            counts = counts & (c.radius >= min(self.flips, c.limit))
        return Fraction(int(np.count_nonzero(counts)), len(c))

    def _collective_value(self, result: Result) -> Fraction:
        self.check_asked([] if result.collective is None else result.collective.certificate.flips.tolist())
        assert result.collective is not None
        known = result.collective.certificate
        (place,) = np.flatnonzero(known.flips == self.flips)
        if known.counts_correct != _METRICS[self.metric][1]:
            raise ValueError(
                f"--require {self.text} is about all predictions, but where the test points have labels, those that "
                "are right are counted; use collective-accuracy@FLIPS."
            )
        return Fraction(known.n_counted - int(known.changed_at_most[place]), known.n_points)


@dataclass(frozen=True)
class Outcome:
    """Whether a demand is met, and the value that decided it."""

    requirement: Requirement
    value: str
    met: bool

    def __str__(self) -> str:
        wanted = self.requirement
        return f"{'met' if self.met else 'NOT met'}: {wanted.text} ({wanted.about} is {self.value})"


def write_junit(path: Path, outcomes: Sequence[Outcome]) -> None:
    """Write outcomes as a JUnit file, which build servers show as tests."""
    failures = sum(not own.met for own in outcomes)
    suite = ElementTree.Element("testsuite", name="flipcert", tests=str(len(outcomes)), failures=str(failures))
    for own in outcomes:
        case = ElementTree.SubElement(suite, "testcase", classname="flipcert.require", name=own.requirement.text)
        if not own.met:
            ElementTree.SubElement(case, "failure", message=str(own))
    whole = ElementTree.Element("testsuites")
    whole.append(suite)
    with whole_file(path) as file:
        ElementTree.ElementTree(whole).write(file, encoding="utf-8", xml_declaration=True)

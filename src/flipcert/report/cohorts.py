"""Which results can be compared: those of the same test points, under the same threat, on as many labels."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from flipcert.labels.threats import FLIPS
from flipcert.report.result import Result
from flipcert.report.words import Exposure, plural


@dataclass(frozen=True)
class Question:
    """What a result answers; results that answer the same question can be compared.

    Attributes
    ----------
    labelled : bool
        Whether true labels are known: what stays right is asked for, not what stays the same.
    test_points : hashable
        The test points: true labels where they are known, else what their file is known by.
    n_points : int
        Number of test points.
    n_labels, n_attackable : int
        Number of training labels, and of those that can be flipped: what a number of flips means.
    threat : str
        What an attacker may do, and what a radius counts.
    n_sources : int or None
        Number of sources, where radii count these.
    """

    labelled: bool
    test_points: Hashable
    n_points: int
    n_labels: int
    n_attackable: int
    threat: str = FLIPS.name
    n_sources: int | None = None

    @classmethod
    def of(cls, result: Result) -> Question:
        """The question that a result answers."""
        c, labels = result.certificates, result.labels
        points: Any = result.digests.get("test") if labels is None else tuple(labels.tolist())
        sources = Exposure.of(c).n_sources
        return cls(labels is not None, points, len(c), c.n_labels, c.n_attackable, c.threat, sources)

    @property
    def exposure(self) -> Exposure:
        """What can be attacked, in words."""
        return Exposure(self.n_labels, self.n_attackable, self.threat, self.n_sources)

    def __str__(self) -> str:
        return self.told(among_others=False)

    def told(self, *, among_others: bool) -> str:
        """The question in words; flips are named only where radii on the same page count something else."""
        exposure = self.exposure
        known = "with" if self.labelled else "without"
        told = f"{plural(self.n_points, 'test point')} {known} true labels, {plural(self.n_labels, 'training label')}"
        if exposure.n_trusted and exposure.unit.bounded:
            some = f"{self.n_attackable:,}" if self.n_attackable else "none"
            told += f" of which {some} can be {exposure.unit.can}"
        elif exposure.n_trusted:
            some = f"{exposure.n_trusted:,}" if self.n_attackable else "all"
            told += f" of which {some} {'is' if some == '1' else 'are'} trusted"
        if self.threat == FLIPS.name and not among_others:
            return told
        return f"{told}, radii in {exposure.unit.nouns}" + (f" of {self.n_sources:,}" if self.n_sources else "")


def cohorts(results: Sequence[Result]) -> dict[Question, list[int]]:
    """Numbers of the results by the question that they answer."""
    numbers: dict[Question, list[int]] = {}
    for number, result in enumerate(results):
        numbers.setdefault(Question.of(result), []).append(number)
    return numbers


def what_differs(questions: Sequence[Question]) -> str:
    """Why results of several questions cannot be compared."""
    reasons = []
    if len({q.threat for q in questions}) > 1:
        units = dict.fromkeys(q.exposure.unit.all_made for q in questions)
        reasons.append(f"their radii do not count the same: {' or '.join(units)}")
    if len({q.n_sources for q in questions if q.n_sources is not None}) > 1:
        reasons.append("their labels do not come from as many sources")
    if len({q.labelled for q in questions}) > 1:
        reasons.append("where true labels are known, they tell what stays right, elsewhere only what stays the same")
    points = {(q.labelled, q.n_points, q.test_points) for q in questions}
    if len(points) > len({q.labelled for q in questions}) or len({q.n_points for q in questions}) > 1:
        reasons.append("their test points are not the same")
    if len({q.n_labels for q in questions}) > 1:
        reasons.append("their training sets are not of one size")
    if len({q.n_attackable for q in questions}) > 1:
        reasons.append("an attacker cannot flip as many labels of one as of another")
    return "; ".join(reasons)


def other_files(results: Sequence[Result]) -> str:
    """That results which are compared come from other files, if so."""
    differing = [
        name
        for part, name in (("train", "training"), ("test", "test"))
        if len({result.digests[part] for result in results if part in result.digests}) > 1
    ]
    if not differing:
        return ""
    told = f"Their {' and '.join(differing)} files are not the same"
    if "test" in differing:
        told += ", but hold the same test labels in the same order, and are taken to be about the same test points"
    return f"{told}."

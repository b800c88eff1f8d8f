"""Whether predictions tell more than one answer for all would, and which of several models to choose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flipcert.report.result import Result
from flipcert.report.series import counted
from flipcert.report.units import Unit
from flipcert.report.words import Exposure, Sentence, outside, percent, plural, shorten
from flipcert.results.metrics import certified_accuracy, median_certified_robustness

# With fewer test points, one answer for all may well be right.
_FEW = 5
# Among so many test points, one answer for so large a share of them is told if most of these are of other classes.
_ENOUGH, _NEARLY_ALL = 20, 0.9
WHAT_MENDS_IT = "Scaled features, another kernel or model, or another regularisation usually mend this."


def one_answer(result: Result) -> Sentence | None:
    """Say that a model is no better than one answer for all; None if it is better, or cannot be told."""
    predicted, n_points = np.unique(result.certificates.prediction), len(result.certificates)
    if n_points < _FEW:
        return None
    answer = Sentence(
        "This model gives ", "one answer for all", f": {shorten(predicted[0])}, for each of {n_points:,} test points"
    )
    if result.labels is None:
        return answer if predicted.size == 1 else None
    classes, counts = np.unique(result.labels, return_counts=True)
    if classes.size == 1:
        return None
    most, right = int(counts.max()), int(counted(result.certificates, result.labels).sum())
    if predicted.size == 1:
        return answer._replace(end=f"{answer.end}; it is right for {right:,}")
    if right > most:
        return None
    return Sentence(
        "By accuracy, this model is no better than ",
        "one answer for all",
        f": {right:,} of {n_points:,} predictions are right, always answering {shorten(classes[counts.argmax()])} "
        f"would be right for {most:,}",
    )


def what_it_means(result: Result) -> str:
    """What a reader should make of :func:`one_answer`."""
    if result.labels is None:
        meaning = "Unless these points are all of one kind, such predictions tell nothing, however robust they are."
    else:
        meaning = "Measured by accuracy, its predictions tell no more than that, however robust they are."
    return f"{meaning} {WHAT_MENDS_IT}"


def lopsided(result: Result) -> str | None:
    """Say that a model gives one answer for nearly all test points, though far fewer are of that class; else None."""
    if result.labels is None or one_answer(result) is not None or len(result.certificates) < _ENOUGH:
        return None
    predicted, counts = np.unique(result.certificates.prediction, return_counts=True)
    most, answer = int(counts.max()), predicted[counts.argmax()]
    true = int(np.count_nonzero(np.asarray(result.labels) == answer))
    if most < _NEARLY_ALL * len(result.certificates) or true > most * 2 / 3:
        return None
    return (
        f"This model answers {outside(answer)} for {most:,} of {len(result.certificates):,} test points; {true:,} are "
        f"that. {WHAT_MENDS_IT}"
    )


def unmatched(result: Result) -> str | None:
    """Say that some test points have labels which the model cannot predict; None if all can be, or it is not known."""
    classes, labels = result.certificates.classes, result.labels
    if classes is None or labels is None:
        return None
    known = set(classes.tolist())
    strange = [label for label in labels.tolist() if label not in known]
    if not strange:
        return None
    examples = ", ".join(outside(repr(label)) for label in list(dict.fromkeys(strange))[:3])
    have, are = ("has", "is") if len(strange) == 1 else ("have", "are")
    return (
        f"{len(strange):,} of {plural(len(labels), 'test point')} {have} a label outside of the label space, such as "
        f"{examples}, and {are} never predicted right."
    )


def one_in_a_hundred(exposure: Exposure) -> int:
    """The largest attack by which models are compared: on one in a hundred of the labels that can be flipped."""
    return max(1, exposure.total // 100)


@dataclass(frozen=True)
class Standing:
    """One of several models, by what decides between them. Shares are of all test points.

    Attributes
    ----------
    name : str
    tells : bool
        Whether its predictions tell more than one answer for all.
    labelled : bool
        Whether true labels are known. Without them, all predictions count, not only those that are right.
    accuracy : float
        Counted without an attack.
    kept : float
        Counted, and proven to stay as they are when one label in a hundred is flipped.
    average : float
        The same on average over attacks of all sizes up to that, from none.
    median : int
        Flips that at least half of those that count withstand, as far as there are labels to flip.
    exposure : Exposure
        What can be flipped.
    """

    name: str
    tells: bool
    labelled: bool
    accuracy: float
    kept: float
    average: float
    median: int
    exposure: Exposure

    @classmethod
    def of(cls, result: Result, name: str) -> Standing:
        """Judge a result."""
        c, exposure = result.certificates, Exposure.of(result.certificates)
        counts = counted(c, result.labels)
        largest = min(one_in_a_hundred(exposure), exposure.reach)
        shares = certified_accuracy(counts, c.radius, np.arange(largest + 1))
        return cls(
            name=name,
            tells=one_answer(result) is None,
            labelled=result.labels is not None,
            accuracy=float(shares[0]),
            kept=float(shares[-1]),
            average=float(shares.mean()),
            median=min(median_certified_robustness(counts, c.radius), exposure.reach),
            exposure=exposure,
        )

    @property
    def largest_attack(self) -> str:
        """The largest attack of the comparison in words."""
        flips = one_in_a_hundred(self.exposure)
        among = f"the {self.exposure.labels}" if self.exposure.unit.bounded else "the training set"
        return f"{plural(flips, self.exposure.unit.noun)} ({self.exposure.share(flips)} of {among})"

    @property
    def from_end_to_end(self) -> str:
        """What holds without an attack, and under the largest."""
        flips = plural(one_in_a_hundred(self.exposure), self.exposure.unit.noun)
        if not self.labelled:
            return f"Under {flips} it is {percent(self.kept)}"
        return (
            f"Without an attack {percent(self.accuracy)} are right; under {flips}, {percent(self.kept)} are proven to "
            "stay so"
        )


def rule(labelled: bool, unit: Unit) -> str:
    """What the columns of a comparison mean that decide it."""
    kept = "right, and proven to stay so," if labelled else "proven to stay as they are"
    return (
        f"Proven at 1 %: test points that are {kept} when {unit.one_of}. Mean to 1 %: on average over attacks of all "
        "sizes up to that, from none."
    )


def choose(standings: Sequence[Standing]) -> int:
    """Number of the model to choose among comparable ones, by a rule that weighs accuracy and robustness at once.

    How many labels will be flipped is not known. The rule takes attacks of all sizes, from none up to one label in a
    hundred, as equally likely, and chooses the model with the largest share of test points that are proven right on
    average: the area under the certified accuracy, as far as that. Among equals the more accurate, then the one with
    the larger median, then the first. One that tells no more than one answer for all is not chosen if there are
    others.
    """
    ranks = [(s.tells, s.average, s.accuracy, s.median) for s in standings]
    return ranks.index(max(ranks))


def why(standings: Sequence[Standing], start: str | None = None) -> str:
    """What speaks for the model that is chosen, in sentences that name the rule; ``start`` says which it is."""
    chosen = standings[choose(standings)]
    start = f"The one to choose is {outside(chosen.name)}" if start is None else start
    if not chosen.tells:
        return "None of these models tells more than one answer for all would, so there is none to choose."
    if chosen.exposure.reach == 0:
        impossible = chosen.exposure.unit.nothing_possible
        impossible = f"{impossible[0].lower()}{impossible[1:]}"
        if not chosen.labelled:
            return f"Where {impossible} and accuracy is not known, nothing tells which to choose."
        return f"{start}: where {impossible}, accuracy is all."
    peers = [s for s in standings if s.tells]
    stay = "right" if chosen.labelled else "as they are"
    first = "more than of any other" if sum(s.average == chosen.average for s in peers) == 1 else "no other has more"
    if not all(s.tells for s in standings):
        first += " among those that tell more than one answer for all"
    told = (
        f"{start}: on average over attacks of 0 to {chosen.largest_attack}, "
        f"{percent(chosen.average)} of its predictions are proven to stay {stay}, {first}. {chosen.from_end_to_end}."
    )
    rival = max(peers, key=lambda s: s.median)
    if rival.median > chosen.median:
        exposure = rival.exposure
        flips = exposure.everything if rival.median == exposure.reach else plural(rival.median, exposure.unit.noun)
        told += f" The largest median radius, {flips}, is that of {outside(rival.name)}. {rival.from_end_to_end}."
    return told

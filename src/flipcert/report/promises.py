"""What a certificate promises, and what it does not, in plain words."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from flipcert.labels.threats import DELETIONS, FLIPS, INSERTIONS, REPLACEMENTS, SOURCES
from flipcert.report.check_words import assumed
from flipcert.report.collective_words import limits
from flipcert.report.result import Result
from flipcert.report.summary import Summary
from flipcert.report.units import Unit, unit_of
from flipcert.report.words import Exposure, capital, percent, plural

_NOT_PROVEN = (
    "Not proven",
    'Smoothing with method "published" follows a formula that over-states radii for more than two classes. Where this '
    "page calls them proven, read: by that formula. It is there to reproduce figures; other methods prove what they "
    "say.",
)


# Models whose scores are sums of weights, by the names that descriptions give them.
_OF_WEIGHTS = ("svm", "ridge", "neighbors", "spreading")


def promises(summaries: Sequence[Summary]) -> list[tuple[str, str]]:
    """Terms and explanations, with the numbers of all results where they matter; each threat has its own."""
    results = [s.result for s in summaries]
    by_threat: dict[str, list[Summary]] = {}
    for s in summaries:
        by_threat.setdefault(s.unit.threat, []).append(s)
    told = [] if all(s.proven for s in summaries) else [_NOT_PROVEN]
    for own in by_threat.values():
        told += _of_threat(own)
    told += [limits()] if any(r.collective is not None for r in results) else []
    told += dict.fromkeys(assumed(r.check) for r in results if r.check is not None)
    told += _votes_alone(results)
    for own in by_threat.values():
        told += _limits(own)
    told += [_nothing_tuned(summaries), _rounding(summaries)]
    if any(name in str(r.settings.get("kernel", "")).lower() for r in results for name in ("ntk", "nngp")):
        told.append(
            (
                "Wide networks",
                "With the kernel of an infinitely wide network the certificate is for the kernel machine. It carries "
                "over to a network as far as the network is wide enough to behave like it.",
            )
        )
    if any(r.settings.get("kernel") == "tangent" for r in results):
        told.append(
            (
                "Networks that are fine-tuned",
                "With the tangent kernel of a network the certificate is for fine-tuning in its linear regime. It "
                "carries over to a network that is really fine-tuned as far as that stays close to where it began, and "
                "it is void if the network was trained with the help of labels that an attacker may flip.",
            )
        )
    if not all(s.labelled for s in summaries):
        told.append(
            (
                "No true labels",
                "Where the true labels of the test points are not known, the page tells which predictions stay the "
                "same, not which are right.",
            )
        )
    return told


def _of_threat(summaries: Sequence[Summary]) -> list[tuple[str, str]]:
    """What results under one threat promise."""
    unit, exposures = summaries[0].unit, {s.exposure for s in summaries}
    return [
        (
            "What is proven",
            f"{unit.proven.format(labels=_labels(summaries))} It is a mathematical proof about the model as it is, not "
            "an estimate from trials.",
        ),
        *_trusted(exposures),
        *_label_space([s.result for s in summaries], unit),
        ("One point at a time", f"Every test point is taken by itself: {unit.aimed}"),
        *([_tightness(summaries)] if any(e.reach for e in exposures) else []),
    ]


def _limits(summaries: Sequence[Summary]) -> list[tuple[str, str]]:
    """What results under one threat do not promise."""
    unit = summaries[0].unit
    term = {FLIPS.name: "Labels only", SOURCES.name: "Labels of sources only"}.get(unit.threat, "These attacks only")
    return [(term, unit.covered.format(labels=_labels(summaries)))]


def _labels(summaries: Sequence[Summary]) -> str:
    """What an attacker can choose from, whichever result it is."""
    restricted = any(s.exposure.only("so") for s in summaries)
    return f"{summaries[0].unit.thing}s" + (" that are not trusted" if restricted else "")


def _trusted(exposures: Collection[Exposure]) -> list[tuple[str, str]]:
    if not any(e.n_trusted for e in exposures):
        return []
    unit = next(iter(exposures)).unit
    what = "row" if unit.thing == "row" else "label"
    which = f"Some training {what}s are trusted (the settings tell how many)"
    if len(exposures) == 1:
        (e,) = exposures
        which = f"{e.n_trusted:,} of the {e.n_labels:,} training {what}s {'is' if e.n_trusted == 1 else 'are'} trusted"
        which = which if e.n_attackable else capital(e.all_trusted)
    verb = {SOURCES.name: "change", DELETIONS.name: "delete", REPLACEMENTS.name: "replace"}.get(unit.threat, "flip")
    after = {"change": "changed", "delete": "deleted", "replace": "replaced", "flip": "flipped"}[verb]
    if not unit.bounded:
        means = "rows may be added all the same"
        means = means if unit.threat == INSERTIONS.name else "an attacker can neither flip nor delete them"
        return [(f"Trusted {what}s", f"{which}: {means}.")]
    if not any(e.n_attackable for e in exposures):
        return [
            (
                f"Trusted {what}s",
                f"{which}: an attacker cannot {verb} them, so no prediction changes. Should one be {after} after all, "
                "nothing here is promised.",
            )
        ]
    if unit.threat == SOURCES.name:
        return [
            (
                "Trusted labels",
                f"{which}: not even their source can change them. Sources count whether some of their labels are "
                "trusted or not. Should a trusted label be changed after all, nothing here is promised.",
            )
        ]
    return [
        (
            f"Trusted {what}s",
            f"{which}: an attacker cannot {verb} them. All numbers are about the others, and shares of {what}s are "
            f"shares of those. Should a trusted {what} be {after} after all, nothing here is promised.",
        )
    ]


def _votes_alone(results: Sequence[Result]) -> list[tuple[str, str]]:
    ensembles = [(r.certificates.radius, r.certificates.blackbox_radius) for r in results]
    pairs = [(radius, votes) for radius, votes in ensembles if votes is not None]
    if not pairs:
        return []
    noun = unit_of(results[0].certificates.threat).noun
    if len({result.certificates.threat for result in results}) > 1:
        noun = "part of an attack"
    copies = {result.n_copies for result in results if result.certificates.blackbox_radius is not None}
    changed = (
        "one vote" if copies == {1} else f"{copies.pop()} votes" if len(copies) == 1 else "each vote of its copies"
    )
    votes = "votes and preferences" if any(r.settings.get("vote") == "runoff" for r in results) else "votes"
    meaning = f"What follows from the {votes} of the ensemble if every {noun} could change {changed} (black-box). "
    if noun == unit_of(SOURCES.name).noun:
        meaning = f"What follows from the {votes} of the ensemble if a source could change every vote that its labels "
        meaning += "had a part in (black-box). "
    if all(np.array_equal(radius, votes) for radius, votes in pairs):
        return [("Votes alone", meaning + "The radii shown here are no larger.")]
    return [
        (
            "Votes alone",
            meaning
            + f"The proof shown here also uses how many {unit_of(results[0].certificates.threat).nouns} each vote "
            "withstands (white-box).",
        )
    ]


def _label_space(results: Sequence[Result], unit: Unit) -> list[tuple[str, str]]:
    if unit.threat == DELETIONS.name:
        text = "Labels stay as they are."
    elif unit.threat == FLIPS.name:
        text = "Labels are flipped to classes of the label space; a label of any other class is not covered."
    else:
        text = (
            "Labels that are changed or come with new rows are of classes of the label space; others are not covered."
        )
    if unit.threat != INSERTIONS.name and not all("classes" in result.settings for result in results):
        away = {FLIPS.name: "flips away", SOURCES.name: "changes"}.get(unit.threat, "takes away")
        text += (
            f" Where the label space was not given, it is that of the training labels, and whoever {away} all "
            "labels of a class removes it: radii take that into account."
        )
    return [("The label space", text)]


def _tightness(summaries: Sequence[Summary]) -> tuple[str, str]:
    total = sum(len(s.result.certificates) for s in summaries)
    exact = sum(int(s.result.certificates.exact.sum()) for s in summaries)
    unit = summaries[0].unit
    meaning = f"an attack with one {unit.noun} more is known, or no {unit.nouns} ever change the prediction"
    if not unit.bounded:
        meaning = f"an attack with one {unit.noun} more is known, or the radius is as large as radii go"
    if exact == total:
        every = "The radius is" if total == 1 else f"All {total:,} radii are"
        return "Exact", f"{every} exact: {meaning}."
    if exact == 0:
        return (
            "A lower bound",
            f"The radii are proven from below; how many {unit.nouns} would really be needed is not known to the "
            f"{'flip' if unit.threat == FLIPS.name else 'last one'}. An attack may need more.",
        )
    return (
        "Exact or a bound",
        f"{exact:,} of {total:,} radii ({percent(exact / total)}) are exact: {meaning}. The others are proven from "
        "below; the true number lies between the radius and the smallest attack known.",
    )


def _nothing_tuned(summaries: Sequence[Summary]) -> tuple[str, str]:
    poisoned = {s.unit.poisoned for s in summaries}
    which = poisoned.pop() if len(poisoned) == 1 else "data that an attacker may change"
    what = which.split()[0]
    text = (
        f"Hyper-parameters, preprocessing and features must not have been chosen with the help of {which}, or the "
        f"certificate is void: other {what} could have led to another model."
    )
    if len(summaries) > 1:
        text += " That also holds for a choice among the results on this page: each certificate is for its own "
        text += "setting, as given."
    return f"Nothing tuned on these {what}", text


def _rounding(summaries: Sequence[Summary]) -> tuple[str, str]:
    total = sum(len(s.result.certificates) for s in summaries)
    sensitive = sum(int(np.sum(s.result.certificates.rounding_sensitive)) for s in summaries)
    text = "Scores are compared exactly, for the weights as they were computed. "
    if not all(s.result.model in _OF_WEIGHTS for s in summaries):
        text = "Where a score is a sum of weights, it is compared exactly, for the weights as they were computed. "
    if sensitive == 0:
        return "Rounding", text + "No certificate here is so close that other rounding of the weights could change it."
    verb = "is" if sensitive == 1 else "are"
    return (
        "Rounding",
        text + f"{sensitive:,} of {plural(total, 'certificate')} {verb} so close that weights rounded otherwise "
        "(another batch, another machine) might give another number.",
    )

"""What a certificate promises, and what it does not, in plain words."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from flipcert.report.result import Result
from flipcert.report.summary import Summary
from flipcert.report.words import Exposure, capital, percent, plural

_NOT_PROVEN = (
    "Not proven",
    'Smoothing with method "published" follows a formula that over-states radii for more than two classes. Where this '
    "page calls them proven, read: by that formula. It is there to reproduce figures; other methods prove what they "
    "say.",
)


# Models whose scores are sums of weights, by the names that descriptions give them.
_OF_WEIGHTS = ("svm", "ridge", "neighbors")


def promises(summaries: Sequence[Summary]) -> list[tuple[str, str]]:
    """Terms and explanations, with the numbers of all results where they matter."""
    results = [s.result for s in summaries]
    exposures = {s.exposure for s in summaries}
    labels = "labels that are not trusted" if any(e.n_trusted for e in exposures) else "labels"
    told = [] if all(s.proven for s in summaries) else [_NOT_PROVEN]
    told += [
        (
            "What is proven",
            f"A prediction that withstands r flips stays the same whichever r or fewer training {labels} are changed, "
            "to whichever classes. It is a mathematical proof about the model as it is, not an estimate from trials.",
        ),
        *_trusted(exposures),
        _label_space(results),
        (
            "One point at a time",
            "Every test point is taken by itself: the attacker may aim all flips at it alone. One set of flips need "
            "not break all of the points that fall at that number, so an attack on many points at once takes at least "
            "as many flips, and usually more.",
        ),
        *([_tightness(summaries)] if any(e.n_attackable for e in exposures) else []),
    ]
    told += _votes_alone(results)
    told += [
        (
            "Labels only",
            f"Attackers may change {labels}, and nothing else. Features, and which rows there are, are trusted; so is "
            "everything made from features alone. Poisoned inputs, added or removed rows are not covered.",
        ),
        (
            "Nothing tuned on these labels",
            "Hyper-parameters, preprocessing and features must not have been chosen with the help of labels that an "
            "attacker may flip, or the certificate is void: other labels could have led to another model."
            + (
                " That also holds for a choice among the results on this page: each certificate is for its own "
                "setting, as given."
                if len(summaries) > 1
                else ""
            ),
        ),
        _rounding(summaries),
    ]
    if any(name in str(r.settings.get("kernel", "")).lower() for r in results for name in ("ntk", "nngp")):
        told.append(
            (
                "Wide networks",
                "With the kernel of an infinitely wide network the certificate is for the kernel machine. It carries "
                "over to a network as far as the network is wide enough to behave like it.",
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


def _trusted(exposures: Collection[Exposure]) -> list[tuple[str, str]]:
    if not any(e.n_trusted for e in exposures):
        return []
    which = "Some training labels are trusted (the settings tell how many)"
    if len(exposures) == 1:
        (e,) = exposures
        which = f"{e.n_trusted:,} of the {e.n_labels:,} training labels {'is' if e.n_trusted == 1 else 'are'} trusted"
        which = which if e.n_attackable else capital(e.all_trusted)
    if not any(e.n_attackable for e in exposures):
        return [
            (
                "Trusted labels",
                f"{which}: an attacker cannot flip them, so no prediction changes. Should one be flipped after all, "
                "nothing here is promised.",
            )
        ]
    return [
        (
            "Trusted labels",
            f"{which}: an attacker cannot flip them. All numbers are about the others, and shares of labels are shares "
            "of those. Should a trusted label be flipped after all, nothing here is promised.",
        )
    ]


def _votes_alone(results: Sequence[Result]) -> list[tuple[str, str]]:
    ensembles = [(r.certificates.radius, r.certificates.blackbox_radius) for r in results]
    pairs = [(radius, votes) for radius, votes in ensembles if votes is not None]
    if not pairs:
        return []
    meaning = "What follows from the votes of the ensemble if every flip could change one vote (black-box). "
    if all(np.array_equal(radius, votes) for radius, votes in pairs):
        return [("Votes alone", meaning + "The radii shown here are no larger.")]
    return [
        (
            "Votes alone",
            meaning + "The proof shown here also uses how many flips each vote withstands (white-box).",
        )
    ]


def _label_space(results: Sequence[Result]) -> tuple[str, str]:
    text = "Labels are flipped to classes of the label space; a label of any other class is not covered."
    if not all("classes" in result.settings for result in results):
        text += (
            " Where the label space was not given, it is that of the training labels, and whoever flips away all "
            "labels of a class removes it: radii take that into account."
        )
    return "The label space", text


def _tightness(summaries: Sequence[Summary]) -> tuple[str, str]:
    total = sum(len(s.result.certificates) for s in summaries)
    exact = sum(int(s.result.certificates.exact.sum()) for s in summaries)
    meaning = "an attack with one flip more is known, or no flips ever change the prediction"
    if exact == total:
        every = "The radius is" if total == 1 else f"All {total:,} radii are"
        return "Exact", f"{every} exact: {meaning}."
    if exact == 0:
        return (
            "A lower bound",
            "The radii are proven from below; how many flips would really be needed is not known to the flip. "
            "An attack may need more.",
        )
    return (
        "Exact or a bound",
        f"{exact:,} of {total:,} radii ({percent(exact / total)}) are exact: {meaning}. The others are proven from "
        "below; the true number lies between the radius and the smallest attack known.",
    )


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

"""What a random check of labels proves, in words."""

from __future__ import annotations

from decimal import Decimal

import numpy as np

from flipcert.audit.record import RandomCheck
from flipcert.report.result import Result
from flipcert.report.words import Sentence, capital, percent, plural


def checked(check: RandomCheck, corrected: bool = True) -> str:
    """What was done, and found, and whether it is put right already."""
    which = " that were not trusted" if check.n_trusted else ""
    drawn = f"{check.n_checked:,} of the {plural(check.n_labels, 'label')}{which}"
    how = "drawn at random" if check.n_batches == 1 else f"drawn at random in {check.n_batches:,} goes"
    if check.n_checked == check.n_labels:
        drawn = f"All {drawn.partition(' of the ')[2]}" if check.n_labels > 1 else f"The only label{which}"
        how = ""
    were = "was" if check.n_checked == 1 else "were"
    mended = "corrected" if corrected else "to be corrected"
    found = {0: "none of them was wrong", 1: f"1 of them was wrong, and is {mended}"}
    found_ = found.get(check.n_wrong, f"{check.n_wrong:,} of them were wrong, and are {mended}")
    if check.n_checked == 1:
        found_ = f"it was wrong, and is {mended}" if check.n_wrong else "it was right"
    return f"{drawn} {were} checked{f', {how} with seed {check.seed}' if how else ''}; {found_}."


def remains(check: RandomCheck) -> Sentence:
    """How many wrong labels there still are, at most."""
    if check.n_checked == check.n_labels:
        return Sentence("So ", "no wrong label remains", "")
    sure = f"With confidence {confidence(check)}, "
    left = plural(check.remaining, "wrong label")
    if check.remaining == 0:
        return Sentence(sure, "no wrong label remains", "")
    verb = "remains" if check.remaining == 1 else "remain"
    found = f"{check.n_wrong:,} {'was' if check.n_wrong == 1 else 'were'} found"
    of = f" (at most {check.at_most:,} in all, of which {found})" if check.n_wrong else ""
    unseen = check.n_labels - check.n_checked
    were = "was" if unseen == 1 else "were"
    those = f"that {were} neither checked nor trusted before" if check.n_trusted else f"that {were} not checked"
    among = f"the one {those}" if unseen == 1 else f"the {unseen:,} {those}"
    return Sentence(sure, f"at most {left} {verb}", f" among {among}{of}")


def same_as_right(result: Result) -> Sentence:
    """Which predictions are those that entirely right labels would have given."""
    check, count, n = _check(result), n_proven(result), len(result.certificates)
    if count == 0:
        flips = plural(check.remaining, "flip")
        return Sentence(
            "",
            f"{'No prediction' if n > 1 else 'The prediction'} is {'' if n > 1 else 'not '}proven to withstand {flips}",
            ": whether entirely right labels would have given the same is open",
        )
    which = f"{count:,} of the {n:,} predictions ({percent(count / n)})"
    every = {1: "the prediction", 2: "both predictions"}.get(n, f"all {n:,} predictions")
    which = which if count < n else every
    sure = "" if check.n_checked == check.n_labels else f"With confidence {confidence(check)}, "
    be = "is the one" if count == 1 else "are those"
    return Sentence(sure, which if sure else capital(which), f" {be} that entirely right labels would have given")


def how_sure(result: Result) -> str:
    """What that rests on."""
    check, many = _check(result), n_proven(result) > 1
    if check.n_checked == check.n_labels:
        return "Every label was checked, or was trusted before." if check.n_trusted else "Every label was checked."
    if n_proven(result) == 0:
        return "Check more labels, or choose a model that withstands more flips."
    others = (
        "labels that were neither checked nor trusted before" if check.n_trusted else "labels that were not checked"
    )
    why = f"At that confidence, none of the {others} is wrong."
    if check.remaining:
        flips = "single flip" if check.remaining == 1 else f"{check.remaining:,} flips"
        why = (
            f"{'They withstand' if many else 'It withstands'} any {flips} of {others}, and at that confidence at most "
        )
        why += f"{check.remaining:,} of these {'is' if check.remaining == 1 else 'are'} wrong."
    why += f" The confidence is over the draw of the check{', for all of them at once' if many else ''}."
    left = len(result.certificates) - n_proven(result)
    return f"{why} Whether it holds for the other{'s' if left > 1 else ''} is open." if left else why


def stage(check: RandomCheck) -> str:
    """Which bound it is, and for whom; nothing where every label was checked, as that leaves no doubt."""
    if check.n_checked == check.n_labels:
        return ""
    if not check.peeked:
        return "This bound is for a check that ends here, whatever it says; if you may go on, use --peeked now."
    reasons = []
    if check.n_batches > 1:
        reasons.append("more labels were drawn when results were known")
    if check.n_checked < check.n_drawn:
        left = check.n_drawn - check.n_checked
        reasons.append(
            f"{left:,} of the {check.n_drawn:,} that were drawn {'is' if left == 1 else 'are'} not filled in"
        )
    why = f", as {' and '.join(reasons)}" if reasons else ""
    return f"The bound is the one that holds at every stage of a check at once{why}."


def assumed(check: RandomCheck) -> tuple[str, str]:
    """What a check takes for granted, as a promise of a page."""
    text = (
        f"The labels that were checked were drawn at random (seed {check.seed}), by a seed that had nothing to do with "
        "which labels are wrong, and were looked at in that order; what was filled in is right. Right labels are of "
        "classes of the label space. "
    )
    if check.n_trusted:
        before = "The label that was" if check.n_trusted == 1 else f"The {check.n_trusted:,} labels that were"
        text += f"{before} trusted before {'is' if check.n_trusted == 1 else 'are'} taken to be right. "
    if not check.peeked:
        text += (
            "How many labels to check was settled before the first of them was looked at, and the check ends there, "
            "whatever it says. "
        )
    text += (
        "Entirely right labels would have given a prediction: that of the same model, fitted with the same settings."
    )
    return "The check", text


def n_proven(result: Result) -> int:
    """Number of predictions that withstand as many flips as wrong labels may remain."""
    return int(np.count_nonzero(result.certificates.radius >= _check(result).remaining))


def confidence(check: RandomCheck) -> str:
    """The confidence in percent, as it was given: never rounded up."""
    return f"{(Decimal(repr(check.confidence)) * 100).normalize():f} %"


def _check(result: Result) -> RandomCheck:
    assert result.check is not None, "asked of results with a check only"
    return result.check

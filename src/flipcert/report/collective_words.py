"""What one attack on all test points can do, in words."""

from __future__ import annotations

from flipcert.labels.threats import FLIPS, SOURCES
from flipcert.report.words import Exposure, Sentence, capital, percent, plural
from flipcert.results.collective_certificate import CollectiveCertificate


def counted_kind(certificate: CollectiveCertificate) -> str:
    """What is counted: all predictions, or those that are right."""
    return "correct prediction" if certificate.counts_correct else "prediction"


def finding(certificate: CollectiveCertificate, k: int) -> Sentence:
    """What an attack within the ``k``-th budget changes, as far as it is proven."""
    c, exposure = certificate, Exposure.of(certificate)
    budget, most, least = int(c.flips[k]), int(c.changed_at_most[k]), int(c.changed_at_least[k])
    if c.n_counted == 0:
        return Sentence("No prediction is correct", "", ", so there is none that an attack could spoil")
    if exposure.reach == 0:
        return exposure.nothing
    start = f"One attack of {plural(budget, exposure.unit.noun)}, {share_of(budget, exposure)}, changes "
    whole = _whole(c)
    if most == 0:
        return Sentence(start, "not a single one", f" of {whole}{_aside(exposure)}")
    if most == least:
        return Sentence(start, f"exactly {most:,}", f" of {whole} at worst{_aside(exposure)}")
    return Sentence(start, f"at most {most:,}", f" of {whole}{_aside(exposure)}")


def _aside(exposure: Exposure) -> str:
    """How many labels are trusted, at the end of a sentence about predictions."""
    if not exposure.only("so"):
        return exposure.aside
    what = "row" if exposure.unit.thing == "row" else "label"
    return f"; {plural(exposure.n_trusted, what)} {'is' if exposure.n_trusted == 1 else 'are'} trusted"


def share_of(budget: int, exposure: Exposure) -> str:
    """A budget as a share of what there is to attack."""
    if budget >= exposure.total and exposure.unit.bounded:
        return "all there are" if budget == exposure.total else "more than there are"
    if budget >= exposure.total:
        return f"{'as many as' if budget == exposure.total else 'more than'} the training set has rows"
    return f"{exposure.share(budget)} of {exposure.whole.removesuffix(exposure.aside)}"


def evidence(certificate: CollectiveCertificate, k: int) -> list[str]:
    """What stands behind the finding: what is proven point by point, and what the attack that was found does."""
    c, exposure = certificate, Exposure.of(certificate)
    if c.n_counted == 0 or exposure.reach == 0:
        return []
    most, least, alone = (int(own[k]) for own in (c.changed_at_most, c.changed_at_least, c.changed_one_by_one))
    told = []
    if c.why_one_by_one is not None:
        told.append(f"No more is proven than point by point: {c.why_one_by_one}.")
    elif alone > most:
        kept = "certified accuracy" if c.counts_correct else "the certified share"
        told.append(
            f"Point by point, {_that_many(alone, c)}, each by an attack of its own. But one attack has to do it all, "
            f"and that lifts {kept} from {percent(c.certified_one_by_one[k])} to {percent(c.certified_accuracy[k])}."
        )
    elif most:
        told.append("That is what is proven point by point as well.")
    told.append(_found(c, k, most, least))
    return told


def _whole(c: CollectiveCertificate) -> str:
    return plural(c.n_counted, counted_kind(c))


def _that_many(alone: int, c: CollectiveCertificate) -> str:
    return "one of them could change" if alone == 1 and c.n_counted > 1 else f"{alone:,} of them could change"


def _found(c: CollectiveCertificate, k: int, most: int, least: int) -> str:
    """What the attack that was found does."""
    attack, unit = c.attacks[k], Exposure.of(c).unit
    if most == 0:
        return "That is proven, so there is no attack to look for."
    if attack is None or least == 0:
        return "No attack is known that changes any of them, so how much of this is caution is open."
    size = plural(len(attack), unit.noun)
    if most == least:
        points = "it" if most == 1 else f"all {most:,}"
        return f"An attack of {size} that was found{_replayed(c)} changes {points}: no attack does more."
    # Where an attack was made for one point, nobody looked at what it does to the others.
    seen = f"changes {'' if c.replayed else 'at least '}{least:,}"
    return f"An attack of {size} that was found{_replayed(c)} {seen}: the truth lies between {least:,} and {most:,}."


def _replayed(c: CollectiveCertificate) -> str:
    return ", and replayed," if c.replayed else ""


def limits() -> tuple[str, str]:
    """What the numbers about one attack promise, and what they do not."""
    return (
        "One attack on all points",
        "Where a budget is given for one attack on all test points, it is proven how many predictions change at most, "
        "not which. All test points on this page are meant, no others: a larger test set needs its own certificate. "
        "The proof and the attack that was found depend on how long was looked for them; more time can bring them "
        "closer together, and never makes them wrong.",
    )


def heading(certificate: CollectiveCertificate) -> str:
    """What a list of what an attack does to the training set is called."""
    unit = Exposure.of(certificate).unit
    if unit.threat == FLIPS.name:
        return "Labels that it flips"
    return "Sources that it takes" if unit.threat == SOURCES.name else capital(unit.all_made)

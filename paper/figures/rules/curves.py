"""Rules on curves of certified accuracy; their areas are mean numbers of flips."""

from __future__ import annotations

from collections.abc import Sequence

from paper.figures.measures import MET, area, at, ensembles, gain
from paper.figures.rules.rule import NOT, Judged, Rule, Thresholds, graded
from paper.figures.table import Row


def _one_model_wins(given: Thresholds, rows: Sequence[Row]) -> Judged:
    alone = next(row for row in rows if row["partitions"] == 1)
    best = max(ensembles(rows), key=area)
    ratio = area(alone) / max(area(best), 1e-9)
    most = ensembles(rows)[-1]
    text = (
        f"One model certifies {ratio:.2f} times the flips of its best ensemble (N = {best['partitions']}) in the mean; "
        f"medians {alone['median']} and {best['median']}, accuracies {alone['accuracy']:.3f} and "
        f"{best['accuracy']:.3f}, something certified up to {alone['largest']} and {best['largest']} flips. Black-box "
        f"at N = {most['partitions']}: up to {most['largest_votes']}."
    )
    return graded(ratio >= given["far"], ratio > 1), text


def _left_when_gone(given: Thresholds, rows: Sequence[Row]) -> Judged:
    alone = next(row for row in rows if row["partitions"] == 1)
    best = max(ensembles(rows), key=area)
    left = at(alone, best["largest"] + 1)
    text = (
        f"The best ensemble is that of N = {best['partitions']}; beyond {best['largest']} flips, where it certifies "
        f"nothing, one model has {left:.0%}."
    )
    return graded(left >= given["left"], left >= given["left_in_shape"]), text


def _certifies_at(given: Thresholds, rows: Sequence[Row]) -> Judged:
    alone = next(row for row in rows if row["partitions"] == 1)
    share, flips = at(alone, given["flips"]), given["flips"]
    text = (
        f"Certified accuracy at {flips} flips: {share:.1%}; something is certified up to {alone['largest']} flips "
        f"({alone['largest'] / alone['n_train']:.1%} of the training set)."
    )
    return graded(share >= given["share"], alone["largest"] >= flips), text


def _first_model_wins(given: Thresholds, rows: Sequence[Row]) -> Judged:
    first, *others = rows
    ratios = [area(first) / max(area(row), 1e-9) for row in others]
    text = (
        f"In the mean it certifies {min(ratios):.1f} to {max(ratios):.1f} times as many flips. Accuracy "
        f"{first['accuracy']:.3f}, median {first['median']}, up to {first['largest']}; the others: accuracy "
        f"{min(row['accuracy'] for row in others):.3f} to {max(row['accuracy'] for row in others):.3f}, median "
        f"{min(row['median'] for row in others)} to {max(row['median'] for row in others)}, up to "
        f"{max(row['largest'] for row in others)}."
    )
    return graded(min(ratios) >= given["far"], min(ratios) > 1), text


def below_votes(row: Row) -> bool:
    """Whether white-box is anywhere below black-box, which would be an error of ours."""
    return any(ours < votes for ours, votes in zip(row["certified"], row["votes"], strict=True))


def _told(found: Sequence[Row]) -> str:
    """Gains at each N, and an error if there is one."""
    wrong = [str(row["partitions"]) for row in found if below_votes(row)]
    lead = f"White-box is below black-box at N = {', '.join(wrong)}. " if wrong else ""
    gains = ", ".join(
        f"{gain(row):.2f} at N = {row['partitions']} (medians {row['median']} and {row['median_votes']})"
        for row in found
    )
    return f"{lead}White-box over black-box, in the mean: {gains}."


def _white_box_far_ahead(given: Thresholds, rows: Sequence[Row]) -> Judged:
    found = ensembles(rows)
    few = found[: (len(found) + 1) // 2]
    gains = [gain(row) for row in few]
    verdict = graded(min(gains) >= given["far"], gains[0] >= given["far"])
    return NOT if any(map(below_votes, found)) else verdict, _told(found)


def _no_improvement(given: Thresholds, rows: Sequence[Row]) -> Judged:
    found = ensembles(rows)
    most = max(gain(row) for row in found)
    verdict = graded(most <= given["little"], most <= given["little_in_shape"])
    return NOT if any(map(below_votes, found)) else verdict, _told(found)


def _gap_narrows(given: Thresholds, rows: Sequence[Row]) -> Judged:
    found = ensembles(rows)
    gaps = [row["median"] - row["median_votes"] for row in found]
    met = [row["partitions"] for row in found if row["median"] <= MET * row["median_votes"]]
    narrows = gaps[-1] < given["narrower"] * gaps[0]
    apart = ", ".join(f"{gap} at N = {row['partitions']}" for row, gap in zip(found, gaps, strict=True))
    text = f"Medians are apart by {apart}; {f'they meet at N = {met[0]}' if met else 'they do not meet'}."
    return NOT if any(map(below_votes, found)) else graded(narrows and bool(met), narrows), text


RULES = {
    "one-model-wins": Rule(
        "the mean number of flips that one model certifies is at least {far:g} times that of its best ensemble; in "
        "shape: it is larger",
        _one_model_wins,
    ),
    "left-when-gone": Rule(
        "one model has a certified accuracy of at least {left:.0%} where its best ensemble has none; in shape: at "
        "least {left_in_shape:.0%}",
        _left_when_gone,
    ),
    "certifies-at": Rule(
        "one model has a certified accuracy of at least {share:.0%} at {flips} flips; in shape: something is certified "
        "there",
        _certifies_at,
    ),
    "first-model-wins": Rule(
        "the mean number of flips that it certifies is at least {far:g} times that of every other method; in shape: it "
        "is larger than all",
        _first_model_wins,
        ("model", "method", "clip", "partitions"),
    ),
    "white-box-far-ahead": Rule(
        "the mean number of certified flips is at least {far:g} times the black-box one at every N of the lower half "
        "of those shown (low to intermediate); in shape: at the smallest N",
        _white_box_far_ahead,
    ),
    "no-improvement": Rule(
        "the mean number of certified flips is at most {little:g} times the black-box one at every N; in shape: at "
        "most {little_in_shape:g} times",
        _no_improvement,
    ),
    "gap-narrows": Rule(
        "the white-box median minus the black-box one is at the largest N less than {narrower:g} times what it is at "
        "the smallest, and they meet at some N; in shape: they need not meet",
        _gap_narrows,
    ),
}

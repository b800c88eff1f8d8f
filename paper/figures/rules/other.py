"""Rules on times, and on accuracy against C."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paper.figures.measures import ensembles
from paper.figures.rules.rule import NOT, THEOREM, Judged, Rule, Thresholds, graded
from paper.figures.table import Row

_PARTS = ("weights", "lower", "upper", "aggregation")


def seconds_a_point(row: Row) -> float:
    """Time of one test point, with its share of fitting and of the kernel."""
    return float(row["timed_fit"] + row["timed_kernel"] + row["timed_certify"])


def _shares(row: Row) -> list[float]:
    parts = [row[f"timed_{name}"] for name in _PARTS]
    return [part / sum(parts) for part in parts]


def _time_grows(given: Thresholds, rows: Sequence[Row]) -> Judged:
    first, *_, last = ensembles(rows)
    stated = given["stated"][first["data"]]
    ratio = seconds_a_point(last) / seconds_a_point(first)
    early, late = (f"{1e3 * seconds_a_point(row):.2g} ms at N = {row['partitions']}" for row in (first, last))
    text = f"A test point takes {early} and {late}, {ratio:.2g} times as long; the paper's times grow by {stated:g}."
    return graded(stated / given["within"] <= ratio <= stated * given["within"], ratio >= given["grows"]), text


def _aggregation_takes_over(given: Thresholds, rows: Sequence[Row]) -> Judged:
    first, *_, last = ensembles(rows)
    (_, lower, upper, _), (*_, late) = _shares(first), _shares(last)
    split = " and ".join(
        " / ".join(f"{share:.0%}" for share in _shares(row)) + f" at N = {row['partitions']}" for row in (first, last)
    )
    few = lower + upper >= given["share"]
    text = f"With all costs taken one by one, weights / lower / upper / aggregation share the time as {split}."
    return graded(few and late >= given["share"], few and late >= given["in_shape"]), text


def _means(rows: Sequence[Row]) -> dict[str, dict[float, float]]:
    """Mean accuracy at each multiple of the threshold of C, for each size or number of partitions."""
    found: dict[str, dict[float, list[float]]] = {}
    for row in rows:
        who = f"{row['size']} samples" if row["partitions"] == 1 else f"N = {row['partitions']}"
        found.setdefault(who, {}).setdefault(row["times_threshold"], []).append(row["accuracy"])
    return {who: {factor: float(np.mean(own[factor])) for factor in sorted(own)} for who, own in found.items()}


def _constant_below(given: Thresholds, rows: Sequence[Row]) -> Judged:
    small = {who: [mean for factor, mean in own.items() if factor <= 1] for who, own in _means(rows).items()}
    moved = max(max(own) - min(own) for own in small.values())
    return (THEOREM if moved <= given["moved"] else NOT), f"Up to the threshold, mean accuracies move by {moved:.4f}."


def _small_c_is_competitive(given: Thresholds, rows: Sequence[Row]) -> Judged:
    losses, told = [], []
    for who, own in _means(rows).items():
        best, small = max(own, key=lambda factor: own[factor]), own[max(factor for factor in own if factor <= 1)]
        losses.append(own[best] - small)
        told.append(f"{who}: {small:.3f}, at most {own[best]:.3f} (at {best:g} times the threshold)")
    text = f"Up to {100 * max(losses):.1f} points are lost. {'; '.join(told)}."
    return graded(max(losses) <= given["lost"], max(losses) <= given["lost_in_shape"]), text


_STUDY = ("partitions", "size", "seed", "times_threshold")
RULES = {
    "time-grows": Rule(
        "from the smallest to the largest N the time of a test point grows by what is stated, within a factor of "
        "{within:g}; in shape: it grows at least {grows:g} times. Seconds of another machine are not compared",
        _time_grows,
    ),
    "aggregation-takes-over": Rule(
        "costs take at least {share:.0%} of the time at the smallest N, and aggregation at least {share:.0%} at the "
        "largest; in shape: at least {in_shape:.0%} there",
        _aggregation_takes_over,
    ),
    "constant-below": Rule(
        "this is proven, and cannot count; were mean accuracies to move by more than {moved:g}, we would be wrong",
        _constant_below,
        _STUDY,
    ),
    "small-c-is-competitive": Rule(
        "small C loses at most {lost:g} of accuracy against the best C at every size or N; in shape: at most "
        "{lost_in_shape:g}",
        _small_c_is_competitive,
        _STUDY,
    ),
}

"""Rules on medians against the number of partitions."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, sqrt

from paper.figures.measures import before_meeting, ensembles, power, spread, where_they_meet
from paper.figures.rules.rule import IN_SHAPE, NOT, REPRODUCED, Judged, Rule, Thresholds, graded
from paper.figures.table import Row


def _invariant(given: Thresholds, rows: Sequence[Row]) -> Judged:
    factor, told = spread(before_meeting(rows))
    return graded(factor <= given["level"], factor <= given["in_shape"]), f"{told}. {where_they_meet(rows)}"


def _declines_then_levels(given: Thresholds, rows: Sequence[Row]) -> Judged:
    before = before_meeting(rows)
    first, last = before[0], before[-1]
    halfway = sqrt(first["partitions"] * last["partitions"])
    verdicts, told = [NOT], []
    for place, row in enumerate(before[1:], 1):
        if row["partitions"] > halfway:
            break
        decline, (level, _) = 1 - row["median"] / max(first["median"], 1), spread(before[place:])
        verdicts.append(
            graded(
                decline >= given["sharp"] and level <= given["level"],
                decline >= given["sharp_in_shape"] and level <= given["level_in_shape"],
            )
        )
        told.append(f"{row['median']} at N = {row['partitions']} ({-decline:+.0%}), from there within {level:.2f}")
    verdict = min(verdicts, key=(REPRODUCED, IN_SHAPE, NOT).index)
    path = "; ".join(told) or "nothing before half the way"
    return verdict, (
        f"From {first['median']} flips at N = {first['partitions']} to {path}; {last['median']} at N = "
        f"{last['partitions']}. {where_they_meet(rows)}"
    )


def _gains_from_few(given: Thresholds, rows: Sequence[Row]) -> Judged:
    found = ensembles(rows)
    # The paper's two numbers of partitions; small versions have others.
    first = next((row for row in found if row["partitions"] == given["few"]), found[0])
    last = next((row for row in found if row["partitions"] == given["many"]), found[-1])
    gained = first["median"] / max(last["median"], 1) - 1
    text = (
        f"{first['median']} flips at N = {first['partitions']}, {last['median']} at N = {last['partitions']}: "
        f"{gained:+.1%} with fewer partitions. {where_they_meet(rows)}"
    )
    return graded(given["low"] <= gained <= given["high"], gained >= given["falls"]), text


def _turns(given: Thresholds, rows: Sequence[Row]) -> Judged:
    rising, falling, told = [], [], []
    for reg in sorted({row["reg"] for row in rows}):
        first, *between, last = ensembles([row for row in rows if row["reg"] == reg])
        grows = power(first, last)
        if grows > given["power"]:
            rising.append(reg)
        elif grows < -given["power"]:
            falling.append(reg)
        least = min(between, key=lambda row: row["median"], default=last)
        dips = least["median"] < 0.95 * min(first["median"], last["median"])
        through = f" through {least['median']} at N = {least['partitions']}" if dips else ""
        told.append(
            f"reg {reg:g} ({first['reg_over_diag']:.2g} of mean diag Q): {first['median']}{through} to "
            f"{last['median']}, N^{grows:+.2f}"
        )
    low, high = given.get("turn", (0, inf))
    if not (rising and falling):
        verdict, turn = NOT, "Only one of the two trends shows." if rising or falling else "There is no trend."
    elif max(rising) < min(falling):
        within = low <= max(rising) and min(falling) <= high
        verdict = graded(within, True)
        beside = {row["reg"]: row["reg_over_diag"] for row in rows}
        turn = (
            f"The trend turns between reg {max(rising):g} and {min(falling):g}, which are {beside[max(rising)]:.2g} "
            f"and {beside[min(falling)]:.2g} of mean diag Q."
        )
    else:
        verdict, turn = NOT, "Rising and falling do not follow the order of reg."
    return verdict, f"{turn} From N = {first['partitions']} to {last['partitions']}: {'; '.join(told)}."


def _grows_almost_linearly(given: Thresholds, rows: Sequence[Row]) -> Judged:
    weakest = min(row["reg"] for row in rows)
    first, *_, last = ensembles([row for row in rows if row["reg"] == weakest])
    grows = power(first, last)
    text = (
        f"At reg {weakest:g} from {first['median']} at N = {first['partitions']} to {last['median']} at N = "
        f"{last['partitions']}: N^{grows:.2f}."
    )
    return graded(grows >= given["power"], grows >= given["power_in_shape"]), text


def _bounds_coincide(given: Thresholds, rows: Sequence[Row]) -> Judged:
    known = [row for row in ensembles(rows) if row.get("median_published") is not None]
    gaps = [row["median_published_upper"] / max(row["median_published"], 1) - 1 for row in known]
    worst = known[gaps.index(max(gaps))]
    shares = [row["share_exact_published"] for row in known]
    ours = [row["share_exact"] for row in known]
    text = (
        f"The paper's two bounds: medians {max(gaps):.1%} apart at most (N = {worst['partitions']}); equal for "
        f"{min(shares):.0%} to {max(shares):.0%} of the points. Ours are equal for {min(ours):.2%} to {max(ours):.2%}."
    )
    tight = max(gaps) <= given["apart"]
    return graded(tight and min(shares) >= given["points"], tight), text


RULES = {
    "invariant": Rule(
        "over all N until white-box meets black-box, the largest median is at most {level:g} times the smallest; in "
        "shape: at most {in_shape:g} times",
        _invariant,
    ),
    "declines-then-levels": Rule(
        "at some N, not beyond half the way (in log N) to the last one before white-box meets black-box, the median "
        "has fallen by at least {sharp:.0%}, and all medians from there on are within a factor of {level:g}; in shape: "
        "fallen by {sharp_in_shape:.0%}, within {level_in_shape:g}",
        _declines_then_levels,
    ),
    "gains-from-few": Rule(
        "the median at N = {few} is {low:.1%} to {high:.1%} above that at N = {many}, which is half to twice what is "
        "stated; in shape: at least {falls:.0%} above",
        _gains_from_few,
    ),
    "turns": Rule(
        "from the smallest to the largest N the median grows faster than N^{power:g} for small reg and falls faster "
        "than N^-{power:g} for large reg, and what lies between is within reg {turn[0]:g} to {turn[1]:g}; in shape: it "
        "turns elsewhere",
        _turns,
        ("partitions", "reg"),
    ),
    "turns-somewhere": Rule(
        "from the smallest to the largest N the median grows faster than N^{power:g} for small reg and falls faster "
        "than N^-{power:g} for large reg, wherever it turns; nothing less counts as in shape",
        _turns,
        ("partitions", "reg"),
    ),
    "grows-almost-linearly": Rule(
        "at the smallest reg, from the smallest to the largest N, the median grows at least as N^{power:g}; in shape: "
        "as N^{power_in_shape:g}",
        _grows_almost_linearly,
        ("partitions", "reg"),
    ),
    "bounds-coincide": Rule(
        "at every N the medians of the paper's own two bounds differ by at most {apart:.0%}, and the bounds are equal "
        "for at least {points:.0%} of the test points; in shape: the medians alone",
        _bounds_coincide,
        needs="median_published",
    ),
}

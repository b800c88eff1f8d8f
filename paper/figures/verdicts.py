"""What the paper says of a figure against what our tables show, in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import log

import numpy as np

from paper.figures.drawing import line_name, panels, seconds_a_point
from paper.figures.figure import Figure
from paper.figures.table import Row

REPRODUCED, IN_SHAPE, NOT = "reproduced", "reproduced in shape", "not reproduced"
# A white-box median this close to the black-box one has met it.
_MET = 1.02
# Medians within this factor are level.
_LEVEL = 1.25
# And so are medians that grow with N to a power this close to none.
_LEVEL_POWER = 0.05
# A certificate with this many times the flips of another is far better.
_FAR_BETTER = 1.5


@dataclass(frozen=True)
class Finding:
    """The verdict on one panel, and the numbers behind it."""

    panel: str
    verdict: str
    text: str


def judge(figure: Figure, rows: Sequence[Row]) -> list[Finding]:
    """Compare all panels of a figure with what the paper says."""
    rule = _RULES[figure.expect]
    # Panels that differ in the setting whose trend the rule judges are one.
    own = tuple(name for name in figure.panels if name != _TREND_OVER.get(figure.expect))
    return [rule(figure, name, group) for name, group in panels(replace(figure, panels=own), rows)]


def meeting(rows: Sequence[Row]) -> Row | None:
    """The first ensemble whose white-box median is the black-box one."""
    return next((row for row in _ensembles(rows) if row["median"] <= _MET * row["median_votes"]), None)


def _ensembles(rows: Sequence[Row]) -> list[Row]:
    return sorted((row for row in rows if row["partitions"] > 1), key=lambda row: row["partitions"])


def _where_they_meet(rows: Sequence[Row]) -> str:
    met = meeting(rows)
    if met is None:
        return "White-box stays above black-box throughout."
    fragile = met.get("share_fragile")
    known = "" if fragile is None else f", where one flip turns {fragile:.0%} of the voters for the winner"
    return f"White-box meets black-box at N = {met['partitions']}{known}."


def _before_meeting(rows: Sequence[Row]) -> list[Row]:
    met = meeting(rows)
    ensembles = _ensembles(rows)
    before = [row for row in ensembles if met is None or row["partitions"] < met["partitions"]]
    return before or ensembles[:1]


def _invariant(figure: Figure, panel: str, rows: Sequence[Row]) -> Finding:
    before = _before_meeting(rows)
    spread, told = _spread(before)
    text = f"{told}. {_where_they_meet(rows)}"
    if spread <= _LEVEL:
        return Finding(panel, REPRODUCED, text)
    later, told = _spread(before[1:] or before)
    return Finding(panel, IN_SHAPE if later <= _LEVEL else NOT, f"{text} {told}.")


def _spread(rows: Sequence[Row]) -> tuple[float, str]:
    """The largest median over the smallest, and a sentence about it."""
    medians = [row["median"] for row in rows]
    spread = max(medians) / max(min(medians), 1)
    where = f"For N from {rows[0]['partitions']} to {rows[-1]['partitions']}"
    return spread, f"{where} the median lies between {min(medians)} and {max(medians)} flips (a factor of {spread:.2f})"


def _declines_then_plateaus(figure: Figure, panel: str, rows: Sequence[Row]) -> Finding:
    before = _before_meeting(rows)
    medians = [row["median"] for row in before]
    tail = medians[len(medians) // 2 :]
    decline = 1 - tail[0] / max(medians[0], 1)
    spread = max(tail) / max(min(tail), 1)
    verdict = REPRODUCED if decline > 0.3 and spread <= _LEVEL else IN_SHAPE if decline > 0.15 else NOT
    text = (
        f"From {medians[0]} flips at N = {before[0]['partitions']} to {tail[0]} at N = "
        f"{before[len(medians) // 2]['partitions']} ({-decline:+.0%}), then between {min(tail)} and {max(tail)}. "
        f"{_where_they_meet(rows)}"
    )
    return Finding(panel, verdict, text)


def _falls(figure: Figure, panel: str, rows: Sequence[Row]) -> Finding:
    ensembles = _ensembles(rows)
    first, *_, last = ensembles
    ratio = first["median"] / max(last["median"], 1)
    early = _falls_at_first(ensembles)
    verdict = REPRODUCED if ratio > 1.05 else IN_SHAPE if early else NOT
    lowest = f" It falls at first, to {_lowest(ensembles)}." if ratio <= 1.05 and early else ""
    text = (
        f"{first['median']} flips at N = {first['partitions']}, {last['median']} at N = {last['partitions']}: "
        f"{ratio - 1:+.1%} with {last['partitions'] // first['partitions']} times fewer partitions.{lowest} "
        f"{_where_they_meet(rows)}"
    )
    return Finding(panel, verdict, text)


def _falls_at_first(ensembles: Sequence[Row]) -> bool:
    """Whether the median falls until white-box meets black-box, which rises with N whatever flips cost."""
    before = _before_meeting(ensembles)
    return bool(before[0]["median"] > 1.05 * min(row["median"] for row in before))


def _lowest(ensembles: Sequence[Row]) -> str:
    lowest = min(_before_meeting(ensembles), key=lambda row: row["median"])
    return f"{lowest['median']} at N = {lowest['partitions']}"


def _turns(figure: Figure, panel: str, rows: Sequence[Row]) -> Finding:
    rising, falling, told = [], [], []
    for reg in sorted({row["reg"] for row in rows}):
        ensembles = _ensembles([row for row in rows if row["reg"] == reg])
        first, *_, last = ensembles
        power = _power(first, last)
        level = abs(power) <= _LEVEL_POWER
        if power > _LEVEL_POWER:
            rising.append(reg)
        elif not level or _falls_at_first(ensembles):
            falling.append(reg)
        between = f"down to {_lowest(ensembles)}, then " if level and _falls_at_first(ensembles) else ""
        told.append(
            f"reg {reg:g} ({first['reg_over_diag']:.2g} of mean diag Q): from {first['median']} {between}to "
            f"{last['median']}, N^{power:+.2f}"
        )
    if not (rising and falling):
        verdict, turn = NOT, "Only one of the two trends shows." if rising or falling else "There is no trend."
    elif max(rising) < min(falling):
        stated = figure.turn or (max(rising), min(falling))
        verdict = REPRODUCED if max(rising) < stated[1] and stated[0] < min(falling) else IN_SHAPE
        turn = f"The trend turns between reg {max(rising):g} and {min(falling):g}{_rise(rows)}."
    else:
        verdict, turn = NOT, "Rising and falling do not follow the order of reg."
    return Finding(panel, verdict, f"{turn} From N = {first['partitions']} to {last['partitions']}: {'; '.join(told)}.")


def _power(first: Row, last: Row) -> float:
    """The power of N with which the median grows from one row to another."""
    return log(max(last["median"], 1) / max(first["median"], 1)) / log(last["partitions"] / first["partitions"])


def _rise(rows: Sequence[Row]) -> str:
    """How fast the median of the least regularised models grows, once it does."""
    weakest = min(row["reg"] for row in rows)
    ensembles = _ensembles([row for row in rows if row["reg"] == weakest])
    least, last = min(ensembles, key=lambda row: row["median"]), ensembles[-1]
    if least is last:
        return ""
    where = f"from {least['median']} at N = {least['partitions']}"
    return f"; at reg {weakest:g} it grows {where} as N^{_power(least, last):.2f}"


def area(row: Row, curve: str = "certified") -> float:
    """Mean number of flips that a test point is certified right against: the area under its curve."""
    return float(np.trapezoid(row[curve], row["flips"]))


def _one_model_wins(figure: Figure, panel: str, rows: Sequence[Row]) -> Finding:
    alone = next(row for row in rows if row["partitions"] == 1)
    ensembles = _ensembles(rows)
    best = max(ensembles, key=area)
    median_wins = alone["median"] >= max(row["median"] for row in ensembles)
    area_wins = area(alone) >= area(best)
    verdict = REPRODUCED if median_wins and area_wins else IN_SHAPE if median_wins or area_wins else NOT
    most = ensembles[-1]
    left = float(np.interp(best["largest"] + 1, alone["flips"], alone["certified"]))
    text = (
        f"One model: median {alone['median']}, something certified up to {alone['largest']} flips "
        f"({alone['largest'] / alone['n_train']:.1%} of the training set). Best ensemble (N = {best['partitions']}): "
        f"median {best['median']}, up to {best['largest']}; there one model still has {left:.0%}. "
        f"Black-box at N = {most['partitions']}: up to {most['largest_votes']}."
    )
    return Finding(panel, verdict, text)


def _first_model_wins(figure: Figure, panel: str, rows: Sequence[Row]) -> Finding:
    first, *others = rows
    ahead = [area(first) > area(row) for row in others]
    verdict = REPRODUCED if all(ahead) else IN_SHAPE if any(ahead) else NOT
    told = "; ".join(
        f"{line_name(figure, row, rows)}: accuracy {row['accuracy']:.3f}, median {row['median']}, "
        f"up to {row['largest']}"
        for row in rows
    )
    return Finding(panel, verdict, f"{told}.")


def _below_votes(row: Row) -> bool:
    return any(ours < votes for ours, votes in zip(row["certified"], row["votes"], strict=True))


def _white_box_wins(figure: Figure, panel: str, rows: Sequence[Row]) -> Finding:
    gains = [area(row) / max(area(row, "votes"), 1e-9) for row in rows]
    # The first curve of a panel is the paper's own.
    far_better = [gain >= _FAR_BETTER for gain in gains]
    verdict = REPRODUCED if far_better[0] else IN_SHAPE if any(far_better) else NOT
    told = [
        f"{line_name(figure, row, rows)}: median {row['median']} against {row['median_votes']} black-box, "
        f"{gain:.2f} times as many flips in the mean"
        for row, gain in zip(rows, gains, strict=True)
    ]
    return Finding(panel, NOT if any(map(_below_votes, rows)) else verdict, f"{'; '.join(told)}.")


def _gap_narrows(figure: Figure, panel: str, rows: Sequence[Row]) -> Finding:
    ensembles = _ensembles(rows)
    below = [str(row["partitions"]) for row in ensembles if _below_votes(row)]
    gaps = [row["median"] - row["median_votes"] for row in ensembles]
    ratios = [row["median"] / max(row["median_votes"], 1) for row in ensembles]
    verdict = NOT if below else REPRODUCED if gaps[-1] < gaps[0] else IN_SHAPE if ratios[-1] < ratios[0] else NOT
    told = [
        f"{gap} at N = {row['partitions']} ({row['median']} against {row['median_votes']})"
        for row, gap in zip(ensembles, gaps, strict=True)
    ]
    lead = (
        f"White-box is below black-box at N = {', '.join(below)}." if below else "White-box is never below black-box."
    )
    ratio = (
        f" The gap narrows as a ratio only, from {ratios[0]:.1f} to {ratios[-1]:.1f}." if verdict == IN_SHAPE else ""
    )
    return Finding(panel, verdict, f"{lead} Medians are apart by {', '.join(told)}.{ratio}")


def _time_split(figure: Figure, panel: str, rows: Sequence[Row]) -> Finding:
    published = {"cifar10": (5.0, 120.0), "mnist": (8.0, 240.0)}[rows[0]["data"]]
    times = [seconds_a_point(row) for row in _ensembles(rows)]
    first, *_, last = _ensembles(rows)

    def shares(row: Row) -> list[float]:
        parts = [row[f"timed_{name}"] for name in ("weights", "lower", "upper", "aggregation")]
        return [part / sum(parts) for part in parts]

    def split(row: Row) -> str:
        return " / ".join(f"{share:.0%}" for share in shares(row))

    _, lower, upper, _ = shares(first)
    as_stated = (lower + upper > 0.5, shares(last)[3] > 0.5)
    low, high = min(times), max(times)
    text = (
        f"{1e3 * low:.2g} to {1e3 * high:.2g} ms a test point, with its share of fitting and of the kernel; the paper "
        f"states {published[0]:g} to {published[1]:g} s: {published[0] / low:,.0f} to {published[1] / high:,.0f} times "
        f"faster, on another machine. With all costs taken one by one, weights / lower / upper / aggregation share the "
        f"time as {split(first)} at N = {first['partitions']} and {split(last)} at N = {last['partitions']}."
    )
    verdict = REPRODUCED if all(as_stated) else IN_SHAPE if any(as_stated) else NOT
    return Finding(panel, verdict if high < published[0] else NOT, text)


def _small_c(figure: Figure, panel: str, rows: Sequence[Row]) -> Finding:
    told, constant, losses = [], True, []
    for size, partitions in dict.fromkeys((row["size"], row["partitions"]) for row in rows):
        own = [row for row in rows if (row["size"], row["partitions"]) == (size, partitions)]
        factors = sorted({row["times_threshold"] for row in own})
        means = {f: float(np.mean([row["accuracy"] for row in own if row["times_threshold"] == f])) for f in factors}
        small = [means[f] for f in factors if f <= 1]
        constant &= max(small) - min(small) < 0.002
        best = max(means, key=lambda factor: means[factor])
        losses.append(means[best] - small[-1])
        who = f"{size} samples" if partitions == 1 else f"N = {partitions}"
        told.append(f"{who}: {small[-1]:.3f} with small C, at most {means[best]:.3f} at {best:g} times the threshold")
    verdict = NOT if not constant else REPRODUCED if max(losses) <= 0.03 else IN_SHAPE
    same = "Constant up to the threshold" if constant else "Not constant up to the threshold"
    return Finding(panel, verdict, f"{same}. {'; '.join(told)}.")


_RULES: dict[str, Callable[[Figure, str, Sequence[Row]], Finding]] = {
    "invariant": _invariant,
    "declines-then-plateaus": _declines_then_plateaus,
    "falls": _falls,
    "one-model-wins": _one_model_wins,
    "first-model-wins": _first_model_wins,
    "white-box-wins": _white_box_wins,
    "gap-narrows": _gap_narrows,
    "turns": _turns,
    "time-split": _time_split,
    "small-c-costs-little": _small_c,
}
RULES = tuple(_RULES)
_TREND_OVER = {"turns": "reg", "gap-narrows": "partitions"}

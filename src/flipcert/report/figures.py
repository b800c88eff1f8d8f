"""The figures of a report: accuracy under flips, medians against partitions, radii."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from flipcert.report.chart import Plot, element, linear, logarithmic, round_ticks
from flipcert.report.curve_names import place_labels
from flipcert.report.series import Bins, Curves, Medians
from flipcert.report.units import Unit
from flipcert.report.words import Exposure, between, outside, percent, plural, shorten, tick

Legend = list[tuple[int, str, str]]  # number and style of a series, what it shows


class CurveNames:
    """What the curves are called, in legends and beside the lines."""

    def __init__(self, labelled: bool) -> None:
        kept = "correct" if labelled else "unchanged"
        self.proven = f"proven to stay {kept}"
        self.attacked = f"{kept} under all known attacks"
        self.votes = f"proven to stay {kept} by the votes alone"


def accuracy_figure(
    curves: Curves, half: tuple[int, float, str] | None, n_points: int, exposure: Exposure, *, labelled: bool
) -> tuple[Markup, Legend]:
    """Share of test points that withstand each number of flips; ``half`` is where half of them do, and its name."""
    flips, last = curves.flips, int(curves.flips[-1])
    names = CurveNames(labelled)
    lines: list[tuple[int, str, str, str, NDArray[np.float64]]] = [(0, "proven", names.proven, "proven", curves.proven)]
    if curves.attacked is not None:
        lines.append((1, "attacked", names.attacked, "known attacks", curves.attacked))
    if curves.votes is not None:
        lines.append((2, "votes", names.votes, "votes alone", curves.votes))

    plot = Plot(linear(last), linear(1.0))
    plot.grid([(share, f"{100 * share:.0f} %") for share in (0, 0.25, 0.5, 0.75, 1)], "share of test points")
    ticks = [(t, f"{t:,}", tick(t / exposure.total) if t else "") for t in round_ticks(last, 8)]
    plot.base(ticks, exposure.axis)
    steps = len(flips) < 2 or int(flips[1]) == 1
    if curves.attacked is not None and not np.array_equal(curves.attacked, curves.proven):
        plot.area(*_corners(flips, curves.proven, curves.attacked, steps), series=1)
    for series, style, _, _, shares in reversed(lines):
        plot.line(list(zip(flips.tolist(), shares.tolist(), strict=True)), style, series, steps=steps)
    rule = half[0] if half else 0
    plot.rule(rule, "cursor")
    if half:
        plot.dot(half[0], half[1], "proven", half[2], 0)
    labels: list[tuple[int, str, float | None]] = [(i, line[3], None) for i, line in enumerate(lines)]
    if half:
        labels.insert(0, (0, half[2], half[1]))
    spots = place_labels(flips / last, [line[4] for line in lines], labels, rule / last)
    for (i, text, _), spot in zip(labels, spots, strict=True):
        if spot is not None:
            series, style, *_ = lines[i]
            plot.text(spot.x * last, spot.y, text, f"{style} {spot.style}", series, dx=spot.dx, dy=spot.dy)

    start, end = percent(curves.proven[0]), percent(curves.proven[-1])
    described = (
        f"Line chart: share of test points {names.proven}, from {start} without {exposure.unit.nouns} "
        f"to {end} at {plural(last, exposure.unit.made)}. The table below has the numbers."
    )
    legend: Legend = [(series, style, name) for series, style, name, _, _ in lines]
    data = {
        "stride": int(flips[1]) if len(flips) > 1 else 1,
        "labels": exposure.total,
        "of": exposure.of_all,
        "made": exposure.unit.all_made,
        "points": n_points,
        "counts": [np.rint(shares * n_points).astype(int).tolist() for *_, shares in lines],
    }
    return element("div", plot.render(described), class_="curves", data_curves=json.dumps(data)), legend


def histogram(bins: Bins, exposure: Exposure, *, labelled: bool) -> tuple[Markup, Legend]:
    """How many predictions have which radius."""
    heights = bins.counting + bins.others
    beyond = sum(bins.beyond)
    highest = max(int(heights.max()), beyond, 1)
    # Predictions that no flips change get a bar of their own, two bins to the right.
    size = len(heights) + (3 if beyond else 0)
    plot = Plot(linear(size), linear(highest))
    plot.grid([(t, f"{t:,}") for t in round_ticks(highest, 4)], "test points")
    kind = "correct" if labelled else ""
    columns = [
        (i, int(right), int(wrong), _withstood(exposure, i * bins.width, (i + 1) * bins.width))
        for i, (right, wrong) in enumerate(zip(bins.counting, bins.others, strict=True))
    ]
    if beyond:
        columns.append((len(heights) + 1, *bins.beyond, f"Proven to withstand {exposure.any_number}"))
    for i, right, wrong, flips in columns:
        said = f"{flips}: {plural(right, f'{kind} prediction'.strip())}"
        said += f", {wrong:,} wrong" if labelled else ""
        if right:
            plot.bar(i + 0.06, i + 0.94, 0, right, "bar counting", said, 0)
        if wrong:
            plot.bar(i + 0.06, i + 0.94, right, right + wrong, "bar others", said, 1)
    edges = [t for t in round_ticks(len(heights) * bins.width, 8) if t % bins.width == 0]
    # A bin of one number has its tick in the middle, a wider one at its left edge.
    shift = 0.5 if bins.width == 1 else 0.0
    ticks = [(t / bins.width + shift, f"{t:,}", "") for t in edges if t < len(heights) * bins.width]
    plot.base(ticks, exposure.axis_of_radii)
    if beyond:
        more = "any" if exposure.unit.bounded else "more"
        plot.text(len(heights) + 1.5, 0, more, "tick below", dy=20)
    described = (
        f"Histogram of certified radii in bins of {plural(bins.width, exposure.unit.noun)}: the fullest bin holds "
        f"{plural(int(heights.max()), 'test point')}"
        + (f"; no {exposure.unit.nouns} change {plural(beyond, 'prediction')}." if beyond else ".")
    )
    legend: Legend = [(0, "counting", "correct predictions"), (1, "others", "wrong predictions")] if labelled else []
    return plot.render(described, "low"), legend if bins.others.any() or bins.beyond[1] else []


def _withstood(exposure: Exposure, low: int, end: int) -> str:
    """What predictions in a bin of radii withstand."""
    unit, high = exposure.unit, min(end, exposure.reach) - 1
    if high == 0:
        return f"Not proven to withstand {unit.a_noun}"
    return "Proven to withstand " + (f"1 {unit.noun}" if low == high == 1 else f"{between(low, high)} {unit.nouns}")


def sweep_figure(
    groups: Sequence[tuple[str, Sequence[tuple[int, Medians]]]], exposure: Exposure, *, labelled: bool
) -> tuple[Markup, Legend]:
    """Median certified robustness against the number of partitions, one colour a group of settings."""
    partitions = sorted({n for _, points in groups for n, _ in points})
    values = [v for _, points in groups for _, m in points for v in (m.proven, m.attacked, m.votes) if v is not None]
    highest = max([*values, 1]) * 1.08
    plot = Plot(logarithmic(partitions[0], partitions[-1]), linear(highest))
    plot.grid([(t, f"{t:,}") for t in round_ticks(highest, 5)], f"{exposure.unit.nouns} that at least half withstand")
    shown: list[int] = []
    for n in partitions:
        if not shown or plot.x(n) - plot.x(shown[-1]) > 0.09:
            shown.append(n)
    plot.base([(n, f"{n:,}", "") for n in shown], "number of partitions", spare=len(shown) > 6)
    shapes = "●■▲◆▼★"
    legend: Legend = []
    kind = "correct predictions" if labelled else "predictions"
    for series, (name, points) in enumerate(groups):
        style, shape = f"group-{series % 6}", shapes[series % 6]
        legend.append((series, style, outside(name)))
        for part, dash in (("votes", "dashed"), ("attacked", "thin"), ("proven", "")):
            known = [(n, getattr(m, part)) for n, m in points if getattr(m, part) is not None]
            if known:
                plot.line(known, f"{style} {dash}", series)
        for n, m in points:
            said = f"{outside(name)}, {plural(n, 'partition')}: at least half of the {kind} withstand "
            said += f"{exposure.amount(m.proven)} {exposure.unit.nouns}"
            said += "" if m.attacked is None else f", at most {exposure.amount(m.attacked)}"
            said += "" if m.votes is None else f"; by the votes alone {exposure.amount(m.votes)}"
            plot.dot(n, m.proven, style, said, series, shape)
    aside = _names_aside(plot, groups)
    described = (
        f"Line chart: {exposure.unit.nouns} that at least half of the {kind} withstand, for {partitions[0]:,} to "
        f"{plural(partitions[-1], 'partition')}. The table below has the numbers."
    )
    return plot.render(described, f"low {aside}"), legend


def _names_aside(plot: Plot, groups: Sequence[tuple[str, Sequence[tuple[int, Medians]]]]) -> str:
    """Write names to the right of the lines where they are few: of the groups, or of the lines of a single one."""
    ends: list[tuple[int, int, str, int]] = []
    if len(groups) == 1:
        ((_, points),) = groups
        n, medians = points[-1]
        parts = (("proven", medians.proven), ("known attacks", medians.attacked), ("votes alone", medians.votes))
        given = [(n, value, name, 0) for name, value in parts if value is not None]
        # Lines that end together share a name.
        ends = [end for i, end in enumerate(given) if end[1] not in [other[1] for other in given[:i]]]
    elif len(groups) <= 6:
        ends = [(*_last(points), shorten(name, 14), i) for i, (name, points) in enumerate(groups)]
    below = -100.0
    for n, value, name, series in sorted(ends, key=lambda end: -end[1]):
        place = (1 - plot.y(value)) * 250
        below = max(place, below + 15)
        plot.text(n, value, name, f"aside group-{series}", series, dx=14, dy=round(below - place) + 4)
    return "with-names" if ends else ""


def _last(points: Sequence[tuple[int, Medians]]) -> tuple[int, int]:
    return points[-1][0], points[-1][1].proven


def spread_bar(quantiles: Sequence[int], highest: int, unit: Unit) -> Markup:
    """Radii of one class: from 10 to 90 % thin, the middle half thick, the median a dot."""
    low, lower, median, upper, high = (f"{100 * min(q / max(highest, 1), 1):.2f}%" for q in quantiles)
    text = [f"{q:,}" for q in quantiles]
    return element(
        "svg",
        element("line", class_="spread", x1=low, x2=high, y1="50%", y2="50%"),
        element("line", class_="spread thick", x1=lower, x2=upper, y1="50%", y2="50%"),
        element("circle", cx=median, cy="50%", r="4.5"),
        role="img",
        aria_label=f"10 to 90 %: {text[0]} to {text[4]} {unit.nouns}; middle half: {text[1]} to {text[3]}; "
        f"median {text[2]}",
    )


def _corners(
    flips: NDArray[np.int64], low: NDArray[np.float64], high: NDArray[np.float64], steps: bool
) -> tuple[list[float], list[float], list[float]]:
    """The corners of stepped lines; straight ones have none."""
    if not steps:
        return flips.tolist(), low.tolist(), high.tolist()
    return np.repeat(flips, 2)[1:].tolist(), np.repeat(low, 2)[:-1].tolist(), np.repeat(high, 2)[:-1].tolist()

"""Figures in the form of the paper: medians against partitions, certified accuracy, time, accuracy against C."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from textwrap import fill
from typing import Any

import numpy as np

from paper.colours import COLOURS
from paper.figures.figure import Figure
from paper.figures.measures import MARK, ensembles, is_near, power
from paper.figures.rules.other import seconds_a_point
from paper.figures.table import Row
from paper.figures.verdicts import marked
from paper.figures.words import in_words

_MARKERS = "os^DvP*Xhp"
_COLUMNS = 3
# Labels that one legend may hold.
_LABELS = 12
# Line widths after which the dashes of votes alone begin again.
DASH_PERIOD = 8.0
# Letters in a line of a title: what is longer would run into the next panel.
_TITLE = 46
# The least and the largest regularisation of all figures, as powers of ten: each has one colour everywhere.
_REGS = (-4, 3)
# What may tell lines of a panel apart, in the order in which it is said.
_TOLD = ("model", "scale", "activation", "method", "clip", "reg", "partitions")


def draw(figure: Figure, rows: Sequence[Row]) -> Any:
    """Draw a figure as a matplotlib figure."""
    panel: Callable[[Any, Figure, list[Row], Sequence[Row]], None] = {
        "medians": _medians,
        "trends": _trends,
        "curves": _curves,
        "times": _times,
        "small-c": _small_c,
    }[figure.form]
    groups = list(panels(figure, rows))
    columns = 2 if len(groups) == 4 else min(_COLUMNS, len(groups))
    lines = -(-len(groups) // columns)
    canvas = _canvas(columns, lines)
    for place, (name, own) in enumerate(groups):
        axes = canvas.add_subplot(lines, columns, place + 1)
        axes.grid(alpha=0.3)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_title(
            "" if name.startswith("all") else fill(name.replace(" = ", "\u00a0=\u00a0"), _TITLE), fontsize=10
        )
        panel(axes, figure, own, rows)
    _add_legends(canvas)
    return canvas


def _add_legends(canvas: Any) -> None:
    """One legend below all panels if every label has one colour and they are few, else one in each panel."""
    found: dict[tuple[str, Any], Any] = {}
    for axes in canvas.axes:
        found |= {key: handle for key, handle in _lines_of(axes).items() if key not in found}
    labels = [label for label, _ in found]
    if len(set(labels)) == len(labels) <= _LABELS:
        columns = min(len(labels), 4 if len(canvas.axes) > 1 else 2)
        canvas.legend(found.values(), labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=8)
    else:
        for axes in canvas.axes:
            axes.legend(loc="upper right", frameon=False, fontsize=7)


def _lines_of(axes: Any) -> dict[tuple[str, Any], Any]:
    """What a panel shows, by its label and colour."""
    handles, labels = axes.get_legend_handles_labels()
    colours = [handle.get_color() if hasattr(handle, "get_color") else None for handle in handles]
    return dict(zip(zip(labels, colours, strict=True), handles, strict=True))


def panels(figure: Figure, rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """The rows of each panel, with the name of the panel."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(name) for name in figure.panels), []).append(row)
    nowhere = (None,) * len(figure.panels)
    if len(groups) > 1 and nowhere in groups:
        # What belongs to no panel is shown in all, for comparison.
        beside = groups.pop(nowhere)
        groups = {key: beside + own for key, own in groups.items()}
    for key, own in groups.items():
        shown = [in_words(name, value) for name, value in zip(figure.panels, key, strict=True) if value is not None]
        name = ", ".join(shown) or "all"
        # Where panels differ in partitions, lines are marked one by one.
        yield (name if figure.study or "partitions" in figure.panels else marked(name, figure, own)), own


def line_name(figure: Figure, row: Row, whole: Sequence[Row]) -> str:
    """What tells the line of a row apart from others of its figure, marked where it is an instance near one class."""
    varied = [name for name in _TOLD if name not in figure.panels and len({other.get(name) for other in whole}) > 1]
    shown = [in_words(name, row[name]) for name in varied if row.get(name) is not None]
    return (", ".join(shown) or in_words("model", row["model"])) + (
        f" {MARK}" if is_near(row) and "partitions" in figure.panels else ""
    )


def _canvas(columns: int, lines: int) -> Any:
    try:
        from matplotlib.figure import Figure as Canvas
    except ImportError:
        raise ImportError('Plots need matplotlib. Install with: pip install "flipcert[plot]".') from None
    width = {1: 6.4, 2: 4.8, 3: 4.0}.get(columns, 3.6)
    return Canvas(figsize=(width * columns, 3.2 * lines + 0.4), layout="constrained")


def _medians(axes: Any, figure: Figure, rows: list[Row], whole: Sequence[Row]) -> None:
    """Median certified robustness against the number of partitions; one model alone is a level line."""
    own = [row for row in rows if row.get("seed") is None]
    regs = sorted({row["reg"] for row in own if row.get("reg") is not None})
    shown = sorted({row["partitions"] for row in own if row["partitions"] > 1})
    if len(regs) > 1:
        _medians_by_reg(axes, own, sorted({row["reg"] for row in whole}))
    else:
        _band(axes, [row for row in rows if row.get("seed") is not None])
        _medians_of_one(axes, own)
    axes.set_xscale("log")
    axes.set_xticks(shown, [str(n) for n in shown], fontsize=7, rotation=45)
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set(xlabel="partitions", ylabel="median certified flips")


def _medians_of_one(axes: Any, rows: list[Row]) -> None:
    """All bounds of one instance: broad under thin, so that all show where they coincide."""
    found = sorted((row for row in rows if row["partitions"] > 1), key=lambda row: row["partitions"])
    # Two points are no trend.
    joined = len(found) > 2
    mark = {"linestyle": "", "markersize": 11}
    lines: dict[str, tuple[str, dict[str, Any]]] = {
        "median_upper": ("white-box, upper", {"color": COLOURS[1], "linewidth": 6, "alpha": 0.4, "marker": "."}),
        "median_published_upper": ("upper, as published", {"color": COLOURS[4], "marker": "2", **mark}),
        "median_published": ("lower, as published", {"color": COLOURS[2], "marker": "1", **mark}),
        "median": ("white-box, proven", {"color": COLOURS[0], "marker": "o", "linewidth": 1.6, "markersize": 4}),
        "median_votes": ("black-box", {"color": COLOURS[6], "linestyle": "--", "marker": "s", "markersize": 4}),
    }
    for name, (label, style) in lines.items():
        known = [(row["partitions"], row[name]) for row in found if row.get(name) is not None]
        if known:
            axes.plot(*zip(*known, strict=True), label=label, **style | ({} if joined else {"linestyle": ""}))
    near = [(row["partitions"], row["median"]) for row in found if is_near(row)]
    if near:
        axes.plot(
            *zip(*near, strict=True),
            "o",
            color="black",
            fillstyle="none",
            markersize=11,
            label=f"{MARK} near one class",
        )
    for row in rows:
        if row["partitions"] == 1:
            axes.axhline(row["median"], color=COLOURS[3], linestyle="-.", linewidth=1.2, label="one model, exact")


def _band(axes: Any, rows: list[Row]) -> None:
    """From least to most over random partitions."""
    sizes = sorted({row["partitions"] for row in rows})
    ends = [[end(row["median"] for row in rows if row["partitions"] == n) for n in sizes] for end in (min, max)]
    if sizes:
        axes.fill_between(sizes, *ends, color=COLOURS[5], alpha=0.5, linewidth=0, label="random partitions")
        # Its ends, over all lines: it may be narrower than they are.
        for end in ends:
            axes.plot(sizes, end, "_", color="black", markersize=9, zorder=5)


def _medians_by_reg(axes: Any, rows: list[Row], regs: list[float]) -> None:
    """One line for each regularisation, from light to dark."""
    from matplotlib import colormaps

    for place, reg in enumerate(regs):
        own = sorted((row for row in rows if row["reg"] == reg), key=lambda row: row["partitions"])
        if not own:
            continue
        colour = colormaps["viridis_r"](0.08 + 0.92 * (np.log10(reg) - _REGS[0]) / (_REGS[1] - _REGS[0]))
        axes.plot(
            [row["partitions"] for row in own], [row["median"] for row in own], color=colour, linewidth=1.6,
            marker=_MARKERS[place % len(_MARKERS)], markersize=5, linestyle="-" if len(own) > 2 else "",
            label=f"reg {reg:g}" + (f" {MARK}" if any(map(is_near, own)) else ""),
        )  # fmt: skip


def _trends(axes: Any, figure: Figure, rows: list[Row], whole: Sequence[Row]) -> None:
    """The power of N with which medians grow, against regularisation beside the kernel."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(name) for name in ("data", "scale", "activation")), []).append(row)
    for place, (key, own) in enumerate(groups.items()):
        points = []
        for reg in sorted({row["reg"] for row in own}):
            first, *_, last = ensembles([row for row in own if row["reg"] == reg])
            points.append((first["reg_over_diag"], power(first, last)))
        named = zip(("data", "scale", "activation"), key, strict=True)
        axes.plot(
            *zip(*points, strict=True), color=COLOURS[place % len(COLOURS)], marker=_MARKERS[place % len(_MARKERS)],
            linestyle="-" if len(points) > 2 else "", linewidth=1.4, markersize=5,
            label=", ".join(in_words(name, value) for name, value in named if value is not None)
            + (f" {MARK}" if any(map(is_near, own)) else ""),
        )  # fmt: skip
    axes.axhline(0, color="black", linewidth=1)
    axes.set(xscale="log", xlabel="reg / mean diag Q", ylabel="power of N of the median")


def _curves(axes: Any, figure: Figure, rows: list[Row], whole: Sequence[Row]) -> None:
    """Certified accuracy against flips: solid proven, dashed votes alone, shaded what attacks leave open."""
    for place, row in enumerate(rows):
        colour = COLOURS[place % len(COLOURS)]
        if row["share_exact"] < 1 and row["attacked"][-1] == 0:
            # Only where an attack is known for every point that falls.
            axes.fill_between(
                row["flips"], row["certified"], row["attacked"], step="post", color=colour, alpha=0.12, linewidth=0
            )
        # Broad under thin, so that both show where they coincide.
        width = 1.2 + 2.8 * (len(rows) - 1 - place) / max(len(rows) - 1, 1)
        axes.step(
            row["flips"], row["certified"], where="post", color=colour, linewidth=width, alpha=0.85,
            label=line_name(figure, row, whole),
        )  # fmt: skip
    shown = _with_votes(figure, rows)
    for place, row in enumerate(shown):
        beside = len(shown) > 1 or "partitions" not in figure.panels
        name = f"{line_name(figure, row, whole)}, black-box" if beside else "black-box"
        colour = COLOURS[rows.index(row) % len(COLOURS)] if len(shown) > 1 else "black"
        # Dashes that fall into each other's gaps, short enough for each to show in the legend.
        dash = DASH_PERIOD / max(len(shown), 2)
        dashes = (dash * place, (dash, DASH_PERIOD - dash))
        axes.step(row["flips"], row["votes"], linestyle=dashes, where="post", color=colour, linewidth=1.4, label=name)
    axes.set_xlim(0, max(_shown_to(row) for row in rows))
    axes.set_ylim(0, 1.02)
    axes.set(xlabel="flipped labels", ylabel="certified accuracy")


def _with_votes(figure: Figure, rows: list[Row]) -> list[Row]:
    """Black-box lines worth drawing: one for each panel of the same votes, or that of the most partitions."""
    known = [row for row in rows if row.get("votes") is not None]
    if "partitions" in figure.panels and len({row.get("method") for row in known}) == 1:
        return known
    return [max(known, key=lambda row: row["partitions"])] if known else []


def _shown_to(row: Row) -> int:
    """Flips after which next to nothing is certified."""
    lines = [row["certified"]] + ([row["votes"]] if row.get("votes") is not None else [])
    left = [flips for flips, *shares in zip(row["flips"], *lines, strict=True) if max(shares) > 0.002]
    return max([*left, 1])


def _times(axes: Any, figure: Figure, rows: list[Row], whole: Sequence[Row]) -> None:
    """Milliseconds a test point against the number of partitions."""
    ordered = sorted(rows, key=lambda row: row["partitions"])
    partitions = [row["partitions"] for row in ordered]
    lines = {
        "timed_fit": ("fit", "P"),
        "timed_kernel": ("kernel, shared by all N", "X"),
        "timed_weights": ("weights", "o"),
        "timed_lower": ("all costs, lower", "^"),
        "timed_upper": ("all costs, upper", "v"),
        "timed_aggregation": ("aggregation", "s"),
    }
    for place, (name, (label, marker)) in enumerate(lines.items()):
        # Nothing has no logarithm.
        shown = [1e3 * row[name] or None for row in ordered]
        axes.plot(
            partitions, shown, marker=marker, color=COLOURS[place], label=label, linewidth=1.2, markersize=4
        )  # fmt: skip
    in_all = [1e3 * seconds_a_point(row) for row in ordered]
    axes.plot(partitions, in_all, color="black", linewidth=2.2, marker="D", label="fit, kernel and certify")
    axes.set(xscale="log", yscale="log", xlabel="partitions", ylabel="ms a test point")
    axes.set_xticks(partitions, [str(n) for n in partitions], fontsize=7, rotation=45)
    axes.minorticks_off()


def _small_c(axes: Any, figure: Figure, rows: list[Row], whole: Sequence[Row]) -> None:
    """Accuracy against C, with the region of small C and the spread over seeds or folds."""
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault((row["scale"], row["size"], row["partitions"]), []).append(row)
    for place, ((scale, _, partitions), own) in enumerate(groups.items()):
        colour = COLOURS[place % len(COLOURS)]
        factors = sorted({row["times_threshold"] for row in own})
        spread = [[row["accuracy"] for row in own if row["times_threshold"] == factor] for factor in factors]
        mean, deviation = np.array([np.mean(s) for s in spread]), np.array([np.std(s) for s in spread])
        label = in_words("scale", scale) if partitions == 1 else f"N = {partitions}"
        axes.plot(factors, mean, color=colour, marker=_MARKERS[place % len(_MARKERS)], markersize=4, label=label)
        axes.fill_between(factors, mean - deviation, mean + deviation, color=colour, alpha=0.2, linewidth=0)
    first = min(row["times_threshold"] for row in rows)
    axes.axvspan(first, 1, color=COLOURS[5], alpha=0.15, label="small C: certified")
    axes.set(xscale="log", xlabel="C over its threshold", ylabel="accuracy")

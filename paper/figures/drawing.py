"""Figures in the form of the paper: medians against partitions, certified accuracy, time, accuracy against C."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from paper.colours import COLOURS
from paper.figures.figure import Figure
from paper.figures.table import Row

_MARKERS = "os^DvP*X"
_COLUMNS = 4
_WORDS = {
    "none": "features as given",
    "standard": "standardised",
    "unit": "rows of length one",
    "svm": "SVM",
    "ridge": "ridge",
    "network": "gradient bounding",
    "cifar10": "CIFAR-10",
    "mnist": "MNIST",
    "mnist-1-vs-7": "MNIST 1-vs-7",
    "linear": "linear",
    "relu": "ReLU",
}
_SYMBOLS = {"partitions": "N", "flip_probability": "q", "reg": "reg", "clip": "clip"}


def draw(figure: Figure, rows: Sequence[Row]) -> Any:
    """Draw a figure as a matplotlib figure."""
    panel: Callable[[Any, Figure, list[Row]], None] = {
        "medians": _medians,
        "curves": _curves,
        "times": _times,
        "small-c": _small_c,
    }[figure.form]
    groups = list(panels(figure, rows))
    columns = min(_COLUMNS, len(groups))
    lines = -(-len(groups) // columns)
    canvas = _canvas(columns, lines)
    for place, (name, own) in enumerate(groups):
        axes = canvas.add_subplot(lines, columns, place + 1)
        axes.grid(alpha=0.3)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_title(name, fontsize=10)
        panel(axes, figure, own)
    _add_legends(canvas)
    return canvas


def _add_legends(canvas: Any) -> None:
    """One legend below all panels if one of them has all lines, else one in each, where curves have fallen."""
    found = [_lines_of(axes) for axes in canvas.axes]
    most = max(found, key=len)
    if all(most.get(line) for lines in found for line in lines):
        labels = [label for label, _ in most]
        canvas.legend(
            most.values(), labels, loc="outside lower center", ncols=min(len(labels), 6), frameon=False, fontsize=8
        )
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
        yield ", ".join(shown) or "all", own


def in_words(name: str, value: Any) -> str:
    """A setting as a reader would say it."""
    if name == "size":
        return f"{value} samples"
    if name in _SYMBOLS:
        return f"{_SYMBOLS[name]} = {value:g}"
    return _WORDS.get(value, str(value))


def line_name(figure: Figure, row: Row, rows: Sequence[Row]) -> str:
    """What tells the line of a row apart from the others of its panel."""
    names = ("model", "method", "clip", "reg", "activation", "partitions")
    varied = [name for name in names if name not in figure.panels and len({other.get(name) for other in rows}) > 1]
    shown = [in_words(name, row[name]) for name in varied if row.get(name) is not None]
    return ", ".join(shown) or in_words("model", row["model"])


def _canvas(columns: int, lines: int) -> Any:
    try:
        from matplotlib.figure import Figure as Canvas
    except ImportError:
        raise ImportError('Plots need matplotlib. Install with: pip install "flipcert[plot]".') from None
    width = {1: 6.4, 2: 4.8, 3: 4.0}.get(columns, 3.6)
    return Canvas(figsize=(width * columns, 3.2 * lines + 0.4), layout="constrained")


def _medians(axes: Any, figure: Figure, rows: list[Row]) -> None:
    """Median certified robustness against the number of partitions; one model alone is a level line."""
    alone = [row for row in rows if row["partitions"] == 1]
    ensembles = sorted((row for row in rows if row["partitions"] > 1), key=lambda row: row["partitions"])
    lines: dict[str, tuple[str, dict[str, Any]]] = {
        "median_upper": ("white-box, upper", {"color": COLOURS[1], "marker": "v", "linewidth": 1}),
        "median": ("white-box, proven", {"color": COLOURS[0], "marker": "o", "linewidth": 2}),
        "median_published_upper": ("upper, as published", {"color": COLOURS[4], "linestyle": ":", "marker": "2"}),
        "median_published": ("lower, as published", {"color": COLOURS[2], "linestyle": ":", "marker": "1"}),
        "median_votes": ("black-box", {"color": COLOURS[6], "linestyle": "--", "marker": "s", "markersize": 4}),
    }
    for name, (label, style) in lines.items():
        known = [(row["partitions"], row[name]) for row in ensembles if row.get(name) is not None]
        if known:
            axes.plot(*zip(*known, strict=True), label=label, **style)
    for row in alone:
        axes.axhline(row["median"], color=COLOURS[3], linestyle="-.", linewidth=1.2, label="one model, exact")
    shown = [row["partitions"] for row in ensembles]
    axes.set_xscale("log")
    axes.set_xticks(shown, [str(n) for n in shown], fontsize=7, rotation=45)
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set(xlabel="partitions", ylabel="median certified flips")


def _curves(axes: Any, figure: Figure, rows: list[Row]) -> None:
    """Certified accuracy against flips: solid proven, dashed votes alone, shaded what attacks leave open."""
    single = len(rows) == 1
    for place, row in enumerate(rows):
        colour = COLOURS[place % len(COLOURS)]
        label = "white-box, proven" if single else line_name(figure, row, rows)
        if single:
            # A broad band under the proven line, so that both show where they coincide.
            axes.step(
                row["flips"], row["attacked"], where="post", color=COLOURS[1], linewidth=4, alpha=0.55,
                label="white-box, upper",
            )  # fmt: skip
        elif row["share_exact"] < 1 and row["attacked"][-1] == 0:
            # Only where an attack is known for every point that falls.
            axes.fill_between(
                row["flips"], row["certified"], row["attacked"], step="post", color=colour, alpha=0.12, linewidth=0
            )
        axes.step(row["flips"], row["certified"], where="post", color=colour, linewidth=1.5, label=label)
    for row in _with_votes(figure, rows):
        label = "black-box" if single or "partitions" in figure.panels else f"N = {row['partitions']}, black-box"
        axes.step(row["flips"], row["votes"], "--", where="post", color="black", linewidth=1.2, label=label)
    axes.set_xlim(0, max(_shown_to(row) for row in rows))
    axes.set_ylim(0, 1.02)
    axes.set(xlabel="flipped labels", ylabel="certified accuracy")


def _with_votes(figure: Figure, rows: list[Row]) -> list[Row]:
    """Black-box lines worth drawing: one for each panel of the same votes, or that of the most partitions."""
    known = [row for row in rows if row.get("votes") is not None]
    return [max(known, key=lambda row: row["partitions"])] if known else []


def _shown_to(row: Row) -> int:
    """Flips after which next to nothing is certified."""
    lines = [row["certified"]] + ([row["votes"]] if row.get("votes") is not None else [])
    left = [flips for flips, *shares in zip(row["flips"], *lines, strict=True) if max(shares) > 0.002]
    return max([*left, 1])


def _times(axes: Any, figure: Figure, rows: list[Row]) -> None:
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
    whole = [1e3 * seconds_a_point(row) for row in ordered]
    axes.plot(partitions, whole, color="black", linewidth=2.2, marker="D", label="fit, kernel and certify")
    axes.set(xscale="log", yscale="log", xlabel="partitions", ylabel="ms a test point")
    axes.set_xticks(partitions, [str(n) for n in partitions], fontsize=7, rotation=45)
    axes.minorticks_off()


def seconds_a_point(row: Row) -> float:
    """Time of one test point, with its share of fitting and of the kernel."""
    return float(row["timed_fit"] + row["timed_kernel"] + row["timed_certify"])


def _small_c(axes: Any, figure: Figure, rows: list[Row]) -> None:
    """Accuracy against C, with the region of small C and the spread over seeds or folds."""
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault((row["size"], row["partitions"]), []).append(row)
    for place, ((size, partitions), own) in enumerate(groups.items()):
        colour = COLOURS[place % len(COLOURS)]
        factors = sorted({row["times_threshold"] for row in own})
        spread = [[row["accuracy"] for row in own if row["times_threshold"] == factor] for factor in factors]
        mean, deviation = np.array([np.mean(s) for s in spread]), np.array([np.std(s) for s in spread])
        label = f"{size} samples" if partitions == 1 else f"N = {partitions}"
        label = "mean and deviation" if len(groups) == 1 else label
        axes.plot(factors, mean, color=colour, marker=_MARKERS[place % len(_MARKERS)], markersize=4, label=label)
        axes.fill_between(factors, mean - deviation, mean + deviation, color=colour, alpha=0.2, linewidth=0)
    first = min(row["times_threshold"] for row in rows)
    axes.axvspan(first, 1, color=COLOURS[5], alpha=0.15, label="small C: certified")
    axes.set(xscale="log", xlabel="C over its threshold", ylabel="accuracy")

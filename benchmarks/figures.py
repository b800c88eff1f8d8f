"""Growth plots, drawn from the records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.records import Record, load

GROWTH = Path(__file__).parent.parent / "docs" / "benchmarks-growth.svg"
_AXES = {
    "n": "training samples n",
    "N": "partitions N",
    "K": "classes K",
    "T": "test points T",
}
# Dark enough on white, and apart for colour-blind readers (Okabe and Ito).
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00")


def draw(path: Path = GROWTH) -> None:
    """Draw all curves, if there are any."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    curves = [record for record in load() if record.group == "growth"]
    if not curves:
        return
    figure = Figure(figsize=(10.0, 10.0), layout="constrained")
    for axes, (axis, label) in zip(figure.subplots(2, 2).flat, _AXES.items(), strict=True):
        _panel(axes, [record for record in curves if record.details["axis"] == axis], label)
    # No date and no random names inside, so that the file only changes with its curves; letters stay letters.
    with rc_context({"svg.hashsalt": "flipcert", "svg.fonttype": "none"}):
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _panel(axes: Any, curves: Sequence[Record], label: str) -> None:
    """One axis of growth; what is published is dashed, in the colour of what replaces it."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    colours: dict[str, str] = {}
    for record in sorted(curves, key=lambda r: len(r.job)):
        ours = record.job.partition(", ")[0]
        ours = ours if ours in colours else record.job
        colour = colours.setdefault(ours, _COLOURS[len(colours) % len(_COLOURS)])
        style = "o-" if ours == record.job else "s--" if "published" in record.job else "^:"
        axes.plot(
            record.details["sizes"], record.details["times"], style,
            color=colour, linewidth=1.8, markersize=5, label=f"{record.job}: {record.measured.median:.2f}",
        )  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel=label, ylabel="processor time, in products")
    for scale in (axes.xaxis, axes.yaxis):
        scale.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        scale.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.12g}"))
        scale.set_minor_formatter(NullFormatter())
    axes.grid(alpha=0.3, which="major")
    if curves:
        # Below, where no curve can run through it.
        axes.legend(
            frameon=False, fontsize=9, title="growth exponents", title_fontsize=9, alignment="left",
            loc="upper left", bbox_to_anchor=(0.0, -0.14),
        )  # fmt: skip

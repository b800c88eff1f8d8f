"""The page of evidence, its plot and the file of results, all made from the runs of a study."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from paper.colours import COLOURS
from paper.evidence.study import C_SHARE, REG, Plan, Replay, Run

INSIDE = {
    "half": "half the radius, greedy",
    "random": "the radius, at random",
    "greedy": "the radius, greedy",
}

_INTRODUCTION = """\
# Do real networks obey the certificate?

A certificate of flipcert is a theorem about a kernel machine. With a neural tangent kernel, the machine is what a
network becomes as its layers grow infinitely wide: trained on `sum (f - y)^2 + reg ||theta - theta_0||^2` it becomes
kernel ridge regression, on `||theta - theta_0||^2 / 2 + C * hinge` with C below the threshold `C_max_` a support vector
machine with small C. (The initial outputs are subtracted, and the penalty is on the change of the parameters; with a
penalty on the parameters themselves the limit is another one.) This page shows what is left of the certificate when
the network is a real one.

**What the certificate promises for a finite network: nothing, by itself.** The literature bounds the difference of
outputs between a network of width w and its limit by O(ln w / √w), with probability 1 - exp(-Ω(w)) over the initial
weights, and with constants that nobody knows. A prediction whose margin, after the flips, is larger than that
difference is safe in the finite network too; but the radius is *exact*: at the radius, the margin that is left can be
as small as numbers can be. So a finite network may break a certificate at the radius, and the wider it is, the less
often. Further inside the radius there is more margin, and it takes a narrower network to break it.

Nor does it promise anything for networks trained in another way: with another loss, with weight decay on the
parameters, with early stopping, in mini-batches, in the parametrisation that is common in practice, or with features
that are learned.
"""

_METHOD = """\
## Method

Handwritten digits (8 x 8 pixels, bundled with scikit-learn), {n_train} training samples for 1 against 7 and
{n_train_ten} for ten classes, {n_test} test points. Three architectures in the NTK parametrisation: one hidden layer
without activation and one convolution without pooling (the two networks of the paper; for its convolution the paper
names no activation, here it is ReLU), and one hidden layer of ReLUs. Full-batch gradient descent with momentum until
nothing more is gained, from the initial outputs; reg = {reg:g}, C = {share:g} C_max. Up to {seeds} networks for each
width, from other initial weights; one for the widest convolutions.

Every network was then trained again, from the same initial weights, after label flips:

- *witness*: the flips of `worst_flips`, one more than the radius, for {points} test points of each kernel machine
  (half as many for convolutions), from small radii to large ones. The kernel machine changes its prediction; does the
  network?
- *inside the radius*: the first flips of that witness, as many as the radius allows (the greedy attack); half as many;
  and as many flips drawn at random. After each, *all* test points whose radius is at least the number of flips are
  checked, if the network predicted what the kernel machine predicts before. A prediction that changes is a
  *violation*.

`make evidence` (`python -m paper evidence --out paper`) runs all of it again and rewrites this page from the results
in `evidence.json`.
"""


def save(plan: Plan, runs: Sequence[Run], folder: Path) -> Path:
    """Write results, plot and page; return the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    results = {"plan": asdict(plan), "runs": [asdict(run) for run in runs]}
    (folder / "evidence.json").write_text(json.dumps(results, indent=1) + "\n")
    figure = draw(runs)
    from matplotlib import rc_context

    # The same runs make the same file.
    with rc_context({"svg.hashsalt": "flipcert"}):
        figure.savefig(folder / "evidence.svg", metadata={"Date": None})
    page = folder / "evidence.md"
    page.write_text(render(plan, runs))
    return page


def load(file: Path) -> tuple[Plan, list[Run]]:
    """The plan and the runs of a file of results."""
    results = json.loads(file.read_text())
    plan = Plan(**results["plan"] | {"widths": tuple(results["plan"]["widths"])})
    return plan, [Run(**run | {"replays": [Replay(**replay) for replay in run["replays"]]}) for run in results["runs"]]


def render(plan: Plan, runs: Sequence[Run]) -> str:
    """The page as Markdown."""
    method = _METHOD.format(
        n_train=plan.n_train, n_train_ten=2 * plan.n_train, n_test=plan.n_test, reg=REG, share=C_SHARE,
        seeds=plan.seeds, points=plan.n_points,
    )  # fmt: skip
    parts = [_INTRODUCTION, _summary(runs), _PLOT, _agreement(runs), _violations(runs), method]
    return "\n".join(parts)


_PLOT = "![Distance from the limit, and violations, against width](evidence.svg)\n"


def _summary(runs: Sequence[Run]) -> str:
    """The findings in sentences, every figure from the runs."""
    slopes = [slope(part) for part in _groups(runs)]
    unsettled = sum(not run.settled for run in runs)
    parts = dict.fromkeys((run.task, run.loss) for run in runs)
    found = "\n".join(
        f"- **{task}, {loss} loss.** {_finding([run for run in runs if (run.task, run.loss) == (task, loss)])}"
        for task, loss in parts
    )
    return f"""\
## What happened

Scores come closer to the limit as w to the power of {min(slopes):.2f} to {max(slopes):.2f} (by task, architecture and
loss); -0.5 is the rate of the theory, up to the logarithm. What the power multiplies decides what it is worth:

{found}

{len(runs)} networks were trained {sum(1 + len(run.replays) for run in runs):,} times; {unsettled} of them had a
training that did not settle.
"""


def _finding(runs: Sequence[Run]) -> str:
    """What became of one task and loss between the narrowest and the widest networks."""
    widths = _widths(runs)
    ends = [[run for run in runs if run.width == width] for width in (widths[0], widths[-1])]
    gaps = [np.mean([run.score_gap for run in part]) for part in ends]
    greedy, inside, witness = (
        [_count(part, kinds) for part in ends] for kinds in (["greedy"], ["half", "random"], ["witness"])
    )
    return (
        f"From width {widths[0]} to {widths[-1]}: scores {gaps[0]:.2g} and {gaps[1]:.2g} from the limit; predictions "
        f"equal for {_percent(_agreements(ends[0]))} and {_percent(_agreements(ends[1]))} of the test points; "
        f"violations after greedy flips up to the radius {greedy[0]} and {greedy[1]}, after others inside it "
        f"{inside[0]} and {inside[1]}; witnesses that work {witness[0]} and {witness[1]}."
    )


def _count(runs: Iterable[Run], kinds: Sequence[str]) -> str:
    """Changed predictions among those checked after these kinds of flips."""
    changed, checked = _changed(runs, kinds)
    return f"{changed:,} of {checked:,}"


def _agreement(runs: Sequence[Run]) -> str:
    """Distance of outputs and share of equal predictions, by width."""
    widths = _widths(runs)
    lines = []
    for group in _groups(runs):
        cells = []
        for width in widths:
            part = [run for run in group if run.width == width]
            gap, agreement = np.mean([run.score_gap for run in part]), _agreements(part)
            cells.append(f"{gap:.3f}, {_percent(agreement)}")
        lines.append((group[0].task, group[0].network, group[0].loss, *cells, f"{slope(group):.2f}"))
    heads = ("task", "network", "loss", *(f"w = {width}" for width in widths), "power of w")
    text = (
        "## Agreement with the kernel machine\n\n"
        "Root mean square of the difference of scores over that of the limit's scores, on test points, and share of "
        "equal predictions; means over networks. Scores of ten classes are outputs minus their mean over the classes: "
        "what is common to all classes decides nothing. With the hinge loss, one class against the rest, that is most "
        "of every output, and the distance counts for so much more.\n"
    )
    return f"{text}\n{_table(heads, lines)}"


def _violations(runs: Sequence[Run]) -> str:
    """What flips inside the radius did, and whether witnesses worked, by width."""
    widths = _widths(runs)
    lines = []
    for group in _groups(runs):
        for kind, name in {**INSIDE, "witness": "witness: prediction changed"}.items():
            cells = []
            for width in widths:
                cells.append(_count([run for run in group if run.width == width], [kind]))
            lines.append((group[0].task, group[0].network, group[0].loss, name, *cells))
    heads = ("task", "network", "loss", "flips", *(f"w = {width}" for width in widths))
    text = (
        "## Certificates replayed on networks\n\n"
        "Violations of all certified predictions that were checked; in the last row of each group, witnesses that "
        "changed the network's prediction as they change the kernel machine's.\n"
    )
    return f"{text}\n{_table(heads, lines)}"


def draw(runs: Sequence[Run]) -> Any:
    """Distance from the limit and share of violations against width: a matplotlib figure."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError('Plots need matplotlib. Install with: pip install "flipcert[plot]".') from None
    widths = np.array(_widths(runs), float)
    figure = Figure(figsize=(10.0, 5.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    names = list(dict.fromkeys(run.network for run in runs))
    for group in _groups(runs):
        gaps = _by_width(group, lambda part: float(np.mean([run.score_gap for run in part])))
        style = {"squared": "-", "hinge": "--"}[group[0].loss]
        marker = {True: "o", False: "s"}[group[0].task == runs[0].task]
        colour = COLOURS[names.index(group[0].network)]
        label = f"{group[0].network}, {group[0].loss}" if marker == "o" else None
        left.plot(widths, gaps, style, marker=marker, color=colour, label=label, markersize=4, linewidth=1.2)
    bound = np.log(widths) / np.sqrt(widths)
    left.plot(widths, bound, ":", color="black", label="ln w / √w", linewidth=2)
    left.set(xscale="log", yscale="log", xlabel="width", ylabel="distance from the limit, relative",
             title="Scores (● 1 against 7, ■ ten classes)")  # fmt: skip
    for colour, (task, loss) in zip(COLOURS, dict.fromkeys((run.task, run.loss) for run in runs), strict=False):
        part = [run for run in runs if (run.task, run.loss) == (task, loss)]
        for kinds, style, name in ((["greedy"], "-", "greedy"), (["half", "random"], "--", "others")):
            shares = [100 * rate for rate in _by_width(part, partial(_rate, kinds=kinds))]
            label = f"{task}, {loss}, {name}"
            right.plot(widths, shares, style, marker="o", color=colour, label=label, markersize=4)
    right.set(xscale="log", xlabel="width", ylabel="violations, % of checks", title="Flips inside the certified radius")
    right.set_ylim(bottom=0)
    for axes in (left, right):
        axes.set_xticks(widths, [f"{width:.0f}" for width in widths])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
        axes.legend(frameon=False, fontsize=8, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.14))
    return figure


def slope(runs: Sequence[Run]) -> float:
    """Power of the width that the distance from the limit follows."""
    points = np.log([(run.width, run.score_gap) for run in runs])
    return float(np.polyfit(points[:, 0], points[:, 1], 1)[0])


def _groups(runs: Sequence[Run]) -> list[list[Run]]:
    """Runs by task, architecture and loss."""
    keys = dict.fromkeys((run.task, run.network, run.loss) for run in runs)
    return [[run for run in runs if (run.task, run.network, run.loss) == key] for key in keys]


def _widths(runs: Sequence[Run]) -> list[int]:
    return sorted({run.width for run in runs})


def _by_width(runs: Sequence[Run], figure: Callable[[list[Run]], float]) -> list[float]:
    return [figure([run for run in runs if run.width == width]) for width in _widths(runs)]


def _rate(runs: Iterable[Run], kinds: Sequence[str]) -> float:
    """Share of changed predictions among those checked after these kinds of flips."""
    changed, checked = _changed(runs, kinds)
    return changed / checked if checked else float("nan")


def _changed(runs: Iterable[Run], kinds: Sequence[str]) -> tuple[int, int]:
    replays = [replay for run in runs for replay in run.replays if replay.kind in kinds]
    return sum(replay.changed for replay in replays), sum(replay.checked for replay in replays)


def _agreements(runs: Sequence[Run]) -> float:
    return float(np.mean([run.agreement for run in runs]))


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rows = [heads, ["---"] * len(heads), *lines]
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)

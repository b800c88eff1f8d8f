"""The page on fine-tuned networks, its plot and the file of results, all made from the runs of a study."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from paper.colours import COLOURS
from paper.evidence.study import C_SHARE, REG, Replay
from paper.tangent.rules import RULES, changed, groups, mean_gap, of_width, widths
from paper.tangent.study import LEARNED, RANDOM, Plan, TangentRun

_KINDS = {
    "half": "half the radius, greedy",
    "random": "the radius, at random",
    "greedy": "the radius, greedy",
    "witness": "attack: prediction changed",
}

_INTRODUCTION = """\
# Does a network that is fine-tuned obey the certificate of its tangent kernel?

`flipcert.KernelRidge(flipcert.kernels.Tangent(network))` certifies fine-tuning of a network *in its linear regime*: one
copy of the network for each class, from the weights that it has, on `sum (f - y)^2 + reg ||theta - theta_0||^2`, with
the network replaced by its first-order expansion in the parameters. The network that one has is not linear in its
parameters. This page fine-tunes it as it is, and shows what is left of the certificate: from the infinitely wide
network of [evidence.md](evidence.md) to a network of a given size, with weights that were learned.

**What is proven about the fine-tuned network itself: nothing.** The radius is exact for the machine of the kernel, and
at the radius the margin that is left can be as small as numbers can be. How far a network moves away from its expansion
is measured here, not bounded.
"""

_METHOD = """\
## Method

Handwritten digits (8 x 8 pixels, bundled with scikit-learn), {n_train} training samples for 1 against 7 and
{n_train_ten} for ten classes, {n_test} test points. Networks have two hidden layers of ReLUs and one output, in the NTK
parametrisation. They begin with random weights, or with hidden layers that learned, in {steps} steps, by how many
quarters an image was turned, from all images that are no test points and from no label ({rotations}).
`Tangent(network)` is their kernel; the machine is `KernelRidge` with reg = {reg:g}, or `KernelSVM` with C = {share:g}
C_max (for two classes; with ten, what all classes have in common is most of every output, as the evidence page shows).

Then copies of the network, one for two classes and else one a class, are trained from those weights, by full-batch
gradient descent with momentum until nothing more is gained, on the labels as they are and after flips: the attack of
`worst_flips`, one more than the radius, for {points} test points, from small radii to large ones; its first flips, as
many as the radius allows (greedy), and half as many; and as many at random. After flips inside the radius, *all* test
points whose radius is at least their number are checked, if network and machine predicted the same before; a
prediction that changes is a *violation*. An attack is checked on the point that it was made for, if both predicted the
same there. {seeds} networks for each width, from other random weights.

The rules above are in `tangent/rules.py`. They were written down before the study was run, but after a small trial with
a seed that is not part of it (7; one test point, widths 16 and 256), which had shown roughly what to expect. A first
plan, with width 512 and three networks for each width, was cut down for time before it had given a result. The brackets
in the first table tell where the last rule holds and where not.

`python -m paper tangent --out paper` runs it again, in some minutes, and rewrites this page from the results in
`tangent.json`.
"""


def save(plan: Plan, runs: Sequence[TangentRun], folder: Path) -> Path:
    """Write results, plot and page; return the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    results = {"plan": asdict(plan), "runs": [asdict(run) for run in runs]}
    (folder / "tangent.json").write_text(json.dumps(results, indent=1) + "\n")
    figure = draw(runs)
    from matplotlib import rc_context

    # The same runs make the same file.
    with rc_context({"svg.hashsalt": "flipcert"}):
        figure.savefig(folder / "tangent.svg", metadata={"Date": None})
    page = folder / "tangent.md"
    page.write_text(render(plan, runs))
    return page


def load(file: Path) -> tuple[Plan, list[TangentRun]]:
    """The plan and the runs of a file of results."""
    results = json.loads(file.read_text())
    plan = Plan(**results["plan"] | {"widths": tuple(results["plan"]["widths"])})
    return plan, [
        TangentRun(**run | {"replays": [Replay(**replay) for replay in run["replays"]]}) for run in results["runs"]
    ]


def render(plan: Plan, runs: Sequence[TangentRun]) -> str:
    """The page as Markdown."""
    shares = [run.rotations for run in runs if run.rotations is not None]
    method = _METHOD.format(
        n_train=plan.n_train, n_train_ten=2 * plan.n_train, n_test=plan.n_test, steps=plan.steps, reg=REG,
        share=C_SHARE, points=plan.n_points, seeds=plan.seeds,
        rotations=f"they get {100 * min(shares):.0f} to {100 * max(shares):.0f} % of the turns right",
    )  # fmt: skip
    return "\n".join([_INTRODUCTION, _verdicts(runs), _PLOT, _agreement(runs), _replays(runs), method])


_PLOT = "![Distance from the machine, and violations, against width](tangent.svg)\n"


def _verdicts(runs: Sequence[TangentRun]) -> str:
    """The rules, what was found, and whether they hold."""
    lines = []
    for rule in RULES:
        holds, found = rule.judge(runs)
        lines.append((rule.expected, found, "holds" if holds else "**does not hold**"))
    trainings, unsettled = sum(1 + len(run.replays) for run in runs), sum(not run.settled for run in runs)
    did = "Every training settled." if unsettled == 0 else f"In {unsettled} of {len(runs)} cases one did not settle."
    text = f"## What was expected, and what happened\n\nNetworks were fine-tuned {trainings:,} times. {did}\n"
    return f"{text}\n{_table(('expected', 'found', 'verdict'), lines)}"


def _agreement(runs: Sequence[TangentRun]) -> str:
    """Distance of scores, equal predictions and accuracy, by width."""
    lines = []
    for group in groups(runs):
        cells = []
        for part in (of_width(group, width) for width in widths(runs)):
            accuracies = [100 * np.mean([getattr(run, name) for run in part]) for name in _ACCURACIES]
            agreement = 100 * np.mean([run.agreement for run in part])
            limits = [run.limit_gap for run in part if run.limit_gap is not None]
            beside = f" ({np.mean(limits):.3f})" if limits else ""
            cells.append(
                f"{mean_gap(part):.3f}{beside}, {agreement:.3g} %; {accuracies[0]:.3g} %, {accuracies[1]:.3g} %"
            )
        lines.append((group[0].task, group[0].loss, group[0].network, *cells))
    text = (
        "## Agreement with the machine of the tangent kernel\n\n"
        "Root mean square of the difference of scores over that of the machine's scores (in brackets: beside the "
        "machine of the infinitely wide network), and share of equal predictions; then the accuracies of the machine "
        "and of the network. On test points, means over networks.\n"
    )
    return f"{text}\n{_table(('task', 'loss', 'beginning', *(f'w = {w}' for w in widths(runs))), lines)}"


_ACCURACIES = ("accuracy", "network_accuracy")


def _replays(runs: Sequence[TangentRun]) -> str:
    """What flips did, by width."""
    lines = [
        (
            group[0].task, group[0].loss, group[0].network, name,
            *("{:,} of {:,}".format(*changed(of_width(group, width), kind)) for width in widths(runs)),
        )
        for group in groups(runs)
        for kind, name in _KINDS.items()
    ]  # fmt: skip
    text = (
        "## Certificates replayed on networks that are fine-tuned\n\n"
        "Violations of all certified predictions that were checked; in the last row of each group, attacks that "
        "changed the network's prediction as they change the machine's.\n"
    )
    return f"{text}\n{_table(('task', 'loss', 'beginning', 'flips', *(f'w = {w}' for w in widths(runs))), lines)}"


def draw(runs: Sequence[TangentRun]) -> Any:
    """Distance from the machine and share of violations against width: a matplotlib figure."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError('Plots need matplotlib. Install with: pip install "flipcert[plot]".') from None
    sizes = widths(runs)
    figure = Figure(figsize=(10.0, 4.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    kinds = list(dict.fromkeys((run.task, run.loss) for run in runs))
    for group in groups(runs):
        task, loss, start = group[0].task, group[0].loss, group[0].network
        style = {LEARNED: "-", RANDOM: "--"}[start]
        left.plot(
            sizes, [mean_gap(of_width(group, width)) for width in sizes], style, marker="o", markersize=4,
            color=COLOURS[kinds.index((task, loss))], label=f"{task}, {loss}, {start}",
        )  # fmt: skip
    left.set(xscale="log", yscale="log", xlabel="width", ylabel="distance from the machine, relative",
             title="Scores of fine-tuned networks")  # fmt: skip
    for colour, (kind, name) in zip(COLOURS[3:], list(_KINDS.items())[:3], strict=False):
        for start, style in ((LEARNED, "-"), (RANDOM, "--")):
            part = [run for run in runs if run.network == start]
            counts = [changed(of_width(part, width), kind) for width in sizes]
            shares = [100 * count / checked if checked else float("nan") for count, checked in counts]
            right.plot(sizes, shares, style, marker="o", markersize=4, color=colour, label=f"{name}, {start}")
    right.set(xscale="log", xlabel="width", ylabel="violations, % of checks", title="Flips inside the certified radius")
    right.set_ylim(bottom=0)
    for axes in (left, right):
        axes.set_xticks(sizes, [str(width) for width in sizes])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
        axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.14))
    return figure


def _table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rows = [heads, ["---"] * len(heads), *lines]
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)

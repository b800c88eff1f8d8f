"""Rules that judge the study, written before it was run: what a fine-tuned network has to do to be called certified."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from paper.tangent.study import RANDOM, TangentRun


@dataclass(frozen=True)
class Rule:
    """What is expected, in words, and what tells from the runs whether it holds and what was found."""

    expected: str
    judge: Callable[[Sequence[TangentRun]], tuple[bool, str]]


def groups(runs: Sequence[TangentRun]) -> list[list[TangentRun]]:
    """Runs by task, loss and what the network began with."""
    keys = dict.fromkeys((run.task, run.loss, run.network) for run in runs)
    return [[run for run in runs if (run.task, run.loss, run.network) == key] for key in keys]


def widths(runs: Iterable[TangentRun]) -> list[int]:
    """All widths, from narrow to wide."""
    return sorted({run.width for run in runs})


def of_width(runs: Iterable[TangentRun], *sizes: int) -> list[TangentRun]:
    """Runs of some widths."""
    return [run for run in runs if run.width in sizes]


def changed(runs: Iterable[TangentRun], *kinds: str) -> tuple[int, int]:
    """Predictions that changed after some kinds of flips, and those that were checked."""
    replays = [replay for run in runs for replay in run.replays if replay.kind in kinds]
    return sum(replay.changed for replay in replays), sum(replay.checked for replay in replays)


def mean_gap(runs: Iterable[TangentRun]) -> float:
    """Mean distance from the machine of the networks' own kernels."""
    return float(np.mean([run.score_gap for run in runs]))


def _come_closer(runs: Sequence[TangentRun]) -> tuple[bool, str]:
    narrow, wide = widths(runs)[0], widths(runs)[-1]
    ratios = [mean_gap(of_width(group, wide)) / mean_gap(of_width(group, narrow)) for group in groups(runs)]
    return max(ratios) <= 0.5, f"{min(ratios):.2f} to {max(ratios):.2f} of the distance"


def _agree(runs: Sequence[TangentRun]) -> tuple[bool, str]:
    shares = [np.mean([run.agreement for run in of_width(group, widths(runs)[-1])]) for group in groups(runs)]
    return bool(min(shares) >= 0.97), f"{100 * min(shares):.3g} % at least"


def _few(kind: str, most: float) -> Callable[[Sequence[TangentRun]], tuple[bool, str]]:
    def judge(runs: Sequence[TangentRun]) -> tuple[bool, str]:
        count, checked = changed(of_width(runs, widths(runs)[-1]), kind)
        return checked > 0 and count <= most * checked, f"{count:,} of {checked:,}"

    return judge


def _attacks_work(runs: Sequence[TangentRun]) -> tuple[bool, str]:
    count, checked = changed(of_width(runs, *widths(runs)[-2:]), "witness")
    return checked > 0 and count >= 0.75 * checked, f"{count:,} of {checked:,}"


def _nearer_than_the_limit(runs: Sequence[TangentRun]) -> tuple[bool, str]:
    found, holds = [], True
    for group in groups([run for run in runs if run.network == RANDOM]):
        own, limit = mean_gap(group), float(np.mean([run.limit_gap for run in group if run.limit_gap is not None]))
        found.append(f"{group[0].task}, {group[0].loss}: {own:.2g} against {limit:.2g}")
        holds &= own < limit
    return holds, "; ".join(found)


RULES = (
    Rule(
        "From the narrowest to the widest networks, scores come at least twice as close to those of the machine, for "
        "every task, loss and beginning",
        _come_closer,
    ),
    Rule("The widest networks predict what the machine predicts for 97 % of test points, every time", _agree),
    Rule(
        "In the widest, random flips up to the radius change at most 0.5 % of what is certified", _few("random", 0.005)
    ),
    Rule("In the widest, half of an attack changes at most 0.5 % of what is certified", _few("half", 0.005)),
    Rule(
        "In the widest, all of an attack but its last flip changes at most 2 % of what is certified",
        _few("greedy", 0.02),
    ),
    Rule("In the two widest, at least three of four attacks on the machine also work on the network", _attacks_work),
    Rule(
        "With random weights, networks are closer to the machine of their own kernel than to that of the infinitely "
        "wide network, on average over widths, for every task and loss",
        _nearer_than_the_limit,
    ),
)

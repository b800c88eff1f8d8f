"""The last part of the page on scale, ``docs/scale.md``: what a model of cost says about larger machines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

import sklearn

from benchmarks.cost_model import STEPS, Cluster, Constants, Job, constants_of, predict
from benchmarks.records import Record, load
from benchmarks.tables import warnings
from flipcert.engine.blocks import block_rows

PAGE = Path(__file__).parent.parent / "docs" / "scale.md"
_CORES = (8, 64, 512)
_SAMPLES, _FEATURES, _CLASSES, _POINTS, _VOTERS = 10_000_000, 1_024, 1_000, 10_000, 1_000
_BYTES = 4.0 * _SAMPLES * _FEATURES
# GiB of working memory of a process.
_BUDGETS = (1, 16)

_MARK = "<!-- Written by benchmarks/scale_page.py from here on. -->\n"


def write(path: Path = PAGE) -> Path:
    """Write what was measured to the end of the page."""
    path.write_text(render(path.read_text(), load()))
    return path


def render(page: str, records: Sequence[Record]) -> str:
    """The page with its last part made from the records."""
    guide, mark, _ = page.partition(_MARK)
    own = {record.name.removeprefix("scale-"): record for record in records if record.group == "scale"}
    if not own:
        return guide + mark
    constants, errors = constants_of({step: own[step].details for step in STEPS})
    check = own["check"]
    parts = [
        f'`make bench ARGS="--only scale"` measures the constants, with both cores busy. On {check.machine["cpu"]}, '
        f"{check.machine['cores']} cores:{warnings(list(own.values()))}",
        _constants(constants, errors),
        f"A job that the fit has not seen ({check.job}): predicted {check.details['predicted']:.2f} s, takes "
        f"{check.details['taken']:.2f} s.",
        *_predictions(constants),
    ]
    return guide + mark + "\n" + "\n\n".join(_wrapped(part) for part in parts) + "\n"


def _constants(constants: Constants, errors: dict[str, float]) -> str:
    rows = [
        ("product", f"f = {_short(constants.per_flop)} s an operation ({1e-9 / constants.per_flop:.3g} GFlop/s)"),
        ("", f"r = {_short(constants.per_byte)} s a byte" + _rate(constants.per_byte)),
        ("selection", f"w = {_short(constants.per_weight)} s a weight, c = {_short(constants.per_class)} s a class"),
        ("", f"w' = {_short(constants.per_voter_weight)} s a weight of an ensemble"),
        ("aggregation", f"v = {_short(constants.per_vote)} s a voter and class"),
        ("transfer", f"s = {_short(constants.per_sent_byte)} s a byte" + _rate(constants.per_sent_byte)),
        ("", f"h = {_short(constants.per_task)} s a task"),
    ]
    off = {name: f"{100 * error:.0f} %" for name, error in errors.items()}
    # The weights of an ensemble are measured together with its aggregation.
    return _table(("step", "for one core", "fit is off by"), [(step, text, off.get(step, "")) for step, text in rows])


def _predictions(constants: Constants) -> list[str]:
    """The table of steps, and what follows from it."""
    lines = []
    for voters in (1, _VOTERS):
        for budget in _BUDGETS:
            job = _job(voters, budget)
            name = "one model" if voters == 1 else f"{voters:,} partitions"
            for cores in _CORES:
                steps = predict(job, Cluster(cores), constants)
                shown = [f"{seconds / 60:.3g}" for seconds in (*steps.values(), sum(steps.values()))]
                lines.append((name, f"{budget} GiB, b = {job.block}", str(cores), *shown))
    heads = ("model", "memory of a process", "cores", *STEPS, "all")
    return [
        f"### {_SAMPLES:,} samples, {_FEATURES:,} features, {_CLASSES:,} classes",
        f"What the model predicts for {_POINTS:,} test points, the training set ({_BYTES / 1e9:.0f} GB in float32) "
        f"mapped from storage that gives {Cluster(8).storage / 1e9:.0f} GB/s to all machines together, machines of "
        f"{Cluster(8).cores_each} cores. Storage and machines are assumptions, cores are those measured here. Minutes:",
        _table(heads, lines),
        _on_the_product(constants),
        _on_loading(constants),
    ]


def _on_the_product(constants: Constants) -> str:
    """Which step takes the time, and what limits it."""
    small, large = (_job(1, budget) for budget in _BUDGETS)
    steps, wide = (predict(job, Cluster(1), constants) for job in (small, large))
    reading = -(-small.T // small.block) * _BYTES * constants.per_byte / steps["product"]
    few, many = (_longest(large, cores, constants) for cores in (_CORES[0], _CORES[-1]))
    return (
        f"**On {_CORES[0]} cores the {few} takes most of the time, on {_CORES[-1]} the {many}.** A row of weights "
        f"takes {4 * _SAMPLES / 1e6:.0f} MB, so that with {_BUDGETS[0]} GiB a block has {small.block} test points, and "
        f"every block reads all {_BYTES / 1e9:.0f} GB: {100 * reading:.0f} % of the time of the product is memory "
        f"traffic, for which the cores of a machine compete. With {_BUDGETS[1]} GiB, blocks have {large.block} points "
        f"and the product is {steps['product'] / wide['product']:.1f} times faster. Selection looks at every weight "
        f"once, the product does {_FEATURES:,} multiplications for it; aggregation does not depend on n."
    )


def _longest(job: Job, cores: int, constants: Constants) -> str:
    steps = predict(job, Cluster(cores), constants)
    return max(steps, key=lambda step: steps[step])


def _on_loading(constants: Constants) -> str:
    """What does not shrink with the cores."""
    job = _job(1, _BUDGETS[1])
    steps = predict(job, Cluster(1), constants)
    # Computing shrinks with the cores, loading grows with the machines.
    meet = ((steps["product"] + steps["selection"]) * Cluster(1).cores_each * Cluster(1).storage / _BYTES) ** 0.5
    tasks = _POINTS / _job(1, _BUDGETS[0]).block
    return (
        f"**Loading saturates first**, because it does not shrink: every machine needs the training set once, from the "
        f"same storage. It takes as long as computing at about {meet:,.0f} cores for {_POINTS:,} test points, and at "
        f"{meet / 10:,.0f} for {_POINTS // 100:,}: few test points are not worth many machines, and data "
        f"that lie on the machines already are worth a lot. Nor can there be more "
        f"cores at work than blocks, {_POINTS // job.block:,} with {_BUDGETS[1]} GiB. Handing out {tasks:,.0f} tasks "
        f"takes the scheduler {tasks * constants.per_task:.1f} s in all."
    )


def _job(voters: int, budget: int) -> Job:
    with sklearn.config_context(working_memory=1024 * budget):
        return Job(_SAMPLES, _FEATURES, _CLASSES, _POINTS, voters, block_rows(_POINTS, 4 * _SAMPLES))


def _short(value: float) -> str:
    return f"{value:.2g}"


def _rate(per_byte: float) -> str:
    return f" ({1e-9 / per_byte:.3g} GB/s)" if per_byte > 0 else ""


def _table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in [heads, ["---"] * len(heads), *lines])


def _wrapped(part: str) -> str:
    return part if part.startswith(("|", "#")) else fill(part, 120, break_long_words=False, break_on_hyphens=False)

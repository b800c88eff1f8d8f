"""Random checks of labels: draw them, read them when they are filled in, and say what they prove."""

from __future__ import annotations

import json
import secrets
import shlex
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import typer

from flipcert.audit.random_check import check_confidence
from flipcert.audit.record import RandomCheck
from flipcert.cli.collective import print_collective
from flipcert.cli.commands import certify_points, tell_where
from flipcert.cli.looking import read_labels
from flipcert.cli.models import settings_of
from flipcert.cli.options import (
    LARGEST_SEED,
    CheckedModelOptions,
    CheckedRunOptions,
    CheckOptions,
    ClusterOptions,
    DataOptions,
    Point,
    Proof,
    RunOptions,
)
from flipcert.cli.reading import read_filled_in
from flipcert.cli.tables import print_summary, say
from flipcert.datasets.checked import CheckedLabels
from flipcert.datasets.table import Table
from flipcert.labels.threats import FLIPS
from flipcert.report.check_words import checked, confidence, how_sure, remains, same_as_right, stage
from flipcert.report.result import Result
from flipcert.report.words import plural
from flipcert.runs.check import draw_check, draw_more
from flipcert.runs.describe import describe_point


def check_command(
    train: str,
    test: str | None,
    checking: CheckOptions,
    model: CheckedModelOptions,
    point: Point,
    data: DataOptions,
    run: CheckedRunOptions,
    proof: Proof,
    cluster: ClusterOptions,
) -> None:
    """Draw a check, go on with one, or say what one proves: about labels, and with test points about predictions."""
    check_confidence(checking.confidence, "--confidence")
    if data.annotations is not None:
        raise ValueError("--annotations gives rows several labels, and a check looks at one label a row; leave it out.")
    if checking.labels is None and checking.checked is None:
        raise ValueError(
            "--labels says how many labels to draw, and --checked names the file that was filled in; give one of them."
        )
    if test is None:
        _refuse_unused(replace(model, seed=None), point, replace(run, out=None, json=False), cluster)
    if checking.labels is not None:
        if test is not None:
            raise ValueError(f"--labels draws labels to check, and {test} is for later: when they are filled in.")
        if run.out is None:
            raise ValueError("--labels needs --out, the file to write, such as --out to-check.csv.")
        _draw(train, checking, model.seed, data, run.out, run.json)
    elif test is None:
        if run.out is not None:
            raise ValueError(f"--out {run.out} is for draws (--labels) and for runs (TEST); leave it out.")
        _tell(train, checking, model.seed, data, run.json)
    else:
        _certify(train, test, checking, model, point, data, run, proof, cluster)


def _draw(train: str, checking: CheckOptions, seed: int | None, data: DataOptions, out: Path, as_json: bool) -> None:
    """Write labels to check: the first ones of a draw, or the next ones."""
    assert checking.labels is not None
    table = read_labels(train, data)
    known: dict[str, Any] = {"confidence": checking.confidence, "peeked": checking.peeked}
    if checking.checked is None:
        seed = secrets.randbelow(LARGEST_SEED + 1) if seed is None else seed
        check = draw_check(out, table, checking.labels, seed, id=data.id, **known)
    else:
        before, check = _read(table, checking, seed, data)
        check = draw_more(out, table, checking.labels, before, check, data.id)
    if as_json:
        told = {name: own for name, own in check.described().items() if name not in ("n_checked", "n_wrong")}
        typer.echo(json.dumps({**told, "out": str(out)}, indent=2))
        return
    which = " that are not trusted" if check.n_trusted else ""
    more, further = ("", "") if checking.checked is None else ("more ", "further ")
    drawn = plural(checking.labels, f"{more}label")
    say(f"Drew {drawn} at random from the {check.n_labels:,} of {train}{which}, with seed {check.seed}.")
    say(
        f'Fill in the column "checked" of {out}, in the order of the draw: what the label of each row should be, also '
        f"where it is right. Then: {_next_command(train, out, checking, data)}"
    )
    if check.n_drawn == check.n_labels:
        say("These are all there are: once they are checked, no wrong label remains.")
        return
    remain = (
        f"at most {plural(check.remaining, 'wrong label')} would remain" if check.remaining else "none would remain"
    )
    say(f"Should no {further}label turn out wrong, {remain}, with confidence {confidence(check)}.")
    if checking.checked is not None:
        say("Bounds are now those that hold at every stage; one that was told without --peeked counts no more.")


def _next_command(train: str, out: Path, checking: CheckOptions, data: DataOptions) -> str:
    """What to type when the file is filled in."""
    words = ["flipcert", "check", train, "--checked", str(out)]
    words += [] if checking.confidence == CheckOptions.confidence else ["--confidence", f"{checking.confidence!r}"]
    words += ["--peeked"] if checking.peeked else []
    for name in ("label", "trusted", "source", "id", "classes", "encode", "impute"):
        value = getattr(data, name)
        words += [] if value is None else [f"--{name}", value]
    for column in data.drop or ():
        words += ["--drop", column]
    return shlex.join(words)


def _read(
    table: Table, checking: CheckOptions, seed: int | None, data: DataOptions
) -> tuple[CheckedLabels, RandomCheck]:
    found, check = read_filled_in(table, data, checking)
    if seed is not None and seed != check.seed:
        raise ValueError(f"--seed {seed} is not the seed of {checking.checked}, which is {check.seed}; leave it out.")
    return found, check


def _tell(train: str, checking: CheckOptions, seed: int | None, data: DataOptions, as_json: bool) -> None:
    """Say what a check proves about labels."""
    _, check = _read(read_labels(train, data), checking, seed, data)
    if as_json:
        typer.echo(json.dumps(check.described(), indent=2))
    else:
        _say_check(check, corrected=False)


def _say_check(check: RandomCheck, corrected: bool) -> None:
    say(checked(check, corrected))
    say(f"{remains(check)}.", style="bold")
    if told := stage(check):
        say(told)
    if check.n_checked < check.n_drawn:
        say("If it goes on, this was a look: add --peeked from now on, also when all are filled in.")
    if check.n_trusted:
        say(f"Taken to be right, and not drawn: {plural(check.n_trusted, 'label')} trusted before.")


def _certify(
    train: str,
    test: str,
    checking: CheckOptions,
    model: CheckedModelOptions,
    point: Point,
    data: DataOptions,
    run: RunOptions,
    proof: Proof,
    cluster: ClusterOptions,
) -> None:
    """Correct, fit and certify, and say which predictions right labels would have given."""
    if proof.threat != FLIPS.name:
        raise ValueError(f"--threat must be flips, as a check counts wrong labels; got {proof.threat!r}.")
    settings = settings_of(replace(model, seed=model.seed or 0), point, data, proof)
    if settings.model == "smoothed" and settings.options["method"] == "published":
        raise ValueError("--method published proves nothing about more than two classes; choose another --method.")
    (result,) = certify_points(train, test, [settings], data, run, proof, cluster, checking)
    assert result.check is not None
    if run.json:
        told = {**describe_point(result), "check": result.check.described()}
        typer.echo(json.dumps({**told, "run": None if run.out is None else str(run.out)}, indent=2))
        return
    print_summary(result)
    print_collective([result])
    print_check(result)
    tell_where(run.out)


def print_check(result: Result) -> None:
    """What a check proves about labels and predictions."""
    assert result.check is not None
    say("")
    _say_check(result.check, corrected=True)
    say(f"{same_as_right(result)}.", style="bold")
    say(how_sure(result))


def _refuse_unused(*groups: Any) -> None:
    """Raise ValueError if an option is given that needs test points."""
    for group in groups:
        given, default = asdict(group), asdict(type(group)())
        for own in fields(group):
            if given[own.name] != default[own.name]:
                name = {"n_neighbors": "neighbors", "weights": "neighbor-weights"}.get(own.name, own.name)
                raise ValueError(f"--{name.replace('_', '-')} is for predictions; give test points, or leave it out.")

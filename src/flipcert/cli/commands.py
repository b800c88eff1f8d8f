"""What the commands do: read, certify, keep, show."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
import typer

from flipcert.cli.cluster import on_cluster
from flipcert.cli.collective import budgets_of, print_collective
from flipcert.cli.console import notes
from flipcert.cli.errors import stopping_at_once
from flipcert.cli.labels import compare_labels, label_space
from flipcert.cli.options import ClusterOptions, DataOptions, Grid, ModelOptions, Point, Proof, RunOptions
from flipcert.cli.progress import Display
from flipcert.cli.requirements import Requirement, write_junit
from flipcert.cli.tables import print_comparison, print_flips, print_summary
from flipcert.cli.threats import check_threat_of
from flipcert.cli.verification import print_verification
from flipcert.datasets.annotations import AnnotationColumns, with_annotations
from flipcert.datasets.files import Columns, digest, read_table
from flipcert.datasets.label_studio import is_label_studio
from flipcert.datasets.table import Table
from flipcert.labels.validation import check_number
from flipcert.report import write_report
from flipcert.report.result import Result
from flipcert.runs.describe import describe_point, describe_run
from flipcert.runs.flip_list import flip_list
from flipcert.runs.folder import RunFolder
from flipcert.runs.job import Job, run_job
from flipcert.runs.pictures import check_image_shape
from flipcert.runs.settings import Settings
from flipcert.runs.store import read_results, write_results
from flipcert.runs.stored_run import StoredRun
from flipcert.runs.verification import verify_run


def certify_command(
    train: str,
    test: str,
    model: ModelOptions,
    point: Point,
    data: DataOptions,
    run: RunOptions,
    proof: Proof,
    cluster: ClusterOptions,
    fail_under: int | None,
    require: Sequence[str],
    junit: Path | None,
) -> None:
    """Certify with one model."""
    _check_votes(model, [point.partitions])
    wanted = [Requirement.of(text) for text in require]
    if fail_under is not None:
        wanted.append(Requirement.of(f"median-radius>={fail_under}"))
    if junit is not None and not junit.absolute().parent.is_dir():  # told before anything is certified
        raise ValueError(f"--junit must lie in a folder that exists; got {junit}.")
    (result,) = _run(train, test, [_settings(model, point, data, proof)], data, run, proof, cluster)
    summary = describe_point(result)
    if run.json:
        typer.echo(json.dumps({**summary, "run": None if run.out is None else str(run.out)}, indent=2))
    else:
        print_summary(result)
        print_collective([result])
        _tell_where(run.out)
    outcomes = [own.check(result) for own in wanted]
    for outcome in outcomes:
        notes.print(str(outcome), soft_wrap=True, markup=False, highlight=False)
    if junit is not None:
        write_junit(junit, outcomes)
    if not all(outcome.met for outcome in outcomes):
        raise typer.Exit(1)


def sweep_command(
    train: str,
    test: str,
    model: ModelOptions,
    grid: Grid,
    data: DataOptions,
    run: RunOptions,
    proof: Proof,
    cluster: ClusterOptions,
) -> None:
    """Certify with several models and compare them."""
    partitions = _numbers(grid.partitions, "--partitions", int)
    _check_votes(model, partitions)
    regs = [None] if grid.reg is None else _numbers(grid.reg, "--reg", float)
    points = [_settings(model, Point(n, reg), data, proof) for reg in regs for n in partitions]
    results = _run(train, test, points, data, run, proof, cluster)
    if run.json:
        summary = {"points": [describe_point(result) for result in results]}
        typer.echo(json.dumps({**summary, "run": None if run.out is None else str(run.out)}, indent=2))
    else:
        print_comparison(results)
        print_collective(results)
        _tell_where(run.out)


def attack_command(
    train: str,
    test: str,
    row: int,
    model: ModelOptions,
    point: Point,
    data: DataOptions,
    proof: Proof,
    cluster: ClusterOptions,
    form: str,
) -> None:
    """Show the flips that change one prediction."""
    if form not in ("table", "csv", "json"):
        raise ValueError(f"--format must be table, csv or json; got {form!r}.")
    _check_votes(model, [point.partitions])
    settings = _settings(model, point, data, proof)
    with (
        Display(proof.quiet) as display,
        _memory(proof),
        stopping_at_once("Nothing was written."),
        on_cluster(cluster, proof.jobs),
    ):
        display.stage("reading")
        tables = _read(train, test, data)
        if row >= tables[1].X.shape[0]:
            raise ValueError(f"--row must be below the {tables[1].X.shape[0]} rows of {test}; got {row}.")
        settings = replace(settings, classes=label_space(data.classes, tables[0]))
        check_threat_of(proof, [settings], tables[0])
        flips = flip_list(
            *tables, settings, row, proof.exact, proof.time_limit, proof.jobs, display, threat=proof.threat
        )
    print_flips(flips, form)


def report_command(runs: Sequence[Path], out: Path, title: str | None) -> None:
    """Write one page about several runs."""
    results = []
    for path in runs:
        own = read_results(path)
        # Beside other runs, each is known by its folder.
        results += [replace(result, name=f"{path.name}: {result.name}") for result in own] if len(runs) > 1 else own
    if out.is_dir():
        raise ValueError(f"--out {out} is a folder; name the page to write, such as {out / 'report.html'}.")
    if not out.absolute().parent.is_dir():
        raise ValueError(f"--out {out}: the folder {out.parent} does not exist; make it first.")
    write_report(results, out, title=title)
    typer.echo(f"Report: {out}")


def verify_command(
    folder: Path,
    train: str,
    test: str,
    n_points: int,
    seed: int,
    jobs: int | None,
    quiet: bool,
    annotations: Path | None = None,
) -> None:
    """Compare some points of a run with a second opinion on them."""
    run = StoredRun.read(folder)
    try:
        data = DataOptions(**run.data, annotations=annotations)
    except TypeError:
        raise ValueError(
            f"{folder} was made with options for its data that this version does not know; use the version of the run."
        ) from None
    if (annotations is None) == ("annotations" in run.digests):
        told = "labels of its own, so leave --annotations out" if annotations else "labels from --annotations; name it"
        raise ValueError(f"{folder} was made with {told}.")
    others = () if annotations is None else ((str(annotations), "annotations", "annotation"),)
    for source, part, name in ((train, "train", "training"), (test, "test", "test"), *others):
        if digest(source, "annotations" if part == "annotations" else "features") != run.digests[part]:
            raise ValueError(f"{source} does not hold the {name} data of {folder}: its digest is another.")
    with (
        Display(quiet) as display,
        sklearn.config_context(working_memory=run.memory),
        stopping_at_once("The run is as it was."),
    ):
        display.stage("reading")
        tables = _read(train, test, data)
        verification = verify_run(run, *tables, n_points, seed, jobs, display)
    print_verification(verification, run.versions)
    if verification.differences:
        raise typer.Exit(1)


def _run(
    train: str,
    test: str,
    points: list[Settings],
    data: DataOptions,
    run: RunOptions,
    proof: Proof,
    cluster: ClusterOptions,
) -> list[Result]:
    """Certify, and keep everything in the folder of the run if there is one."""
    command = shlex.join(["flipcert", *sys.argv[1:]])
    budgets = budgets_of(run.collective)
    if run.out is None:
        last_words = "Nothing was kept; with --out, a run can go on."
    else:
        last_words = f"What is finished is in {run.out}; give the same command again to go on."
    with Display(proof.quiet) as display, _memory(proof), stopping_at_once(last_words), on_cluster(cluster, proof.jobs):
        display.stage("reading")
        tables = _read(train, test, data)
        classes = label_space(data.classes, tables[0])
        points = [replace(settings, classes=classes) for settings in points]
        shape = check_image_shape(_image_shape(data), tables[0].X.shape[1])
        check_threat_of(proof, points, tables[0])
        job = Job(*tables, points, proof.exact, proof.time_limit, run.attacks, shape, proof.jobs, proof.threat, budgets)
        if run.out is None:
            return run_job(job, None, display)
        inputs = {"train": digest(train), "test": digest(test)}
        inputs |= {} if data.annotations is None else {"annotations": digest(str(data.annotations))}
        # A file of annotations is known by its digest, wherever it lies.
        about = {name: own for name, own in asdict(data).items() if name != "annotations"}
        identity = describe_run(job, inputs, about, proof.memory)
        with RunFolder(run.out, identity).opened() as folder:
            if folder.finished:
                notes.print(f"{run.out} holds this run already; showing what is there.", soft_wrap=True)
                return read_results(run.out)
            results = run_job(job, folder, display)
            display.stage("writing")
            files = write_results(folder.path, results)
            # The page says nothing about time, so that a run that was stopped ends with the same bytes.
            write_report([replace(result, seconds=None) for result in results], folder.path / "report.html")
            folder.finish(
                {
                    "command": command,
                    "n_labels": results[0].certificates.n_labels,
                    "n_attackable": results[0].certificates.n_attackable,
                    "n_sources": results[0].certificates.n_sources,
                    "classes": np.asarray(results[0].certificates.classes).tolist(),
                    **identity,
                    **_points(results),
                    "timings": display.timings,
                },
                files,
            )
            return results


def _points(results: list[Result]) -> dict[str, Any]:
    described = [describe_point(result) for result in results]
    return described[0] if len(described) == 1 else {"points": described}


def _read(train: str, test: str, data: DataOptions) -> tuple[Table, Table]:
    drop = tuple(data.drop or ())
    beside = tuple(own for own in (data.trusted, data.source, data.id) if own is not None)
    # There, --label names a control of a form, and labels of other files need not be called like it.
    names_control = data.annotations is not None and is_label_studio(str(data.annotations))
    if data.annotations is not None:
        # Labels, and what is known of them, are in the other file; here they are no features.
        ignore = tuple(own for own in beside if own != data.id)
        columns = Columns(data.label, drop, ignore=ignore, id=data.id, or_default=names_control)
        named = AnnotationColumns(data.id, data.label, data.source, data.trusted, data.cap)
        first = with_annotations(read_table(train, columns, labelled=False), data.annotations, named)
    else:
        for option, own in (("--id", data.id), ("--cap", data.cap)):
            if own is not None:
                raise ValueError(f"{option} is for files of --annotations; leave it out.")
        columns = Columns(data.label, drop, trusted=data.trusted, giver=data.source)
        first = read_table(train, columns, labelled=True)
    # What is no feature of the training set need not be a column of the test set.
    columns = Columns(data.label, ignore=(*drop, *beside), or_default=names_control)
    second = read_table(test, columns, labelled=False, n_features=first.X.shape[1]).aligned_to(first)
    first, second = first.with_labels_like(second), second.with_labels_like(first)
    compare_labels(first, second, label_space(data.classes, first) or ())
    return first, second


def _check_votes(model: ModelOptions, partitions: list[int]) -> None:
    """Raise ValueError if options about votes were given where nobody votes."""
    if max(partitions) > 1:
        return
    for name, given in (("vote", model.vote != "majority"), ("copies", model.copies != 1)):
        if given:
            raise ValueError(
                f"--{name} {getattr(model, name)} is about partitions that vote, but --partitions is 1; give more "
                f"partitions, or leave --{name} out."
            )


def _settings(model: ModelOptions, point: Point, data: DataOptions, proof: Proof) -> Settings:
    check_number(proof.time_limit, "--time-limit")
    given = asdict(model) | {"reg": point.reg}
    whole = {name: given.pop(name) for name in ("model", "scale", "partition_rule", "seed", "vote", "copies")}
    options = {name: value for name, value in given.items() if value is not None}
    if options.get("kernel") == "conv-ntk":
        options["image_shape"] = _image_shape(data)
    if "hidden" in options:
        options["hidden"] = tuple(_numbers(options["hidden"], "--hidden", int, distinct=False))
    return Settings(options=options, partitions=point.partitions, time_limit=proof.time_limit, **whole)


def _numbers(text: str, name: str, kind: type, distinct: bool = True) -> list[Any]:
    """A list such as 1,10,50."""
    try:
        values = [kind(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{name} must be numbers with commas between them, such as 1,10; got {text!r}.") from None
    if distinct and len(set(values)) < len(values):
        raise ValueError(f"{name} names a number twice; got {text!r}.")
    return values


def _image_shape(data: DataOptions) -> tuple[int, ...] | None:
    """Shape of a row as (channels, height, width), if rows are images."""
    if data.image_shape is None:
        return None
    try:
        shape = tuple(int(part) for part in data.image_shape.replace("x", ",").split(","))
    except ValueError:
        shape = ()
    if len(shape) not in (2, 3) or min(shape, default=0) < 1:
        raise ValueError(f"--image-shape must be numbers such as 28,28 or 3,32,32; got {data.image_shape!r}.")
    return shape if len(shape) == 3 else (1, *shape)


@contextmanager
def _memory(proof: Proof) -> Iterator[None]:
    with sklearn.config_context(working_memory=proof.memory):
        yield


def _tell_where(out: Path | None) -> None:
    if out is not None:
        typer.echo(f"Report: {out / 'report.html'}")

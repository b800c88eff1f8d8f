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

from flipcert.cli.checked_lists import after_checks, digest_of_checks, requested, write_list
from flipcert.cli.cluster import on_cluster
from flipcert.cli.collective import budgets_of, print_collective
from flipcert.cli.console import notes
from flipcert.cli.errors import stopping_at_once
from flipcert.cli.labels import label_space
from flipcert.cli.looking import read_data
from flipcert.cli.models import image_shape, settings_of, settings_of_grid
from flipcert.cli.options import (
    AuditOptions,
    CheckOptions,
    ClusterOptions,
    DataOptions,
    Grid,
    ModelOptions,
    Point,
    Proof,
    RunOptions,
)
from flipcert.cli.progress import Display
from flipcert.cli.reading import with_check
from flipcert.cli.requirements import Requirement, write_junit
from flipcert.cli.tables import print_comparison, print_flips, print_summary
from flipcert.cli.threats import check_threat_of
from flipcert.cli.verification import print_verification
from flipcert.datasets.files import digest
from flipcert.datasets.table import Table
from flipcert.engine.words import plural
from flipcert.report import write_report
from flipcert.report.result import Result
from flipcert.runs.describe import describe_point, describe_run
from flipcert.runs.flip_list import flip_list
from flipcert.runs.folder import RunFolder
from flipcert.runs.job import Job, run_job
from flipcert.runs.pictures import check_image_shape
from flipcert.runs.scaling import preparation, settled
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
    wanted = [Requirement.of(text) for text in require]
    if fail_under is not None:
        wanted.append(Requirement.of(f"median-radius>={fail_under}"))
    for own in wanted:  # told before anything is certified
        own.check_asked(budgets_of(run.collective))
    if junit is not None and not junit.absolute().parent.is_dir():
        raise ValueError(f"--junit must lie in a folder that exists; got {junit}.")
    (result,) = certify_points(train, test, [settings_of(model, point, data, proof)], data, run, proof, cluster)
    summary = describe_point(result)
    if run.json:
        typer.echo(json.dumps({**summary, "run": None if run.out is None else str(run.out)}, indent=2))
    else:
        print_summary(result)
        print_collective([result])
        tell_where(run.out)
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
    points = settings_of_grid(model, grid, data, proof)
    results = certify_points(train, test, points, data, run, proof, cluster)
    if run.json:
        summary = {"points": [describe_point(result) for result in results]}
        typer.echo(json.dumps({**summary, "run": None if run.out is None else str(run.out)}, indent=2))
    else:
        print_comparison(results)
        print_collective(results)
        tell_where(run.out)


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
    settings = settings_of(model, point, data, proof)
    with (
        Display(proof.quiet) as display,
        _memory(proof),
        stopping_at_once("Nothing was written."),
        on_cluster(cluster, proof.jobs),
    ):
        display.stage("reading")
        tables = read_data(train, test, data)
        if row >= tables[1].X.shape[0]:
            raise ValueError(f"--row must be below the {plural(tables[1].X.shape[0], 'row')} of {test}; got {row}.")
        settings = replace(settings, classes=label_space(data.classes, tables[0]))
        check_threat_of(proof, [settings], tables[0])
        (settings,) = _scaled([settings], tables[0], proof)[0]
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
    checked: Sequence[Path] | None = None,
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
    if bool(checked) != ("checked" in run.digests):
        told = "without a check of labels; leave --checked out" if checked else "with a check of labels; name --checked"
        raise ValueError(f"{folder} was made {told}.")
    if checked and digest_of_checks(checked) != run.digests["checked"]:
        names = ", ".join(map(str, checked))
        raise ValueError(f"{names} is not what was checked for {folder}, in that order: its digest is another.")
    others = [] if annotations is None else [(str(annotations), "annotations", "annotation")]
    for source, part, name in ((train, "train", "training"), (test, "test", "test"), *others):
        if digest(source, "features" if part in ("train", "test") else part) != run.digests[part]:
            raise ValueError(f"{source} does not hold the {name} data of {folder}: its digest is another.")
    with (
        Display(quiet) as display,
        sklearn.config_context(working_memory=run.memory),
        stopping_at_once("The run is as it was."),
    ):
        display.stage("reading")
        first, second = read_data(train, test, data)
        check = None
        if checked and run.check is not None:
            known = CheckOptions(checked=checked[0], confidence=run.check["confidence"], peeked=run.check["peeked"])
            first, check = with_check(first, data, known)
        elif checked:
            first, *_ = after_checks(first, checked, data, label_space(data.classes, first))
        verification = verify_run(run, first, second, n_points, seed, jobs, display, check)
    print_verification(verification, run.versions, len(run.settings))
    if verification.differences:
        raise typer.Exit(1)


def certify_points(
    train: str,
    test: str,
    points: list[Settings],
    data: DataOptions,
    run: RunOptions,
    proof: Proof,
    cluster: ClusterOptions,
    checking: CheckOptions | None = None,
    audit: AuditOptions | None = None,
) -> list[Result]:
    """Certify, and keep everything in the folder of the run if there is one; labels may be corrected by a check."""
    command = shlex.join(["flipcert", *sys.argv[1:]])
    budgets = budgets_of(run.collective)
    if run.out is None:
        last_words = "Nothing was kept; with --out, a run can go on."
    else:
        last_words = f"What is finished is in {run.out}; give the same command again to go on."
    with Display(proof.quiet) as display, _memory(proof), stopping_at_once(last_words), on_cluster(cluster, proof.jobs):
        display.stage("reading")
        tables = read_data(train, test, data)
        check = None
        if checking is not None:
            first, check = with_check(tables[0], data, checking)
            tables = (first, tables[1])
        classes = label_space(data.classes, tables[0])
        request = None
        if audit is not None:
            corrected, request = requested(tables[0], audit, data, proof, classes)
            tables = (corrected, tables[1])
        points = [replace(settings, classes=classes) for settings in points]
        shape = check_image_shape(image_shape(data), tables[0].X.shape[1])
        check_threat_of(proof, points, tables[0])
        points, prepared = _scaled(points, tables[0], proof)
        job = Job(*tables, points, proof.exact, proof.time_limit, run.attacks, shape, proof.jobs, proof.threat, budgets)
        job = replace(job, audit=request, prepared=prepared)
        if run.out is None:
            return [replace(result, check=check) for result in run_job(job, None, display)]
        inputs = {"train": digest(train), "test": digest(test)}
        inputs |= {} if data.annotations is None else {"annotations": digest(str(data.annotations))}
        inputs |= {} if audit is None or not audit.checked else {"checked": digest_of_checks(audit.checked)}
        inputs |= {} if checking is None else {"checked": digest(str(checking.checked))}
        # A file of annotations is known by its digest, wherever it lies.
        about = {name: own for name, own in asdict(data).items() if name != "annotations"}
        # Said only where they were given, so that runs of before are still the same runs.
        about = {name: own for name, own in about.items() if own is not None or name not in ("encode", "impute")}
        identity = describe_run(job, inputs, about, proof.memory, check)
        with RunFolder(run.out, identity).opened() as folder:
            if folder.finished:
                notes.print(f"{run.out} holds this run already; showing what is there.", soft_wrap=True)
                return read_results(run.out)
            results = [replace(result, check=check) for result in run_job(job, folder, display)]
            display.stage("writing")
            files = write_results(folder.path, results)
            write_list(folder.path, results[0].audit, tables[0], data)
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
                    **({} if prepared is None else {"preparation": prepared}),
                    **_points(results),
                    "timings": display.timings,
                },
                files,
            )
            return results


def _scaled(points: list[Settings], train: Table, proof: Proof) -> tuple[list[Settings], dict[str, Any] | None]:
    """The models with the scale of their features, and what was done to these, which is also said."""
    chosen = settled(points, train, proof.threat)
    prepared = preparation(train, chosen, points[0].scale, proof.threat)
    if prepared is not None and not proof.quiet:
        notes.print(prepared["said"], soft_wrap=True, markup=False, highlight=False)
    return chosen, prepared


def _points(results: list[Result]) -> dict[str, Any]:
    described = [describe_point(result) for result in results]
    return described[0] if len(described) == 1 else {"points": described}


@contextmanager
def _memory(proof: Proof) -> Iterator[None]:
    with sklearn.config_context(working_memory=proof.memory):
        yield


def tell_where(out: Path | None) -> None:
    """Say where the page is."""
    if out is not None:
        typer.echo(f"Report: {out / 'report.html'}")

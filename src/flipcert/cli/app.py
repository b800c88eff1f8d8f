"""The commands and their help; what they do is imported when they run."""

from __future__ import annotations

from collections.abc import Callable
from inspect import getdoc
from pathlib import Path
from typing import Annotated, Any

import typer

from flipcert.cli.errors import in_words
from flipcert.cli.groups import with_groups
from flipcert.cli.options import (
    AuditOptions,
    CheckedModelOptions,
    CheckedRunOptions,
    CheckOptions,
    ClusterOptions,
    DataOptions,
    Grid,
    ModelOptions,
    Point,
    Proof,
    RunOptions,
    Test,
    Train,
)

app = typer.Typer(
    name="flipcert",
    help="How many training labels would an attacker have to flip to change a prediction? With a proof.\n\n"
    "Start with [bold]flipcert demo[/], or with your own data: "
    "[bold]flipcert certify train.csv test.csv --out run[/]",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from flipcert import __version__

        typer.echo(f"flipcert {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def _flowing(command: Callable[..., Any]) -> Callable[..., Any]:
    """Let paragraphs of the help be as wide as the terminal; typer would keep their line breaks."""
    paragraphs = (getdoc(command) or "").split("\n\n")
    command.__doc__ = "\n\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)
    return command


@app.command()
@_flowing
@with_groups
@in_words
def certify(
    train: Train,
    test: Test,
    model: ModelOptions,
    point: Point,
    data: DataOptions,
    run: RunOptions,
    proof: Proof,
    cluster: ClusterOptions,
    fail_under: Annotated[
        int | None,
        typer.Option(help="Exit with code 1 if the median radius is below this.", rich_help_panel="Run", min=0),
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option(
            help='Exit with code 1 unless this holds, such as "certified-accuracy@20>=0.8"; give as many as you like.',
            rich_help_panel="Run",
        ),
    ] = None,
    junit: Annotated[
        Path | None, typer.Option(help="Write what became of --require to this JUnit file.", rich_help_panel="Run")
    ] = None,
) -> None:
    """Certify the predictions for all test points: how many label flips each withstands.

    Files: .npz (arrays X and y); .csv or .parquet (a column of labels, all others are features); X.npy,y.npy or a
    folder with both; a folder of shards (X-000.npy, y-000.npy, ... or .parquet files); .svmlight. A run that was
    stopped goes on when its command is given again.

    [bold]Examples[/]

      flipcert certify train.npz test.npz --out run

      flipcert certify train.csv test.csv --label species --model ridge

      flipcert certify X.npy,y.npy X_test.npy --activation relu -n 50 --out run

      flipcert certify train.csv test.csv --source annotator --threat sources

      flipcert certify train.npz test.npz --collective 10,50,100 --out run
    """
    from flipcert.cli.commands import certify_command

    certify_command(train, test, model, point, data, run, proof, cluster, fail_under, require or [], junit)


@app.command()
@_flowing
@with_groups
@in_words
def sweep(
    train: Train,
    test: Test,
    model: ModelOptions,
    grid: Grid,
    data: DataOptions,
    run: RunOptions,
    proof: Proof,
    cluster: ClusterOptions,
) -> None:
    """Certify with several numbers of partitions and regularisations, and compare.

    Kernels and scaled features are computed once for all. Choosing the best point by labels that an attacker may flip
    voids its certificate: choose beforehand, or by labels you trust.

    [bold]Examples[/]

      flipcert sweep train.npz test.npz --partitions 1,10,50,100 --out run

      flipcert sweep train.npz test.npz --model ridge --reg 0.1,1,10 -n 10,50
    """
    from flipcert.cli.commands import sweep_command

    sweep_command(train, test, model, grid, data, run, proof, cluster)


@app.command()
@_flowing
@with_groups
@in_words
def audit(
    train: Train,
    test: Test,
    audit: AuditOptions,
    model: ModelOptions,
    point: Point,
    data: DataOptions,
    run: RunOptions,
    proof: Proof,
    cluster: ClusterOptions,
) -> None:
    """Say which training labels to check first, and what each check proves.

    The list mixes labels that the proof of predictions hangs on and labels that look wrong, each with its reason;
    audit.csv in the folder of the run is the same list with a column to fill in. Once it is, --checked goes on from
    there: corrects, trusts, fits, certifies and plans again. A check of chosen labels proves nothing about the others.

    [bold]Examples[/]

      flipcert audit train.npz test.npz --model ridge --labels 100 --flips 10 --out run

      flipcert audit train.csv test.csv --id name --labels 50 --out first

      flipcert audit train.csv test.csv --id name --labels 50 --checked first/audit.csv --out second
    """
    from flipcert.cli.audit import audit_command

    audit_command(train, test, audit, model, point, data, run, proof, cluster)


@app.command()
@with_groups
@in_words
def attack(
    train: Train,
    test: Test,
    row: Annotated[int, typer.Option("--row", "-r", help="Test point, counted from 0.", min=0, show_default=False)],
    model: ModelOptions,
    point: Point,
    data: DataOptions,
    proof: Proof,
    cluster: ClusterOptions,
    format: Annotated[str, typer.Option("--format", "-f", help="table, csv or json.", rich_help_panel="Run")] = "table",
    json: Annotated[bool, typer.Option("--json", help="The same as --format json.", rich_help_panel="Run")] = False,
) -> None:
    """Show the smallest known set of labels to flip that changes one prediction.

    Most influential flips first, with the lead that the predicted class has left after each, in score or in votes.

    [bold]Examples[/]

      flipcert attack train.npz test.npz --row 17

      flipcert attack train.csv test.csv --row 17 --model ridge -n 10 -f csv
    """
    from flipcert.cli.commands import attack_command

    attack_command(train, test, row, model, point, data, proof, cluster, "json" if json else format)


@app.command()
@_flowing
@with_groups
@in_words
def check(
    train: Train,
    checking: CheckOptions,
    model: CheckedModelOptions,
    point: Point,
    data: DataOptions,
    run: CheckedRunOptions,
    proof: Proof,
    cluster: ClusterOptions,
    test: Annotated[
        str | None, typer.Argument(help="Test points, if predictions are asked for.", show_default=False)
    ] = None,
) -> None:
    """Draw labels at random to check, and say what the check proves about all of them.

    Somebody who knows fills in the column "checked": the right label of each row, also where it is the present one.
    With test points, wrong labels are corrected, checked ones trusted, and a model is fitted and certified: it says how
    many predictions are those that entirely right labels would have given.

    [bold]Examples[/]

      flipcert check train.csv --labels 300 --out to-check.csv

      flipcert check train.csv --checked to-check.csv

      flipcert check train.csv --checked to-check.csv --labels 200 --out more.csv

      flipcert check train.csv test.csv --checked to-check.csv --model ridge --out run
    """
    from flipcert.cli.checks import check_command

    check_command(train, test, checking, model, point, data, run, proof, cluster)


@app.command()
@_flowing
@with_groups
@in_words
def inspect(
    file: Annotated[str, typer.Argument(help="Training data, as certify takes them.", show_default=False)],
    data: DataOptions,
    test: Annotated[
        str | None, typer.Argument(help="Test points, if they are to be compared with it.", show_default=False)
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print all of it as JSON.", rich_help_panel="Run")] = False,
) -> None:
    """Look at a file: rows, columns, what each would be used as, and all that stands in the way.

    Ends with the command that would work. Nothing is left out by itself: a column that looks like an id, or like a
    copy of the labels, is told, and left out by the command that is shown.

    [bold]Examples[/]

      flipcert inspect train.csv

      flipcert inspect train.csv test.csv --label species
    """
    from flipcert.cli.inspection import inspect_command

    inspect_command(file, test, data, json)


@app.command()
@in_words
def report(
    runs: Annotated[list[Path], typer.Argument(help="Folders of finished runs.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", "-o", help="Page to write.")] = Path("report.html"),
    title: Annotated[str | None, typer.Option(help="Title of the page.", show_default=False)] = None,
) -> None:
    """Write one self-contained page about one run, or about several side by side.

    [bold]Example[/]

      flipcert report svm-run ridge-run --out comparison.html
    """
    from flipcert.cli.commands import report_command

    report_command(runs, out, title)


@app.command()
@_flowing
@in_words
def verify(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.", show_default=False)],
    train: Train,
    test: Test,
    points: Annotated[int, typer.Option("--points", "-p", help="Test points to look at, of all models.", min=1)] = 50,
    seed: Annotated[int, typer.Option(help="Seed of the choice of points.", min=0)] = 0,
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", help="Threads; all cores if not given.", min=1)] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
    annotations: Annotated[
        Path | None, typer.Option(help="The labels of the run, if they were in a file of their own.")
    ] = None,
    checked: Annotated[
        list[Path] | None, typer.Option(help="The checks of labels of the run, if it was made with any.")
    ] = None,
) -> None:
    """Get a second opinion on a run, by plain and slow means that share no algorithm with those of the run.

    Fits the models again on the same data, replays stored attacks, and computes predictions and radii of random test
    points anew from the weights: as whole numbers, with a full sort, and for ensembles by dynamic programming. The
    metrics of the summary are counted anew from all points, and attacks on all points (--collective) are replayed.
    Says what was compared and how. Exit code 1 if anything
    differs.

    [bold]Example[/]

      flipcert verify run train.npz test.npz --points 50
    """
    from flipcert.cli.commands import verify_command

    verify_command(run, train, test, points, seed, jobs, quiet, annotations, checked)


@app.command()
@in_words
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write to.")] = Path("demo"),
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Certify, sweep and report on handwritten digits that come with the package; no network."""
    from flipcert.cli.demo import run_demo

    run_demo(out, quiet)


@app.command()
@in_words
def warmup() -> None:
    """Compile everything once, on all cores, so that no first answer waits for it."""
    from flipcert.cli.warmup import warmup_command

    warmup_command()

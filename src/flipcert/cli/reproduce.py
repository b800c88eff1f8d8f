"""What ``flipcert reproduce`` does: choose figures, make them, tell what came of them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import sklearn
import typer
from rich import box
from rich.table import Table

from flipcert.cli.cluster import on_cluster
from flipcert.cli.console import results
from flipcert.cli.errors import stopping_at_once
from flipcert.cli.options import ClusterOptions
from flipcert.cli.progress import Display
from flipcert.experiments import source
from flipcert.experiments.figure import Figure, all_figures, load, quick
from flipcert.experiments.reproduction import reproduce
from flipcert.experiments.source import QUICK_TEST, QUICK_TRAIN, Source
from flipcert.experiments.table import read_table
from flipcert.experiments.verdicts import judge


def list_command() -> None:
    """Show all figures."""
    figures = all_figures()
    width = max(len(figure.name) for figure in figures)
    typer.echo(f"{'name':{width}}  {'paper':5}  what it shows")
    for figure in figures:
        typer.echo(f"{figure.name:{width}}  {figure.number or 'new':5}  {figure.title}")


def reproduce_command(
    names: list[str],
    small: bool,
    digits: bool,
    data: Path | None,
    out: Path,
    jobs: int | None,
    memory: int,
    quiet: bool,
    cluster: ClusterOptions,
) -> None:
    """Make figures."""
    if not names:
        raise ValueError('name a figure, or "all"; `flipcert reproduce --list` shows them.')
    figures = all_figures() if names == ["all"] else [load(name) for name in names]

    @cache
    def read(name: str) -> Source:
        found = source.digits(name) if digits else source.load(name, data)
        return found.first(QUICK_TRAIN, QUICK_TEST) if small else found

    last_words = f"What is finished is in {out}; give the same command again to go on."
    with (
        Display(quiet) as display,
        sklearn.config_context(working_memory=memory),
        stopping_at_once(last_words),
        on_cluster(cluster, jobs),
    ):
        # Every file is looked at before the first long job.
        sizes = {name: read(name).y_train.size for figure in figures for name in figure.data}
        if small:
            figures = [quick(figure, min(sizes[name] for name in figure.data)) for figure in figures]
        page = reproduce(figures, out, read, display, jobs)
    _print_verdicts(figures, page.parent)
    if small or digits:
        typer.echo("Small versions, to see that all can be made: their verdicts say nothing about the paper.")
    typer.echo(f"Results: {page}")


def _print_verdicts(figures: list[Figure], folder: Path) -> None:
    table = Table("name", "paper", "verdict", box=box.SIMPLE_HEAD, pad_edge=False)
    for figure in figures:
        found = judge(figure, read_table(folder / f"{figure.name}.parquet"))
        table.add_row(figure.name, figure.number or "new", ", ".join(dict.fromkeys(f.verdict for f in found)))
    results.print(table)

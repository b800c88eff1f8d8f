"""Make the figures of the evaluation: certify what they need, write tables, plots and the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from flipcert.engine.files import whole_file
from flipcert.experiments import small_c
from flipcert.experiments.drawing import draw
from flipcert.experiments.figure import Figure, all_figures
from flipcert.experiments.page import render
from flipcert.experiments.source import Source
from flipcert.experiments.table import Row, read_table, row_of, write_table
from flipcert.experiments.workshop import Workshop
from flipcert.runs.job import Stages

PAGE = "README.md"


def reproduce(
    figures: Sequence[Figure],
    folder: Path,
    load: Callable[[str], Source],
    stages: Stages | None = None,
    n_jobs: int | None = None,
) -> Path:
    """Make figures, and a page of all whose tables are there; return where the page is.

    Parameters
    ----------
    figures : sequence of Figure
        What to make.
    folder : path-like
        ``folder/results`` gets the page, plots and tables, the rest of the folder what lets a stopped run go on.
    load : callable
        Returns the data of a name.
    stages : Stages, optional
        Whoever looks on.
    n_jobs : int, optional
        Threads; all cores by default.
    """
    results = folder / "results"
    results.mkdir(parents=True, exist_ok=True)
    workshop = Workshop(folder, load, stages, n_jobs)
    for figure in figures:
        rows = rows_of(figure, workshop)
        write_table(rows, results / f"{figure.name}.parquet")
        _save(draw(figure, rows), results / f"{figure.name}.svg")
        write_page(results)
    workshop.clear()
    return results / PAGE


def rows_of(figure: Figure, workshop: Workshop) -> list[Row]:
    """The table of a figure."""
    if figure.study:
        return _study(figure, workshop)
    return [row_of(cell, workshop.parts(cell), workshop.source(cell.data).described) for cell in figure.cells]


def _study(figure: Figure, workshop: Workshop) -> list[Row]:
    """Accuracy against C, unit by unit."""
    name, factors = figure.study["data"], figure.study["times_threshold"]
    units = list(small_c.units(figure.study))
    workshop.stages.stage(f"{name}: accuracy against C")
    workshop.stages.begin(len(units), "models")
    rows: list[Row] = []
    for unit in units:
        identity = {"small-c": unit, "factors": factors}
        rows += workshop.kept(identity, name, partial(small_c.accuracies, unit, factors))
        workshop.stages.advance(1)
    return rows


def read_results(results: Path) -> list[tuple[Figure, list[Row]]]:
    """All figures whose tables are in a folder."""
    paths = [(figure, results / f"{figure.name}.parquet") for figure in all_figures()]
    return [(figure, read_table(path)) for figure, path in paths if path.exists()]


def write_page(results: Path) -> None:
    """Write the page of all tables in a folder."""
    with whole_file(results / PAGE) as file:
        file.write(render(read_results(results)).encode())


def _save(canvas: Any, path: Path) -> None:
    from matplotlib import rc_context

    # The same table makes the same file.
    with rc_context({"svg.hashsalt": "flipcert"}), whole_file(path) as file:
        canvas.savefig(file, format="svg", metadata={"Date": None})

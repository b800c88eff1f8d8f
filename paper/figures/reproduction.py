"""Make the figures of the evaluation: certify what they need, write tables, plots and the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from paper.figures import small_c
from paper.figures.cells import Cells
from paper.figures.drawing import draw
from paper.figures.figure import Figure, all_figures
from paper.figures.page import picture_of, render
from paper.figures.source import Source
from paper.figures.table import Row, read_table, write_table
from paper.files import whole_file

PAGE = "README.md"
# Dots an inch of pictures: a row of panels is as wide as a page.
_DPI = 120


def reproduce(
    figures: Sequence[Figure],
    folder: Path,
    load: Callable[[str], Source],
    say: Callable[[str], None] = lambda line: None,
    n_jobs: int | None = None,
    known: Path | None = None,
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
    say : callable, optional
        Is told what is begun.
    n_jobs : int, optional
        Threads; all cores by default.
    known : path-like, optional
        Folder of tables whose rows are taken where settings, data and version are the same.
    """
    tables = [] if known is None else read_results(known)
    if known is not None and not tables:
        raise ValueError(f"there is no table of a figure in {known}, whose rows were to be taken.")
    cells = Cells(folder, load, say, n_jobs, [row for _, rows in tables for row in rows])
    results = folder / "results"
    results.mkdir(parents=True, exist_ok=True)
    for place, figure in enumerate(figures):
        say(f"{figure.name} ({place + 1} of {len(figures)})")
        rows = rows_of(figure, cells)
        write_table(rows, results / f"{figure.name}.parquet")
        _save(draw(figure, rows), results / picture_of(figure))
        write_page(results)
    cells.clear()
    return results / PAGE


def rows_of(figure: Figure, cells: Cells) -> list[Row]:
    """The table of a figure."""
    return _study(figure, cells) if figure.study else [cells.row(cell) for cell in figure.cells]


def _study(figure: Figure, cells: Cells) -> list[Row]:
    """Accuracy against C, unit by unit."""
    name, factors = figure.study["data"], figure.study["times_threshold"]
    units = list(small_c.units(figure.study))
    rows: list[Row] = []
    for place, unit in enumerate(units):
        cells.say(f"{name}: accuracy against C, {place + 1} of {len(units)} models")
        compute = partial(small_c.accuracies, unit, factors, cells.source(name), cells.n_jobs)
        rows += cells.kept({"small-c": unit, "factors": factors}, name, compute)
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
    """Keep a plot as a picture without loss: the same table makes the same file."""
    with whole_file(path) as file:
        canvas.savefig(file, format="webp", dpi=_DPI, pil_kwargs={"lossless": True})

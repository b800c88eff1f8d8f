"""The committed results page: made from the committed tables, and from nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib import rcParams

from paper.figures.drawing import DASH_PERIOD, draw, panels
from paper.figures.figure import all_figures
from paper.figures.page import render
from paper.figures.reproduction import PAGE, read_results
from paper.figures.table import read_table
from paper.peers import page as peers

RESULTS = Path(__file__).parents[1] / "results"


def test_committed_tables_make_the_committed_page():
    assert render(read_results(RESULTS)) == (RESULTS / PAGE).read_text()


def test_every_caption_of_mnist_says_that_its_network_saw_no_label():
    told = [line for line in (RESULTS / PAGE).read_text().splitlines() if "RotNet" in line and ": second block" in line]
    assert len(told) > 10
    assert all("rotations of the training images, and saw no label" in line for line in told)


def test_the_committed_comparison_is_made_from_its_table():
    assert peers.render(read_table(RESULTS / peers.TABLE)) == (RESULTS / peers.PAGE).read_text()


def test_every_table_has_its_plot_and_every_plot_its_table():
    tables, plots = ({path.stem for path in RESULTS.glob(f"*.{kind}")} for kind in ("parquet", "webp"))
    tables -= {"peers"}
    assert tables == plots
    assert tables <= {figure.name for figure in all_figures()}


def test_pictures_are_light():
    """The page opens at once, and a checkout does not carry them for ever."""
    assert sum(path.stat().st_size for path in RESULTS.parent.rglob("*") if path.suffix in (".webp", ".svg")) < 2e6


@pytest.mark.parametrize(("figure", "rows"), read_results(RESULTS), ids=lambda value: getattr(value, "name", ""))
def test_tables_have_a_row_for_every_cell(figure, rows):
    """All that the file of a figure declares was certified, on whole test sets."""
    if figure.study:
        return
    found = [{name: row[name] for name in cell.identity} for cell, row in zip(figure.cells, rows, strict=True)]
    assert found == [cell.identity for cell in figure.cells]
    assert {row["n_test"] for row in rows if row.get("points") is None} <= {10_000, 2_163}
    assert {row["n_train"] for row in rows} <= {50_000, 60_000, 13_007}


@pytest.mark.parametrize(("figure", "rows"), read_results(RESULTS), ids=lambda value: getattr(value, "name", ""))
def test_no_picture_has_more_than_nine_panels(figure, rows):
    assert len(list(panels(figure, rows))) <= 9


@pytest.mark.parametrize(("figure", "rows"), read_results(RESULTS), ids=lambda value: getattr(value, "name", ""))
def test_titles_lie_in_the_picture_and_apart_and_legends_show_every_line(figure, rows):
    canvas = draw(figure, rows)
    canvas.draw_without_rendering()
    boxes = [axes.title.get_window_extent() for axes in canvas.axes if axes.get_title()]
    assert all(box.x0 >= 0 and box.x1 <= canvas.bbox.x1 for box in boxes)
    assert not any(one.overlaps(other) for place, one in enumerate(boxes) for other in boxes[:place])
    legends = [*canvas.legends, *filter(None, (axes.get_legend() for axes in canvas.axes))]
    assert legends
    # A whole period of dashes fits.
    longest = max(DASH_PERIOD, *(sum(rcParams[f"lines.{name}_pattern"]) for name in ("dashed", "dashdot")))
    for line in (line for legend in legends for line in legend.get_lines() if line.is_dashed()):
        assert longest * line.get_linewidth() <= np.ptp(line.get_xdata())

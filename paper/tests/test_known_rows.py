"""Rows of tables that are there already: taken for the same settings and data, and for no others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paper.figures.cells import Cells
from paper.figures.figure import Cell
from paper.figures.source import digits
from paper.figures.table import read_table, write_table

CELL = Cell("cifar10", "ridge", 4, "centre", (("reg", 1.0),), published=True)


def few_digits(name):
    return digits(name).first(240, 40)


def table_of(rows, path):
    """Rows as a table gives them, with all that is known."""
    write_table(rows, path)
    return known_of(path)


def known_of(path):
    return [{name: value for name, value in row.items() if value is not None} for row in read_table(path)]


@pytest.fixture
def known(tmp_path):
    """A table of two cells, one with the paper's bounds, with accuracies that no model has."""
    cells = Cells(tmp_path / "first", few_digits)
    rows = table_of([cells.row(CELL), cells.row(replace(CELL, published=False, seed=1))], tmp_path / "known.parquet")
    return [row | {"accuracy": 2.0 + place} for place, row in enumerate(rows)]


def test_rows_of_the_same_settings_and_data_are_taken(known, tmp_path):
    said = []
    cells = Cells(tmp_path / "second", few_digits, said.append, known=known)
    rows = table_of([cells.row(CELL), cells.row(replace(CELL, published=False, seed=1))], tmp_path / "again.parquet")
    assert rows == known
    assert said == ["reading cifar10"]


@pytest.mark.parametrize(
    "other",
    [
        replace(CELL, seed=2),
        replace(CELL, points=40),
        replace(CELL, scale="none"),
        replace(CELL, partitions=5),
        replace(CELL, options=(("reg", 2.0),)),
    ],
    ids=["seed", "points", "scale", "partitions", "reg"],
)
def test_rows_of_other_settings_are_computed(known, tmp_path, other):
    assert Cells(tmp_path / "second", few_digits, known=known).row(other)["accuracy"] <= 1


def test_rows_of_other_data_are_computed(known, tmp_path):
    def load(name):
        source = few_digits(name)
        return replace(source, y_train=source.y_train[::-1].copy())

    assert Cells(tmp_path / "second", load, known=known).row(CELL)["accuracy"] <= 1


def test_rows_without_a_digest_are_computed(known, tmp_path):
    plain = [{name: value for name, value in row.items() if name != "digest"} for row in known]
    assert Cells(tmp_path / "second", few_digits, known=plain).row(CELL)["accuracy"] <= 1


def test_only_parts_that_a_row_has_are_taken(known, tmp_path):
    said = []
    cells = Cells(tmp_path / "second", few_digits, said.append, known=[known[1]])
    row = cells.row(replace(CELL, seed=1))
    assert row["accuracy"] == 3.0
    assert row["median_published"] <= row["median_published_upper"]
    assert [line.split(": ")[-1] for line in said] == ["reading cifar10", "fitting", "the paper's bounds"]
    timed = cells.row(replace(CELL, published=False, seed=1, timed=True))
    assert timed["timed_fit"] > 0


def test_what_two_tables_know_of_a_cell_is_put_together(known, tmp_path):
    """One figure shows the paper's bounds, another does not."""
    without = [{name: value for name, value in known[0].items() if "published" not in name and name != "share_fragile"}]
    said = []
    row = Cells(tmp_path / "second", few_digits, said.append, known=[*known, *without]).row(CELL)
    assert row["median_published"] == known[0]["median_published"]
    assert said == ["reading cifar10"]


def test_the_command_takes_rows_from_a_folder_of_tables(paper, refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = ("figure-1b", "--quick", "--digits", "--out")
    assert "certifying" in paper(*command, "first").err
    again = paper(*command, "second", "--from", "first/results")
    assert "certifying" not in again.err
    first, second = tmp_path / "first/results", tmp_path / "second/results"
    assert known_of(first / "figure-1b.parquet") == known_of(second / "figure-1b.parquet")
    for name in ("figure-1b.webp", "README.md"):
        assert (first / name).read_bytes() == (second / name).read_bytes()
    assert "no table of a figure in nowhere" in refused(*command, "third", "--from", "nowhere")
    assert not (tmp_path / "third").exists()

"""``python -m paper`` as a user calls it."""

from __future__ import annotations

import pytest

from paper.figures.figure import names
from paper.figures.table import read_table


def test_all_figures_are_listed(paper):
    said = paper("--list").out
    assert all(name in said for name in names())


def test_figures_are_made_and_a_second_run_says_the_same(paper, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = ("figure-1b", "gradient-ensembles", "--quick", "--digits", "--out")
    for out in ("first", "second"):
        said = paper(*command, out)
        assert f"Results: {out}/results/README.md" in said.out
        assert "say nothing about the paper" in said.out
        assert "ridge reg 100.0, 10 partitions: certifying" in said.err
    tables = [read_table(tmp_path / out / "results" / "figure-1b.parquet") for out in ("first", "second")]
    assert [row["partitions"] for row in tables[0]] == [10, 100, 10, 100]
    for one, other in zip(*tables, strict=True):
        assert {**one, "seconds": None} != {}
        assert {k: v for k, v in one.items() if "seconds" not in k} == {
            k: v for k, v in other.items() if "seconds" not in k
        }
    pages = [(tmp_path / out / "results" / "README.md").read_text() for out in ("first", "second")]
    assert pages[0] == pages[1]
    plots = [(tmp_path / out / "results" / "gradient-ensembles.webp").read_bytes() for out in ("first", "second")]
    assert plots[0] == plots[1]
    assert sorted(p.name for p in (tmp_path / "first").iterdir()) == ["cells", "results"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), 'name a figure, or "all"'),
        (("figure-99",), "no figure 'figure-99'"),
        (("figure-2a", "--data", "nowhere"), "needs the features cifar10-lite0-512.npz in nowhere; put it there"),
    ],
)
def test_what_cannot_be_made_is_told_in_a_sentence(refused, arguments, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert sentence in refused(*arguments)
    assert not (tmp_path / "reproduction").exists()

"""The demo gives the commands of a user, and ends by saying where the page is."""

from __future__ import annotations

from typer.testing import CliRunner

from flipcert.cli import app


def test_demo(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    result = CliRunner().invoke(app, ["demo", "--quiet"])
    assert result.exit_code == 0, result.output
    assert "$ flipcert certify" in result.stdout
    assert "$ flipcert sweep" in result.stdout
    assert "Half of the correct predictions withstand 15 flipped labels" in result.stdout
    assert "…" not in result.stdout
    assert result.stdout.rstrip().endswith("Open demo/report.html in a browser.")
    assert "reg 0.1, 25 partitions" in (tmp_path / "demo" / "report.html").read_text()
    (tmp_path / "file").write_text("")
    assert CliRunner().invoke(app, ["demo", "--out", "file"]).exit_code == 2

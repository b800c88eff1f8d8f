"""The demo gives the commands of a user, and ends by saying where the page is."""

from __future__ import annotations

from typer.testing import CliRunner

from flipcert.cli import app
from tests.helpers.paths import ROOT


def test_demo(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    result = CliRunner().invoke(app, ["demo", "--quiet"])
    assert result.exit_code == 0, result.output
    assert "$ flipcert certify" in result.stdout
    assert "$ flipcert sweep" in result.stdout
    assert "More than half of the correct predictions withstand 15 flipped labels" in result.stdout
    assert "…" not in result.stdout
    # Not the model with the largest radii, which is far less accurate.
    assert "The one to choose is ridge, reg 1, one model: on average over attacks of 0 to 14 flips" in result.stdout
    assert "Without an attack 95.6 % are right; under 14 flips, 53.1 % are proven to stay so." in result.stdout
    assert (
        "The largest median radius, 18 flips, is that of ridge, reg 10, one model. Without an attack 89.7 %"
        in result.stdout
    )
    page = (tmp_path / "demo" / "report.html").read_text()
    assert "This is ridge, reg 1, one model, of the 15 results on this page the one to choose: on average" in page
    assert (
        '<meta name="description" content="More than half of the correct predictions withstand 15 flipped labels'
        in page
    )
    assert result.stdout.rstrip().endswith("Open demo/report.html in a browser.")
    assert "reg 0.1, 25 partitions" in (tmp_path / "demo" / "report.html").read_text()
    # The last command of `make demo`.
    recipe = (ROOT / "Makefile").read_text().partition("\ndemo:")[2].partition("\n\n")[0]
    _, command, *arguments = recipe.splitlines()[-1].split()
    assert command == "verify"
    result = CliRunner().invoke(app, [command, *arguments, "--quiet"])
    assert result.exit_code == 0, result.output
    assert "No difference at 30 predictions (the run has" in result.stdout
    (tmp_path / "file").write_text("")
    assert CliRunner().invoke(app, ["demo", "--out", "file"]).exit_code == 2

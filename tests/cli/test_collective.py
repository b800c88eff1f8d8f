"""``--collective``: budgets as they are typed, what is shown on the way and in the end, and what a run keeps of it."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from rich.console import Console

import flipcert
from flipcert.cli import progress
from flipcert.cli.console import results
from flipcert.runs.store import read_results
from tests.helpers.command_line import X_TEST, X_TRAIN, Y_TEST, Y_TRAIN, refused, run, summary_of

RIDGE = ("--model", "ridge", "--kernel", "rbf", "--classes", "setosa,versicolor,virginica", "--time-limit", "2")


@pytest.mark.parametrize("budgets", ["0,-1,x", "", ",", "0", "-5", "1.5", "ten", "3,", "9" * 30])
def test_bad_budgets_are_one_sentence(data, budgets):
    said = refused("certify", "train.npz", "test.npz", "--collective", budgets)
    assert (
        "--collective must be whole numbers from 1 to 1,000,000,000,000, with commas between them, such as 10,50,100; "
        f"got '{budgets}'" in said
    )


def test_a_budget_is_named_once(data):
    assert "--collective names a number twice; got '3,5,3'" in refused(
        "sweep", "train.npz", "test.npz", "--collective", "3,5,3", "--out", "run"
    )
    assert not (data / "run").exists()


def test_it_is_what_python_says(data):
    summary = summary_of("certify", "train.npz", "test.npz", *RIDGE, "--collective", "5,2", "--out", "run")
    told = summary["collective_certificate"]
    model = flipcert.KernelRidge(flipcert.kernels.RBF(), classes=["setosa", "versicolor", "virginica"])
    own = model.fit(X_TRAIN, Y_TRAIN).certify_collectively(X_TEST, [2, 5], Y_TEST, time_limit=2.0)
    assert [budget["flips"] for budget in told["budgets"]] == [2, 5]
    for k, budget in enumerate(told["budgets"]):
        assert budget["changed_one_by_one"] == own.changed_one_by_one[k]
        assert budget["changed_at_least"] <= budget["changed_at_most"] <= budget["changed_one_by_one"]
        assert budget["certified_accuracy"] == pytest.approx(1 - (75 - own.n_counted + budget["changed_at_most"]) / 75)
    assert told["counted"] == own.n_counted
    stored = flipcert.CollectiveCertificate.load("run/collective.npz")
    assert stored.flips.tolist() == [2, 5]
    assert stored.model["model"] == "ridge"
    (result,) = read_results("run")
    assert result.collective.certificate.changed_at_most.tolist() == stored.changed_at_most.tolist()
    assert json.loads((data / "run" / "run.json").read_text())["collective"] == [2, 5]
    for attack, witness in zip(result.collective.attacks, stored.attacks, strict=True):
        assert (attack is None) == (witness is None)
        if witness is not None:
            assert attack.old.tolist() == Y_TRAIN[witness.indices].tolist()


def test_the_terminal_shows_a_table_and_a_sentence(data):
    shown = run("certify", "train.npz", "test.npz", *RIDGE, "--collective", "1,9")
    assert shown.exit_code == 0, shown.output
    text = " ".join(shown.stdout.split())
    assert "One attack on all test points" in text
    assert "One attack of 9 flips, 12.0 % of the training set, changes" in text
    assert "correct predictions" in text
    assert "One attack of 9 flips on all points: changes " in " ".join(shown.stderr.split())
    unlabelled = run("certify", "train.csv", "test-unlabelled.csv", *RIDGE, "--collective", "9")
    text = " ".join(unlabelled.stdout.split())
    assert "correct" not in text.split("One attack on all")[1]
    assert "of 75 predictions" in text


def test_a_sweep_has_one_for_each_model(data, monkeypatch):
    monkeypatch.setattr(results, "width", 200)
    shown = run("sweep", "train.npz", "test.npz", *RIDGE, "-n", "1,3", "--collective", "4", "--out", "run", "--quiet")
    assert shown.exit_code == 0, shown.output
    assert "3 partitions" in shown.stdout.split("One attack on all test points")[1]
    names = {file.name for file in (data / "run").iterdir()}
    assert {"collective-0.npz", "collective-1.npz", "collective-attacks.parquet"} <= names
    first, second = read_results("run")
    assert first.collective.certificate.model.get("partitions", 1) == 1
    assert second.collective.certificate.model["partitions"] == 3
    assert run("report", "run", "--out", "page.html").exit_code == 0
    assert (data / "page.html").read_bytes() == (data / "run" / "report.html").read_bytes()


def test_sources_and_rows_are_budgets_too(data):
    np.savez("who.npz", X=X_TRAIN, y=Y_TRAIN, who=np.array([f"worker {i % 9}" for i in range(75)]))
    given = ("--source", "who", "--threat", "sources", "--collective", "1,2", "--attacks", "3", "--out", "run")
    told = summary_of("certify", "who.npz", "test.npz", *RIDGE, *given)["collective_certificate"]
    assert [budget["sources"] for budget in told["budgets"]] == [1, 2]
    (result,) = read_results("run")
    for attack in filter(None, result.collective.attacks):
        assert attack.size == len(set(attack.by.tolist())) <= 2
    assert run("report", "run", "--out", "page.html").exit_code == 0
    assert (data / "page.html").read_bytes() == (data / "run" / "report.html").read_bytes()
    rows = ("--model", "svm", "--kernel", "rbf", "--threat", "insertions", "--collective", "3")
    told = summary_of("certify", "train.npz", "test.npz", *rows)["collective_certificate"]
    assert "insertions" in told["why_one_by_one"]


def test_runs_with_other_budgets_are_other_runs(data):
    given = ("certify", "train.npz", "test.npz", *RIDGE, "--out", "run")
    summary_of(*given, "--collective", "2,5")
    assert "collective was [2, 5], is [2]" in refused(*given, "--collective", "2")
    assert "collective was [2, 5], is null" in refused(*given)
    again = run(*given, "--collective", "5,2", "--quiet")
    assert "holds this run already" in again.stderr
    assert "time_limit was 2.0, is 5.0" in refused(*given, "--collective", "2,5", "--time-limit", "5")


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_shows_both_ends_closing_in(monkeypatch, terminal):
    text = io.StringIO()
    monkeypatch.setattr(progress, "notes", Console(file=text, force_terminal=terminal, width=100))
    monkeypatch.setattr(progress, "_PAUSE", -1.0)
    with progress.Display() as display:
        display.stage("one attack of 50 flips on all points")
        display.narrowed(50, 91, 0)
        display.narrowed(50, at_most=24)
        display.begin(8, "blocks")
        display.narrowed(50, at_least=14)
        display.narrowed(50, at_most=40, at_least=3)  # worse than what is known
        display.advance(8)
        display._progress.refresh()
    if terminal:
        assert "changes 14 to 24" in text.getvalue()
    else:
        assert text.getvalue().splitlines() == [
            "One attack of 50 flips on all points ...",
            "One attack of 50 flips on all points: changes 0 to 91",
            "One attack of 50 flips on all points: changes 0 to 24",
            "One attack of 50 flips on all points: changes 14 to 24",
            "One attack of 50 flips on all points: changes 14 to 24",
            "One attack of 50 flips on all points: 8 of 8 blocks",
        ]


def test_a_log_tells_the_last_of_what_is_known(monkeypatch):
    text = io.StringIO()
    monkeypatch.setattr(progress, "notes", Console(file=text, width=100))
    with progress.Display() as display:
        display.stage("one attack")
        for most in (9, 8, 7):
            display.narrowed(3, at_most=most)
        display.stage("writing")
    assert text.getvalue().splitlines() == ["One attack ...", "One attack: changes 0 to 7", "Writing ..."]

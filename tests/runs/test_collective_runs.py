"""One attack on all points in the folder of a run: kept budget by budget, and looked at again by ``verify``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet

import flipcert
from flipcert.cli.console import results
from flipcert.collective import Targets
from flipcert.results.collective_certificate import together
from flipcert.runs.folder import RunFolder
from tests.helpers.collective import made_up, same
from tests.helpers.command_line import X_TRAIN, Y_TRAIN, refused, run

RIDGE = ("--model", "ridge", "--kernel", "rbf", "--classes", "setosa,versicolor,virginica", "--attacks", "5")
COMMAND = ("certify", "train.npz", "test.npz", *RIDGE, "--collective", "2,5,9", "--quiet")


@pytest.fixture(autouse=True)
def known_attacks(monkeypatch):
    """Only what is known point by point: no clock has a say in it, and there is an attack under any threat."""
    monkeypatch.setattr(
        "flipcert.collective.certify._facing",
        lambda model, X, threat, certificates, alone: alone,
    )
    monkeypatch.setattr(results, "width", 200)


@pytest.fixture
def asked(monkeypatch):
    """Budgets that were looked at; a run is stopped at those that are in ``asked.stops``."""

    class Asked(list):
        stops = ()

    budgets, asking = Asked(), Targets.certify

    def noted(self, flips, time_limit):
        if flips in budgets.stops:
            raise KeyboardInterrupt
        budgets.append(flips)
        return asking(self, flips, time_limit)

    monkeypatch.setattr(Targets, "certify", noted)
    return budgets


def test_a_run_that_is_stopped_between_budgets_goes_on_with_those_that_are_missing(data, asked):
    assert run(*COMMAND, "--out", "whole").exit_code == 0
    assert asked == [2, 5, 9]
    asked.stops = (9,)
    assert run(*COMMAND, "--out", "stopped").exit_code != 0
    kept = {file.name for file in (data / "stopped" / "blocks").glob("collective*")}
    assert kept == {"collective-0-2.npz", "collective-0-5.npz"}
    assert "has not finished" in refused("report", "stopped")
    asked.clear()
    asked.stops = ()
    assert run(*COMMAND, "--out", "stopped").exit_code == 0
    assert asked == [9]
    for name in ("report.html", "collective.npz", "collective-attacks.parquet", "certificates.parquet"):
        assert (data / "stopped" / name).read_bytes() == (data / "whole" / name).read_bytes()
    assert not (data / "stopped" / "blocks").exists()


# A run that takes its time with all budgets but the first, whatever else it is doing.
SLOW = """
import sys, time
from flipcert.cli import app
from flipcert.collective import Targets
sys.modules["flipcert.collective.certify"]._facing = lambda model, X, threat, certificates, alone: alone
asking = Targets.certify
def slowly(self, flips, time_limit):
    time.sleep(0 if flips == 2 else 600)
    return asking(self, flips, time_limit)
Targets.certify = slowly
app()
"""


def test_a_run_that_is_killed_between_budgets_goes_on(data, asked):
    assert run(*COMMAND, "--out", "whole").exit_code == 0
    kept = data / "killed" / "blocks" / "collective-0-2.npz"
    with subprocess.Popen([sys.executable, "-c", SLOW, *COMMAND, "--out", "killed"], env=os.environ) as process:
        start = time.monotonic()
        while not kept.exists() and process.poll() is None and time.monotonic() < start + 300:
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    assert kept.exists()
    assert not (data / "killed" / "summary.json").exists()
    asked.clear()
    assert run(*COMMAND, "--out", "killed").exit_code == 0
    assert asked == [5, 9]
    for name in ("report.html", "collective.npz", "collective-attacks.parquet"):
        assert (data / "killed" / name).read_bytes() == (data / "whole" / name).read_bytes()


def test_damaged_budgets_are_looked_at_again(data, asked):
    asked.stops = (9,)
    assert run(*COMMAND, "--out", "run").exit_code != 0
    blocks = data / "run" / "blocks"
    (blocks / "collective-0-2.npz").write_bytes((blocks / "collective-0-5.npz").read_bytes())
    (blocks / "collective-0-5.npz").write_bytes(b"PK")
    asked.clear()
    asked.stops = ()
    assert run(*COMMAND, "--out", "run").exit_code == 0
    assert asked == [2, 5, 9]


def test_what_was_kept_of_other_predictions_is_not_used(data, asked, monkeypatch):
    recall = RunFolder.recall_collective

    def of_others(self, name):
        made_up().save(data / "other.npz")
        assert recall(self, name) is None
        return flipcert.CollectiveCertificate.load(data / "other.npz")

    monkeypatch.setattr(RunFolder, "recall_collective", of_others)
    assert run(*COMMAND, "--out", "run").exit_code == 0
    assert asked == [2, 5, 9]


def parts():
    """Budgets of a certificate, each by itself, in no order."""
    whole = made_up()
    rows = {"flips", "changed_at_most", "changed_at_least", "changed_one_by_one", "prediction_after"}
    own = [
        replace(whole, **{name: getattr(whole, name)[k : k + 1] for name in rows}, attacks=[whole.attacks[k]])
        for k in (2, 0, 1)
    ]
    return whole, own


def test_budgets_that_were_asked_about_one_by_one_are_put_together():
    whole, own = parts()
    assert same(together(own), whole)


def test_what_is_known_of_one_budget_is_known_of_others():
    whole, (large, small, middle) = parts()
    # A bound that is better for more flips holds for fewer; an attack of fewer can be made with more.
    worse = replace(large, attacks=[None], changed_at_least=np.array([0]), prediction_after=whole.prediction[None])
    loose = replace(small, changed_at_most=np.array([2]))
    tight = replace(middle, changed_at_most=np.array([6]))
    joined = together([worse, loose, replace(tight, why_one_by_one="so")])
    assert joined.changed_at_most.tolist() == [2, 5, 5]
    assert joined.changed_at_least.tolist() == [0, 2, 2]
    assert joined.attacks[2] is joined.attacks[1] is middle.attacks[0]
    assert joined.why_one_by_one == "so"


def verified(*options, code=0, folder="run"):
    result = run("verify", folder, "train.npz", "test.npz", "--points", "4", "--quiet", *options)
    assert result.exit_code == code, result.output
    return " ".join(result.stdout.split())


@pytest.mark.parametrize(
    "options",
    [
        RIDGE,
        (*RIDGE[:-2], "-n", "3"),
        ("--model", "svm", "--kernel", "rbf", "--threat", "deletions"),
        ("--model", "svm", "--kernel", "rbf", "--threat", "replacements"),
        ("--model", "ridge", "--source", "who", "--threat", "sources"),
    ],
    ids=" ".join,
)
def test_verify_replays_the_attack(data, options):
    np.savez("train.npz", X=X_TRAIN, y=Y_TRAIN, who=np.arange(75) % 9)
    given = (*options, "--attacks", "2", "--collective", "2,5", "--out", "run", "--quiet")
    assert run("certify", "train.npz", "test.npz", *given).exit_code == 0
    said = verified()
    assert "one attack on all 4 0 the same in summary" in said
    assert "one attack on all 2 0 made, fitted and asked again" in said
    assert "was not proven a second time" in said
    assert "No difference" in said


@pytest.mark.parametrize("threat", ["flips", "sources"])
def test_verify_replays_attacks_on_single_labels_of_rows(data, threat):
    row = np.repeat(np.arange(75), 2)
    label = np.where(np.arange(150) % 11 == 0, "versicolor", Y_TRAIN[row])
    frame = pd.DataFrame({"row": row, "label": label, "who": np.arange(150) % 7, "sure": np.arange(150) % 5 == 0})
    frame.sample(frac=1, random_state=0).to_csv("labels.csv", index=False)
    given = ("--annotations", "labels.csv", "--source", "who", "--trusted", "sure", "--threat", threat)
    given += (*RIDGE, "--collective", "2,5", "--out", "run", "--quiet")
    assert run("certify", "X_train.npy", "test.npz", *given).exit_code == 0
    result = run("verify", "run", "X_train.npy", "test.npz", "--annotations", "labels.csv", "--points", "4", "--quiet")
    assert result.exit_code == 0, result.output
    assert "one attack on all 2 0 made, fitted and asked again" in " ".join(result.stdout.split())


def altered(change):
    """Replace the certificate of the run by another that could be one."""
    path = Path("run/collective.npz")
    change(flipcert.CollectiveCertificate.load(path)).save(path)


def test_verify_finds_what_was_changed(data):
    assert run(*COMMAND, "--out", "run").exit_code == 0
    before = {name: Path(f"run/{name}").read_bytes() for name in ("collective.npz", "summary.json")}
    altered(lambda c: replace(c, changed_one_by_one=np.minimum(c.changed_one_by_one + 1, c.n_counted)))
    assert "points one by one" in verified(code=1)
    Path("run/collective.npz").write_bytes(before["collective.npz"])
    # Without its attacks.
    altered(lambda c: c.without_attacks())
    assert "one attack on all" in verified(code=1)
    Path("run/collective.npz").write_bytes(before["collective.npz"])
    summary = json.loads(before["summary.json"])
    summary["collective_certificate"]["budgets"][0]["changed_at_most"] -= 1
    Path("run/summary.json").write_text(json.dumps(summary))
    assert "1 difference" in verified(code=1)
    Path("run/summary.json").write_bytes(before["summary.json"])
    table = parquet.read_table("run/collective-attacks.parquet")
    rows = table["training_row"].to_pylist()
    column = table.column_names.index("training_row")
    parquet.write_table(
        table.set_column(column, "training_row", [[74 - row for row in rows]]), "run/collective-attacks.parquet"
    )
    assert "the table of attacks says another" in verified(code=1)
    for wrong in (b"", b"PAR1"):
        Path("run/collective-attacks.parquet").write_bytes(wrong)
        assert "one attack on all points is missing, or not what was written" in refused(
            "verify", "run", "train.npz", "test.npz"
        )
        assert "collective-attacks.parquet is missing, or not what was written" in refused("report", "run")
    Path("run/collective.npz").unlink()
    assert "one attack on all points is missing" in refused("verify", "run", "train.npz", "test.npz")


def test_an_attack_that_changes_less_than_it_says_is_found(data):
    assert run(*COMMAND, "--out", "run").exit_code == 0

    def boasting(c):
        """One point more that changes, with the same attack."""
        after = c.prediction_after.copy()
        more = next(t for t in np.flatnonzero(c.counted) if c.prediction[t] == "setosa" and t not in c.changed(2))
        after[2, more] = "virginica"
        least = c.changed_at_least + (np.arange(3) == 2)
        return replace(
            c, prediction_after=after, changed_at_least=least, changed_at_most=np.maximum(c.changed_at_most, least)
        )

    altered(boasting)
    assert "of these changed" in verified(code=1)

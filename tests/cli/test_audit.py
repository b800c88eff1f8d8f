"""``flipcert audit``: a list with reasons, a file to fill in, and how it goes on once that is filled in."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import flipcert
from flipcert.audit.auditor import Auditor
from flipcert.audit.one_list import mixed_list
from flipcert.cli.console import results
from flipcert.runs.store import read_results
from tests.helpers.command_line import X_TEST, X_TRAIN, Y_TEST, Y_TRAIN, refused, run, summary_of
from tests.helpers.pages import Page

SPACE = ["setosa", "versicolor", "virginica"]
RIDGE = ("--model", "ridge", "--kernel", "rbf", "--classes", ",".join(SPACE), "--attacks", "5")
COMMAND = ("audit", "noisy.csv", "test.npz", "--id", "name", *RIDGE, "--labels", "12", "--flips", "3")
WRONG = np.array([3, 30, 31, 60])


@pytest.fixture
def noisy(data, monkeypatch):
    """Irises with four wrong labels, and ids."""
    import pandas as pd

    monkeypatch.setattr(results, "width", 200)
    y = Y_TRAIN.copy()
    y[WRONG] = np.roll(SPACE, 1)[np.searchsorted(SPACE, Y_TRAIN[WRONG])]
    frame = pd.DataFrame(X_TRAIN, columns=["a", "b", "c", "d"]).assign(label=y, name=[f"i{k}" for k in range(75)])
    frame.to_csv("noisy.csv", index=False)
    return y


def filled_in(path, to, known=None):
    """Fill in the true labels, all of them or those of some ids."""
    with open(path) as file:
        lines = list(csv.DictReader(file))
    for line in lines:
        if known is None or line["name"] in known:
            line["checked"] = Y_TRAIN[int(line["name"][1:])]
    with open(to, "w", newline="") as file:
        writer = csv.DictWriter(file, lines[0].keys())
        writer.writeheader()
        writer.writerows(lines)
    return lines


def test_words_are_those_of_the_model_and_of_the_points(noisy):
    np.savez("one.npz", X=X_TEST[:1], y=Y_TEST[:1])
    shown = run(
        "audit", "noisy.csv", "one.npz", "--id", "name", *RIDGE, "--labels", "3", "--flips", "3", "--out", "run"
    )
    assert shown.exit_code == 0, shown.output
    assert "half" not in shown.stdout + Page(Path("run/report.html").read_text()).text.partition("Which labels")[2]
    spreading = (
        "audit",
        "noisy.csv",
        "test.npz",
        "--id",
        "name",
        "--model",
        "spreading",
        "--labels",
        "9",
        "--flips",
        "2",
    )
    text = " ".join(run(*spreading, "--suspicious", "1").stdout.split())
    assert "looks wrong: without it and the rest of its fold (cross-validation), the model says " in text
    assert "wrong: without it, the model" not in text


def test_it_is_what_python_says(noisy):
    told = summary_of(*COMMAND, "--out", "run")["audit_result"]
    model = flipcert.KernelRidge(flipcert.kernels.RBF(), classes=SPACE).fit(X_TRAIN, noisy)
    plan = flipcert.plan_audit(model, X_TEST, 12, flips=3, y=Y_TEST, held_out=True)
    doubt = flipcert.suspicious_labels(model, X_TRAIN, noisy)
    order = mixed_list(plan.indices, doubt, np.arange(75), 12, 0.5)
    listed = flipcert.measure_audit(model, X_TEST, order, flips=3, y=Y_TEST)
    assert told["before"] == plan.certified[0]
    assert told["planned"] == plan.certified[12]
    assert told["held_out"] == plan.held_out[12]
    assert told["random"] == plan.random[12]
    assert told["list"] == listed.certified[12]
    assert told["suspects"] == np.count_nonzero(doubt > 0)
    (result,) = read_results("run")
    assert [entry.index for entry in result.audit.entries] == order.tolist()
    assert np.isin(WRONG, order).all()
    assert result.audit.plan.certified.tolist() == plan.certified.tolist()
    assert flipcert.AuditPlan.load("run/audit-plan.npz").indices.tolist() == plan.indices.tolist()
    with open("run/audit.csv") as file:
        lines = list(csv.DictReader(file))
    assert [line["name"] for line in lines] == [f"i{label}" for label in order]
    assert [line["label"] for line in lines] == noisy[order].tolist()
    assert {line["checked"] for line in lines} == {""}
    for line, label in zip(lines, order.tolist(), strict=True):
        assert ("looks wrong: without it, the model says" in line["reason"]) == (doubt[label] > 0)
        assert ("weighs on" in line["reason"]) == (label in plan.indices[plan.weighs_on > 0])


def test_the_terminal_says_what_is_proven_and_what_not(noisy):
    shown = run(*COMMAND, "--out", "run")
    assert shown.exit_code == 0, shown.output
    text = " ".join(shown.stdout.split())
    assert "Checking the 12 labels of the list " in text
    assert "the predictions that are correct and proven against 3 flips from " in text
    assert "a plan helps the predictions it was made for, and others less" in text
    assert "looks wrong: without it, the model says " in text
    assert "A label can matter without being wrong" in text
    assert "A check of chosen labels proves nothing about labels that were not checked" in text
    assert "and 2 more in run/audit.csv" in text
    assert "Choosing labels for the proof" in shown.stderr
    # The same command again shows what is there.
    again = run(*COMMAND, "--out", "run")
    assert "holds this run already" in again.stderr
    assert again.stdout == shown.stdout
    page = Page(Path("run/report.html").read_text()).text
    for part in ("Which labels to check first", "planned for one half, measured on the other", "What this is not"):
        assert part in page
    for part in ("A label can matter without being wrong", "proves nothing about labels that were not checked"):
        assert part in page


def test_it_goes_on_from_what_was_checked(noisy, data):
    assert run(*COMMAND, "--out", "first", "--quiet").exit_code == 0
    lines = filled_in("first/audit.csv", "checked.csv")
    wrong = sum(line["checked"] != line["label"] for line in lines)
    assert wrong == 4
    told = summary_of(*COMMAND, "--checked", "checked.csv", "--out", "second")
    assert told["audit_result"]["corrected"] == 4
    assert told["audit_result"]["confirmed"] == 8
    checked = np.array([int(line["name"][1:]) for line in lines])
    trusted = np.isin(np.arange(75), checked)
    y = np.where(trusted, Y_TRAIN, noisy)
    model = flipcert.KernelRidge(flipcert.kernels.RBF(), classes=SPACE).fit(X_TRAIN, y, trusted=trusted)
    plan = flipcert.plan_audit(model, X_TEST, 12, flips=3, y=Y_TEST)
    assert told["audit_result"]["before"] == plan.certified[0]
    (result,) = read_results("second")
    assert result.certificates.n_attackable == 63
    assert not np.isin([entry.index for entry in result.audit.entries], checked).any()
    assert result.audit.plan.indices.tolist() == plan.indices.tolist()
    shown = " ".join(run("report", "second").output.split()) + Page(Path("report.html").read_text()).text
    assert "Checked before: 12 labels, of which 4 were wrong and corrected; all of them are trusted now." in shown
    # And on from there, with both lists.
    filled_in("second/audit.csv", "more.csv", known={result.audit.entries[0].id})
    third = summary_of(*COMMAND, "--checked", "checked.csv", "--checked", "more.csv", "--out", "third")
    assert third["audit_result"]["confirmed"] == 9
    files = ("noisy.csv", "test.npz", "--points", "3")
    assert "No difference" in run("verify", "second", *files, "--checked", "checked.csv").stdout
    assert "second was made with a check of labels" in refused("verify", "second", *files)
    assert "is not what was checked" in refused("verify", "second", *files, "--checked", "more.csv")
    assert "first was made without a check of labels" in refused("verify", "first", *files, "--checked", "checked.csv")


def test_a_run_that_is_stopped_goes_on_with_the_steps_that_are_missing(noisy, data, monkeypatch):
    assert run(*COMMAND, "--out", "whole", "--quiet").exit_code == 0
    choosing = []
    with monkeypatch.context() as patch:
        patch.setattr(Auditor, "choose", lambda *own, choose=Auditor.choose: choosing.append(1) or choose(*own))
        patch.setattr(Auditor, "random", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert run(*COMMAND, "--out", "stopped", "--quiet").exit_code != 0
    assert len(choosing) == 3
    again = []
    monkeypatch.setattr(Auditor, "choose", lambda *own: again.append(1))
    assert run(*COMMAND, "--out", "stopped", "--quiet").exit_code == 0
    assert not again
    for name in ("report.html", "audit.csv", "audit.parquet", "audit-plan.npz", "audit-list.npz"):
        assert (data / "stopped" / name).read_bytes() == (data / "whole" / name).read_bytes()
    assert not (data / "stopped" / "blocks").exists()


def test_lists_are_mixed_as_asked(noisy):
    (half,) = _lists("0.5")
    (none,) = _lists("0")
    (all_,) = _lists("1")
    assert sum(entry.weighs_on is not None for entry in none) == 12
    looks_wrong = [entry.looks_wrong for entry in all_]
    # Those that look wrong come first, the worst at the top; the plan has what is left.
    assert looks_wrong == sorted(looks_wrong, reverse=True)
    assert any(looks_wrong)
    margins = [entry.margin for entry in all_ if entry.looks_wrong]
    assert margins == sorted(margins, reverse=True)
    assert [entry.looks_wrong for entry in half[:8]].count(True) >= 4


def _lists(share):
    out = f"run-{share}"
    assert run(*COMMAND, "--suspicious", share, "--out", out, "--quiet").exit_code == 0
    yield read_results(out)[0].audit.entries


def test_without_true_labels_of_test_points_all_predictions_count(noisy):
    command = ("audit", "train.csv", "test-unlabelled.csv", *RIDGE, "--labels", "5", "--flips", "3")
    shown = " ".join(run(*command, "--out", "run").stdout.split())
    assert "the predictions that are proven against 3 flips from " in shown
    assert "correct and proven" not in shown
    with open("run/audit.csv") as file:
        assert file.readline() == "row,label,checked,reason\n"


def test_ensembles_are_audited_too(noisy):
    ensemble = ("audit", "train.npz", "test.npz", *RIDGE, "-n", "3", "--labels", "3", "--flips", "2", "--json", "-q")
    told = json.loads(run(*ensemble).stdout)["audit_result"]
    assert told["checks"] == 3
    assert told["planned"] >= told["before"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--labels", "76"), "--labels must be at most the 75 labels that are not trusted yet; got 76"),
        (("--flips", "76"), "--flips must be at most the 75 labels that there are; got 76"),
        (("--threat", "sources"), "--threat sources needs --source"),
        (("--threat", "edits"), "--threat must be flips or sources for an audit: these can be checked; got 'edits'"),
        (("--checked", "nowhere.csv"), "nowhere.csv does not exist"),
        (("--checked", "empty.csv"), "--checked empty.csv has an empty column checked"),
        (("--checked", "other.csv"), "which is no id of"),
        (("--id", "nobody"), "has no column 'nobody'"),
    ],
)
def test_bad_input_is_told_in_one_sentence(noisy, options, message):
    with open("empty.csv", "w") as file:
        file.write(f"name,label,checked\ni0,{noisy[0]},\n")
    with open("other.csv", "w") as file:
        file.write(f"name,label,checked\nx0,{noisy[0]},{noisy[0]}\n")
    assert message in refused(*COMMAND, *options, "--quiet")


@pytest.mark.parametrize("name", ["reason", "checked"])
def test_ids_must_not_be_called_like_another_column_of_the_list(noisy, name, monkeypatch):
    Path("noisy.csv").write_text(Path("noisy.csv").read_text().replace("name", name, 1))
    monkeypatch.setattr(Auditor, "choose", lambda *_: pytest.fail("refused before anything takes its time"))
    said = refused(*COMMAND, "--id", name, "--out", "run", "--quiet")
    assert f"--id {name} is the name of another column of the list to check; rename the column of ids" in said


def test_models_that_cannot_be_audited_are_refused_before_anything_takes_its_time(noisy):
    said = refused("audit", "train.npz", "test.npz", "--model", "milp-svm", "--labels", "3", "--quiet")
    assert "no audit can be planned: it needs a label-linear model" in said


def test_sources_are_audited_as_a_whole(noisy):
    import pandas as pd

    frame = pd.read_csv("noisy.csv").assign(who=[f"w{k % 7}" for k in range(75)])
    frame.to_csv("noisy.csv", index=False)
    options = ("--source", "who", "--threat", "sources", "--labels", "3", "--flips", "1")
    shown = run(*COMMAND, *options, "--out", "run")
    assert shown.exit_code == 0, shown.output
    text = " ".join(shown.stdout.split())
    assert "Checking the 3 sources of the list (3" in text
    assert "labels look wrong" in text
    (result,) = read_results("run")
    model = flipcert.KernelRidge(flipcert.kernels.RBF(), classes=SPACE).fit(X_TRAIN, noisy, source=frame["who"])
    plan = flipcert.plan_audit(model, X_TEST, 3, flips=1, y=Y_TEST, threat="sources")
    assert result.audit.plan.sources.tolist() == plan.sources.tolist()
    assert result.audit.plan.certified.tolist() == plan.certified.tolist()
    listed = [entry.source for entry in result.audit.entries]
    measured = flipcert.measure_audit(model, X_TEST, listed, flips=1, y=Y_TEST, threat="sources")
    assert result.audit.listed.certified.tolist() == measured.certified.tolist()
    doubt = flipcert.suspicious_labels(model, X_TRAIN, noisy)
    with open("run/audit.csv") as file:
        lines = list(csv.DictReader(file))
    assert [line["source"] for line in lines] == [own for own in listed for _ in range((frame["who"] == own).sum())]
    for entry in result.audit.entries:
        own = (frame["who"] == entry.source).to_numpy()
        assert (entry.n_labels, entry.n_suspects) == (own.sum(), np.count_nonzero(doubt[own] > 0))
    page = Page(Path("run/report.html").read_text()).text
    assert "Which sources to check first" in page
    assert "sources checked" in page
    assert "audit.csv beside this page has all labels of these sources" in page
    filled_in("run/audit.csv", "checked.csv")
    told = summary_of(*COMMAND, *options, "--checked", "checked.csv", "--out", "next")["audit_result"]
    assert told["corrected"] + told["confirmed"] == len(lines)


def lists(**files):
    """Lists by hand: for each file, lines of id, present label and right label."""
    for name, lines in files.items():
        Path(f"{name}.csv").write_text("name,label,checked\n" + "".join(f"{','.join(line)}\n" for line in lines))


def test_several_lists_may_say_the_same_and_each_label_counts_once(noisy):
    was, right = noisy[3], Y_TRAIN[3]
    lists(
        one=[("i3", was, right), ("i0", noisy[0], noisy[0])],
        same=[("i3", was, right), ("i1", noisy[1], noisy[1])],
        later=[("i3", right, right), ("i2", noisy[2], "")],
    )
    for names in (("one", "one"), ("one", "later"), ("later", "one")):
        files = [part for name in names for part in ("--checked", f"{name}.csv")]
        told = summary_of(*COMMAND, *files, "--out", "-".join(names))["audit_result"]
        assert (told["corrected"], told["confirmed"]) == (1, 1), names
    files = ("--checked", "one.csv", "--checked", "same.csv", "--checked", "later.csv")
    told = summary_of(*COMMAND, *files, "--out", "all")["audit_result"]
    assert (told["corrected"], told["confirmed"]) == (1, 2)
    assert "No difference" in run("verify", "all", "noisy.csv", "test.npz", "--points", "2", *files).stdout


def test_lists_that_contradict_each_other_are_both_named(noisy):
    was, right = noisy[3], Y_TRAIN[3]
    third = next(label for label in SPACE if label not in (was, right))
    lists(
        one=[("i3", was, right)],
        other=[("i3", was, third)],
        later=[("i3", right, third)],
        kept=[("i3", was, was)],
        foreign=[("i3", third, "")],
    )
    for name, label in (("other", third), ("later", third), ("kept", was)):
        for first, second in (("one", name), (name, "one")):
            said = refused(*COMMAND, "--checked", f"{first}.csv", "--checked", f"{second}.csv", "--quiet")
            assert "says that the label of 'i3' should be" in said.replace("\n", " ")
            for part in ("one.csv", f"{name}.csv", repr(str(right)), repr(str(label))):
                assert part in said
    said = refused(*COMMAND, "--checked", "one.csv", "--checked", "foreign.csv", "--quiet")
    assert f"foreign.csv says that the label of 'i3' is '{third}', but in noisy.csv it is '{was}'" in said


def test_an_audit_that_was_changed_by_hand_is_found_out(noisy):
    assert run(*COMMAND, "--out", "run", "--quiet").exit_code == 0
    verify = ("verify", "run", "noisy.csv", "test.npz", "--points", "2", "--quiet")
    said = " ".join(run(*verify).stdout.split())
    assert "No difference" in said
    assert "What is proven after checks (planned, by the list, held out, at random), and which labels look" in said
    summary = Path("run/summary.json").read_text()
    for name, value in (("planned", 1.0), ("suspects", 0), ("random", 0.0)):
        told = json.loads(summary)
        told["audit_result"][name] = value
        Path("run/summary.json").write_text(json.dumps(told))
        shown = run(*verify)
        assert shown.exit_code == 1, name
        assert "labels to check" in shown.stdout
    Path("run/summary.json").write_text(summary)
    plan = flipcert.AuditPlan.load("run/audit-plan.npz")
    replace(plan, indices=plan.indices[::-1].copy()).save("run/audit-plan.npz")
    shown = run(*verify)
    assert shown.exit_code == 1
    assert "audit-plan.npz" in shown.stdout
    replace(plan, certified=np.ones_like(plan.certified)).save("run/audit-plan.npz")
    assert "1.0 before any check" in run(*verify).stdout
    Path("run/audit-plan.npz").write_bytes(b"nothing")
    assert "complete run: what it tells of labels to check is missing, or not what was written" in refused(*verify)

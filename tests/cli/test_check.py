"""Random checks from the shell: drawn, filled in, looked at in stages, and what they prove about predictions."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import flipcert
from tests.helpers.command_line import NAMES, X_TEST, X_TRAIN, Y_TEST, Y_TRAIN, refused, run, write_irises

RIDGE = ("--model", "ridge", "--kernel", "linear", "--reg", "1", "--scale", "none")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_irises()


def told(*arguments):
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split())


def read(name):
    return pd.read_csv(name, dtype=str, keep_default_na=False)


def fill(name, out, first=None, wrong=None):
    """Fill in all lines, or the first ones of the draw; some labels turn out wrong."""
    frame = read(name)
    for i in frame.index:
        if first is None or int(frame.loc[i, "draw"]) <= first:
            frame.loc[i, "checked"] = (wrong or {}).get(int(frame.loc[i, "draw"]), frame.loc[i, "label"])
    frame.to_csv(out, index=False)
    return frame


def drawn(n=20, *options, train="train.csv"):
    told("check", train, "--labels", n, "--seed", 3, "--out", "to-check.csv", *options)
    return read("to-check.csv")


def test_a_draw_is_random_and_the_same_for_the_same_seed():
    frame = drawn(20)
    assert list(frame.columns) == ["row", "label", "checked", "draw", "of", "batch", "seed"]
    rows = frame["row"].astype(int)
    assert rows.nunique() == 20
    assert frame["label"].tolist() == Y_TRAIN[rows].tolist()
    assert set(frame["checked"]) == {""}
    assert drawn(30)["row"].tolist()[:20] == frame["row"].tolist()
    # Another format, other labels: the draw knows rows and the seed alone.
    np.savez("other.npz", X=X_TRAIN, y=np.roll(Y_TRAIN, 1))
    assert drawn(20, train="other.npz")["row"].tolist() == frame["row"].tolist()
    seeds = set()
    for _ in range(2):
        Path("to-check.csv").unlink()
        said = told("check", "train.csv", "--labels", 20, "--out", "to-check.csv")
        seeds |= set(read("to-check.csv")["seed"])
        assert f"with seed {read('to-check.csv')['seed'][0]}." in said
    assert len(seeds) == 2


def test_every_label_is_as_likely_to_be_drawn_as_any_other():
    from flipcert.audit.record import draw_order

    first = np.array([draw_order(12, seed)[:3] for seed in range(4000)])
    counts = np.bincount(first.ravel(), minlength=12)
    # 1,000 each on average, with a standard deviation of 27.
    assert abs(counts - 1000).max() < 120
    assert sorted(draw_order(12, 7).tolist()) == list(range(12))
    # A check that was drawn can be gone on with for ever: the order is part of the format.
    assert draw_order(10, 0).tolist() == FIRST_TEN


FIRST_TEN = [3, 2, 1, 8, 6, 0, 7, 4, 5, 9]


def test_what_a_check_proves_about_labels():
    drawn(40)
    fill("to-check.csv", "checked.csv")
    bound = flipcert.wrong_labels_at_most(75, 40, 0)
    said = told("check", "train.csv", "--checked", "checked.csv")
    assert said == (
        "40 of the 75 labels were checked, drawn at random with seed 3; none of them was wrong. "
        f"With confidence 95 %, at most {bound} wrong labels remain among the 35 that were not checked. "
        "This bound is for a check that ends here, whatever it says; if you may go on, use --peeked now."
    )
    about = json.loads(run("check", "train.csv", "--checked", "checked.csv", "--json", "--confidence", 0.8).stdout)
    assert about["wrong_at_most"] == about["remaining_at_most"] == flipcert.wrong_labels_at_most(75, 40, 0, 0.8)
    frame = fill("to-check.csv", "checked.csv", wrong={7: "virginica", 9: "virginica"})
    wrong = int((frame["checked"] != frame["label"]).sum())
    assert wrong
    # Nothing is corrected yet.
    assert "to be corrected" in told("check", "train.csv", "--checked", "checked.csv")
    about = json.loads(run("check", "train.csv", "--checked", "checked.csv", "--json").stdout)
    assert (about["n_wrong"], about["peeked"]) == (wrong, False)
    assert about["wrong_at_most"] == flipcert.wrong_labels_at_most(75, 40, wrong)
    assert about["remaining_at_most"] == about["wrong_at_most"] - wrong


def test_the_hint_after_a_draw_keeps_what_was_asked_and_says_no_more_than_is_true():
    said = told("check", "train.csv", "--labels", 5, "--out", "a.csv", "--confidence", 0.99, "--peeked")
    assert "Then: flipcert check train.csv --checked a.csv --confidence 0.99 --peeked Should no label" in said
    assert "Then: flipcert check train.csv --checked b.csv Should no" in told(
        "check", "train.csv", "--labels", 5, "--out", "b.csv"
    )
    said = told("check", "train.csv", "--labels", 75, "--out", "c.csv")
    assert "These are all there are: once they are checked, no wrong label remains." in said
    assert "confidence" not in said


def test_the_order_of_lines_does_not_matter():
    drawn(40)
    fill("to-check.csv", "checked.csv", first=12)
    before = told("check", "train.csv", "--checked", "checked.csv")
    read("checked.csv").sort_values("label").to_csv("checked.csv", index=False)
    assert told("check", "train.csv", "--checked", "checked.csv") == before
    read("checked.csv").to_parquet("checked.parquet")
    assert told("check", "train.csv", "--checked", "checked.parquet") == before


def test_a_check_that_is_not_complete_has_the_bound_for_every_stage():
    drawn(40)
    fill("to-check.csv", "checked.csv", first=30)
    about = json.loads(run("check", "train.csv", "--checked", "checked.csv", "--json").stdout)
    assert (about["n_drawn"], about["n_checked"], about["peeked"]) == (40, 30, True)
    assert about["wrong_at_most"] == flipcert.wrong_labels_at_most(75, 30, 0, peeking=True)
    said = told("check", "train.csv", "--checked", "checked.csv")
    assert "every stage of a check at once, as 10 of the 40 that were drawn are not filled in." in said
    # Lines that are left out at the end are labels that nobody has looked at.
    fill("to-check.csv", "checked.csv").iloc[:30].to_csv("short.csv", index=False)
    assert json.loads(run("check", "train.csv", "--checked", "short.csv", "--json").stdout) == about
    about = json.loads(run("check", "train.csv", "--checked", "checked.csv", "--json", "--peeked").stdout)
    assert about["wrong_at_most"] == flipcert.wrong_labels_at_most(75, 40, 0, peeking=True)


def test_a_check_goes_on_where_it_stopped():
    first = drawn(20)
    fill("to-check.csv", "checked.csv", wrong={4: "virginica"})
    said = told("check", "train.csv", "--checked", "checked.csv", "--labels", 15, "--out", "more.csv")
    assert "Drew 15 more labels at random from the 75 of train.csv, with seed 3." in said
    assert "Bounds are now those that hold at every stage; one that was told without --peeked counts no more" in said
    more = read("more.csv")
    assert more["row"].tolist()[:20] == first["row"].tolist()
    assert more["row"].tolist() == drawn(35)["row"].tolist()
    assert more["checked"].tolist()[:20] == read("checked.csv")["checked"].tolist()
    assert set(more["checked"][20:]) == {""}
    assert more["batch"].tolist() == ["1"] * 20 + ["2"] * 15
    for i in range(20, 35):
        more.loc[i, "checked"] = more.loc[i, "label"]
    more.to_csv("all.csv", index=False)
    about = json.loads(run("check", "train.csv", "--checked", "all.csv", "--json").stdout)
    assert (about["n_checked"], about["n_batches"], about["peeked"]) == (35, 2, True)
    assert about["wrong_at_most"] == flipcert.wrong_labels_at_most(75, 35, about["n_wrong"], peeking=True)
    assert "in 2 goes" in told("check", "train.csv", "--checked", "all.csv")
    assert "nobody has looked at" in refused(
        "check", "train.csv", "--checked", "more.csv", "--labels", 5, "--out", "third.csv"
    )


def corrected_by(name):
    """Labels and trust as a check leaves them, by hand."""
    y, trusted = Y_TRAIN.copy(), np.zeros(Y_TRAIN.size, bool)
    for line in read(name).to_dict("records"):
        y[int(line["row"])], trusted[int(line["row"])] = line["checked"], True
    return y, trusted


def test_predictions_that_right_labels_would_have_given():
    drawn(60)
    fill("to-check.csv", "checked.csv", wrong={2: "setosa", 5: "virginica", 9: "setosa"})
    result = run(
        "check", "train.csv", "test.csv", "--checked", "checked.csv", *RIDGE, "--json", "--quiet", "--out", "run"
    )
    about = json.loads(result.stdout)
    y, trusted = corrected_by("checked.csv")
    model = flipcert.KernelRidge(flipcert.kernels.Linear(), reg=1.0).fit(X_TRAIN, y, trusted=trusted)
    radius = model.certify(X_TEST).radius
    remaining = about["check"]["remaining_at_most"]
    proven = int((radius >= remaining).sum())
    assert 0 < proven < radius.size
    assert about["same_as_with_right_labels"] == {"predictions": proven, "share": proven / radius.size}
    assert pd.read_parquet("run/certificates.parquet")["radius"].tolist() == radius.tolist()
    sentence = f"With confidence 95 %, {proven} of the 75 predictions"
    said = told("check", "train.csv", "test.csv", "--checked", "checked.csv", *RIDGE, "--quiet", "--out", "run")
    assert sentence in said
    assert (
        f"any {remaining} flips of labels that were not checked, and at that confidence at most {remaining} of" in said
    )
    page = Path("run/report.html").read_text()
    assert "What the check of labels proves" in page
    assert f"{proven} of the 75 predictions" in page
    told("report", "run", "--out", "again.html")
    assert Path("again.html").read_text() == page


def test_a_run_after_a_check_gets_a_second_opinion():
    drawn(30)
    fill("to-check.csv", "checked.csv", first=25, wrong={2: "setosa", 5: "virginica"})
    told("check", "train.csv", "test.csv", "--checked", "checked.csv", *RIDGE, "--quiet", "--out", "run")
    verify = ("verify", "run", "train.csv", "test.csv", "--points", 8, "--quiet")
    assert "No difference" in told(*verify, "--checked", "checked.csv")
    assert "was made with a check of labels; name --checked" in refused(*verify)
    fill("to-check.csv", "other.csv")
    assert "its digest is another" in refused(*verify, "--checked", "other.csv")
    told("certify", "train.csv", "test.csv", *RIDGE, "--quiet", "--out", "plain")
    assert "leave --checked out" in refused("verify", "plain", "train.csv", "test.csv", "--checked", "checked.csv")
    # Another file is another run.
    assert "holds another run" in refused(
        "check", "train.csv", "test.csv", "--checked", "other.csv", *RIDGE, "--quiet", "--out", "run"
    )


@pytest.mark.parametrize(("name", "value"), [("wrong_at_most", 1), ("remaining_at_most", 0), ("n_wrong", 5)])
def test_a_run_that_says_something_else_about_its_check_is_found_out(name, value):
    drawn(30)
    fill("to-check.csv", "checked.csv")
    told("check", "train.csv", "test.csv", "--checked", "checked.csv", *RIDGE, "--quiet", "--out", "run")
    for file in ("summary.json", "run.json"):
        about = json.loads(Path("run", file).read_text())
        about["check"][name] = value
        Path("run", file).write_text(json.dumps(about))
    result = run("verify", "run", "train.csv", "test.csv", "--checked", "checked.csv", "--points", 2, "--quiet")
    assert result.exit_code == 1, result.output
    assert "random check" in result.stdout


def test_trusted_labels_are_not_drawn_and_taken_to_be_right():
    frame = pd.read_csv("train.csv").assign(mine=np.arange(75) % 3 == 0)
    frame.to_csv("train.csv", index=False)
    rows = drawn(20, "--trusted", "mine")["row"].astype(int)
    assert not (rows % 3 == 0).any()
    fill("to-check.csv", "checked.csv")
    said = told("check", "train.csv", "--checked", "checked.csv", "--trusted", "mine")
    assert "20 of the 50 labels that were not trusted were checked" in said
    assert "Taken to be right, and not drawn: 25 labels trusted before." in said
    assert "among the 30 that were neither checked nor trusted before" in said
    assert "which it is not with seed 3" in refused("check", "train.csv", "--checked", "checked.csv", "--drop", "mine")
    said = told(
        "check",
        "train.csv",
        "test.csv",
        "--checked",
        "checked.csv",
        "--trusted",
        "mine",
        *RIDGE,
        "--quiet",
        "--out",
        "run",
    )
    assert "labels that were neither checked nor trusted before" in said
    assert "25 labels that were trusted before are taken to be right" in Path("run/report.html").read_text()
    assert "at most 50: train.csv has 50 labels that are not trusted; got 60" in refused(
        "check", "train.csv", "--trusted", "mine", "--labels", 60, "--out", "b.csv"
    )


def test_rows_may_be_called_by_ids():
    ids = [f"iris-{i:03}" for i in range(75)]
    pd.read_csv("train.csv").assign(key=ids).to_csv("train.csv", index=False)
    frame = drawn(20, "--id", "key")
    assert frame.columns[0] == "key"
    assert set(frame["key"]) <= set(ids)
    fill("to-check.csv", "checked.csv")
    arguments = ("train.csv", "test.csv", "--checked", "checked.csv", "--id", "key", *RIDGE, "--quiet")
    said = told("check", *arguments, "--out", "run")
    assert "20 of the 75 labels" in said
    assert "No difference" in told(
        "verify", "run", "train.csv", "test.csv", "--checked", "checked.csv", "--points", 2, "--quiet"
    )


def test_all_labels_checked_leave_no_doubt():
    drawn(75)
    fill("to-check.csv", "checked.csv", wrong={4: "virginica"})
    said = told(
        "check", "train.csv", "test-unlabelled.csv", "--checked", "checked.csv", *RIDGE, "--quiet", "--out", "run"
    )
    assert "All 75 labels were checked;" in said
    assert "So no wrong label remains." in said
    assert "All 75 predictions are those that entirely right labels would have given. Every label was checked." in said
    assert "confidence" not in said.partition("All 75 labels")[2]
    assert "All 75 predictions" in Path("run/report.html").read_text()


def test_a_draw_is_not_replaced_by_another_one():
    drawn(20)
    before = Path("to-check.csv").read_bytes()
    command = ("check", "train.csv", "--labels", 20, "--out", "to-check.csv")
    assert "holds another draw (seed 3) that is not filled in yet, and to draw again is no random check" in refused(
        *command
    )
    assert "holds another draw" in refused(*command, "--seed", 4)
    pd.read_csv("train.csv").assign(mine=np.arange(75) % 3 == 0).to_csv("trusted.csv", index=False)
    assert "holds another draw" in refused("check", "trusted.csv", *command[2:], "--seed", 3, "--trusted", "mine")
    assert Path("to-check.csv").read_bytes() == before
    # The same draw again, or more of it, loses nothing.
    drawn(20)
    assert Path("to-check.csv").read_bytes() == before
    assert drawn(30)["row"].tolist()[:20] == drawn(20)["row"].tolist()


def test_nothing_that_was_filled_in_is_lost():
    drawn(20)
    fill("to-check.csv", "to-check.csv", first=1)
    before = Path("to-check.csv").read_bytes()
    assert "has been filled in (1 of 20 lines)" in refused(
        "check", "train.csv", "--labels", 20, "--out", "to-check.csv"
    )
    fill("to-check.csv", "checked.csv")
    assert "has been filled in" in refused(
        "check", "train.csv", "--checked", "checked.csv", "--labels", 5, "--out", "checked.csv"
    )
    assert "no file of labels to check" in refused("check", "train.csv", "--labels", 5, "--out", "test.csv")
    assert Path("to-check.csv").read_bytes() == before


def damaged(change):
    drawn(20)
    frame = fill("to-check.csv", "checked.csv")
    change(frame).to_csv("checked.csv", index=False)
    return refused("check", "train.csv", "--checked", "checked.csv")


def cell(frame, i, name, value):
    frame = frame.copy()
    frame.loc[i, name] = value
    return frame


def with_another(frame):
    """A label more that was not drawn."""
    row = next(i for i in range(75) if str(i) not in set(frame["row"]))
    line = {"row": str(row), "label": Y_TRAIN[row], "checked": Y_TRAIN[row], "draw": "21", "of": "20"}
    return pd.concat([frame, pd.DataFrame([line | {"batch": "1", "seed": "3"}])])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: cell(f, 4, "checked", ""), "number 5 of the draw, but one for number 20"),
        (lambda f: f.assign(checked=""), "has an empty column 'checked'"),
        (lambda f: f.drop(index=6), "number 7 of the draw, but one for number 20"),
        (lambda f: pd.concat([f, f.iloc[[2]]]), "more than once; leave one line for each label"),
        (with_another, "a check holds the labels that were drawn, and no others"),
        (lambda f: cell(f, 4, "checked", "rose"), "should be 'rose', which is no label of train.csv"),
        (
            lambda f: cell(cell(f, 4, "checked", "rose"), 6, "checked", "red rose"),
            "name all labels with --classes 'setosa,versicolor,virginica,rose,red rose'.",
        ),
        (lambda f: cell(f, 4, "label", "rose"), "is 'rose', but in train.csv it is"),
        (lambda f: cell(f, 4, "row", "900"), "but train.csv has rows 0 to 74"),
        (
            lambda f: f.assign(row=f["row"].tolist()[::-1], label=f["label"].tolist()[::-1]),
            "which it is not with seed 3",
        ),
        (lambda f: cell(f, 4, "seed", "4"), "has both 3 and 4 in column 'seed'"),
        (lambda f: cell(f, 4, "seed", "three"), "Column 'seed' of checked.csv must hold the numbers"),
        (lambda f: f.assign(seed="8"), "which it is not with seed 8"),
        (lambda f: cell(f, 4, "draw", "0"), "as number 0 of 20 that were drawn"),
        (lambda f: cell(f, 4, "of", "19"), "has both 20 and 19 in column 'of'"),
        (lambda f: f.assign(of=str(2**60)), "labels were drawn, of the 75 that train.csv has"),
        (lambda f: f.assign(of="15"), "as number 16 of 15 that were drawn"),
        (lambda f: f.drop(columns="draw"), "has no column 'draw'"),
    ],
)
def test_files_that_are_not_what_was_drawn_get_one_sentence(change, said):
    assert said in damaged(change)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "--labels says how many labels to draw, and --checked names"),
        (("--labels", 5), "--labels needs --out"),
        (("--labels", 500, "--out", "a.csv"), "--labels must be at most 75: train.csv has 75 labels; got 500"),
        (("test.csv", "--labels", 5, "--out", "a.csv"), "is for later: when they are filled in"),
        (("--labels", 5, "--out", "a.csv", "--model", "ridge"), "--model is for predictions; give test points"),
        (("--labels", 5, "--out", "a.csv", "--partitions", 3), "--partitions is for predictions"),
        (("--labels", 5, "--out", "a.csv", "--confidence", 1), "--confidence must be a number between 0 and 1"),
        (("--labels", 5, "--out", "a.xlsx"), "must end in .csv"),
        (("--checked", "checked.csv", "--out", "a.csv"), "is for draws (--labels) and for runs (TEST)"),
        (("--checked", "checked.csv", "--seed", 5), "--seed 5 is not the seed of checked.csv, which is 3"),
        (("--checked", "none.csv"), "none.csv does not exist"),
        (
            ("test.csv", "--checked", "checked.csv", "--threat", "deletions"),
            "--threat must be flips, as a check counts wrong labels",
        ),
        (("test.csv", "--checked", "checked.csv", "--annotations", "x.csv"), "a check looks at one label a row"),
        (
            ("test.csv", "--checked", "checked.csv", "--model", "smoothed", "--method", "published"),
            "published proves nothing",
        ),
    ],
)
def test_what_does_not_go_together_gets_one_sentence(arguments, said):
    drawn(20)
    fill("to-check.csv", "checked.csv")
    assert said in refused("check", "train.csv", *arguments)
    assert not Path("a.csv").exists()


def test_a_class_that_corrections_take_away_must_be_named():
    y = np.where(np.arange(75) == 40, "rose", Y_TRAIN)
    np.savez("train.npz", X=X_TRAIN, y=y)
    frame = drawn(75, train="train.npz")
    place = int(frame.loc[frame["row"] == "40", "draw"].iloc[0])
    fill("to-check.csv", "checked.csv", wrong={place: "setosa"})
    arguments = ("check", "train.npz", "test.npz", "--checked", "checked.csv", *RIDGE, "--quiet")
    assert "leave no label 'rose' in train.npz; name the label space with --classes" in refused(*arguments)
    assert "All 75 labels were checked" in told(*arguments, "--classes", ",".join([*NAMES, "rose"]))


@pytest.mark.parametrize("kind", ["random", "one pair of classes", "most harmful"])
def test_no_prediction_that_is_called_proven_differs_from_that_of_right_labels(kind):
    """Wrong labels are planted, found by chance, corrected; where the bound holds, what is proven is true."""
    rng = np.random.default_rng(5)
    classes = np.unique(Y_TRAIN)
    model = flipcert.KernelRidge(flipcert.kernels.RBF(gamma=0.5), reg=1.0)
    right = model.fit(X_TRAIN, Y_TRAIN).predict(X_TEST)
    harmful = np.concatenate([own.indices for own in model.worst_flips(X_TEST) if own is not None])
    n, proven, missed = Y_TRAIN.size, 0, 0
    for trial in range(60):
        n_wrong = int(rng.integers(1, 6))
        y = Y_TRAIN.copy()
        if kind == "random":
            rows = rng.choice(n, n_wrong, replace=False)
            y[rows] = [rng.choice(classes[classes != label]) for label in y[rows]]
        elif kind == "one pair of classes":
            rows = rng.choice(np.flatnonzero(y == "versicolor"), n_wrong, replace=False)
            y[rows] = "virginica"
        else:
            rows = np.unique(harmful[rng.integers(harmful.size, size=n_wrong)])
            y[rows] = np.where(y[rows] == "virginica", "versicolor", "virginica")
        m, peeking = int(rng.integers(20, 70)), bool(trial % 2)
        checked = rng.permutation(n)[:m]
        found = int(np.sum(y[checked] != Y_TRAIN[checked]))
        at_most = flipcert.wrong_labels_at_most(n, m, found, 0.8, peeking=peeking)
        y[checked] = Y_TRAIN[checked]
        trusted = np.zeros(n, bool)
        trusted[checked] = True
        certificates = model.fit(X_TRAIN, y, trusted=trusted).certify(X_TEST)
        safe = certificates.radius >= at_most - found
        if found + np.sum(y != Y_TRAIN) > at_most:
            missed += 1
            continue
        proven += int(safe.sum())
        assert (certificates.prediction[safe] == right[safe]).all()
    # At confidence 0.8, 12 of 60 may miss on average; 22 are beyond three standard deviations.
    assert missed <= 22
    assert proven > 500
    assert (right == Y_TEST).mean() > 0.9

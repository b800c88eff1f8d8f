"""Other threats than flips from the shell: what is typed, what is said, what is kept, what is refused."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet

import flipcert
from flipcert.runs.folder import RunFolder
from tests.helpers.command_line import NAMES, X_TEST, X_TRAIN, Y_TEST, Y_TRAIN, refused, run, summary_of
from tests.helpers.pages import Page

WHO = np.array([f"annotator {i}" for i in np.random.default_rng(0).integers(0, 12, 75)])
RIDGE = ("--model", "ridge", "--kernel", "rbf", "--reg", "0.5")
SOURCES = ("--source", "who", "--threat", "sources")


def ridge():
    return flipcert.KernelRidge(flipcert.kernels.RBF(), reg=0.5)


@pytest.fixture
def crowd(data, monkeypatch):
    """Training data with a column of annotators, and the same with three labels a row in a second table."""
    monkeypatch.setenv("COLUMNS", "120")
    frame = pd.DataFrame(X_TRAIN, columns=["a", "b", "c", "d"])
    frame.assign(label=Y_TRAIN, who=WHO).to_csv("crowd.csv", index=False)
    frame.assign(key=np.arange(75) * 2).to_csv("rows.csv", index=False)
    rng = np.random.default_rng(1)
    rows = rng.permutation(np.repeat(np.arange(75), 3))
    labels = np.where(rng.random(225) < 0.8, Y_TRAIN[rows], NAMES[rng.integers(0, 3, 225)])
    givers = rng.integers(0, 15, 225)
    pd.DataFrame({"key": rows * 2, "label": labels, "annotator": givers}).to_csv("labels.csv", index=False)
    return flipcert.Annotations(rows, labels, givers.astype(str))


def table(folder):
    return parquet.read_table(f"{folder}/certificates.parquet").to_pandas()


def test_sources_from_a_column(crowd):
    summary = summary_of("certify", "crowd.csv", "test.csv", *RIDGE, *SOURCES, "--out", "run")
    model = ridge().fit(X_TRAIN, Y_TRAIN, source=WHO)
    expected, in_flips = model.certify(X_TEST, threat="sources"), model.certify(X_TEST)
    assert table("run")["radius"].tolist() == expected.radius.tolist()
    assert table("run")["radius_in_flips"].tolist() == in_flips.radius.tolist()
    metrics = summary["metrics"]
    assert (summary["threat"], metrics["threat"], metrics["sources"]) == ("sources", "sources", 12)
    assert metrics["median_radius"] == expected.median_certified_robustness(Y_TEST)
    assert metrics["median_radius_in_flips"] == in_flips.median_certified_robustness(Y_TEST)
    stored = json.loads(Path("run/summary.json").read_text())
    assert (stored["threat"], stored["n_sources"]) == ("sources", 12)
    ids, labels, points = model.source_powers(X_TEST)
    powers = {own["source"]: (own["labels"], own["points_changed_alone"]) for own in stored["strongest_sources"]}
    known = dict(zip(ids.tolist(), zip(labels.tolist(), points.tolist(), strict=True), strict=True))
    assert all(known[source] == own for source, own in powers.items())
    counts = [own["points_changed_alone"] for own in stored["strongest_sources"]]
    assert counts == sorted(points.tolist(), reverse=True)[:10]


def test_what_is_said_and_shown_again(crowd):
    first = run("certify", "crowd.csv", "test.csv", *RIDGE, *SOURCES, "--out", "run", "--quiet")
    assert first.exit_code == 0, first.output
    said = " ".join(first.stdout.split())
    assert "sources of labels 12 radii count corrupt sources" in said
    assert "median radius in flips" in said
    assert "certified accuracy at 1 corrupt source " in said
    assert "of the 12 sources" in said
    assert run("certify", "crowd.csv", "test.csv", *RIDGE, *SOURCES, "--out", "run", "--quiet").stdout == first.stdout
    text = Page(Path("run/report.html").read_text()).text
    assert "Accounts are not people" in text
    assert "Label by label, it withstands " in text
    assert run("report", "run", "--out", "again.html").exit_code == 0
    assert Path("again.html").read_text() == Path("run/report.html").read_text()


def test_a_run_in_sources_is_no_run_in_flips(crowd):
    assert run("certify", "crowd.csv", "test.csv", *RIDGE, *SOURCES, "--out", "run", "--quiet").exit_code == 0
    said = refused("certify", "crowd.csv", "test.csv", *RIDGE, "--source", "who", "--out", "run", "--quiet")
    assert 'holds another run (threat was "sources", is "flips")' in said
    in_flips = ("certify", "crowd.csv", "test.csv", *RIDGE, "--source", "who", "--out", "flips", "--quiet")
    assert run(*in_flips).exit_code == 0
    assert table("flips")["radius"].tolist() == table("run")["radius_in_flips"].tolist()
    assert run("report", "run", "flips", "--out", "both.html").exit_code == 0
    text = Page(Path("both.html").read_text()).text
    assert "These 2 results answer 2 different questions" in text
    assert "their radii do not count the same: corrupt sources or flipped labels" in text


def test_attacks_by_sources(crowd):
    asked = ("attack", "crowd.csv", "test.csv", *RIDGE, *SOURCES, "--row", 40, "--quiet")
    model = ridge().fit(X_TRAIN, Y_TRAIN, source=WHO)
    (witness,) = model.worst_flips(X_TEST[[40]], threat="sources")
    told = json.loads(run(*asked, "--format", "json").stdout)
    assert (told["threat"], told["size"], told["limit"]) == ("sources", len(witness), 12)
    assert {line["source"] for line in told["changes"]} == set(witness.sources.tolist())
    assert {line["training_row"] for line in told["changes"]} == set(witness.indices.tolist())
    lines = list(csv.DictReader(io.StringIO(run(*asked, "--format", "csv").stdout)))
    assert len(lines) == witness.indices.size
    assert all(WHO[int(line["training_row"])] == line["source"] for line in lines)
    said = " ".join(run(*asked).stdout.split())
    assert "Row 40 is predicted as versicolor (right); " in said
    assert ", of the 12 sources." in said
    assert f"{witness.sources[0]} changes" in said
    assert "the smallest attack." in said


def test_a_sweep_in_sources(crowd):
    result = run("sweep", "crowd.csv", "test.csv", "--model", "ridge", "--reg", "0.5,5", "-n", "1", *SOURCES, "--quiet")
    assert result.exit_code == 0, result.output
    said = " ".join(result.stdout.split())
    assert "Radius: corrupt sources that correct predictions are proven to withstand." in said
    assert "when one in a hundred of the sources, and at least one, is corrupt." in said
    assert "An attacker can control any of the 12 sources." in said


@pytest.mark.parametrize("threat", ["deletions", "insertions", "replacements", "edits"])
def test_rows_that_come_and_go(crowd, threat):
    rbf = ("--kernel", "rbf", "--gamma", "0.5", "--drop", "who", "--threat", threat)
    summary = summary_of("certify", "crowd.csv", "test.csv", *rbf, "--out", "run")
    model = flipcert.KernelSVM(flipcert.kernels.RBF(0.5)).fit(X_TRAIN, Y_TRAIN)
    expected = model.certify(X_TEST, threat=threat)
    assert table("run")["radius"].tolist() == expected.radius.tolist()
    assert summary["metrics"]["threat"] == threat
    first = Path("run/report.html").read_text()
    assert run("report", "run", "--out", "again.html").exit_code == 0
    assert Path("again.html").read_text() == first
    told = json.loads(run("attack", "crowd.csv", "test.csv", *rbf, "--row", 40, "--json", "--quiet").stdout)
    (witness,) = model.worst_flips(X_TEST[[40]], threat=threat)
    assert (told["size"], len(told["changes"])) == (len(witness), len(witness))
    said = " ".join(run("attack", "crowd.csv", "test.csv", *rbf, "--row", 40, "--quiet").stdout.split())
    assert "turn it into" in said or "turns it into" in said
    assert "flip" not in said
    assert ("Inputs of new rows, in numbers: --format csv." in said) == (len(witness.inserted) > 0)
    if threat == "insertions":
        count, label = len(witness), witness.inserted_labels[0]
        assert f"{count} rows added all with the same input, labelled {label}" in said
    lines = csv.DictReader(
        io.StringIO(run("attack", "crowd.csv", "test.csv", *rbf, "--row", 40, "--format", "csv", "--quiet").stdout)
    )
    inputs = [json.loads(line["inserted"]) for line in lines if line["inserted"]]
    assert inputs == witness.inserted.tolist()


def test_the_largest_norm_of_added_rows(crowd):
    asked = ("certify", "crowd.csv", "test.csv", "--drop", "who", "--kernel", "linear", "--threat", "insertions")
    summary_of(*asked, "--max-norm", "20", "--out", "run")
    model = flipcert.KernelSVM("linear", max_norm=20.0).fit(X_TRAIN, Y_TRAIN)
    assert table("run")["radius"].tolist() == model.certify(X_TEST, threat="insertions").radius.tolist()


def test_an_ensemble_by_source(crowd):
    summary_of("certify", "crowd.csv", "test.csv", *RIDGE, *SOURCES, "-n", 4, "--partition", "source", "--out", "run")
    model = flipcert.PartitionEnsemble(ridge(), 4, partition="source").fit(X_TRAIN, Y_TRAIN, source=WHO)
    expected = model.certify(X_TEST, threat="sources")
    assert table("run")["radius"].tolist() == expected.radius.tolist()
    assert table("run")["blackbox_radius"].tolist() == expected.blackbox_radius.tolist()
    sweep = ("sweep", "crowd.csv", "test.csv", *RIDGE[:4], "-n", "1,3,5", *SOURCES, "--partition", "source", "--quiet")
    result = run(*sweep, "--out", "sweep")
    assert result.exit_code == 0, result.output
    assert "flips that at least half" not in Path("sweep/report.html").read_text()
    assert "corrupt sources that at least half withstand" in Path("sweep/report.html").read_text()


def test_several_labels_a_row(crowd):
    join = ("--annotations", "labels.csv", "--id", "key")
    for threat in ("flips", "sources"):
        for cap in (None, 10):
            out = f"{threat}-{cap}"
            more = () if cap is None else ("--cap", cap)
            summary_of("certify", "rows.csv", "test.csv", *RIDGE, *join, *more, "--threat", threat, "--out", out)
            given = crowd
            if cap is not None:
                given = flipcert.Annotations.capped(crowd.row, crowd.label, crowd.source, cap)
            expected = ridge().fit(X_TRAIN, given).certify(X_TEST, threat=threat)
            assert table(out)["radius"].tolist() == expected.radius.tolist()
            result = run("verify", out, "rows.csv", "test.csv", "--annotations", "labels.csv", "--quiet")
            assert result.exit_code == 0, result.output
    assert "was made with labels from --annotations; name it." in refused(
        "verify", "flips-None", "rows.csv", "test.csv"
    )
    said = refused("verify", "flips-None", "rows.csv", "test.csv", "--annotations", "crowd.csv")
    assert "crowd.csv does not hold the annotation data of flips-None" in said
    attack = run("attack", "rows.csv", "test.csv", *RIDGE, *join, "--row", 40, "--format", "json", "--quiet")
    rows = [line["training_row"] for line in json.loads(attack.stdout)["flips"]]
    (witness,) = ridge().fit(X_TRAIN, crowd).worst_flips(X_TEST[[40]])
    assert rows == crowd.row[witness.indices].tolist()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--threat", "sources"), "--threat sources needs --source, the column that says who gave each label."),
        (("--threat", "lies"), "--threat must be one of flips, sources, deletions, insertions, replacements, edits;"),
        (("--source", "him"), "crowd.csv has no column 'him'; it has 'a', 'b', 'c', 'd', 'label' and 1 more."),
        (("--cap", "9"), "--cap is for files of --annotations; leave it out."),
        (("--source", "who", "--threat", "deletions"), "--threat deletions is refused by KernelRidge: "),
        (("-n", "3", "--partition", "source"), "--partition-rule source needs --source, the column that says who gave"),
        (
            ("-n", "13", "--partition", "source", "--source", "who"),
            "--partitions 13 is more than the 12 different sources",
        ),
        (
            ("-n", "3", "--threat", "deletions", "--source", "who"),
            "--threat deletions is refused by PartitionEnsemble: ",
        ),
        (
            ("--source", "who", "--threat", "deletions", "--model", "svm", "--scale", "centre"),
            "--scale centre goes by all training rows, and --threat deletions changes these; use --scale unit",
        ),
        (
            ("--source", "who", "--threat", "insertions", "--model", "svm", "--scale", "standard"),
            "--scale standard goes by all training rows, and --threat insertions changes these; use --scale unit",
        ),
        (
            ("--source", "who", "--threat", "insertions", "--model", "svm"),
            "--threat insertions is refused by KernelSVM: with this kernel (NTK) a new row may weigh as much as it is "
            "long; bound the norm of inputs with --max-norm.",
        ),
        (("--source", "who", "--threat", "edits", "--model", "svm", "--max-norm", "1"), "--max-norm 1 is smaller than"),
        (("--source", "who", "--max-norm", "9"), "--max-norm does not apply to --model ridge"),
        (("--source", "who", "--annotations", "none.csv"), "none.csv does not exist"),
        (("--source", "label"), "--source label is the column of the labels of crowd.csv"),
    ],
    ids=lambda own: own if isinstance(own, str) else " ".join(own),
)
def test_one_sentence_for_what_is_wrong(crowd, options, said):
    drop = () if "who" in options else ("--drop", "who")
    assert said in refused("certify", "crowd.csv", "test.csv", "--model", "ridge", *options, *drop, "--quiet")


def test_models_that_take_one_label_a_row_say_so(crowd):
    join = ("--annotations", "labels.csv", "--id", "key")
    said = refused("certify", "rows.csv", "test.csv", *join, "--model", "smoothed")
    assert "Error: --annotations gives rows several labels, but SmoothedLinear is fitted to one label a row" in said


@pytest.mark.parametrize("column", ["label", "kind"])
def test_labels_of_one_control_of_label_studio(crowd, column):
    """The test file calls its labels like the control, or as if nothing was named."""

    def choice(control, what):
        return {"type": "choices", "from_name": control, "value": {"choices": [what]}}

    given = [
        [{"completed_by": own % 5, "result": [choice("kind", str(label)), choice("sure", "yes")]}]
        for own, label in enumerate(Y_TRAIN)
    ]
    tasks = [{"id": own, "data": {}, "annotations": annotations} for own, annotations in enumerate(given)]
    Path("tasks.json").write_text(json.dumps(tasks))
    expected = ridge().fit(X_TRAIN, Y_TRAIN).certify(X_TEST)
    pd.read_csv("test.csv").rename(columns={"label": column}).to_csv("named.csv", index=False)
    np.savez("named.npz", X=X_TEST, **{"y" if column == "label" else column: Y_TEST})
    asked = ("--annotations", "tasks.json", *RIDGE, "--quiet")
    assert "name one with --label" in refused("certify", "train.csv", "named.csv", *asked)
    for train, test in (("train.csv", "named.csv"), ("train.npz", "named.npz")):
        out = f"{test}-run"
        summary = summary_of("certify", train, test, *asked[:-1], "--label", "kind", "--out", out)
        assert table(out)["radius"].tolist() == expected.radius.tolist()
        assert summary["metrics"]["accuracy"] == float(np.mean(expected.prediction == Y_TEST))
        result = run("verify", out, train, test, "--annotations", "tasks.json", "--points", 3, "--quiet")
        assert result.exit_code == 0, result.output
        said = refused("verify", out, train, test, "--annotations", "nowhere.json")
        assert "nowhere.json does not exist; give the path of a file with annotations." in said


def test_trusted_columns_of_numbers_say_what_to_write(crowd):
    pd.read_csv("crowd.csv").assign(sure=np.arange(75) % 2).to_csv("crowd.csv", index=False)
    said = refused("certify", "crowd.csv", "test.csv", "--drop", "who", "--trusted", "sure", "--quiet")
    assert "type int64; write true instead of 1, and false instead of 0." in said


def test_annotations_without_sources(crowd):
    pd.read_csv("labels.csv").drop(columns="annotator").to_csv("nobody.csv", index=False)
    asked = ("certify", "rows.csv", "test.csv", "--annotations", "nobody.csv", "--id", "key", "--quiet")
    assert "--threat sources needs --source" in refused(*asked, "--threat", "sources")
    assert run(*asked).exit_code == 0


def test_a_run_that_was_stopped_goes_on(crowd, monkeypatch):
    asked = ("certify", "crowd.csv", "test.csv", *RIDGE, *SOURCES, "--quiet")
    assert run(*asked, "--out", "whole").exit_code == 0
    with monkeypatch.context() as stopped:
        stopped.setattr("flipcert.runs.job._attacks", lambda *_: 1 / 0)
        assert run(*asked, "--out", "part").exit_code == 70
    assert not Path("part/summary.json").exists()
    # As many blocks in sources as in flips: each answers its own question.
    kept = list(Path("part/blocks").glob("*.npz"))
    threats = sorted(flipcert.Certificates.load(_certificates_of(path)).threat for path in kept)
    assert set(threats) == {"flips", "sources"}
    assert threats.count("flips") == threats.count("sources")
    recalled = []
    before = RunFolder.recall
    monkeypatch.setattr(RunFolder, "recall", lambda self, name: recalled.append(before(self, name)) or recalled[-1])
    assert run(*asked, "--out", "part").exit_code == 0
    assert sorted(block.threat for block in recalled if block is not None) == threats
    for name in ("certificates.parquet", "attacks.parquet", "report.html"):
        assert Path("part", name).read_bytes() == Path("whole", name).read_bytes()


def _certificates_of(path):
    """A kept block without the question that it answers."""
    with np.load(path) as stored:
        np.savez("block.npz", **{name: stored[name] for name in stored.files if name != "question"})
    return "block.npz"


@pytest.mark.parametrize(
    ("changes", "test", "options", "told"),
    [
        ({}, "test.csv", ("--attacks", "0"), "of the 12 sources."),
        ({}, "test-unlabelled.csv", (), "of the 12 sources."),
        ({"who": "everybody"}, "test.csv", (), "can each be changed by a single corrupt source, of the one source."),
        ({"sure": True}, "test.csv", ("--trusted", "sure"), "No source can change a label: all 75 training labels are"),
    ],
    ids=["no attacks", "no labels", "one source", "all trusted"],
)
def test_sources_at_the_edge(crowd, changes, test, options, told):
    pd.read_csv("crowd.csv").assign(**changes).to_csv("crowd.csv", index=False)
    result = run("certify", "crowd.csv", test, *RIDGE, *SOURCES, *options, "--out", "run", "--quiet")
    assert result.exit_code == 0, result.output
    assert told in " ".join(result.stdout.split())
    assert run("report", "run", "--out", "page.html").exit_code == 0
    assert Path("page.html").read_text() == Path("run/report.html").read_text()
    verified = run("verify", "run", "crowd.csv", test, "--points", 5, "--quiet")
    assert verified.exit_code == 0, verified.output

"""Tables as people have them: ids, text, gaps. What is said about them at once, and that what is advised works."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import flipcert
from flipcert.runs.store import read_results
from tests.helpers.command_line import refused, run, summary_of
from tests.helpers.paths import ROOT

OPTIONS = (
    "--label", "target", "--id", "patient", "--drop", "number,visit", "--encode", "onehot", "--impute", "median"
)  # fmt: skip


def as_people_have_it(load):
    """A table with an id, a number for each row, dates, text, and gaps in numbers and in text."""
    bunch = load(as_frame=True)
    table, rng = bunch.frame.copy(), np.random.default_rng(0)
    n_rows = len(table)
    table["target"] = np.asarray(bunch.target_names)[table.target]
    table.insert(0, "patient", [f"P-{i:04d}" for i in rng.permutation(n_rows)])
    table.insert(1, "number", rng.permutation(n_rows) + 1000)
    table["visit"] = pd.date_range("2024-01-01", periods=n_rows).astype(str)
    table["region"] = rng.choice(["north", "south", "east"], n_rows)
    for column in table.columns[3:6]:
        table.loc[rng.choice(n_rows, 7, replace=False), column] = np.nan
    table.loc[rng.choice(n_rows, 4, replace=False), "region"] = None
    return train_test_split(table, test_size=0.3, random_state=0, stratify=table.target)


@pytest.fixture
def wine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    train, test = as_people_have_it(load_wine)
    train.to_csv("train.csv", index=False)
    test.to_csv("test.csv", index=False)
    return train, test


def patients(n_rows, seed):
    """A table as people have it."""
    rng = np.random.default_rng(seed)
    ill = rng.random(n_rows) < 0.4
    table = pd.DataFrame(
        {
            "patient": [f"P-{seed}{i:03d}" for i in rng.permutation(n_rows)],
            "number": rng.permutation(n_rows) + 1000 * seed,
            "age": np.round(50 + 10 * ill + 8 * rng.normal(size=n_rows)),
            "pressure": np.round(120 + 15 * ill + 9 * rng.normal(size=n_rows), 1),
            "iron": np.round(1.2 - 0.4 * ill + 0.2 * rng.normal(size=n_rows), 2),
            "ward": "B2",
            "region": rng.choice(["north", "south", "east"], n_rows),
            "diagnosis": np.where(ill, "ill", "well"),
        }
    )
    table.loc[rng.choice(n_rows, 5, replace=False), "pressure"] = np.nan
    table.loc[rng.choice(n_rows, 2, replace=False), "region"] = None
    return table


def test_the_page_shows_what_is_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    patients(120, 1).to_csv("train.csv", index=False)
    patients(60, 2).to_csv("test.csv", index=False)
    said = run("inspect", "train.csv", "test.csv").stdout
    shown = "\n".join(line.rstrip() for line in said.splitlines()).strip()
    page = (ROOT / "docs" / "cli.md").read_text()
    assert f"$ flipcert inspect train.csv test.csv\n{shown}\n```" in page
    assert summary_of(*command_in(said))["metrics"]["accuracy"] > 0.8


def command_in(output):
    """The words of the command that is shown."""
    (line,) = re.findall(r"^flipcert .*$", output, re.MULTILINE)
    return shlex.split(line)[1:]


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_all_is_said_at_once_and_what_is_advised_works(load, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for name, table in zip(("train", "test"), as_people_have_it(load), strict=True):
        table.to_csv(f"{name}.csv", index=False) if kind == "csv" else table.to_parquet(f"{name}.parquet", index=False)
    files = f"train.{kind}", f"test.{kind}"
    looked = run("inspect", *files)
    assert looked.exit_code == 0, looked.output
    for said in (
        "there is no column 'label' of labels; 'target' looks like it",
        "'patient' looks like an id",
        "'number'",
        "'visit'",
        "'region' holds text: --encode onehot",
        f"'region' have missing values ({18 if load is load_wine else 19} in all): --impute median",
    ):
        assert said in looked.stdout, looked.stdout
    advised = command_in(looked.stdout)
    assert advised[:3] == ["certify", *files]
    summary = summary_of(*advised)
    assert summary["metrics"]["accuracy"] > 0.85
    assert "warning" not in summary["metrics"]
    # A command that fails says the same, keeps its other options, and what it advises works as well.
    failed = run("certify", *files, "--model", "ridge", "--reg", "2", "--quiet")
    assert failed.exit_code == 2
    assert failed.stderr.count("Error: ") == 1
    for line in looked.stdout.splitlines():
        if line.startswith("- "):
            assert line in failed.stderr
    again = command_in(failed.stderr)
    assert again[3:7] == ["--model", "ridge", "--reg", "2.0"]
    again.remove("--quiet")
    assert summary_of(*again)["settings"]["reg"] == 2


def pipeline(train):
    """The model of the command line, as a user of scikit-learn writes it."""
    numbers = [c for c in train.columns if c not in ("patient", "number", "visit", "region", "target")]
    columns = make_column_transformer(
        (SimpleImputer(strategy="median"), numbers),
        (
            make_pipeline(
                SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore", sparse_output=False)
            ),
            ["region"],
        ),
    )
    return make_pipeline(columns, StandardScaler(), flipcert.KernelSVM())


def test_features_are_those_of_a_pipeline_in_python(wine):
    train, test = wine
    summary = summary_of("certify", "train.csv", "test.csv", *OPTIONS, "--out", "run")
    assert (
        "1 column of text one-hot encoded (3 columns); 18 missing values in 4 columns filled in" in summary["features"]
    )
    model = pipeline(train).fit(train.drop(columns="target"), train.target)
    expected = flipcert.certify(model, test.drop(columns="target"))
    stored = pd.read_parquet("run/certificates.parquet")
    assert stored["radius"].tolist() == expected.radius.tolist()
    assert stored["prediction"].tolist() == expected.prediction.tolist()
    assert stored["id"].tolist() == test.patient.tolist()
    # Attacks of the run change what the pipeline predicts.
    attacks = pd.read_parquet("run/attacks.parquet")
    assert attacks["training_id"].tolist() == train.patient.to_numpy()[attacks["training_row"]].tolist()
    for row, flips in list(attacks.groupby("row"))[:10]:
        y = train.target.to_numpy().copy()
        assert y[flips.training_row].tolist() == flips.old_label.tolist()
        y[flips.training_row] = flips.new_label
        point = test.drop(columns="target").iloc[[row]]
        assert pipeline(train).fit(train.drop(columns="target"), y).predict(point) != model.predict(point)


def test_every_command_goes_through_the_same_preparation_and_names_rows(wine):
    train, test = wine
    files = ("train.csv", "test.csv", *OPTIONS)
    run("certify", *files, "--quiet", "--out", "run", "--collective", "3", "--attacks", "4")
    radius = pd.read_parquet("run/certificates.parquet")["radius"]
    summary = json.loads(Path("run/summary.json").read_text())
    assert summary["preparation"]["scale"] == "standard"
    assert summary["preparation"]["encoded"] == {"region": 3}
    assert summary["preparation"]["filled_in"] == {"malic_acid": 4, "ash": 6, "alcalinity_of_ash": 6, "region": 2}
    assert summary["models"][0]["scale"] == "standard"
    assert (
        "holds this run already" in run("certify", *files, "--out", "run", "--collective", "3", "--attacks", "4").stderr
    )
    assert "holds another run" in run(
        "certify", *files[:-2], "--impute", "most-frequent", "--out", "run", "--collective", "3", "--attacks", "4"
    ).stderr  # fmt: skip
    page = Path("run/report.html").read_text()
    said = summary["preparation"]["said"]
    assert said in page
    first = test.patient.iloc[int(pd.read_parquet("run/attacks.parquet")["row"].iloc[0])]
    assert first in page
    for name in pd.read_parquet("run/collective-attacks.parquet")["training_id"][:3]:
        assert name in page
    assert run("report", "run", "--out", "again.html").exit_code == 0
    assert Path("again.html").read_text() == page
    told = run("verify", "run", "train.csv", "test.csv", "--points", "6", "--quiet")
    assert told.exit_code == 0, told.output
    assert "No difference" in told.stdout
    swept = summary_of("sweep", *files, "--partitions", "1,2")
    assert swept["points"][0]["metrics"]["largest_radius"] == radius.max()
    attack = json.loads(run("attack", *files, "--row", "5", "--json", "--quiet").stdout)
    assert (attack["radius"], attack["id"]) == (radius[5], test.patient.iloc[5])
    assert [flip["training_id"] for flip in attack["flips"]] == [
        train.patient.iloc[flip["training_row"]] for flip in attack["flips"]
    ]
    lines = csv.DictReader(io.StringIO(run("attack", *files, "--row", "5", "--format", "csv", "--quiet").stdout))
    assert [line["training_id"] for line in lines] == [flip["training_id"] for flip in attack["flips"]]
    table = run("attack", *files, "--row", "5", "--quiet").stdout
    assert f"Row 5 ({test.patient.iloc[5]}) is predicted" in table
    assert attack["flips"][0]["training_id"] in table
    run("audit", *files, "--labels", "4", "--flips", "2", "--quiet", "--out", "audit")
    assert pd.read_csv("audit/audit.csv")["patient"].isin(train.patient).all()
    assert run("check", "train.csv", *OPTIONS, "--labels", "5", "--out", "to-check.csv").exit_code == 0


def test_runs_on_arrays_are_known_by_what_they_always_were(data):
    run("certify", "train.npz", "test.npz", "--quiet", "--out", "run", "--attacks", "2")
    summary = json.loads(Path("run/summary.json").read_text())
    assert {"preparation", "features"}.isdisjoint(summary)
    assert {"encode", "impute"}.isdisjoint(summary["data"])
    assert summary["models"][0]["scale"] == "none"
    (result,) = read_results("run")
    assert (result.preparation, result.test_ids, result.train_ids) == (None, None, {})
    assert pd.read_parquet("run/attacks.parquet").columns.tolist() == [
        "row",
        "flip",
        "training_row",
        "old_label",
        "new_label",
    ]


def test_what_goes_by_all_rows_is_refused_where_rows_come_and_go(wine):
    for threat in ("deletions", "insertions", "replacements", "edits"):
        rows = ("--threat", threat, "--kernel", "rbf")
        for option in ("--encode", "--impute"):
            at = OPTIONS.index(option)
            given = (*OPTIONS[:5], "number,visit,region,malic_acid,ash,alcalinity_of_ash", *OPTIONS[at : at + 2])
            assert f"{' '.join(OPTIONS[at : at + 2])} goes by all training rows" in refused(
                "certify", "train.csv", "test.csv", *given, *rows, "--quiet"
            )
    plain = (*OPTIONS[:5], "number,visit,region,malic_acid,ash,alcalinity_of_ash", "--threat", "deletions")
    assert "goes by all training rows" in refused("certify", "train.csv", "test.csv", *plain, "--scale", "standard")
    # A scale that nobody asked for does not, and says why.
    result = run("certify", "train.csv", "test.csv", *plain)
    assert result.exit_code == 0, result.output
    assert "not scaled, as --threat deletions changes the rows that a scale goes by" in result.stderr
    # What is advised is not a command that would be refused.
    failed = run("certify", "train.csv", "test.csv", "--threat", "deletions")
    assert failed.exit_code == 2
    assert "prepare both files beforehand" in failed.stderr
    assert "This would work" not in failed.stderr


def test_scales_of_tables_are_chosen_and_arrays_stay_as_they_are(data):
    for kind, scale in (("csv", "centre"), ("parquet", "centre"), ("npz", "none")):
        run("certify", f"train.{kind}", f"test.{kind}", "--quiet", "--out", kind)
        assert json.loads((data / kind / "run.json").read_text())["models"][0]["scale"] == scale
    assert "as all share one scale" in run("certify", "train.csv", "test.csv").stderr
    table = pd.read_csv("train.csv")
    table.assign(a=1000 * table.a).to_csv("wide.csv", index=False)
    assert summary_of("certify", "wide.csv", "wide.csv")["settings"]["preprocessing"] == "StandardScaler"
    # Vectors are no columns with a meaning of their own.
    vectors = pd.DataFrame({"v": list(table[["a", "b", "c", "d"]].to_numpy() * [1, 1, 1, 1000]), "label": table.label})
    vectors.to_parquet("vectors.parquet")
    assert "preprocessing" not in summary_of("certify", "vectors.parquet", "vectors.parquet")["settings"]
    assert "--scale must be one of auto, none, centre" in refused("certify", "train.csv", "test.csv", "--scale", "x")


def test_columns_that_look_like_ids_or_labels_are_told_and_used(data):
    table = pd.read_csv("train.csv")
    table = table.assign(
        number=np.arange(len(table)) + 7, code=table.label.map({"setosa": 3, "versicolor": 1, "virginica": 2})
    )
    table.to_csv("odd.csv", index=False)
    result = run("certify", "odd.csv", "odd.csv", "--quiet")
    assert (
        "'number' looks like an id: all values differ, and is used as a feature; --drop leaves it out" in result.stderr
    )
    assert "'code' looks like a copy of the labels, and is used as a feature; --drop leaves it out" in result.stderr
    quiet = run("certify", "odd.csv", "odd.csv", "--quiet", "--drop", "number,code")
    assert "looks like" not in quiet.stderr
    assert "Note" not in run("certify", "train.csv", "test.csv", "--quiet").stderr

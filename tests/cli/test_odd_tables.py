"""Odd tables: whatever they are, there is a look at them, one sentence if they fail, and advice that works."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file

from flipcert.cli import command_words
from tests.helpers.command_line import X_TEST, X_TRAIN, Y_TEST, Y_TRAIN, refused, run, summary_of
from tests.helpers.tables import ALL_DIFFERENT, U_V, N, advised_for, plain, write

ODD = {
    "a comma": {"x,y": U_V},
    "a list that is a name": {"x,y": ALL_DIFFERENT, "x": 1.5, "y": range(N)},
    "quotes": {'it\'s "q"': ALL_DIFFERENT, "a b": pd.date_range("2020-01-01", periods=N)},
    "unicode": {"größe 🦊": U_V, "名": np.nan},
    "dashes": {"-x": ALL_DIFFERENT, "--drop": range(N), "-y": range(N)},
    "no name": {"": range(N)},
    "markup": {"[bold]x[/]": [f"[red]{i}" for i in range(N)]},
    "a line break": {"x\ny": U_V},
    "booleans": {"t": [True, False] * (N // 2), "s": [True, None] * (N // 2)},
    "times": {"t": ["12:34:00"] * N},
    "infinities": {"t": [np.inf] + [1.0] * (N - 1)},
    "whole numbers beyond doubles": {"t": [2**60 + i for i in range(N)]},
    "question marks": {"t": ["?", *(str(i / 2) for i in range(N - 1))]},
    "constants": {"k": 3, "z": "z"},
    "annotators": {"annotator": ["ann", "bob"] * (N // 2)},
    "numbers that vanish": {"t": np.linspace(1e-300, 9e-300, N)},
}


@pytest.mark.parametrize("columns", ODD.values(), ids=ODD)
def test_odd_columns_are_told_and_mended(columns, data):
    files = write(plain(0).assign(**columns), plain(1).assign(**columns))
    said, command = advised_for(*files)
    assert command is not None, said
    direct = run("certify", *files, "--quiet")
    assert direct.exit_code in (0, 2)
    assert "bug" not in direct.stderr


VECTORS = list(np.random.default_rng(0).normal(size=(N, 8)))
PACKED = {
    "categories": {"t": pd.Categorical(U_V)},
    "categories of numbers": {"t": pd.Categorical([1, 2] * (N // 2))},
    "vectors and ids": {"e": VECTORS, "doc": ALL_DIFFERENT},
    "vectors of several lengths": {"e": [[1.0] * (1 + i % 2) for i in range(N)]},
    "vectors with gaps": {"e": [[1.0, None], *([float(i), 2.0] for i in range(N - 1))]},
    "structures": {"e": [{"q": 1}] * N},
    "bytes": {"e": [b"\xff\x00"] * N},
    "lists of text": {"e": [["a", "b"]] * N},
    "dates": {"e": pd.date_range("2020", periods=N, tz="UTC")},
}


@pytest.mark.parametrize("columns", PACKED.values(), ids=PACKED)
def test_odd_columns_of_parquet_are_told_and_mended(columns, data):
    files = write(plain(0).assign(**columns), plain(1).assign(**columns), "parquet")
    said, command = advised_for(*files)
    assert command is not None, said


def test_a_test_file_that_is_otherwise(data):
    files = write(plain(0).assign(t=U_V), plain(1).assign(t=["u", "w"] * (N // 2)))
    said, command = advised_for(*files)
    assert "'t' has values in test.csv that no training row has, such as 'w'" in said
    assert "20 test points with a t that no training row has" in summary_of(*shlex.split(command)[1:])["features"]
    # Numbers can be read as text, text cannot be read as numbers.
    files = write(plain(0).assign(t=U_V), plain(1).assign(t=[1, 2] * (N // 2)))
    said, command = advised_for(*files)
    assert "'t' holds text, and in test.csv whole numbers, which are read as text; those that no" in said
    assert "40 test points with a t that no training row has" in summary_of(*shlex.split(command)[1:])["features"]
    said, command = advised_for(*write(plain(0).assign(t=plain(2).a), plain(1).assign(t="x")))
    assert "'t' holds numbers, and in test.csv text: --drop" in said
    said, command = advised_for(*write(plain(0).assign(t=plain(2).a), plain(1)))
    assert "test.csv has no column 't': --drop" in said
    said, command = advised_for(*write(plain(0), plain(1).assign(a=[np.nan] * 3 + plain(1).a.tolist()[3:])))
    assert "'a' has missing values in test.csv: --impute median" in said
    said, command = advised_for(*write(plain(0), plain(1).drop(columns="label")))
    assert "there will be radii, and no accuracy" in said
    files = write(plain(0), plain(1).assign(z=1.0))
    said, command = advised_for(*files)
    assert "test.csv has 'z', which train.csv has not: --drop" in said
    assert command == "flipcert certify train.csv test.csv --drop z"
    refused("certify", *files, "--quiet")
    for test in (plain(1).assign(label="other"), plain(1).iloc[:0]):
        files = write(plain(0), test)
        said, command = advised_for(*files)
        assert command is None
        assert "No option mends all of this" in said
        refused("certify", *files, "--quiet")


def test_what_no_option_mends_is_told(data):
    fractions = np.random.default_rng(0).normal(size=N)
    tables = {
        "labels ('label') are missing in 1 of 40 rows": plain().assign(label=[None, *plain().label[1:]]),
        "fractions": plain().assign(label=fractions),
        "there is no column 'label' of labels; name one with --label": plain().drop(columns="label"),
        "no column is left that could be a feature": plain()[["label"]],
        "it has no rows": plain().iloc[:0],
    }
    for said, table in tables.items():
        files = write(table, table)
        told, command = advised_for(*files)
        assert command is None
        assert said in told
        refused("certify", *files, "--quiet")


def test_what_stands_in_nobodys_way_is_only_worth_a_look(data):
    said, command = advised_for(*write(plain(0).assign(k=3, z="z"), plain(1).assign(k=3, z="z")))
    obstacles, notes = said.split("Worth a look:")
    assert "- 'z' has one value for all rows, and tells nothing: --drop." in obstacles
    assert "- 'k' has one value for all rows, and tells nothing: --drop." in notes
    assert command.endswith("--drop k,z")
    # What is said of a constant is true: it changes nothing.
    with_it, without = summary_of(*shlex.split(command)[1:-2], "--drop", "z"), summary_of(*shlex.split(command)[1:])
    assert with_it["metrics"] == without["metrics"]


def test_a_copy_of_the_labels_is_left_out_on_the_condition_that_is_said(data):
    files = write(*(plain(seed).assign(code=lambda t: (t.label == "yes").astype(int)) for seed in (0, 1)))
    said, command = advised_for(*files)
    assert "- 'code' looks like a copy of the labels: --drop, unless it was measured without them." in said
    assert command.endswith("--drop code")


@pytest.mark.parametrize(("only", "space"), [("x", "x,other"), (0, "0,1")])
def test_labels_of_one_class_are_mended_by_naming_others(only, space, data):
    files = write(plain(0).assign(label=only), plain(1).assign(label=only))
    said, command = advised_for(*files)
    assert "train.csv has one class only" in said
    assert "No option" not in said
    assert "Worth a look" not in said
    assert command.endswith(f"--classes {space}")
    assert f"This would work:\n{command}" in run("certify", *files).stderr
    np.savez("one.npz", X=X_TRAIN, y=np.zeros(75, int))
    assert advised_for("one.npz", "one.npz")[1].endswith("--classes 0,1")


def test_labels_called_as_what_is_missing(data):
    words, numbers = (plain().assign(label=["NA", *labels]) for labels in (plain().label[1:], [0, 1] * 19 + [0]))
    said, command = advised_for(*write(words, words))
    told = "'NA' is a class here, with 1 label; if it stands for what is missing, leave it out of the file"
    assert f"Worth a look:\n- {told}." in said
    assert f"Note: {told}." in run(*shlex.split(command)[1:]).stderr
    files = write(numbers, numbers)
    said, command = advised_for(*files)
    assert command is None
    assert "missing in 1 of 40 rows, as they are empty, or such as NA among numbers" in said
    assert "no label in row 0, where 'NA' reads as a missing one" in refused("certify", *files)
    said, command = advised_for(*write(plain().assign(label="None"), plain()))
    assert command is None
    assert "where 'None' reads as a missing one" in said
    assert "is a class here" not in said
    packed = plain().assign(label=[None, *plain().label[1:]])
    assert "missing in 1 of 40 rows; fill them in" in advised_for(*write(packed, packed, "parquet"))[0]


def test_a_test_file_that_is_not_there_is_one_of_all_problems(data):
    write(plain(0).rename(columns={"label": "class"}), plain(1))
    told = run("certify", "train.csv", "tset.csv")
    assert told.exit_code == 2
    assert "'class' looks like it" in told.stderr
    assert "- tset.csv does not exist; give the path of a file with features." in told.stderr
    assert "This would work" not in told.stderr


def test_a_threat_of_sources_is_not_advised_without_them(data):
    told = run("certify", *write(plain(0), plain(1)), "--threat", "sources", "--source", "nobody")
    assert told.exit_code == 2
    assert "--threat sources needs --source, a column that says who gave each label." in told.stderr
    assert "This would work" not in told.stderr


def test_numbers_with_commas_and_names_to_paste_are_told(data):
    files = write(*(plain(seed).assign(**{"": range(N), "t": ALL_DIFFERENT, "c": "1,5"}) for seed in (0, 1)))
    said, command = advised_for(*files)
    assert "'c' holds numbers with commas; write them with a decimal point" in said
    assert "'' looks like an id, as all values differ: --id '' names rows by it" in said
    assert command.endswith("--drop c,t --id ''")
    said, command = advised_for(*write(*(plain(seed).rename(columns={"label": "my label"}) for seed in (0, 1))))
    assert "--label 'my label'." in said


def test_lists_of_columns_to_leave_out(data):
    table = plain().assign(x="q", y="r", **{"x,y": 1.0})
    files = write(table, table)
    # A name with a comma is a name if there is such a column.
    assert "column 'x' of train.csv holds" in refused("certify", *files, "--drop", "x,y").lower()
    summary_of("certify", *files, "--drop", "x,y", "--drop", "x", "--drop", "y")
    table = plain().assign(x="q", y="r")
    files = write(table, table)
    summary_of("certify", *files, "--drop", "x,y")
    assert "has no column 'z'" in refused("certify", *files, "--drop", "x,y,z")
    assert "--encode must be onehot; got 'hash'." in refused("certify", *files, "--encode", "hash")
    assert "--impute must be one of median, most-frequent" in refused("inspect", *files, "--impute", "mean")
    assert "--encode is for columns of text" in refused("certify", "train.npz", "test.npz", "--encode", "onehot")


def test_texts_and_gaps_that_cannot_be_used(data):
    table = plain().assign(t=[None, *U_V[1:]])
    assert "has no text in row 0; fill it in, or let --impute" in refused(
        "certify", *write(table, plain(1).assign(t=U_V)), "--encode", "onehot"
    )
    table = plain().assign(t=np.nan)
    assert "is empty, so nothing can be filled in" in refused("certify", *write(table, table), "--impute", "median")
    many = pd.DataFrame(
        {"a": np.arange(2004.0) % 7, "t": [f"t{i % 1002}" for i in range(2004)], "label": ["u", "v"] * 1002}
    )
    assert "has 1,002 different texts" in refused("certify", *write(many, many), "--encode", "onehot")


def test_every_kind_of_file_is_looked_at(data):
    np.savez("named.npz", X=X_TRAIN, species=Y_TRAIN, who=np.arange(75))
    said, command = advised_for("named.npz", "test.npz")
    assert "'species' looks like it: --label species" in said
    assert re.search(r"who +array +not used", said)
    said, command = advised_for("named.npz", "test.npz", "--label", "genus")
    assert "there is no array 'genus' of labels; 'species' looks like it: --label species" in said
    assert "there are no labels" not in said
    gap = X_TRAIN.copy()
    gap[3, 1] = np.nan
    np.savez("gap.npz", X=np.c_[gap, np.ones(75), np.arange(75)], y=Y_TRAIN)
    np.savez("gap-test.npz", X=np.c_[X_TEST, np.ones(75), np.arange(75)], y=Y_TEST)
    said, command = advised_for("gap.npz", "gap-test.npz")
    assert "1 value of X is missing, in 1 of its 6 columns: --impute median" in said
    assert "column 4 of X has one value for all rows" in said
    assert "column 5 of X looks like an id" in said
    assert command.endswith("--impute median")
    assert advised_for("X_train.npy,y_train.npy", "X_test.npy")[1] is not None
    assert advised_for("X_test.npy")[1] is None
    dump_svmlight_file(X_TRAIN, np.arange(75) % 2, "train.svmlight")
    assert advised_for("train.svmlight", "train.svmlight")[1] is not None
    for folder, place in (("train", slice(0, 75)), ("test", slice(0, 75))):
        Path(folder).mkdir()
        for part in range(3):
            rows = slice(25 * part, 25 * part + 25)
            ids = [f"{folder}-{i}" for i in range(75)][rows]
            own, y = (X_TRAIN, Y_TRAIN) if folder == "train" else (X_TEST, Y_TEST)
            frame = pd.DataFrame({"doc": ids, "vector": list(own[place][rows].astype(np.float32)), "label": y[rows]})
            frame.to_parquet(f"{folder}/part-{part}.parquet")
    said, command = advised_for("train", "test")
    assert "vectors of length 4" in said
    assert command == "flipcert certify train test --id doc"
    summary_of("certify", "train", "test", "--id", "doc", "--out", "run")
    assert pd.read_parquet("run/certificates.parquet")["id"].tolist() == [f"test-{i}" for i in range(75)]
    Path("shards").mkdir()
    for part in range(3):
        np.save(f"shards/X-{part:03d}.npy", X_TRAIN[25 * part : 25 * part + 25])
        np.save(f"shards/y-{part:03d}.npy", Y_TRAIN[25 * part : 25 * part + 25])
    assert advised_for("shards", "X_test.npy,y_test.npy")[1] is not None
    for name, text in (("empty.csv", ""), ("junk.npz", "no archive"), ("twice.csv", "a,a,label\n1,2,x\n")):
        Path(name).write_text(text)
        assert name in refused("inspect", name)
    assert "missing.csv" in refused("inspect", "missing.csv")
    told = json.loads(run("inspect", "train.csv", "--json").stdout)
    assert (told["rows"], told["command"]) == (75, "flipcert certify train.csv TEST")
    assert [column["used_as"] for column in told["columns"]] == ["feature"] * 4 + ["label"]


@pytest.mark.parametrize("word", ["tab\tx", "a'b\t\\n", "é b", "it's", "line\nbreak"])
def test_words_to_paste_are_one_line_that_a_shell_reads_as_they_were(word):
    """A tab on a terminal is some blanks."""
    pasted = command_words.pasted(["printf", "%s", word])
    assert pasted.isprintable()
    if shutil.which("bash"):
        assert subprocess.run(["bash", "-c", pasted], capture_output=True, text=True, check=True).stdout == word

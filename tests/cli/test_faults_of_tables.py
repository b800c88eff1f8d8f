"""Faults of tables: what is said of them is true, says which values they are, and is all of it."""

from __future__ import annotations

import re
import shlex
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from flipcert.datasets.files import columns_in
from tests.helpers.command_line import refused, run, summary_of
from tests.helpers.tables import ALL_DIFFERENT, U_V, N, advised_for, plain, write


def told_of(said, name):
    """What stands in the line of a column: what it holds, and what it is used as."""
    line = next(line for line in said.splitlines() if line.split()[:1] == [name])
    return re.split(r" {2,}", line.strip())[1:]


def both(**columns):
    return plain(0).assign(**columns), plain(1).assign(**columns)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_values_that_are_true_or_false_are_not_called_numbers(kind, data):
    said, _ = advised_for(*write(*both(t=[True, False] * (N // 2), label=np.arange(N) % 3 == 0), kind))
    assert told_of(said, "t") == ["true or false", "feature"]
    assert told_of(said, "label") == ["true or false", "label"]
    said, _ = advised_for(*write(*both(t=[True, None] * (N // 2)), kind))
    assert told_of(said, "t") == ["true or false, 20 missing", "feature, gaps filled in"]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_whole_numbers_beyond_doubles_are_counted_one_by_one(kind, data):
    said, command = advised_for(*write(*both(t=[2**60 + i % 5 for i in range(N)]), kind))
    assert told_of(said, "t") == ["whole numbers, 5 different", "left out: too large"]
    said, command = advised_for(*write(*both(t=[2**60 + i for i in range(N)]), kind))
    assert told_of(said, "t") == ["whole numbers, all 40 different", "id"]
    assert command.endswith("--id t")
    said, _ = advised_for(*write(*both(label=[2**60 + i % 2 for i in range(N)]), kind))
    assert told_of(said, "label") == ["whole numbers, 2 different", "label"]


def test_decimals_are_numbers(data):
    fractions = [Decimal(i) / 8 for i in range(N)]
    files = write(*both(t=fractions), "parquet")
    said, command = advised_for(*files)
    assert told_of(said, "t") == ["numbers", "feature"]
    as_doubles = summary_of("certify", *write(*both(t=[float(own) for own in fractions]), "csv"), "--label", "label")
    assert summary_of(*shlex.split(command)[1:])["metrics"] == as_doubles["metrics"]
    files = write(*both(t=[Decimal(2**60 + i) for i in range(N)]), "parquet")
    assert "has 1152921504606846976 in row 0, column 't'" in refused("certify", *files)
    assert told_of(advised_for(*files)[0], "t") == ["whole numbers, all 40 different", "id"]


def test_vectors_that_do_not_fit_are_not_called_something_else(data):
    files = write(*both(e=[None, *([1.0, float(i)] for i in range(N - 1))]), "parquet")
    said, _ = advised_for(*files)
    assert "'e' does not hold a vector of one length in every row; mend that in the file, or --drop." in said
    assert "column 'e' of train.parquet has no vector in row 0" in refused("certify", *files).lower()


def test_text_that_is_not_utf8_is_called_so(data):
    train, test = both(t=["süß", "sauer"] * (N // 2))
    for name, table in (("train", train), ("test", test)):
        table.to_csv(f"{name}.csv", index=False, encoding="latin-1")
    said, _ = advised_for("train.csv", "test.csv")
    assert "'t' holds bytes, or text that is not UTF-8; save text as UTF-8 (iconv does that), or --drop." in said
    said, command = advised_for("train.csv", "test.csv", "--label", "t", "--drop", "label")
    assert command is None
    assert "it is no UTF-8 text; save it as UTF-8 (iconv does that)" in said
    packed = plain().assign(label=[text.encode() for text in plain().label])
    said, command = advised_for(*write(packed, packed, "parquet"))
    assert command is not None  # bytes that are text are labels
    assert "hardly classes" not in said


def test_a_column_that_is_called_an_id_is_the_id(data):
    for name in ("id", "sample_id", "PassengerId", "uuid", ""):
        _, command = advised_for(*write(*both(weight=np.arange(N)[::-1] + 3000, **{name: range(N)})))
        assert shlex.split(command)[-2:] == ["--id", name]
    for name in ("valid", "grid", "weight"):
        _, command = advised_for(*write(*both(**{name: range(N)}, text=ALL_DIFFERENT)))
        assert shlex.split(command)[-2:] == ["--id", "text"]


def test_columns_named_twice_are_mended(data):
    files = write(*both())
    for option, wrong in (
        ("--drop", "the labels are in column 'label', which --drop names; leave it out"),
        ("--id", "the labels are in column 'label', which --id names; leave it out, or name another"),
    ):
        said, command = advised_for(*files, option, "label")
        assert f"- {wrong}." in said
        assert command == "flipcert certify train.csv test.csv"
        assert told_of(said, "label")[-1] == "label"


def test_all_labels_that_are_missing_are_counted(data):
    holes = [None if i % 4 == 1 else label for i, label in enumerate(plain().label)]
    for kind in ("csv", "parquet"):
        files = write(plain(0).assign(label=holes), plain(1), kind)
        assert f"train.{kind} has no label in row 1, and in 9 more; fill them in" in refused("certify", *files)
        files = write(plain(0), plain(1).assign(label=holes), kind)
        told = f"labels ('label') are missing in 10 of 40 rows of test.{kind}; fill them in, leave these rows out"
        said, command = advised_for(*files)
        assert command is None
        assert told in said
        assert told in run("certify", *files).stderr


def test_one_fault_is_told_as_fully_as_several(data):
    files = write(*both(t=["?", *(f"{i / 2}" for i in range(N - 1))]))
    told = run("certify", *files)
    assert "- 't' holds numbers, and texts such as '?' between; make such cells empty" in told.stderr
    files = write(*both(t=U_V, s=U_V))
    assert "All that stands in the way:\n- 't', 's' hold text" in run("certify", *files).stderr


def test_text_among_numbers_of_the_test_file_is_shown_and_cannot_be_encoded(data):
    files = write(plain(0).assign(t=plain(2).a), plain(1).assign(t=["oops", *plain(2).a.astype(str)[1:]]))
    said, _ = advised_for(*files)
    assert "'t' holds numbers, and in test.csv text, such as 'oops': --drop." in said
    for options in ((), ("--encode", "onehot")):
        told = run("certify", *files, *options)
        assert told.exit_code == 2
        assert "make numbers of categories with --encode" not in told.stderr


def test_a_test_file_without_rows_is_not_said_to_hold_anything(data):
    said, command = advised_for(*write(plain(0).assign(t=U_V), plain(1).assign(t=U_V).iloc[:0]))
    assert command is None
    assert "test.csv has no rows; it must hold at least one." in said
    assert "and in test.csv" not in said
    files = write(plain(0).assign(t=U_V), plain(1).assign(t=np.nan))
    said, command = advised_for(*files)
    assert "'t' has missing values in test.csv: --impute median" in said
    assert "and in test.csv" not in said
    done = summary_of(*shlex.split(command)[1:])["features"]
    assert "40 missing values of the test points in 1 column filled in (most frequent value)" in done


def test_categories_called_as_what_is_missing(data):
    files = write(*both(t=["NA", "NA", *U_V[2:]]))
    told = "'NA' is a category of 't' here, in 2 rows; if it stands for what is missing, make these cells empty"
    said, command = advised_for(*files)
    assert told in said
    assert f"Note: {told}" in run(*shlex.split(command)[1:]).stderr


def test_a_file_without_a_line_of_names_is_asked_about(data):
    plain(0).to_csv("train.csv", index=False, header=False)
    said = run("inspect", "train.csv").stdout
    assert "the first line of the file is read as names of columns, such as '" in said
    assert "the first line" not in run("inspect", *write(*both())).stdout


def test_all_columns_with_values_that_no_training_row_has_are_told(data):
    files = write(*(plain(seed).assign(t=U_V, s=U_V) for seed in (0, 1)))
    table = pd.read_csv(files[1]).assign(t="w", s="w")
    table.to_csv(files[1], index=False)
    done = summary_of("certify", *files, "--encode", "onehot")["features"]
    assert "40 test points with a t that" in done
    assert "40 test points with a s that" in done


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_column_that_only_the_test_file_has_can_be_left_out(kind, data):
    train, test = both()
    as_before = summary_of("certify", *write(train, test, kind))["metrics"]
    files = write(train, test.assign(guess=1.0), kind)
    said, command = advised_for(*files)
    assert f"- test.{kind} has 'guess', which train.{kind} has not: --drop." in said
    assert command.endswith("--drop guess")
    assert summary_of(*shlex.split(command)[1:])["metrics"] == as_before
    assert "has a column 'guess', which train" in refused("certify", *files)
    assert "has no column 'other'" in refused("certify", *files, "--drop", "guess,other")
    said, command = advised_for(*files, "--drop", "guess,other")
    assert "- there is no column 'other', which --drop names; leave it out." in said
    assert command.endswith("--drop guess")


def test_a_column_of_another_name_is_asked_about(data):
    train, test = both()
    said, command = advised_for(*write(train, test.rename(columns={"b": "c"})))
    assert command.endswith("--drop b,c")
    assert "- if a column is called 'b' in train.csv and 'c' in test.csv, give it one name, rather than --drop." in said


def test_names_on_top_are_read_as_the_table_is(data):
    train, test = both()
    test = test.assign(**{'a "quoted", name': U_V})
    for ending, how in (("csv", {}), ("csv", {"encoding": "utf-8-sig"}), ("tsv.gz", {"sep": "\t"})):
        test.to_csv(f"test.{ending}", index=False, **how)
        train.to_csv(f"train.{ending}", index=False, **how)
        _, command = advised_for(f"train.{ending}", f"test.{ending}")
        assert shlex.split(command)[-2:] == ["--drop", test.columns[-1]]
    test.rename(columns={"b": "in two\nlines"}).to_csv("test.csv", index=False)
    assert columns_in("test.csv") == ["a", "in two\nlines", "label", 'a "quoted", name']
    assert columns_in("test.npz") == []
    Path("test.csv").write_text(f"{'a' * 200_000},b\n")
    assert columns_in("test.csv") == []
    with pytest.raises(ValueError, match=r"missing\.csv does not exist"):
        columns_in("missing.csv")


def test_labels_of_the_test_file_that_cannot_be_predicted_are_told(data):
    train, test = both()
    files = write(train, test.assign(label=[*["new"] * 5, *test.label[5:]]))
    said, _ = advised_for(*files)
    assert "- 5 of the 40 test points of test.csv have a label that no training point has (such as 'new'); they" in said
    assert "have a label that no" not in advised_for(*files, "--classes", "no,yes,new")[0]


def test_dates_are_called_dates(data):
    train, test = both(
        day=pd.date_range("2026-01-01", periods=N), hour=[pd.Timestamp(i, unit="h").time() for i in range(N)]
    )
    for kind in ("csv", "parquet"):
        said, command = advised_for(*write(train, test, kind))
        assert told_of(said, "day") == ["dates", "left out: no numbers"]
        assert told_of(said, "hour") == ["times of day", "left out: no numbers"]
        assert command.endswith("--drop day,hour")


def test_a_guess_about_the_labels_is_called_so(data):
    train, test = (table.drop(columns="label") for table in both())
    late = {"survived": [0, 1] * (N // 2), "sex": U_V, "fare": np.linspace(0, 1, N)}
    said, command = advised_for(*write(train.assign(**late), test.assign(**late)))
    assert "--label sex" in command
    assert "- --label sex is a guess; 'survived' could be labels as well, so name the right one." in said
    for sure in ({"label": U_V}, {"species": U_V, **late}, {**late, "kind": U_V}):
        assert "is a guess" not in advised_for(*write(train.assign(**sure), test.assign(**sure)))[0]

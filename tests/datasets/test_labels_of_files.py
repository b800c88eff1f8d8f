"""Labels as files spell them: none are merged, training and test labels are compared as they are meant."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from flipcert.datasets.files import read_table
from flipcert.datasets.spelling import labels_of_text, text_of_labels
from tests.helpers.command_line import IRIS_Y, MODEL, NAMES, X_TEST, X_TRAIN, Y_TEST, refused, run, summary_of


def write_csv(name, X, labels):
    pd.DataFrame(X, columns=["a", "b", "c", "d"]).assign(label=labels).to_csv(name, index=False)


NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70).map(str),
    st.floats().map(str),
    st.sampled_from(["7", "07", "007", "7.0", "7.00", "+7", " 7", "7 ", "7e0", "-0", "0", "1_0", "inf", "true", "x"]),
)


@given(st.lists(NUMBERS, min_size=1, max_size=8))
def test_labels_spelled_differently_are_different(spelled):
    spelled = np.array([text for text in spelled if text != "nan"] or ["x"])
    labels = labels_of_text(spelled, "labels.csv")
    assert np.unique(labels).size == np.unique(spelled).size
    assert text_of_labels(labels).tolist() == spelled.tolist()
    assert labels.dtype.kind in "Uif"


@pytest.mark.parametrize(
    ("spelled", "kept"),
    [
        (["007", "08", "7"], ["007", "08", "7"]),
        (["7", "8"], [7, 8]),
        (["-1", "1"], [-1, 1]),
        (["1.0", "2.0"], [1.0, 2.0]),
        (["1", "1.0"], ["1", "1.0"]),
        (["+1", "-1"], ["+1", "-1"]),
        (["1e3", "2"], ["1e3", "2"]),
        ([" 1", "2"], [" 1", "2"]),
        (["True", "true"], ["True", "true"]),
        (["NA", "DE"], ["NA", "DE"]),
        (["9007199254740992", "9007199254740993"], [2**53, 2**53 + 1]),
        (["18446744073709551616", "1"], ["18446744073709551616", "1"]),
    ],
)
def test_labels_of_a_csv_file(tmp_path, spelled, kept):
    (tmp_path / "data.csv").write_text("a,label\n" + "".join(f"{i},{text}\n" for i, text in enumerate(spelled)))
    found = read_table(str(tmp_path / "data.csv"), labelled=True).y.tolist()
    assert found == kept
    assert [type(label) for label in found] == [type(label) for label in kept]


def test_three_classes_stay_three(data):
    spelling = np.array(["007", "08", "7"])
    write_csv("odd-train.csv", X_TRAIN, spelling[IRIS_Y[::2]])
    write_csv("odd-test.csv", X_TEST, spelling[IRIS_Y[1::2]])
    odd = summary_of("certify", "odd-train.csv", "odd-test.csv", *MODEL, "--out", "odd")
    assert odd["metrics"] == summary_of("certify", "train.csv", "test.csv", *MODEL)["metrics"]
    found = parquet.read_table(data / "odd" / "certificates.parquet")
    assert set(found["label"].to_pylist()) == {"007", "08", "7"}


def test_one_file_of_words_makes_both_words(data):
    """7 in one file is the 7 of the other, whatever else that has."""
    spelling = np.array(["007", "08", "7"])
    write_csv("words.csv", X_TRAIN, spelling[IRIS_Y[::2]])
    some = IRIS_Y[1::2] == 2
    write_csv("sevens.csv", X_TEST[some], np.full(some.sum(), 7))
    summary_of("certify", "words.csv", "sevens.csv", "--out", "run")
    table = parquet.read_table(data / "run" / "certificates.parquet").to_pandas()
    assert set(table["label"]) == {"7"}
    assert (table["label"] == table["prediction"]).mean() > 0.5
    # Likewise the other way round: training labels that could be numbers, and an array of strings.
    write_csv("numbers.csv", X_TRAIN, IRIS_Y[::2])
    np.savez("strings.npz", X=X_TEST, y=IRIS_Y[1::2].astype(str))
    np.savez("numbers.npz", X=X_TEST, y=IRIS_Y[1::2])
    expected = summary_of("certify", "numbers.csv", "numbers.npz")["metrics"]
    assert summary_of("certify", "numbers.csv", "strings.npz")["metrics"] == expected


@pytest.mark.parametrize("kind", ["csv", "npz"])
def test_labels_of_which_none_occurs_are_refused(data, kind):
    def write(name, labels):
        if kind == "csv":
            write_csv(name, X_TEST, labels)
        else:
            np.savez(name, X=X_TEST, y=labels)

    write(f"upper.{kind}", np.char.upper(Y_TEST))
    said = refused("certify", "train.csv", f"upper.{kind}")
    assert f"none of the labels of upper.{kind} (such as 'SETOSA', 'VERSICOLOR', 'VIRGINICA')" in said
    assert "occurs in train.csv (such as 'setosa', 'versicolor', 'virginica'); write them alike" in said
    write(f"numbers.{kind}", IRIS_Y[1::2])
    shown = "'0', '1', '2'" if kind == "csv" else "0, 1, 2"
    assert f"(such as {shown}) occurs in train.npz" in refused("certify", "train.npz", f"numbers.{kind}")


def test_some_labels_that_no_training_point_has_are_told(data):
    write_csv("some.csv", X_TEST, np.where(np.arange(75) < 3, "iris [new]", Y_TEST))
    result = run("certify", "train.csv", "some.csv", "--quiet")
    assert result.exit_code == 0
    assert result.stderr.strip() == (
        "3 of the 75 test points of some.csv have a label that no training point has (such as 'iris [new]'); "
        "they can never be predicted right."
    )
    # A class of the label space can be predicted without any label.
    classes = ",".join([*NAMES, "iris [new]"])
    assert run("certify", "train.csv", "some.csv", "--quiet", "--classes", classes).stderr == ""


def test_the_label_space_from_the_shell(data):
    def classes(given, train="train.csv"):
        return refused("certify", train, "test-unlabelled.csv", "--classes", given)

    write_csv("numbers.csv", X_TRAIN, IRIS_Y[::2])
    write_csv("halves.csv", X_TRAIN, IRIS_Y[::2].astype(float))
    np.savez("truth.npz", X=X_TRAIN, y=IRIS_Y[::2] > 0)
    assert "--classes 0,1,2,2 names 2 twice" in classes("0,1,2,2", "numbers.csv")
    assert "--classes 0,1,2,02 names 2 twice" in classes("0,1,2,02", "numbers.csv")
    assert "--classes 0,1 does not name 2, which is a label of numbers.csv" in classes("0,1", "numbers.csv")
    assert "must name labels like those of numbers.csv, such as 0, 1, 2" in classes("0,1,2,x", "numbers.csv")
    assert "must name labels like those of halves.csv" in classes("0,1,2,nan", "halves.csv")
    assert "must name labels like those of truth.npz, such as False, True" in classes("0,1", "truth.npz")
    assert "must name labels like those of train.csv" in classes("setosa,versicolor,,virginica")
    assert run("certify", "truth.npz", "test-unlabelled.csv", "--classes", "True,False", "--quiet").exit_code == 0


def test_one_class_is_told_in_the_words_of_the_shell(data):
    write_csv("one.csv", X_TRAIN, np.full(75, "setosa"))
    said = refused("certify", "one.csv", "test-unlabelled.csv")
    assert "one.csv has one class only ('setosa')" in said
    assert "--classes setosa,other" in said
    assert run("certify", "one.csv", "test-unlabelled.csv", "--classes", "setosa,other", "--quiet").exit_code == 0
    for label, advice in ((7, "7,8"), (2.0, "2.0,3.0"), (True, "True,False")):
        np.savez("one.npz", X=X_TRAIN, y=np.full(75, label))
        assert f"--classes {advice}." in refused("certify", "one.npz", "test-unlabelled.csv")
        assert run("certify", "one.npz", "test-unlabelled.csv", "--classes", advice, "--quiet").exit_code == 0


def test_labels_with_a_line_break_are_refused(tmp_path):
    Path(tmp_path / "open.csv").write_text('a,label\n1,x\n2,"y\n3,z\n')
    with pytest.raises(ValueError, match=r"open\.csv has a label with a line break in row 1"):
        read_table(str(tmp_path / "open.csv"), labelled=True)

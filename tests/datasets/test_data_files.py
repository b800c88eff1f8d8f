"""Reading data: every format gives the same table, and every kind of bad file one sentence."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.datasets import dump_svmlight_file

from flipcert.datasets.files import Columns, digest, parts_of, read_table
from tests.helpers.command_line import X_TRAIN, Y_TRAIN, refused, summary_of

X = np.random.default_rng(0).normal(size=(12, 3))
Y = np.array(["cat", "dog", "emu"] * 4)


def frame(labels=Y):
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    table["label"] = labels
    return table


@pytest.fixture
def folder(tmp_path):
    numbers = np.arange(12) % 3
    np.savez(tmp_path / "data.npz", X=X, y=Y)
    frame().to_csv(tmp_path / "data.csv", index=False)
    frame().to_csv(tmp_path / "data.tsv", index=False, sep="\t")
    frame().to_csv(tmp_path / "data.csv.gz", index=False)
    frame().to_parquet(tmp_path / "data.parquet")
    frame(pd.Categorical(Y)).to_parquet(tmp_path / "categories.parquet")
    vectors = pa.table({"embedding": list(X), "label": Y})
    parquet.write_table(vectors, tmp_path / "vectors.parquet")
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", Y)
    dump_svmlight_file(X, numbers, str(tmp_path / "data.svmlight"), zero_based=False)
    return tmp_path


NAMES = ["data.npz", "data.csv", "data.tsv", "data.csv.gz", "data.parquet", "categories.parquet", "vectors.parquet"]


@pytest.mark.parametrize("name", [*NAMES, ""])
def test_formats_agree(folder, name):
    table = read_table(str(folder / name), labelled=True)
    assert np.array_equal(table.X, X)
    assert np.array_equal(table.y, Y)


def test_pairs_of_arrays_are_memory_mapped(folder):
    table = read_table(f"{folder / 'X.npy'},{folder / 'y.npy'}", labelled=True)
    assert np.array_equal(table.X, X)
    assert np.array_equal(table.y, Y)
    assert isinstance(table.X, np.memmap)


def test_svmlight(folder):
    table = read_table(str(folder / "data.svmlight"), labelled=True)
    assert np.allclose(table.X, X)
    assert table.y.tolist() == (np.arange(12) % 3).tolist()
    assert read_table(str(folder / "data.svmlight"), labelled=True, n_features=7).X.shape == (12, 7)


def test_precision_is_kept_and_whole_numbers_become_doubles(tmp_path):
    for given, kept in (
        (np.float32, np.float32),
        (np.float64, np.float64),
        (np.float16, np.float32),
        (np.uint8, float),
    ):
        np.savez(tmp_path / "data.npz", X=np.ones((3, 2), given), y=[0, 1, 0])
        assert read_table(str(tmp_path / "data.npz"), labelled=True).X.dtype == kept


def test_columns_are_matched_by_name(folder):
    frame()[["c", "label", "a", "b"]].to_csv(folder / "shuffled.csv", index=False)
    train = read_table(str(folder / "data.csv"), labelled=True)
    assert np.array_equal(read_table(str(folder / "shuffled.csv"), labelled=False).aligned_to(train).X, X)
    frame().rename(columns={"b": "other"}).to_csv(folder / "renamed.csv", index=False)
    with pytest.raises(ValueError, match=r"has no column 'b', which .*data\.csv has"):
        read_table(str(folder / "renamed.csv"), labelled=False).aligned_to(train)
    frame().assign(more=1.0).to_csv(folder / "wider.csv", index=False)
    with pytest.raises(ValueError, match=r"has a column 'more', which .* has not"):
        read_table(str(folder / "wider.csv"), labelled=False).aligned_to(train)
    np.savez(folder / "narrow.npz", X=X[:, :2])
    with pytest.raises(ValueError, match=r"has 2 features, but .* has 3"):
        read_table(str(folder / "narrow.npz"), labelled=False).aligned_to(train)


def test_columns_can_be_left_out(folder):
    frame().assign(id=range(12), mine=[True] * 6 + [False] * 6).to_csv(folder / "more.csv", index=False)
    table = read_table(str(folder / "more.csv"), Columns(drop=("id",), trusted="mine"), labelled=True)
    assert np.array_equal(table.X, X)
    assert table.trusted.sum() == 6
    assert read_table(str(folder / "data.csv"), Columns(ignore=("id",)), labelled=True).X.shape == X.shape


def test_digests_are_of_the_contents(folder):
    assert digest(str(folder / "data.npz")) == digest(str(folder / "data.npz"))
    both = digest(f"{folder / 'X.npy'},{folder / 'y.npy'}")
    assert both == digest(str(folder))
    assert len({digest(str(folder / name)) for name in NAMES} | {both}) == len(NAMES) + 1
    assert [path.name for path in parts_of(str(folder))] == ["X.npy", "y.npy"]


def bad_files(folder):
    """Files and what is said about them."""
    (folder / "noise.npz").write_bytes(b"nonsense")
    yield "noise.npz", "cannot be read as npz"
    (folder / "cut.npz").write_bytes((folder / "data.npz").read_bytes()[:200])
    yield "cut.npz", "cannot be read as npz"
    np.savez(folder / "objects.npz", X=np.array([[1, "a"], [2, "b"]], dtype=object), y=[0, 1])
    yield "objects.npz", "holds Python objects, which are not unpickled"
    np.savez(folder / "labels.npz", X=X, y=np.array([None] * 12))
    yield "labels.npz", "holds Python objects, which are not unpickled"
    np.savez(folder / "other.npz", Z=X)
    yield "other.npz", "must hold an array X; it holds Z"
    np.savez(folder / "unlabelled.npz", X=X)
    yield "unlabelled.npz", "has no labels; it must hold an array y beside X"
    np.savez(folder / "flat.npz", X=X[0], y=Y[:3])
    yield "flat.npz", "must be a matrix"
    np.savez(folder / "cube.npz", X=X[:, :, None], y=Y)
    yield "cube.npz", "flatten images"
    np.savez(folder / "short.npz", X=X, y=Y[:5])
    yield "short.npz", "12 rows, but labels of shape"
    np.savez(folder / "words.npz", X=np.array([["a", "b"]]), y=[0])
    yield "words.npz", "must be numbers"
    np.savez(folder / "empty.npz", X=np.empty((0, 3)), y=[])
    yield "empty.npz", "has no rows"
    np.savez(folder / "missing.npz", X=np.where(X[2, 1] == X, np.nan, X), y=Y)
    yield "missing.npz", "has nan in row 2, column 1"
    np.savez(folder / "infinite.npz", X=np.where(X[2, 1] == X, np.inf, X), y=Y)
    yield "infinite.npz", "has inf in row 2, column 1"
    np.savez(folder / "nolabel.npz", X=X, y=np.where(np.arange(12) == 4, np.nan, 1.0))
    yield "nolabel.npz", "has no label in row 4"
    np.save(folder / "pickled.npy", np.array([{}, 1], dtype=object))
    yield "pickled.npy", "nothing is unpickled"
    (folder / "noise.npy").write_bytes(b"nonsense")
    yield "noise.npy", "no .npy file"
    (folder / "cut.npy").write_bytes((folder / "X.npy").read_bytes()[:150])
    yield "cut.npy", "cannot be read as npy"
    yield "X.npy", "give features and labels as X.npy,y.npy"
    (folder / "empty.csv").write_text("")
    yield "empty.csv", "cannot be read as csv"
    (folder / "header.csv").write_text("a,b,label\n")
    yield "header.csv", "has no rows"
    (folder / "ragged.csv").write_text("a,b,label\n1,2,x\n1,2\n")
    yield "ragged.csv", "cannot be read as csv"
    (folder / "twice.csv").write_text("a,a,label\n1,2,x\n3,4,y\n")
    yield "twice.csv", "more than one column 'a'"
    (folder / "text.csv").write_text("a,name,label\n1,ann,x\n3,bob,y\n")
    yield "text.csv", "column 'name' of .* holds string, not numbers"
    (folder / "gap.csv").write_text("a,b,label\n1,,x\n3,4,y\n")
    yield "gap.csv", "has nan in row 0, column 'b'"
    (folder / "unlabelled.csv").write_text("a,b\n1,2\n3,4\n")
    yield "unlabelled.csv", "must have a column 'label', or name another with --label"
    (folder / "hole.csv").write_text("a,b,label\n1,2,\n3,4,y\n")
    yield "hole.csv", "has no label in row 0"
    (folder / "onlylabel.csv").write_text("label\nx\ny\n")
    yield "onlylabel.csv", "no columns of features"
    (folder / "noise.parquet").write_bytes(b"nonsense")
    yield "noise.parquet", "cannot be read as parquet"
    (folder / "cut.parquet").write_bytes((folder / "data.parquet").read_bytes()[:300])
    yield "cut.parquet", "cannot be read as parquet"
    parquet.write_table(pa.table({"v": [[1.0], [1.0, 2.0]], "label": [0, 1]}), folder / "uneven.parquet")
    yield "uneven.parquet", "must all have the same length"
    (folder / "noise.svmlight").write_text("what is this\n")
    yield "noise.svmlight", "cannot be read as svmlight"
    (folder / "data.xls").write_text("")
    yield "data.xls", "has an ending that is not known"
    yield "nowhere.npz", "does not exist"
    yield "X.npy,nowhere.npy", "does not exist"


def test_bad_files_get_one_sentence(folder):
    seen = 0
    for name, said in bad_files(folder):
        source = ",".join(str(folder / part) for part in name.split(","))
        with pytest.raises(ValueError, match=said) as caught:
            read_table(source, labelled=True)
        assert "\n" not in str(caught.value), name
        assert str(caught.value).endswith("."), name
        seen += 1
    assert seen > 30


def test_a_pair_needs_two_arrays(folder):
    with pytest.raises(ValueError, match=r"must be a \.npy file"):
        read_table(f"{folder / 'X.npy'},{folder / 'data.csv'}", labelled=True)
    with pytest.raises(ValueError, match="names 2 files"):
        read_table(f"{folder / 'data.csv'},{folder / 'data.npz'}", labelled=True)


UNNAMED = ("train.npz", "X_train.npy,y_train.npy", "train.svmlight")


@pytest.mark.parametrize("train", UNNAMED)
def test_names_of_columns_that_have_none_are_refused(train, data):
    """They would be ignored: columns called so would be features, and other labels the labels."""
    dump_svmlight_file(X_TRAIN, np.unique(Y_TRAIN, return_inverse=True)[1], "train.svmlight")
    said = refused("certify", train, "test.npz", "--drop", "a", "--quiet")
    assert f"--drop a names a column, but the features of {train} are columns without names; leave it out" in said
    said = refused("certify", train, "test.npz", "--label", "species", "--quiet")
    if train == "train.npz":
        assert "train.npz has no array 'species' of labels; it holds X, y." in said
    else:
        assert f"--label species names a column, but those of {train} have no names" in said


def test_a_label_names_an_array_of_an_archive(data):
    np.savez("named.npz", X=X_TRAIN, y=np.zeros(75), species=Y_TRAIN)
    named = summary_of("certify", "named.npz", "test.npz", "--label", "species")
    assert "accuracy" not in named["metrics"]  # the test file has no such array, and so no labels
    usual = summary_of("certify", "train.npz", "test.npz")
    assert named["metrics"]["largest_radius"] == usual["metrics"]["largest_radius"]
    # A name is for the files that have names: the other's labels are beside its features.
    table = pd.read_csv("train.csv").rename(columns={"label": "species"})
    table.to_csv("species.csv", index=False)
    mixed = summary_of("certify", "species.csv", "X_test.npy,y_test.npy", "--label", "species", "--scale", "none")
    assert mixed["metrics"]["accuracy"] == usual["metrics"]["accuracy"]


def test_a_column_has_one_meaning(data):
    assert "--drop label is the column of the labels of train.csv" in refused(
        "certify", "train.csv", "test.csv", "--drop", "label", "--quiet"
    )
    assert "--trusted label is the column of the labels of train.csv" in refused(
        "certify", "train.csv", "test.csv", "--trusted", "label", "--quiet"
    )
    assert "--trusted y is the array of the labels of train.npz" in refused(
        "certify", "train.npz", "test.npz", "--trusted", "y", "--quiet"
    )

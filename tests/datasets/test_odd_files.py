"""Whatever is given as TRAIN or TEST: a result, or one sentence that names the file. Never a wait, never "a bug"."""

from __future__ import annotations

import gzip
import os
import re
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from flipcert.classifiers.network import bounded_network
from flipcert.datasets.files import read_table
from tests.helpers.command_line import X_TRAIN, Y_TRAIN, refused, run

GOOD = "a,b,label\n" + "".join(f"{i % 7 + 0.5},{i % 5},{'abc'[i % 3]}\n" for i in range(30))
JUNK = np.random.default_rng(0).bytes(3000)
ENDINGS = ("npz", "npy", "csv", "csv.gz", "tsv", "parquet", "svmlight", "xyz")


def labelled(*labels):
    return "a,b,label\n" + "".join(f"{i},{i % 2},{label}\n" for i, label in enumerate(labels))


# What the file holds, and what is said of it: the same, as a training and as a test file.
TEXTS = {
    "semicolons.csv": (GOOD.replace(",", ";"), r"separated by ';'; they must be by ','"),
    "decimal commas.csv": ("a;label\n1,5;0\n2,5;1\n", r"separated by ';'; they must be by ','"),
    "a comma in a name.csv": ("a, in cm;b;c;d;label\n1;1;1;1;0\n", r"separated by ';'; they must be by ','"),
    "tabs.csv": (GOOD.replace(",", "\t"), r"separated by '\\t'; they must be by ','"),
    "commas.tsv": (GOOD, r"separated by ','; they must be by '\\t'"),
    "latin1.csv": (GOOD.replace(",a\n", ",é\n").encode("latin-1"), "no UTF-8 text; save it as UTF-8"),
    "latin1-header.csv": (GOOD.replace("a,", "é,").encode("latin-1"), "no UTF-8 text; save it as UTF-8"),
    "utf16.csv": (GOOD.encode("utf-16"), "it is UTF-16 text; save it as UTF-8"),
    "twice.csv": (GOOD.replace("a,b", "a,a"), "more than one column 'a'"),
    "nan.csv": ("a,b,label\nnan,,x\n,nan,y\n", "has nan in row 0, column 'a'"),
    "infinite.csv": ("a,b,label\n1e999,1,x\n2,1,y\n", "has inf in row 0, column 'a'"),
    "words.csv": (GOOD.replace("0.5", "half"), "column 'a' of .* holds string, not numbers"),
    "dates.csv": (GOOD.replace("0.5", "2020-01-01"), "column 'a' of .* not numbers"),
    "open-quote.csv": ('a,b,label\n1,2,"x\n3,4,y\n5,6,z\n', "a line break in row 0; perhaps a quote is left open"),
    "zero-byte.csv": (labelled("x\0", "x", "y"), "hold a zero byte"),
    "ragged.csv": ("a,b,label\n1,2,3,x\n3,4,y\n", "Expected 3 columns, got 4"),
    "blank.csv": ("\n\n\n", "cannot be read as csv"),
    "gaps.csv": (labelled(1, "NA", 2), "has no label in row 1"),
    "fractions.csv": (labelled(0.25, 0.5, 0.25), "are fractions, such as 0.25; labels are classes"),
    "cut.csv.gz": (gzip.compress(GOOD.encode() * 50)[:-20], "ended before the end-of-stream marker"),
    "damaged.csv.gz": (gzip.compress(GOOD.encode())[:-8] + bytes(8), "CRC check failed"),
    "whole.csv": ("a,b,label\n9007199254740993,1,x\n2,1,y\n", "has 9007199254740993 in row 0, column 'a'; .*2\\*\\*53"),
    "long.csv": (f"a,b,label\n1.5,{'9' * 30},x\n2,1,y\n", "has 9{30} in row 0, column 'b'"),
    "whole.svmlight": ("1 1:2\n0 1:9007199254740993\n", "has 9007199254740993 in row 1, column 1;"),
    "labels.svmlight": ("-9007199254740993 1:2\n0 1:3\n", "has -9007199254740993 in row 0, column of the labels"),
    "several.svmlight": ("1,2 1:3\n0 1:3\n", "cannot be read as svmlight"),
}  # fmt: skip
ARRAYS = {
    "whole": ({"X": [[2**53 + 1, 1], [3, 4]], "y": [0, 1]}, r"has 9007199254740993 in row 0, column 0; .*2\*\*53"),
    "unsigned": ({"X": np.array([[1, 2**63], [3, 4]], np.uint64), "y": [0, 1]}, "in row 0, column 1; "),
    "complex": ({"X": np.ones((2, 2), complex), "y": [0, 1]}, "must be numbers"),
    "dates": ({"X": np.ones((2, 2)), "y": np.array(["2020", "2021"], "M8[D]")}, "must be numbers or strings"),
    "latin1": ({"X": np.eye(2), "y": np.array([b"\xe9", b"b"])}, "labels of .* are bytes that are no UTF-8 text"),
    "scalar": ({"X": 3.0, "y": 1}, "they must be a matrix"),
    "column": ({"X": np.eye(2), "y": [[0], [1]]}, "give one label a row"),
    "narrow": ({"X": np.ones((3, 0)), "y": [0, 1, 0]}, "has no features"),
}
COLUMNS = {
    "bytes": ({"a": [1.0, 2.0], "label": [b"x", b"\xe9"]}, "bytes that are no UTF-8 text"),
    "lists": ({"a": [1.0, 2.0], "label": [[1], [2]]}, "are list<.*>, not numbers or strings"),
    "whole": ({"a": [1, 2**60], "label": [1, 2]}, "has 1152921504606846976 in row 1, column 'a'"),
    "vectors": ({"a": [[1, 2**60], [3, 4]], "label": [1, 2]}, r"has 1152921504606846976 in row 0, column 'a\.1'"),
    "gap": ({"a": [1.0, 2.0], "label": ["x", None]}, "has no label in row 1"),
    "empty": ({"a": pa.array([], pa.float64()), "label": pa.array([], pa.int64())}, "has no rows"),
    "words": ({"a": ["x", "y"], "label": [1, 2]}, "column 'a' of .* holds string, not numbers"),
    "structs": ({"a": [{"q": 1}, {"q": 2}], "label": [1, 2]}, "not numbers"),
    "nothing": ({}, "has no rows"),
}


def odd_files():
    """Write all files; yield the name of each and what is said of it."""
    for name, (content, said) in TEXTS.items():
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
        yield name, said
    for name, (arrays, said) in ARRAYS.items():
        np.savez(f"array-{name}.npz", **arrays)
        yield f"array-{name}.npz", said
    for name, (columns, said) in COLUMNS.items():
        parquet.write_table(pa.table(columns), f"columns-{name}.parquet")
        yield f"columns-{name}.parquet", said
    for ending in ENDINGS:
        for kind, content in (("junk", JUNK), ("zeros", bytes(3000)), ("text", b"hello\nworld\n"), ("empty", b"")):
            Path(f"{kind}.{ending}").write_bytes(content)
            yield f"{kind}.{ending}", ""
    numbers = np.random.default_rng(0).normal(size=(50, 4))
    for damaged in ("damaged", "compressed"):
        (np.savez if damaged == "damaged" else np.savez_compressed)("whole.npz", X=numbers, y=np.arange(50) % 2)
        content = bytearray(Path("whole.npz").read_bytes())
        content[300] ^= 255
        Path(f"{damaged}.npz").write_bytes(content)
        yield f"{damaged}.npz", "its array X is damaged"
    with zipfile.ZipFile("other.npz", "w") as archive:
        archive.writestr("X.npy", b"hello")
    yield "other.npz", "its array X is damaged"
    Path("folder.csv").mkdir()
    yield "folder.csv", "holds no X.npy"
    Path("shards").mkdir()
    for number in (0, 1):
        np.save(f"shards/X-{number}.npy", np.eye(2))
    Path("shards/X-1.npy").write_bytes(Path("shards/X-1.npy").read_bytes()[:-8])
    yield "shards", "shards/X-1.npy cannot be read as npy"
    for odd in ("", ",", "X.npy,", "nowhere.csv", "-", "digits:validation", "digits:train"):
        yield odd, "does not exist|leaves out the name of a file|has an ending that is not known"


def test_odd_files_get_one_sentence_that_names_them(data):
    seen = 0
    for name, said in odd_files():
        for train, test in ((name, "test.csv"), ("train.csv", name)):
            sentence = refused("certify", train, test, "--quiet")
            assert re.search(said, sentence, re.IGNORECASE), (name, sentence)
            assert name.removesuffix(":train") in sentence, (name, sentence)
            assert len(sentence) < 500, sentence
        seen += 1
    assert seen > 80


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes on this system")
def test_what_would_wait_for_ever_is_refused(data):
    for name in ("pipe.csv", "pipe.npz", "pipes/X-000.npy"):
        Path(name).parent.mkdir(exist_ok=True)
        os.mkfifo(name)
        source = str(Path(name).parent) if "/" in name else name
        for train, test in ((source, "test.csv"), ("train.csv", source)):
            assert f"{name} is a named pipe, not a file" in refused("certify", train, test, "--quiet")
    assert "/dev/zero is a device, not a file" in refused("certify", "/dev/zero", "test.csv", "--quiet")


ODD_BUT_GOOD = {
    "bom.csv": b"\xef\xbb\xbf" + GOOD.encode(),
    "windows.csv": GOOD.replace("\n", "\r\n").encode(),
    "old-mac.csv": GOOD.replace("\n", "\r").encode(),
    "unicode.csv": GOOD.replace(",a\n", ",日本\n").encode(),
    "spaces.csv": GOOD.replace(",a\n", ",a b \n").encode(),
    "quoted.csv": GOOD.replace(",a\n", ',"a, ""b"""\n').encode(),
    "blank-lines.csv": GOOD.replace("\n", "\n\n").encode(),
    "UPPER.CSV.GZ": gzip.compress(GOOD.encode()),
    "long-rows.csv": GOOD.replace("0.5", "0.5" + "0" * 2**22, 2).encode(),
}


@pytest.mark.parametrize("name", ODD_BUT_GOOD)
def test_odd_files_that_are_read(data, name):
    Path(name).write_bytes(ODD_BUT_GOOD[name])
    result = run("certify", name, name, "--quiet")
    assert result.exit_code == 0, result.output
    table = read_table(name, labelled=True)
    first = {"unicode.csv": "日本", "spaces.csv": "a b ", "quoted.csv": 'a, "b"'}.get(name, "a")
    assert table.y[:2].tolist() == [first, "b"]
    assert table.X[[0, 8]].tolist() == [[0.5, 0], [1.5, 3]]


def test_numbers_too_large_for_the_model_get_one_sentence(data):
    Path("huge.csv").write_text("a,b,label\n1e308,1e308,x\n-1e308,1e307,y\n1e308,0,x\n")
    assert "rescale the features" in refused("certify", "huge.csv", "huge.csv", "--quiet")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@given(place=st.floats(0, 1, exclude_max=True), change=st.integers(1, 255), cut=st.booleans())
def test_damaged_archives_never_raise_anything_else(save, tmp_path_factory, place, change, cut):
    folder = tmp_path_factory.mktemp("damaged")
    X, y = np.arange(12.0).reshape(6, 2), np.array(["a", "b"] * 3)
    save(folder / "data.npz", X=X, y=y)
    content = bytearray((folder / "data.npz").read_bytes())
    byte = int(place * len(content))
    content[byte] ^= change
    (folder / "data.npz").write_bytes(content[:byte] if cut else content)
    said = str(folder / "data.npz")
    try:
        table = read_table(said, labelled=True)
        assert np.array_equal(table.X, X)
        assert np.array_equal(table.y, y)
    except ValueError as error:
        said = str(error)
    assert str(folder / "data.npz") in said
    assert "\n" not in said


@pytest.mark.parametrize("scale", ["unit", "standard"])
@pytest.mark.parametrize(("size", "dtype"), [(1e300, np.float64), (1e-300, np.float64), (1e30, np.float32)])
def test_scaling_that_would_lose_the_features_is_refused(data, scale, size, dtype):
    """Rows divided by an infinite norm are zeros, and zeros are safe from everybody."""
    np.savez("odd.npz", X=(X_TRAIN * size).astype(dtype), y=Y_TRAIN)
    files = ("certify", "odd.npz", "odd.npz", "--scale", scale, "--quiet")
    if scale == "standard" and dtype == np.float32:
        assert run(*files).exit_code == 0  # columns are added up in double precision
    else:
        assert f"--scale {scale} squares the features, and squares of numbers such as" in refused(*files)


def test_test_points_that_scaling_takes_beyond_all_numbers(data):
    np.savez("close.npz", X=X_TRAIN * 1e-100, y=Y_TRAIN)
    np.savez("far.npz", X=np.full((2, 4), 1e250))
    assert "--scale standard overflowed" in refused("certify", "close.npz", "far.npz", "--scale", "standard", "--quiet")


def test_networks_larger_than_memory_are_refused(data, monkeypatch):
    monkeypatch.setattr(bounded_network, "available_memory", lambda: 2e10)
    files = ("certify", "train.npz", "test.npz", "--model", "network", "--quiet")
    assert "--hidden 10000000000000,3 makes 80,000,000,000,015 parameters" in refused(
        *files, "--hidden", "10000000000000,3"
    )
    few_units = refused(*files, "--hidden", "100000000")
    assert "parameters, which take at least 72.8 GB of memory with batches of 75" in few_units
    assert "--epochs 99999999999999 makes 99,999,999,999,999 steps" in refused(*files, "--epochs", "99999999999999")


def test_warnings_are_notes_without_places_in_code(data):
    np.savez("many.npz", X=X_TRAIN, y=np.arange(75))
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        result = run("certify", "many.npz", "many.npz", "--quiet")
        if tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8):  # older ones have no such warning
            assert "Note: The number of unique classes is greater than 50% of the number of samples." in result.stderr
        assert ".py" not in result.stderr
        result = run("certify", "train.npz", "test.npz", "--model", "smoothed", "--method", "published", "--quiet")
        assert "Note: --method published is for reproducing the paper" in result.stderr
        assert ".py" not in result.stderr

"""Files of labels that somebody checks: written, filled in, read again, and all that can be wrong with them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from flipcert.datasets.checked import read_checked, write_to_check
from flipcert.datasets.table import Table


def table(y, ids=None, trusted=None):
    y = np.asarray(y)
    ids = None if ids is None else np.asarray(ids)
    return Table("train.csv", np.zeros((y.size, 2)), y, ids=ids, trusted=trusted)


ANIMALS = table(["cat", "dog", "cat", "eel, young", 'a "pet"'])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "to-check.csv"


def filled(path, **cells):
    """The file with some cells of the column filled in."""
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    for row, label in cells.items():
        frame.loc[frame.index[frame.iloc[:, 0] == row.removeprefix("r")], "checked"] = label
    frame.to_csv(path, index=False)
    return path


def test_what_is_written_is_read_again(path):
    write_to_check(path, ANIMALS, np.array([4, 0, 3]), beside={"draw": [1, 2, 3]})
    assert path.read_text().splitlines()[:2] == ["row,label,checked,draw", '4,"a ""pet""",,1']
    found = read_checked(filled(path, r0="dog", r3="eel, young"), ANIMALS, beside=["draw"])
    assert found.rows.tolist() == [4, 0, 3]
    assert found.looked.tolist() == [False, True, True]
    assert found.wrong.tolist() == [False, True, False]
    assert found.labels.tolist() == ['a "pet"', "dog", "eel, young"]
    assert found.beside == {"draw": ["1", "2", "3"]}
    after = found.corrected(ANIMALS)
    assert after.y.tolist() == ["dog", "dog", "cat", "eel, young", 'a "pet"']
    assert after.trusted.tolist() == [True, False, False, True, False]
    assert ANIMALS.y[0] == "cat"


def test_a_longer_label_is_not_cut_and_earlier_trust_is_kept(path):
    train = table(["a", "b", "a"], trusted=np.array([False, False, True]))
    write_to_check(path, train, np.array([1]))
    found = read_checked(filled(path, r1="albatross"), train, classes=["a", "b", "albatross"])
    assert found.corrected(train).y.tolist() == ["a", "albatross", "a"]
    assert found.corrected(train).trusted.tolist() == [False, True, True]


@pytest.mark.parametrize("y", [[3, 7, 3], [3.0, 7.0, 3.0], np.array([3, 7, 3], np.uint8)])
@pytest.mark.parametrize("spelled", ["7", "7.0", " 7", "07"])
def test_numbers_are_found_however_they_are_spelled(path, y, spelled):
    write_to_check(path, table(y), np.array([0]))
    found = read_checked(filled(path, r0=spelled), table(y))
    assert found.labels.tolist() == [7]
    assert found.corrected(table(y)).y.dtype == np.asarray(y).dtype


def test_words_are_found_as_they_are_spelled(path):
    train = table(["7", "07", "x"])
    write_to_check(path, train, np.array([2]))
    assert read_checked(filled(path, r2="07"), train).labels.tolist() == ["07"]
    with pytest.raises(ValueError, match=r"should be '7\.0', which is no label of"):
        read_checked(filled(path, r2="7.0"), train)


def test_numbers_that_doubles_confuse_are_told_apart(path):
    train = table([2**53, 2**53 + 1, 5])
    write_to_check(path, train, np.array([0, 1]))
    found = read_checked(filled(path, r0=str(2**53 + 1), r1=str(2**53 + 1)), train)
    assert found.wrong.tolist() == [True, False]
    with pytest.raises(ValueError, match="which is no label"):
        read_checked(filled(path, r0=f"{2**53 + 1}.0"), train)


def test_flags_are_found_as_spreadsheets_write_them(path):
    train = table([True, False])
    write_to_check(path, train, np.array([0, 1]))
    found = read_checked(filled(path, r0="FALSE", r1="False"), train)
    assert found.wrong.tolist() == [True, False]


def test_rows_are_found_by_id(path):
    train = table(["x", "y", "x"], ids=["b-9", "007", "c"])
    write_to_check(path, train, np.array([1, 2]), id="key")
    assert path.read_text().splitlines()[0] == "key,label,checked"
    assert read_checked(filled(path, r007="x"), train, id="key").wrong.tolist() == [True, False]


def test_a_parquet_file_with_gaps_is_as_good(path, tmp_path):
    train = table([3, 7, 3])
    frame = pd.DataFrame({"row": [0, 2], "label": [3, 3], "checked": [np.nan, 7.0]})
    frame.to_parquet(tmp_path / "checked.parquet")
    found = read_checked(tmp_path / "checked.parquet", train)
    assert (found.looked.tolist(), found.labels.tolist()) == ([False, True], [3, 7])


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["9,cat,cat"], "has a check of row '9', but train.csv has rows 0 to 4"),
        (["cat-7,cat,cat"], "has a check of row 'cat-7', but train.csv has rows 0 to 4"),
        (["0,dog,cat"], "says that the label of row 0 is 'dog', but in train.csv it is 'cat'"),
        (["0,cat,cow"], "says that the label of row 0 should be 'cow', which is no label of train.csv"),
        (["0,cat,cat", "0,cat,dog"], "has row 0 more than once"),
        ([",cat,cat"], "has no row number in row 0"),
        ([], "has no labels"),
    ],
)
def test_bad_files_get_one_sentence(path, lines, said):
    path.write_text("\n".join(["row,label,checked", *lines]) + "\n")
    with pytest.raises(ValueError, match=r"check|label|row") as error:
        read_checked(path, ANIMALS)
    assert said in str(error.value)
    assert str(error.value).count("\n") == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("row,label\n0,cat\n", "has no column 'checked'"),
        ("row,label,checked,checked\n0,cat,,\n", "more than one column 'checked'"),
        ("row;label;checked\n0;cat;\n", "separated by ';'"),
    ],
)
def test_other_files_get_one_sentence(path, text, said):
    path.write_text(text)
    with pytest.raises(ValueError, match=r"column|separated") as error:
        read_checked(path, ANIMALS)
    assert said in str(error.value)


def test_a_file_that_is_not_there_or_unknown_gets_one_sentence(path, tmp_path):
    with pytest.raises(ValueError, match="does not exist"):
        read_checked(path, ANIMALS)
    (tmp_path / "checked.xlsx").write_bytes(b"PK")
    with pytest.raises(ValueError, match="ending that is not known"):
        read_checked(tmp_path / "checked.xlsx", ANIMALS)


def test_what_was_filled_in_is_not_replaced(path, tmp_path):
    write_to_check(path, ANIMALS, np.array([0, 1]))
    write_to_check(path, ANIMALS, np.array([2, 1]))
    before = filled(path, r2="cat").read_bytes()
    with pytest.raises(ValueError, match=r"has been filled in \(1 of 2 lines\)"):
        write_to_check(path, ANIMALS, np.array([0, 1]))
    other = tmp_path / "train.csv"
    other.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="no file of labels to check"):
        write_to_check(other, ANIMALS, np.array([0]))
    assert path.read_bytes() == before
    assert other.read_text() == "a,b\n1,2\n"


def test_what_cannot_be_read_again_is_not_written(path):
    with pytest.raises(ValueError, match="has a line break"):
        write_to_check(path, table(["a\nb", "c"]), np.array([0]))
    assert not path.exists()
    with pytest.raises(ValueError, match="has the id 'x' in rows 0 and 1"):
        write_to_check(path, table(["a", "b"], ids=["x", "x"]), np.array([0]), id="key")
    with pytest.raises(ValueError, match="is the name of another column"):
        write_to_check(path, table(["a", "b"], ids=["x", "y"]), np.array([0]), id="checked")
    with pytest.raises(ValueError, match=r"must end in \.csv"):
        write_to_check(path.with_suffix(".xlsx"), ANIMALS, np.array([0]))
    with pytest.raises(ValueError, match="does not exist; make it first"):
        write_to_check(path.parent / "none" / "a.csv", ANIMALS, np.array([0]))

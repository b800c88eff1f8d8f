"""Text and gaps become numbers by the training rows alone, as scikit-learn does it; scales of tables are chosen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flipcert.datasets.facts import facts
from flipcert.datasets.files import Columns, read_table
from flipcert.datasets.preparation import prepare
from flipcert.datasets.table import Table
from flipcert.engine import blocks
from flipcert.runs.scaling import settled, share_one_scale
from flipcert.runs.settings import AUTO, Settings

NUMBERS = st.one_of(st.just(np.nan), st.integers(-3, 3).map(float), st.floats(-1e6, 1e6))
TEXTS = st.one_of(st.none(), st.sampled_from(["a", "b", "c", "é", "a,b"]))


@st.composite
def tables(draw, n_columns, n_texts, new=False):
    n_rows = draw(st.integers(1, 12))
    X = np.array(
        draw(st.lists(st.lists(NUMBERS, min_size=n_columns, max_size=n_columns), min_size=n_rows, max_size=n_rows))
    )
    choice = st.one_of(TEXTS, st.just("new")) if new else TEXTS
    texts = {
        f"t{i}": np.array([*draw(st.lists(choice, min_size=n_rows, max_size=n_rows)), None], object)[:-1]
        for i in range(n_texts)
    }
    names = tuple(f"x{i}" for i in range(n_columns))
    return Table("table", X.reshape(n_rows, n_columns), None, names=names, texts=texts, gaps=True, tabular=True)


def by_hand(train, test, impute):
    """The same in plain Python: column by column, without scikit-learn."""
    columns = {}
    for place, name in enumerate(train.names):
        present = sorted(value for value in train.X[:, place] if value == value)
        middle = len(present) // 2
        if impute == "median":
            fill = present[middle] if len(present) % 2 else (present[middle - 1] + present[middle]) / 2
        else:
            fill = max(dict.fromkeys(present), key=lambda value: (present.count(value), -value))
        columns[name] = [[fill if value != value else value for value in own.X[:, place]] for own in (train, test)]
    for name in train.texts:
        present = sorted(value for value in train.texts[name] if value is not None)
        fill = max(dict.fromkeys(present), key=present.count)
        for text in dict.fromkeys(present):
            columns[f"{name}={text}"] = [
                [float((fill if value is None else value) == text) for value in own.texts[name]]
                for own in (train, test)
            ]
    return columns


@settings(max_examples=60)
@given(data=st.data(), impute=st.sampled_from(["median", "most-frequent"]))
def test_what_is_filled_in_and_encoded_is_what_plain_python_says(data, impute):
    n_columns, n_texts = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 2))
    train, test = data.draw(tables(n_columns, n_texts)), data.draw(tables(n_columns, n_texts, new=True))
    empty = [name for i, name in enumerate(train.names) if np.isnan(train.X[:, i]).all()]
    empty += [name for name, own in train.texts.items() if all(text is None for text in own)]
    if empty:
        with pytest.raises(ValueError, match="is empty, so nothing can be filled in"):
            prepare(train, test, "onehot", impute)
        return
    first, second = prepare(train, test, "onehot", impute)
    expected = by_hand(train, test, impute)
    assert first.names == tuple(expected)
    for place, columns in enumerate(expected.values()):
        for own, values in zip((first, second), columns, strict=True):
            np.testing.assert_allclose(own.X[:, place], values, rtol=1e-15)
    # Test rows are never looked at: others, or one at a time, leave all else as it is.
    alone = replace(test, X=test.X[:1], texts={name: own[:1] for name, own in test.texts.items()})
    again, one = prepare(train, alone, "onehot", impute)
    assert again.X.tobytes() == first.X.tobytes()
    assert one.X.tobytes() == second.X[:1].tobytes()


def test_what_is_larger_than_memory_is_prepared_in_pieces(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(40_000, 3)).astype(np.float32), columns=["a", "b", "c"])
    table.loc[rng.choice(40_000, 500), "b"] = np.nan
    table["t"] = rng.choice(["u", "v", "w"], 40_000)
    table["label"] = rng.integers(0, 2, 40_000)
    table.to_parquet(tmp_path / "table.parquet")
    columns = Columns(encode=True, impute=True)
    told = []
    for budget in (2**30, 2**18):
        monkeypatch.setattr(blocks, "memory_budget", lambda budget=budget: budget)
        monkeypatch.setattr("flipcert.engine.mapped.memory_budget", lambda budget=budget: budget)
        read = read_table(tmp_path / "table.parquet", columns, labelled=True)
        first, _ = prepare(read, read, "onehot", "median")
        assert isinstance(first.X, np.memmap) == (budget == 2**18)
        assert first.X.dtype == np.float32
        told.append(np.array(first.X))
    assert told[0].tobytes() == told[1].tobytes()
    assert told[0].shape == (40_000, 6)


def test_columns_that_share_one_scale():
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(300, 3))
    yes_no = (rng.random((300, 4)) < [0.5, 0.1, 0.01, 0.9]).astype(float)
    assert share_one_scale(numbers)
    assert share_one_scale(numbers * [1, 5, 9] + 1000)
    assert not share_one_scale(numbers * [1, 5, 50])
    # However rare one of two values is.
    assert share_one_scale(yes_no)
    assert share_one_scale(np.c_[numbers, yes_no])
    assert not share_one_scale(np.c_[numbers * 100, yes_no])
    # Constant columns have no scale.
    assert share_one_scale(np.c_[numbers, np.full(300, 1e9), np.zeros(300)])
    assert share_one_scale(np.ones((5, 2)))
    assert not share_one_scale(np.array([[-1e308, 0.0], [1e308, 1.0]]))
    assert share_one_scale(numbers * 1e-200)
    assert share_one_scale((numbers * 1e30).astype(np.float32))


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1), st.floats(0.2, 100))
def test_the_spread_of_a_column_is_its_standard_deviation(seed, factor):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, 2)) * [1.0, factor] + rng.normal(size=2)
    spreads = X.std(axis=0)
    ratio = spreads.max() / spreads.min()
    if abs(ratio - 10) > 1e-6:
        assert share_one_scale(X) == (ratio <= 10)


def test_auto_is_settled_by_kind_of_table_and_threat():
    wide = Table("t", np.random.default_rng(0).normal(size=(30, 2)) * [1, 1000], None, tabular=True)
    alike = replace(wide, X=wide.X / [1, 1000])
    auto = [Settings(scale=AUTO), Settings(scale="unit")]
    assert [own.scale for own in settled(auto, wide, "flips")] == ["standard", "unit"]
    assert [own.scale for own in settled(auto, alike, "sources")] == ["centre", "unit"]
    assert [own.scale for own in settled(auto, wide, "deletions")] == ["none", "unit"]
    assert [own.scale for own in settled(auto, replace(wide, tabular=False), "flips")] == ["none", "unit"]
    assert [own.scale for own in settled(auto, replace(wide, X=wide.X * 1e200), "flips")] == ["none", "unit"]


def test_what_columns_look_like():
    table = Table(
        "t",
        np.c_[np.arange(30), np.arange(30) % 3, np.arange(30) / 7, np.r_[np.nan, np.ones(29)], np.arange(30) + 2.0**60],
        None,
        names=("number", "class", "fraction", "gap", "large"),
        texts={
            "name": np.array([f"n{i}" for i in range(30)], object),
            "said": np.array([f"this is what number {i} said" for i in range(30)], object),
            "mixed": np.array(["?", *map(str, range(29))], object),
        },
    )
    seen = {column.name: column for column in facts(table)}
    assert [name for name, column in seen.items() if column.is_id] == ["number", "name"]
    assert (seen["class"].kind, seen["fraction"].kind) == ("whole numbers", "numbers")
    assert (seen["gap"].missing, seen["gap"].different) == (1, 1)
    assert seen["large"].too_large
    assert seen["mixed"].stray == "?"
    assert seen["said"].wordy
    assert not seen["said"].has_categories

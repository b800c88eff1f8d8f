"""Feature files: known by their names, read as they were written, and named when they are bad."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from paper.data import load, names
from paper.data.feature_file import write_features

RNG = np.random.default_rng(0)


def put_features(path: Path, **changes) -> dict[str, np.ndarray]:
    arrays = {
        "x_train": RNG.integers(0, 256, (6, 12), dtype=np.uint8),
        "y_train": np.array([0, 1, 2, 0, 1, 2], np.uint8),
        "x_test": RNG.integers(0, 256, (2, 12), dtype=np.uint8),
        "y_test": np.array([0, 1], np.uint8),
    } | changes
    np.savez(path, **{key: value for key, value in arrays.items() if value is not None})
    return arrays


def test_feature_files_by_name(tmp_path):
    written = put_features(tmp_path / "mine.npz", scale=np.linspace(0.1, 1, 12, dtype=np.float32))
    np.savez(tmp_path / "other.npz", X=np.ones(3))
    found = load("mine", tmp_path)
    assert found.train.X.dtype == np.float32
    np.testing.assert_array_equal(found.train.X, written["x_train"].astype(np.float32) * written["scale"])
    np.testing.assert_array_equal(found.test.y, written["y_test"])
    assert found.image_shape is None
    assert names(tmp_path) == ["cifar10", "digits", "mnist", "mnist-1-vs-7", "mine"]


def test_pixels_stay_bytes_and_shapes_are_kept(tmp_path):
    written = put_features(tmp_path / "mine.npz", image_shape=np.array([3, 2, 2]))
    found = load("mine", tmp_path)
    assert found.train.X.dtype == np.uint8
    assert found.image_shape == (3, 2, 2)
    write_features(tmp_path / "again.npz", found.train, found.test)
    again = load("again", tmp_path)
    np.testing.assert_array_equal(again.train.X, written["x_train"])
    assert again.image_shape == (3, 2, 2)
    assert again.train.y.dtype == np.int64


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"y_test": None}, r"is no feature file: it has no array y_test, only x_train, y_train, x_test"),
        ({"y_train": np.array([0, 1])}, r"mine:train has 6 rows, but labels of shape \(2,\)"),
        ({"x_test": np.ones((2, 5))}, r"mine:test has 5 features, but mine:train has 12"),
        ({"x_train": np.full((6, 12), np.nan)}, r"mine:train has nan in row 0"),
        ({"scale": np.ones(5)}, r"scale of mine:train has shape \(5,\); it must be one number, or one a feature"),
        ({"image_shape": np.array([3, 2, 3])}, r"image_shape \[3, 2, 3\] of .* does not fit its 12 features"),
        ({"y_test": np.array([0, {}], object)}, r"holds Python objects, which are not unpickled"),
    ],
)
def test_bad_feature_files_are_named(tmp_path, changes, said):
    put_features(tmp_path / "mine.npz", **changes)
    with pytest.raises(ValueError, match=said):
        load("mine", tmp_path)


def test_half_a_feature_file_is_named(tmp_path):
    put_features(tmp_path / "mine.npz")
    content = (tmp_path / "mine.npz").read_bytes()
    (tmp_path / "mine.npz").write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match=r"mine.npz cannot be read as npz: it is no archive, or only a part of one"):
        load("mine", tmp_path)
    (tmp_path / "mine.npz").write_bytes(content[:60] + bytes(60) + content[120:])
    with pytest.raises(ValueError, match=r"mine.npz cannot be read as npz: "):
        load("mine", tmp_path)


@pytest.mark.parametrize("name", ["mnits", "", "../mine", "sub/mine"])
def test_unknown_names_are_told_the_known_ones(tmp_path, name):
    put_features(tmp_path / "mine.npz")
    (tmp_path / "data").mkdir()
    with pytest.raises(
        ValueError, match=r"is no data set; there are cifar10, digits, mnist, mnist-1-vs-7, and any NAME"
    ):
        load(name, tmp_path / "data")

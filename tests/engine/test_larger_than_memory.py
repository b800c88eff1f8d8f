"""Training sets in mapped files: nothing of their size is held in memory, and nothing comes out differently."""

from __future__ import annotations

import tempfile

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.linear_model import LogisticRegression

import flipcert
from flipcert.datasets.files import Columns, digest, read_table
from flipcert.engine import mapped
from flipcert.engine import tiles as grid
from flipcert.ensemble.partition import lexicographic_places
from flipcert.kernels import NTK

# A budget that 1,437 digits in single precision are larger than, in megabytes.
SMALL = 0.2


@pytest.fixture
def on_disk(digits, tmp_path):
    """Digits in a mapped file, their labels, and test points."""
    X, y, X_test, _ = digits
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    return np.load(tmp_path / "X.npy", mmap_mode="r"), y, X_test[:40].astype(np.float32)


@pytest.fixture
def small_files_too(monkeypatch):
    """Pages of small files are given back as well, and pieces are small."""
    monkeypatch.setattr(mapped, "_SMALL", 0)
    monkeypatch.setattr(mapped, "_PIECE", 2**14)
    monkeypatch.setattr(grid, "COLUMNS", 512)


MODELS = [
    flipcert.KernelSVM(),
    flipcert.KernelSVM(NTK(bias_std=0.5)),
    flipcert.KernelRidge(reg=1.0),
    flipcert.PartitionEnsemble(flipcert.KernelSVM(), n_partitions=7),
    flipcert.PartitionEnsemble(flipcert.KernelRidge(), n_partitions=7, partition="hash"),
    flipcert.PartitionEnsemble(LogisticRegression(max_iter=20, tol=1.0), n_partitions=5, partition="random"),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_mapped_features_change_nothing(model, on_disk, small_files_too):
    X, y, X_test = on_disk
    expected = model.fit(np.array(X), y).certify(X_test)
    with config_context(working_memory=SMALL):
        assert mapped.is_large(X)
        model.fit(X, y)
    certificates = model.certify(X_test)
    for name in ("prediction", "radius", "radius_upper", "runner_up"):
        assert np.array_equal(getattr(certificates, name), getattr(expected, name)), name


def test_mapped_features_are_not_copied(on_disk, small_files_too, monkeypatch):
    X, y, _ = on_disk
    with config_context(working_memory=SMALL):
        model = flipcert.KernelSVM().fit(X, y)
        assert np.shares_memory(model.X_fit_, X)
        assert np.shares_memory(model.label_linear_.weights.product.right, X)
        assert model.C_max_ == pytest.approx(flipcert.KernelSVM().fit(np.array(X), y).C_max_)
        # What is made of them lies in files of its own.
        for other in (flipcert.KernelSVM(NTK(bias_std=0.5)), flipcert.KernelRidge()):
            assert mapped.is_large(other.fit(X, y).label_linear_.weights.product.right)
        ensemble = flipcert.PartitionEnsemble(flipcert.KernelSVM(), n_partitions=3).fit(X, y)
        assert mapped.is_large(ensemble.electorate_.weights._product.right)
        for estimator in ensemble.estimators_:
            assert isinstance(estimator.X_fit_.base, np.memmap)


def test_places_of_mapped_rows(small_files_too):
    """Rows that tie in one feature after the other, all of them and some."""
    X = np.random.default_rng(0).integers(0, 2, (500, 9)).astype(np.float64)
    X[:, 0] = 1.0
    expected = np.unique(X, axis=0, return_inverse=True)[1].ravel()
    on_disk = mapped.scratch(X.shape, X.dtype)
    on_disk[:] = X
    with config_context(working_memory=1e-3):
        assert mapped.is_large(on_disk)
        assert np.array_equal(lexicographic_places(on_disk), expected)
    assert np.array_equal(lexicographic_places(X), expected)


def test_what_is_not_finite_is_found_in_pieces(on_disk, small_files_too, tmp_path):
    X, y, _ = on_disk
    wrong = np.array(X)
    wrong[1000, 3] = np.nan
    np.save(tmp_path / "wrong.npy", wrong)
    mapped_wrong = np.load(tmp_path / "wrong.npy", mmap_mode="r")
    with config_context(working_memory=SMALL):
        for model in (flipcert.KernelSVM(), flipcert.PartitionEnsemble(flipcert.KernelSVM())):
            with pytest.raises(ValueError, match="Input X contains NaN"):
                model.fit(mapped_wrong, y)
        with pytest.raises(ValueError, match="has nan in row 1000, column 3"):
            read_table(str(tmp_path / "wrong.npy"), labelled=False)


def test_pages_are_given_back_and_come_again(tmp_path, monkeypatch):
    monkeypatch.setattr(mapped, "_SMALL", 0)
    array = mapped.scratch((3000, 50), np.float64)
    for place, rows in mapped.row_pieces(array):
        rows[:] = np.arange(place.start, place.stop)[:, None]
    mapped.give_back(array)
    mapped.give_back(array[7:900])
    assert np.array_equal(array[:, 3], np.arange(3000))
    # A private mapping keeps what was written to it.
    np.save(tmp_path / "X.npy", np.zeros((3000, 50)))
    private = np.load(tmp_path / "X.npy", mmap_mode="c")
    private[:] = 1.0
    mapped.give_back(private)
    assert private.min() == 1.0


def test_scratch_files_have_no_name(tmp_path, monkeypatch):
    """Whatever ends the process, nothing is left behind."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    array = mapped.scratch((1000, 10), np.float32)
    array[:] = 1.0
    assert not list(tmp_path.iterdir())


X = np.arange(60.0).reshape(20, 3)
Y = np.array(["a", "b"] * 10)


def write_npy(folder):
    for shard, rows in enumerate((slice(0, 7), slice(7, 8), slice(8, 20))):
        np.save(folder / f"X-{shard:03d}.npy", X[rows].astype(np.float32))
        np.save(folder / f"y-{shard:03d}.npy", Y[rows])


def write_parquet(folder, **more):
    frame = pd.DataFrame(X.astype(np.float32), columns=["a", "b", "c"]).assign(label=Y, **more)
    for shard, rows in enumerate((slice(0, 7), slice(7, 8), slice(8, 20))):
        frame[rows].to_parquet(folder / f"part-{shard:03d}.parquet", index=False)


@pytest.mark.parametrize("megabytes", [1e-4, 1024])
@pytest.mark.parametrize("write", [write_npy, write_parquet])
def test_shards_are_one_table(write, megabytes, tmp_path, small_files_too):
    write(tmp_path)
    with config_context(working_memory=megabytes):
        table = read_table(str(tmp_path), labelled=True)
        assert isinstance(table.X, np.memmap) == (megabytes < 1)
    assert table.X.dtype == np.float32
    assert np.array_equal(table.X, X)
    assert np.array_equal(table.y, Y)
    before = digest(str(tmp_path))
    last = sorted(tmp_path.iterdir())[-1]
    last.rename(last.with_name(f"z{last.name}"))
    if write is write_npy:
        with pytest.raises(ValueError, match=r"no labels, but .* has; give all shards labels, or none"):
            read_table(str(tmp_path), labelled=True)
    else:
        assert digest(str(tmp_path)) == before


def test_parquet_shards_have_columns(tmp_path):
    write_parquet(tmp_path, sure=[True] + [False] * 19, id=range(20))
    table = read_table(str(tmp_path), Columns(drop=("id",), trusted="sure"), labelled=True)
    assert table.names == ("a", "b", "c")
    assert table.trusted.sum() == 1
    assert np.array_equal(table.X, X)


def test_bad_shards_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"holds no X\.npy"):
        read_table(str(tmp_path), labelled=True)
    write_npy(tmp_path)
    np.save(tmp_path / "X-001.npy", X[7:8, :2])
    with pytest.raises(ValueError, match=r"X-001.npy has 2 features, but .*X-000.npy has 3"):
        read_table(str(tmp_path), labelled=True)
    np.save(tmp_path / "X-001.npy", X[7:8])
    np.save(tmp_path / "y-001.npy", [3])
    with pytest.raises(ValueError, match=r"X-001.npy has labels of type int64"):
        read_table(str(tmp_path), labelled=True)
    np.save(tmp_path / "y-001.npy", Y[:2])
    with pytest.raises(ValueError, match="has 1 row, but labels of shape"):
        read_table(str(tmp_path), labelled=True)
    np.save(tmp_path / "y-001.npy", Y[7:8])
    (tmp_path / "X-002.npy").write_bytes(b"nonsense")
    with pytest.raises(ValueError, match=r"no \.npy file"):
        read_table(str(tmp_path), labelled=True)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", [np.uint8, np.float16, np.float32])
def test_large_files_of_other_formats_are_converted_in_pieces(kind, order, tmp_path, small_files_too):
    values = np.asarray(np.arange(600).reshape(200, 3) % 200, kind, order=order)
    np.save(tmp_path / "X.npy", values)
    with config_context(working_memory=1e-4):
        table = read_table(str(tmp_path / "X.npy"), labelled=False)
    assert isinstance(table.X, np.memmap)
    assert table.X.flags.c_contiguous
    assert table.X.dtype == (np.float64 if kind is np.uint8 else np.float32)
    assert np.array_equal(table.X, values)


def test_rows_that_lie_side_by_side_are_joined_without_a_copy():
    whole = np.arange(24.0).reshape(8, 3).copy()  # with memory of its own, as parts of an ensemble have
    a, b, c = whole[:2], whole[2:7], whole[7:]
    assert mapped.joined([a, b, c]) is whole
    for parts in ([a, b], [b, c], [a, c, b], [a, a, b, c], [a, b[:4], c], [a, b.copy(), c]):
        found = mapped.joined(parts)
        assert found is not whole
        np.testing.assert_array_equal(found, np.concatenate(parts))
    assert mapped.joined([whole]).tolist() == whole.tolist()
    columns = np.asfortranarray(whole)
    np.testing.assert_array_equal(mapped.joined([columns[:2], columns[2:]]), whole)

"""Small files that unpack to gigabytes: measured before they are unpacked, refused with what to do instead."""

from __future__ import annotations

import gzip
import tracemalloc
import zipfile

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn import config_context

from flipcert.datasets.files import read_table
from flipcert.engine import mapped, memory
from tests.helpers.command_line import refused, run

# Bytes that there seem to be.
LITTLE = 50_000 * 1024


@pytest.fixture
def little_memory(tmp_path, monkeypatch):
    """Files as Linux has them, on a machine with fifty megabytes to take."""
    (tmp_path / "meminfo").write_text(f"MemAvailable:  {LITTLE // 1024} kB\n")
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "OWN_GROUPS", tmp_path / "none")
    assert memory.available_memory() == LITTLE


def write_member(archive, name, shape, descr, content):
    with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
        np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
        for piece in content:
            file.write(piece)


def archive_of_zeros(path, n_rows, n_features, descr="<f8", size=8):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        rows = (bytes(n_features * size * 1000) for _ in range(n_rows // 1000))
        write_member(archive, "X", (n_rows, n_features), descr, rows)
        write_member(archive, "y", (n_rows,), "|u1", [bytes([0, 1]) * (n_rows // 2)])


def refusal(source):
    """What is said of a source, without taking the memory that it would need."""
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"needs at least .* GB of memory once .*, but 0\.0512 GB are") as caught:
        read_table(str(source), labelled=True)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken < LITTLE
    assert str(source) in str(caught.value)
    return str(caught.value)


def test_an_archive_is_measured_first(tmp_path, little_memory):
    archive_of_zeros(tmp_path / "bomb.npz", 100_000, 100)
    assert (tmp_path / "bomb.npz").stat().st_size < 200_000
    said = refusal(tmp_path / "bomb.npz")
    assert "save it as X.npy and y.npy, or as shards X-000.npy, y-000.npy" in said
    # Nine bytes for each: itself, and as a double.
    archive_of_zeros(tmp_path / "bytes.npz", 100_000, 100, "|u1", 1)
    refusal(tmp_path / "bytes.npz")
    archive_of_zeros(tmp_path / "fits.npz", 10_000, 100)
    assert read_table(str(tmp_path / "fits.npz"), labelled=True).X.shape == (10_000, 100)


def test_an_archive_that_lies_is_not_believed(tmp_path, little_memory):
    """Neither the directory of the archive nor the header of an array makes more be read than the other says."""
    with zipfile.ZipFile(tmp_path / "header.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        write_member(archive, "X", (2**40, 2**20), "<f8", [bytes(64)])
        write_member(archive, "y", (4,), "|u1", [b"0101"])
    with pytest.raises(ValueError, match=r"its array X is damaged \(it announces .* bytes and has"):
        read_table(str(tmp_path / "header.npz"), labelled=True)
    archive_of_zeros(tmp_path / "directory.npz", 100_000, 100)
    content = (tmp_path / "directory.npz").read_bytes()
    with zipfile.ZipFile(tmp_path / "directory.npz") as archive:
        (size,) = (member.file_size for member in archive.infolist() if member.filename == "X.npy")
    before, _, after = content.rpartition(size.to_bytes(4, "little"))  # the directory is at the end
    (tmp_path / "directory.npz").write_bytes(before + (8_000_128).to_bytes(4, "little") + after)
    tracemalloc.start()
    with pytest.raises(ValueError, match="its array X is damaged"):
        read_table(str(tmp_path / "directory.npz"), labelled=True)
    assert tracemalloc.get_traced_memory()[1] < LITTLE
    tracemalloc.stop()


def test_compressed_text_is_measured_first(tmp_path, little_memory):
    with gzip.open(tmp_path / "bomb.csv.gz", "wb") as file:
        file.write(b"a,b,label\n" + b"0,0,1\n0,1,0\n" * 500_000)
    assert (tmp_path / "bomb.csv.gz").stat().st_size < 100_000
    assert "X-000.npy" in refusal(tmp_path / "bomb.csv.gz")
    (tmp_path / "bomb.csv").write_bytes(b"a,b,label\n" + b"0,0,1\n0,1,0\n" * 500_000)
    refusal(tmp_path / "bomb.csv")
    (tmp_path / "fits.csv").write_bytes(b"a,b,label\n" + b"0,0,1\n0,1,0\n" * 50_000)
    assert read_table(str(tmp_path / "fits.csv"), labelled=True).X.shape == (100_000, 2)


def test_a_label_that_is_far_too_long(tmp_path, little_memory):
    (tmp_path / "long.csv").write_text("a,label\n1," + "y" * 10_000 + "\n" + "2,x\n" * 2_000)
    with pytest.raises(ValueError, match=r"column 'label' of .*long\.csv, with labels of up to 10,000 char"):
        read_table(str(tmp_path / "long.csv"), labelled=True)
    table = pa.table({"a": np.zeros(2_000), "label": pa.array(["y" * 10_000] * 2_000)})
    parquet.write_table(table, tmp_path / "long.parquet")
    assert (tmp_path / "long.parquet").stat().st_size < 10_000
    with pytest.raises(ValueError, match=r"column 'label' of .*long\.parquet, with labels of up to 10,000 characters"):
        read_table(str(tmp_path / "long.parquet"), labelled=True)


def test_one_column_number_makes_no_matrix(tmp_path, little_memory):
    (tmp_path / "wide.svmlight").write_text("1 1:2\n0 2000000000:1\n")
    refusal(tmp_path / "wide.svmlight")


def test_packed_columns_go_to_a_scratch_file_if_there_is_room(tmp_path, little_memory, monkeypatch):
    n_rows = 1_000_000
    rows = pa.table({"a": np.zeros(n_rows), "b": np.zeros(n_rows), "label": np.arange(n_rows) % 2})
    parquet.write_table(rows, tmp_path / "packed.parquet", compression="zstd")
    assert (tmp_path / "packed.parquet").stat().st_size < 200_000
    with config_context(working_memory=1):
        table = read_table(str(tmp_path / "packed.parquet"), labelled=True)
        assert isinstance(table.X, np.memmap)
        assert table.X.shape == (n_rows, 2)
        assert table.y[-3:].tolist() == [1, 0, 1]
        monkeypatch.setattr(mapped.shutil, "disk_usage", lambda folder: type("", (), {"free": 10**6}))
        with pytest.raises(ValueError, match=r"0\.001 GB of free space, but 0\.016 GB are needed; .* let TMPDIR"):
            read_table(str(tmp_path / "packed.parquet"), labelled=True)
    labels = pa.table({"a": np.zeros(4 * n_rows, np.int8), "label": np.zeros(4 * n_rows, np.int8)})
    parquet.write_table(labels, tmp_path / "labels.parquet", compression="zstd")
    assert "with its 4,000,000 labels, needs" in refusal(tmp_path / "labels.parquet")


def test_wide_rows_of_columns_are_unpacked_a_few_at_a_time(tmp_path):
    from flipcert.datasets.shards import _rows_at_a_time

    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(200 * 100_000)), 100_000)
    parquet.write_table(pa.table({"v": vectors}), tmp_path / "wide.parquet")
    assert 1 <= _rows_at_a_time(parquet.read_metadata(tmp_path / "wide.parquet")) < 100
    assert read_table(str(tmp_path / "wide.parquet"), labelled=False).X.shape == (200, 100_000)


def test_bytes_of_a_mapped_file_become_doubles_in_a_scratch_file(tmp_path):
    np.save(tmp_path / "X.npy", np.ones((1000, 300), np.uint8))
    with config_context(working_memory=1):
        assert isinstance(read_table(str(tmp_path / "X.npy"), labelled=False).X, np.memmap)


def test_the_shell_says_the_same(data, little_memory):
    archive_of_zeros("bomb.npz", 100_000, 100)
    assert "bomb.npz needs at least 0.0801 GB of memory once it is unpacked" in refused(
        "certify", "bomb.npz", "test.npz"
    )
    assert run("certify", "train.npz", "test.npz", "--quiet").exit_code == 0

"""Runs on svmlight files that are mostly zeros: nothing but blocks of them is ever dense."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

import flipcert
from flipcert.datasets import room
from flipcert.datasets.files import read_table
from tests.helpers.command_line import refused, run, summary_of
from tests.helpers.sparse import mostly_zeros


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Whole numbers, a twentieth of them not zero, beside dense copies in .npz files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    rng = np.random.default_rng(0)
    X, y = mostly_zeros(rng, 60, 80, filled=0.06), rng.integers(0, 3, 60)
    X[:, -1], X[0, -1] = 0, 1  # both files are as wide as that
    for name, rows in (("train", slice(0, 40)), ("test", slice(40, 60))):
        dump_svmlight_file(X[rows], y[rows], f"{name}.svm", zero_based=False)
        np.savez(f"{name}.npz", X=X[rows], y=y[rows])
    return X, y


def test_files_stay_sparse(files):
    X, y = files
    table = read_table("train.svm", labelled=True)
    assert sparse.issparse(table.X)
    assert np.array_equal(table.X.toarray(), X[:40])
    assert np.array_equal(table.y, y[:40])
    dump_svmlight_file(np.ones((4, 3)), np.arange(4) % 2, "full.svm", zero_based=False)
    assert isinstance(read_table("full.svm", labelled=True).X, np.ndarray)


RUNS = {
    "linear": ("--kernel", "linear"),
    "scaled": ("--kernel", "linear", "--scale", "unit"),
    "ridge": ("--model", "ridge", "--kernel", "rbf"),
    "neighbours": ("--model", "neighbors", "--neighbors", 3),
    "votes": ("--kernel", "linear", "--partitions", 2, "--partition-rule", "hash"),
    "sweep": ("--kernel", "rbf", "--partitions", "1,2"),
    "deleted": ("--kernel", "linear", "--threat", "deletions", "--classes", "0,1,2"),
    "inserted": ("--kernel", "rbf", "--threat", "insertions", "--classes", "0,1,2"),
    "together": ("--kernel", "linear", "--collective", "1,2"),
    # Those need dense features, and there is room for them.
    "standard": ("--kernel", "linear", "--scale", "standard"),
    "spreading": ("--model", "spreading", "--neighbors", 3),
}


@pytest.mark.parametrize("name", RUNS)
def test_runs_and_second_opinions(name, files):
    command = "sweep" if name == "sweep" else "certify"
    for kind in ("svm", "npz"):
        summary_of(command, f"train.{kind}", f"test.{kind}", *RUNS[name], "--out", kind)
    one, other = (pd.read_parquet(f"{kind}/certificates.parquet") for kind in ("svm", "npz"))
    sure = ~(one.rounding_sensitive | other.rounding_sensitive)
    for column in ("prediction", "radius", "radius_upper"):
        assert one[column][sure].equals(other[column][sure])
    result = run("verify", "svm", "train.svm", "test.svm", "--points", 10, "--quiet")
    assert result.exit_code == 0, result.output
    # A run that was finished is recalled, block by block.
    assert run(command, "train.svm", "test.svm", *RUNS[name], "--out", "svm", "--quiet").exit_code == 0


def test_attacks_and_checks(files):
    assert run("attack", "train.svm", "test.svm", "--kernel", "linear", "--row", 1).exit_code == 0
    result = run("audit", "train.svm", "test.svm", "--kernel", "linear", "--labels", 3, "--flips", 1, "--out", "audit")
    assert result.exit_code == 0, result.output
    expected = flipcert.KernelSVM("linear").fit(files[0][:40], files[1][:40]).certify(files[0][40:])
    summary_of("certify", "train.svm", "test.npz", "--kernel", "linear", "--out", "mixed")
    assert np.array_equal(pd.read_parquet("mixed/certificates.parquet").radius, expected.radius)


def test_no_room_for_dense_features(files, monkeypatch):
    monkeypatch.setattr(room, "available_memory", lambda: 8 * 80 * 20.0)
    summary_of("certify", "train.svm", "test.svm", "--kernel", "linear", "--out", "fits")
    said = refused("certify", "train.svm", "test.svm", "--kernel", "linear", "--scale", "standard")
    assert "--scale standard takes sparse features as dense ones: a table of 40 rows and 80 columns needs" in said
    assert "--scale none or unit" in said
    assert "--model logistic takes sparse" in refused("certify", "train.svm", "test.svm", "--model", "logistic")


def test_memory_of_a_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    n_train, n_features, rng = 1_500, 100_000, np.random.default_rng(0)
    for name, size in (("train", n_train), ("test", 20)):
        X = sparse.random_array((size, n_features), density=2e-4, format="csr", rng=rng)
        dump_svmlight_file(X, rng.integers(0, 2, size), f"{name}.svm", zero_based=False)
    summary_of("certify", "test.svm", "test.svm", "--kernel", "linear")  # compiled
    tracemalloc.start()
    try:
        summary_of("certify", "train.svm", "test.svm", "--kernel", "linear", "--jobs", 1, "--out", "run")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * n_train * n_features / 8

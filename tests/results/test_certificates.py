"""Certificates as a table: metrics, frames, files."""

from __future__ import annotations

import builtins
import os
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

import flipcert


@pytest.fixture(params=["svm", "ensemble", "unreachable", "strings", "objects", "booleans"])
def certificates(request, blobs):
    X, y, X_test, _ = blobs
    if request.param == "svm":
        return flipcert.KernelSVM().fit(X, y).certify(X_test)
    if request.param == "ensemble":
        return flipcert.PartitionEnsemble(flipcert.KernelRidge(), n_partitions=5).fit(X, y).certify(X_test)
    if request.param == "unreachable":
        return flipcert.KernelSVM().fit(np.zeros((6, 2)), np.arange(6) % 3).certify(X_test)
    if request.param == "strings":
        return flipcert.KernelSVM().fit(X, np.array(["cat", "gnu", "lynx"])[y]).certify(X_test)
    if request.param == "objects":
        return flipcert.KernelSVM().fit(X, np.array(["cat", "gnu", "lynx"], object)[y]).certify(X_test)
    return flipcert.PartitionEnsemble(DecisionTreeClassifier(), 3).fit(X, y == 1).certify(X_test)


def test_files_round_trip_without_pickle(certificates, tmp_path):
    path = tmp_path / "certificates.npz"
    certificates.save(path)
    loaded = flipcert.Certificates.load(path)
    for name in ("prediction", "radius", "radius_upper", "exact", "runner_up", "rounding_sensitive"):
        assert np.array_equal(getattr(loaded, name), getattr(certificates, name)), name
    assert np.array_equal(loaded.target.mask, certificates.target.mask)
    assert np.array_equal(loaded.target.compressed(), certificates.target.compressed())
    assert (loaded.blackbox_radius is None) == (certificates.blackbox_radius is None)
    assert loaded.n_labels == certificates.n_labels
    with np.load(path, allow_pickle=False) as stored:
        assert all(stored[name].dtype != object for name in stored.files)
    assert os.listdir(tmp_path) == ["certificates.npz"]


def test_a_page_about_other_labels_is_refused(certificates, tmp_path):
    text = isinstance(certificates.prediction.tolist()[0], str)
    other = np.full(len(certificates), "nobody" if text else 77)
    which = "is one of the classes"
    for own in (certificates, replace(certificates, classes=None)):
        with pytest.raises(ValueError, match=rf"none of the labels of y \(such as ('nobody'|77)\) {which}"):
            own.report(tmp_path / "report.html", other)
        which = "is a class that is predicted"
    assert not (tmp_path / "report.html").exists()


def test_a_failed_save_leaves_nothing_behind(certificates, tmp_path, monkeypatch):
    path = tmp_path / "certificates.npz"
    path.write_text("what was there before")

    def full(*args, **kwargs):
        raise OSError("No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(OSError, match="No space left"):
        certificates.save(path)
    assert os.listdir(tmp_path) == ["certificates.npz"]
    assert path.read_text() == "what was there before"


@pytest.mark.parametrize("content", [b"", b"not a zip file", b"PK\x03\x04 truncated"])
def test_other_files_are_refused(content, tmp_path):
    path = tmp_path / "other.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"other.npz' is not a file of saved certificates"):
        flipcert.Certificates.load(path)
    np.savez(path, X=np.ones(3))
    with pytest.raises(ValueError, match="is not a file of saved certificates"):
        flipcert.Certificates.load(path)
    np.save(tmp_path / "array.npy", np.ones(3))
    with pytest.raises(ValueError, match="is not a file of saved certificates"):
        flipcert.Certificates.load(tmp_path / "array.npy")
    with pytest.raises(FileNotFoundError):
        flipcert.Certificates.load(tmp_path / "missing.npz")


def test_frame(certificates):
    frame = certificates.to_frame()
    assert len(frame) == len(certificates)
    assert ("blackbox_radius" in frame) == (certificates.blackbox_radius is not None)
    assert np.array_equal(frame["exact"], certificates.exact)
    assert np.array_equal(frame["target"].isna(), certificates.target.mask)


def test_frame_without_pandas(certificates, monkeypatch):
    real_import = builtins.__import__

    def no_pandas(name, *args, **kwargs):
        if name == "pandas":
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_pandas)
    with pytest.raises(ImportError, match=r'pip install "flipcert\[frame\]"'):
        certificates.to_frame()


def test_metrics_of_certificates(blobs):
    X, y, X_test, y_test = blobs
    certificates = flipcert.KernelSVM().fit(X, y).certify(X_test)
    correct = certificates.prediction == y_test
    flips = [0, 1, 2]
    expected = [np.mean(correct & (certificates.radius >= r)) for r in flips]
    assert certificates.certified_accuracy(y_test, flips).tolist() == expected
    assert certificates.certified_accuracy(y_test, 1) == expected[1]
    assert certificates.median_certified_robustness(y_test) == flipcert.median_certified_robustness(
        correct, certificates.radius
    )
    with pytest.raises(ValueError, match=r"y has shape \(3,\), but there are 15 certificates"):
        certificates.certified_accuracy([0, 1, 2], 1)
    for other in (y_test.astype(str), y_test.astype(str).astype(object), y_test.astype(bytes)):
        with pytest.raises(
            ValueError, match=r"y holds labels such as b?'\d', but predictions are such as \d; give y in"
        ):
            certificates.certified_accuracy(other, 1)
    for lacking in ([np.nan] * 15, [None] * 15, [float("nan"), *y_test[1:].tolist()], [pd.NA, *y_test[1:].tolist()]):
        with pytest.raises(ValueError, match=r"^y lacks \d+ of 15 labels \(NaN or None\); leave these points out"):
            certificates.certified_accuracy(lacking, 1)
    # Objects of the same kind, and labels that were never predicted, can be compared.
    assert certificates.certified_accuracy(y_test.astype(object), flips).tolist() == expected
    assert certificates.certified_accuracy(y_test + 100, 0) == 0


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 12)), min_size=1, max_size=12))
def test_median_is_the_largest_radius_that_half_withstand(points):
    correct = np.array([point[0] for point in points])
    radius = np.array([point[1] for point in points])
    for over, total in (("correct", correct.sum()), ("all", correct.size)):
        fitting = [r for r in range(13) if total and 2 * (correct & (radius >= r)).sum() >= total]
        assert flipcert.median_certified_robustness(correct, radius, over=over) == max(fitting, default=0)


def test_median_of_special_cases():
    assert flipcert.median_certified_robustness([False, False], [3, 4]) == 0
    assert flipcert.median_certified_robustness([True, True], [3, 4]) == 4
    assert flipcert.median_certified_robustness([True, True, True, True], [1, 2, 3, 4]) == 3
    assert flipcert.median_certified_robustness([True, False, False], [9, 9, 9], over="all") == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: flipcert.certified_accuracy([1, 0], [1, 2], 1), "correct must be a one-dimensional boolean array"),
        (lambda: flipcert.certified_accuracy([True], [1, 2], 1), "correct has 1 entries, but radius has 2"),
        (lambda: flipcert.certified_accuracy([True], [-1], 1), "radius must be at least 0; got -1"),
        (lambda: flipcert.certified_accuracy([True], [1], -1), "flips must be at least 0; got -1"),
        (lambda: flipcert.certified_accuracy([True], [1], 0.5), "flips must hold whole numbers"),
        (lambda: flipcert.certified_accuracy(np.array([], bool), [], 1), "correct is empty"),
        (lambda: flipcert.median_certified_robustness([True], [1], over="some"), "over must be one of"),
    ],
)
def test_bad_metrics(call, message):
    with pytest.raises(ValueError, match=message):
        call()

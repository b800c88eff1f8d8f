"""A kernel that is read from a file is the kernel."""

from __future__ import annotations

import errno
import os
from types import SimpleNamespace

import numpy as np
import pytest

from flipcert import KernelRidge, KernelSVM, PartitionEnsemble
from flipcert.engine import mapped
from flipcert.ensemble.partition import assign_partitions
from flipcert.kernels import NTK, RBF, Linear
from flipcert.kernels import stored as module
from flipcert.kernels.stored import StoredKernel

KERNELS = [NTK(activation="relu"), RBF(gamma=0.1), Linear()]


@pytest.fixture(params=[True, False], ids=["with training rows", "test rows only"])
def whole(request, monkeypatch):
    """Whether the kernel of the training rows with each other is stored as well."""
    if not request.param:
        monkeypatch.setattr(module, "LARGEST_TRAINING_KERNEL", 0)


@pytest.fixture
def data(digits):
    X, y, X_test, _ = digits
    return X[:300].astype(np.float32), y[:300], X_test[:50].astype(np.float32)


@pytest.mark.usefixtures("whole")
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_values_of_any_rows(kernel, data, tmp_path):
    X, _, X_test = data
    stored = StoredKernel(kernel, X, X_test, tmp_path / "kernel.npy")
    columns = np.random.default_rng(0).permutation(300)[:70]
    for rows in (np.arange(10, 30), np.array([7]), np.array([3, 3, 9, 1])):
        expected = kernel(X_test[rows], X[columns])
        found = stored(stored.test_rows[rows], stored.train_rows[columns])
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * abs(expected).max())
        expected = kernel(X[rows], X[columns])
        found = stored(stored.train_rows[rows], stored.train_rows[columns])
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * abs(expected).max())


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_rounding_is_that_of_the_rows_of_a_model(kernel, data, tmp_path):
    X, _, X_test = data
    X, X_test = X + np.float32(0.1), X_test + np.float32(0.1)
    stored = StoredKernel(kernel, X, X_test, tmp_path / "kernel.npy")
    for rows in (slice(None), slice(0, 30), slice(100, 101)):
        expected = kernel.rounding(X_test, kernel.factor(X[rows]))
        found = stored.rounding(stored.test_rows, stored.factor(stored.train_rows[rows]))
        assert np.all(expected > 0)
        np.testing.assert_allclose(found, expected, rtol=0.3)


@pytest.mark.usefixtures("whole")
@pytest.mark.parametrize("estimator", [KernelSVM, KernelRidge])
@pytest.mark.parametrize("n_partitions", [1, 5])
def test_certificates(estimator, n_partitions, data, tmp_path):
    X, y, X_test = data
    kernel = NTK(activation="relu")
    stored = StoredKernel(kernel, X, X_test, tmp_path / "kernel.npy")

    def certify(own, X, X_test):
        model = estimator(own)
        if n_partitions > 1:
            model = PartitionEnsemble(model, n_partitions, partition=partition)
        return model.fit(X, y).certify(X_test)

    partition = assign_partitions(X, n_partitions, "sorted", 0)
    found = certify(stored, stored.train_rows, stored.test_rows)
    expected = certify(kernel, X, X_test)
    # Products of other shapes round differently.
    sure = ~(found.rounding_sensitive | expected.rounding_sensitive)
    assert sure.mean() > 0.8
    assert np.array_equal(found.radius[sure], expected.radius[sure])
    assert np.array_equal(found.prediction[sure], expected.prediction[sure])


def test_space_is_made_sure_of_before_anything_is_computed(data, tmp_path, monkeypatch):
    """Mapped files are written without an error to catch: a full disk would kill the process."""
    X, _, X_test = data
    monkeypatch.setattr(mapped.shutil, "disk_usage", lambda folder: SimpleNamespace(free=1000))
    with pytest.raises(
        ValueError, match=r"1e-06 GB of free space, but 0\.00042 GB are needed; .* in another folder"
    ) as caught:
        StoredKernel(NTK(), X, X_test, tmp_path / "kernel.npy").load()
    assert str(caught.value).startswith(str(tmp_path))
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="space cannot be reserved on this system")
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_space_that_somebody_else_takes_meanwhile(number, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(ValueError, match="make room there, or let TMPDIR name another folder"):
        mapped.scratch((10, 10), np.float64)

"""What models are fitted on: scaled features and kernels, computed once for all models that share them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator

from flipcert.classifiers import KernelSVM
from flipcert.datasets.room import check_room
from flipcert.engine.magnitude import smallest_whole
from flipcert.engine.mapped import is_large, mapped_rows, row_pieces
from flipcert.engine.sparse import SparseRows, dense
from flipcert.ensemble.partition import assign_partitions
from flipcert.kernels.base import Kernel
from flipcert.kernels.stored import StoredKernel
from flipcert.labels.steps import takes_sparse
from flipcert.runs.settings import Settings

# A kernel with fewer finite features than this is a product that is cheaper than reading the kernel.
_MANY_FEATURES = 2048


class ModelInputs:
    """Inputs of models that are fitted on the same training set and asked about the same test set.

    Parameters
    ----------
    X_train, X_test : ndarray
        Features.
    scratch : path-like
        Folder for kernels.
    n_jobs : int, optional
        Threads; all cores by default.
    partition_by : ndarray, optional
        What partitions of the training set go by; the scaled features by default.
    """

    def __init__(
        self,
        X_train: NDArray[Any],
        X_test: NDArray[Any],
        scratch: Path,
        n_jobs: int | None = None,
        partition_by: NDArray[Any] | None = None,
    ) -> None:
        self._train = X_train
        self._test = X_test
        self._scratch = scratch
        self._n_jobs = n_jobs
        self._partition_by = partition_by
        self._scaled: dict[tuple[str, bool], tuple[NDArray[Any], NDArray[Any]]] = {}
        self._stored: dict[str, StoredKernel] = {}

    def prepare(
        self, settings: Settings, reuse: bool, announce: Callable[[str], None]
    ) -> tuple[NDArray[Any], NDArray[Any], BaseEstimator]:
        """Training and test inputs, and the model to fit on them; with ``reuse``, other models share its kernel."""
        X_train, X_test = self._features(settings)
        model = settings.estimator(self._n_jobs)
        base = getattr(model, "estimator", model)
        # Of sparse features, a kernel is formed faster than it is read.
        reuse = reuse and not issparse(X_train)
        kernel = _worth_storing(base, X_train.shape[1], X_train.shape[0] // settings.partitions) if reuse else None
        # Row numbers say nothing about the content that partitions go by, unless they go by who gave the labels.
        by_content = settings.partition_rule != "source"
        if model is not base and by_content and (kernel is not None or self._partition_by is not None):
            content = X_train if self._partition_by is None else self._partition_by
            n_buckets = settings.partitions * settings.copies
            model.set_params(partition=assign_partitions(content, n_buckets, settings.partition_rule, settings.seed))
        if kernel is None:
            return X_train, X_test, model
        key = settings.kernel_identity()
        if key not in self._stored:
            announce("computing the kernel, once for all models")
            path = self._scratch / f"kernel-{hashlib.sha256(key.encode()).hexdigest()[:16]}.npy"
            self._stored[key] = StoredKernel(kernel, X_train, X_test, path, self._n_jobs)
            self._stored[key].load()
        stored = self._stored[key]
        base.set_params(kernel=stored)
        return stored.train_rows, stored.test_rows, model

    def _features(self, settings: Settings) -> tuple[NDArray[Any], NDArray[Any]]:
        how = settings.scale, _takes_sparse(settings)
        if how not in self._scaled:
            # Only the last ones are held: they may be as large as the data.
            self._scaled = {how: scaled_features(settings, self._train, self._test)}
        return self._scaled[how]


def _worth_storing(base: BaseEstimator, n_inputs: int, n_samples: int) -> Kernel | None:
    """The kernel of a model on so many samples, if it is dear enough."""
    kernel = getattr(base, "kernel", None)
    if not isinstance(kernel, Kernel):
        return None
    n_features = kernel.n_features(n_inputs)
    if n_features is None:
        return kernel
    # With fewer features than samples, ridge regression needs no kernel.
    needed = isinstance(base, KernelSVM) or n_features >= n_samples
    return kernel if needed and n_features >= _MANY_FEATURES else None


def scaled_features(
    settings: Settings, X_train: NDArray[Any], X_test: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Both sets of features, scaled by the first; piece by piece where that is larger than memory."""
    scaler = settings.scaler()
    if not _takes_sparse(settings):
        X_train, X_test = _made_dense(settings, X_train), _made_dense(settings, X_test)
    refuse_lost_squares(settings.scale, X_train, X_test)

    def scaled(rows: NDArray[Any]) -> NDArray[Any]:
        with np.errstate(over="ignore"):
            result: NDArray[Any] = scaler.transform(rows)
        if result is rows:
            return rows
        if not np.isfinite(result.data if issparse(result) else result).all():
            raise ValueError(f"--scale {settings.scale} overflowed: some features are too far from all others.")
        return result

    if not is_large(X_train):
        scaler.fit(X_train)
        return scaled(X_train), scaled(X_test)
    few = X_train[:1]
    for _, rows in row_pieces(X_train if hasattr(scaler, "partial_fit") else few):
        getattr(scaler, "partial_fit", scaler.fit)(rows)
    if scaler.transform(few) is few:
        return X_train, scaled(X_test)
    return mapped_rows(scaled, X_train, X_train.shape[1], X_train.dtype), scaled(X_test)


def _takes_sparse(settings: Settings) -> bool:
    """Whether features may stay sparse: neither the model nor the scale fills in zeros."""
    return settings.scale in ("none", "unit") and takes_sparse(settings.estimator())


def _made_dense(settings: Settings, X: Any) -> NDArray[Any]:
    """Features that have to be dense; ValueError where there is no room for that."""
    if not issparse(X):
        return X
    needs = f"--model {settings.model}" if settings.scale in ("none", "unit") else f"--scale {settings.scale}"
    instead = "use --model svm, ridge or neighbors, with --kernel linear, rbf or ntk and --scale none or unit"
    check_room(f"{needs} takes sparse features as dense ones: a table of {X.shape[0]} rows and {X.shape[1]} columns",
               float(X.dtype.itemsize * X.shape[0]) * X.shape[1], instead)  # fmt: skip
    return dense(X)


def refuse_lost_squares(scale: str, X_train: NDArray[Any], X_test: NDArray[Any]) -> None:
    """Raise ValueError where squares of features overflow or vanish: they would become zeros, or stay as they are."""
    if scale == "unit":  # one row at a time, in its own precision
        for X in (X_train, X_test):
            if issparse(X):
                _refuse_lost_sums(scale, SparseRows(X).largest_entries, X.shape[1], X.dtype)
                continue
            for _, rows in row_pieces(X):
                _refuse_lost_sums(scale, np.abs(rows).max(axis=1), X.shape[1], X.dtype)
    elif scale == "standard":  # one column at a time, in double precision
        largest = np.zeros(X_train.shape[1])
        for _, rows in row_pieces(X_train):
            np.maximum(largest, np.abs(rows).max(axis=0), out=largest)
        _refuse_lost_sums(scale, largest, X_train.shape[0], np.dtype(np.float64))


def _refuse_lost_sums(scale: str, largest: NDArray[Any], n_terms: int, dtype: np.dtype[Any]) -> None:
    """Refuse numbers of which a sum of squares, of so many terms, is out of range."""
    least, most = np.sqrt(smallest_whole(dtype)), np.sqrt(float(np.finfo(dtype).max) / n_terms)
    wrong = largest[(largest > most) | ((largest < least) & (largest > 0))]
    if wrong.size:
        raise ValueError(
            f"--scale {scale} squares the features, and squares of numbers such as {wrong[0]:.3g} are beyond the range "
            f"of {dtype}; multiply the features by a number that brings them closer to 1, or give --scale none."
        )

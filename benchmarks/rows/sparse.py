"""Sparse inputs, as text has them: certify over SciPy's own product of the same matrices, and the memory it takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import flipcert
from benchmarks import peak
from benchmarks.checks import check_stand_alone
from benchmarks.data import Features
from benchmarks.records import Record
from benchmarks.settings import Settings
from benchmarks.timing import Spread, compare

# Rows that SciPy multiplies at a time: as many as a block of the library has.
_BLOCK = 256
_ENTRIES = 100
# What blocks may take, as elsewhere.
_LIMIT = 1.5


def rows(settings: Settings) -> Iterator[Record]:
    """Time and memory of one SVM and of an ensemble."""
    features = words(settings)
    for name, (wording, work) in _JOBS.items():
        model = _models()[name].fit(features.train, features.labels)
        checked = ""
        if name == "svm":
            checked = check_stand_alone(model.certify(features.test), features, settings.size(20, 5), _weights)
        yield Record(
            name=f"sparse-{name}",
            group="sparse",
            job=f"{wording}, sparse inputs, {features.shape}, {_ENTRIES} entries a row, T = {features.test.shape[0]:,}",
            measured=compare(
                lambda: model.certify(features.test),  # noqa: B023
                _product(features.test, features.train),
                settings.few_pairs,
                time.process_time,
            ),
            unit="×",
            method="processor time of certify over that of SciPy's `X_test @ X_train.T`, made dense block by block, "
            "in turns",
            data=features.name,
            checked=checked,
            quick=settings.quick,
        )
        taken = peak.measure(words, work, settings)
        above = taken["above_data"] / peak.GIB
        dense = 8.0 * features.train.shape[0] * features.train.shape[1] / peak.GIB
        yield Record(
            name=f"sparse-memory-{name}",
            group="sparse",
            job=f"{wording}, sparse inputs: peak memory above the data (a dense copy would take {dense:.1f} GiB)",
            measured=Spread(above, above, above, 1),
            unit="GiB",
            target=_LIMIT,
            method=f"{peak.METHOD}; fit and certify",
            data=f"{features.name}, {features.shape}, {_ENTRIES} entries a row, T = {features.test.shape[0]:,}",
            quick=settings.quick,
        )


def words(settings: Settings) -> Features:
    """Rows of words, a few of which are frequent and most are not, with random labels."""
    n_train, n_test = settings.size(100_000, 5_000), settings.size(512, 64)
    rng, width = np.random.default_rng(0), settings.size(50_000, 5_000)
    X = _drawn(rng, n_train + n_test, width)
    labels = rng.integers(0, 10, n_train)
    return Features(X[:n_train], labels, X[n_train:], 10, "synthetic words")


def _drawn(rng: np.random.Generator, n_rows: int, width: int) -> Any:
    """So many entries a row, fewer where one was drawn twice."""
    columns = (width * rng.random((n_rows, _ENTRIES)) ** 3).astype(np.int32)
    begins = np.arange(0, n_rows * _ENTRIES + 1, _ENTRIES)
    X = sparse.csr_array((rng.random(columns.size), columns.ravel(), begins), shape=(n_rows, width))
    X.sum_duplicates()
    return X


def _models() -> dict[str, Any]:
    svm = flipcert.KernelSVM("linear")
    return {"svm": svm, "ensemble": flipcert.PartitionEnsemble(svm, n_partitions=50)}


def _weights(train: Any, test: Any) -> NDArray[np.float64]:
    return np.asarray((test @ train.T).toarray())


def _product(test: Any, train: Any) -> Callable[[], None]:
    """A function that forms all weights, block by block, and keeps none."""
    turned = train.T.tocsr()

    def run() -> None:
        for start in range(0, test.shape[0], _BLOCK):
            (test[start : start + _BLOCK] @ turned).toarray()

    return run


def svm(features: Features) -> None:
    _models()["svm"].fit(features.train, features.labels).certify(features.test)


def ensemble(features: Features) -> None:
    _models()["ensemble"].fit(features.train, features.labels).certify(features.test)


_JOBS = {"svm": ("one linear SVM", svm), "ensemble": ("ensemble of linear SVMs, N = 50", ensemble)}

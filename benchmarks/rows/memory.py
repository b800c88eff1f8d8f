"""Peak memory of the jobs above their data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import flipcert
from benchmarks import peak
from benchmarks.data import Features, cifar10
from benchmarks.records import Record
from benchmarks.rows.imagenet import imagenet_shape
from benchmarks.rows.ridge import REG, RELU
from benchmarks.settings import Settings
from benchmarks.timing import Spread
from flipcert.engine.cholesky import triangle_bytes

_LIMIT = 1.5


def rows(settings: Settings) -> Iterator[Record]:
    """One row a job: fit and certify, each in a process of its own."""
    for name, (job, prepare, work) in _JOBS.items():
        measured = peak.measure(prepare, work, settings)
        allowed, wording = measured["result"]["allowed"], measured["result"]["wording"]
        above = (measured["above_data"] - allowed) / peak.GIB
        yield Record(
            name=f"memory-{name}",
            group="memory",
            job=f"{job}: peak memory above {wording}",
            measured=Spread(above, above, above, 1),
            unit="GiB",
            target=_LIMIT,
            method=f"{peak.METHOD}; fit and certify",
            data=measured["result"]["data"],
            quick=settings.quick,
        )


def given(settings: Settings) -> Features:
    """CIFAR-10 features as given."""
    return cifar10(settings.n_train, settings.n_test)


def standardised(settings: Settings) -> Features:
    """CIFAR-10 features, standardised."""
    return cifar10(settings.n_train, settings.n_test, standardised=True)


def whole_test_set(settings: Settings) -> Features:
    """As many test points as the row on time has."""
    return cifar10(settings.n_train, settings.size(10_000, 1_000))


def dual(settings: Settings) -> Features:
    """As many samples as the row on time has."""
    return cifar10(settings.size(20_000, 2_000), settings.size(1_000, 200))


def imagenet(settings: Settings) -> Features:
    """ImageNet's shape."""
    return imagenet_shape(settings)


def certify(model: Any, features: Features, allowed: int = 0, wording: str = "the data") -> dict[str, Any]:
    """Fit and certify; what may be held beside the data goes back with it."""
    model.fit(features.train, features.labels).certify(features.test)
    return {
        "data": f"{features.name}, {features.shape}, T = {len(features.test):,}",
        "allowed": allowed,
        "wording": wording,
    }


def svm(features: Features) -> dict[str, Any]:
    return certify(flipcert.KernelSVM(), features)


def ensemble_10(features: Features) -> dict[str, Any]:
    return certify(flipcert.PartitionEnsemble(flipcert.KernelSVM(), n_partitions=10), features)


def ensemble_1000(features: Features) -> dict[str, Any]:
    return certify(flipcert.PartitionEnsemble(flipcert.KernelSVM(), n_partitions=1000), features)


def ridge(features: Features) -> dict[str, Any]:
    return certify(flipcert.KernelRidge(reg=REG), features)


def relu(features: Features) -> dict[str, Any]:
    half_kernel = triangle_bytes(len(features.train), np.float64)
    return certify(
        flipcert.KernelRidge(RELU, reg=REG), features, half_kernel, "the data and half a float64 kernel matrix"
    )


_JOBS: dict[str, tuple[str, Callable[[Settings], Features], Callable[[Features], dict[str, Any]]]] = {
    "svm": ("one SVM", given, svm),
    "ensemble-10": ("ensemble of SVMs, N = 10", given, ensemble_10),
    "ensemble-1000": ("ensemble of SVMs, N = 1,000", given, ensemble_1000),
    "standardised-10": ("ensemble of SVMs, N = 10, standardised", standardised, ensemble_10),
    "standardised-1000": ("ensemble of SVMs, N = 1,000, standardised", standardised, ensemble_1000),
    "ridge": ("one ridge, linear NTK", whole_test_set, ridge),
    "relu": ("one ridge, ReLU NTK", dual, relu),
    "imagenet": ("one SVM, ImageNet shape", imagenet, svm),
}

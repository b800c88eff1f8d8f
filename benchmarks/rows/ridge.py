"""Kernel ridge regression on the whole training set: through features where the kernel has them, else by Cholesky."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky
from threadpoolctl import threadpool_limits

import flipcert
from benchmarks.checks import check_in_double
from benchmarks.data import cifar10
from benchmarks.plain import ridge_weights
from benchmarks.product import product
from benchmarks.records import Record
from benchmarks.settings import Settings
from benchmarks.timing import compare, compare_with_fastest

REG = 1.0
RELU = flipcert.kernels.NTK(activation="relu")


def linear(settings: Settings) -> Iterator[Record]:
    """Linear NTK, the whole test set, fitting included."""
    features = cifar10(settings.n_train, settings.size(10_000, 1_000))
    model = flipcert.KernelRidge(reg=REG)

    def everything() -> flipcert.Certificates:
        return model.fit(features.train, features.labels).certify(features.test)

    checked = check_in_double(model, features, settings.size(50, 10), partial(ridge_weights, reg=REG))
    yield Record(
        name="ridge-linear",
        group="ridge",
        job=f"one ridge, linear NTK, {features.shape}, T = {len(features.test):,}: fit and exact radii",
        measured=compare(everything, product(features.test, features.train), settings.few_pairs),
        unit="×",
        target=2.5,
        method="fit and certify over the product, in turns",
        data=features.name,
        checked=checked,
        quick=settings.quick,
    )


def relu(settings: Settings) -> Iterator[Record]:
    """ReLU NTK: no finite features, so the n x n system is factored."""
    features = cifar10(settings.size(20_000, 2_000), settings.size(1_000, 200))
    model = flipcert.KernelRidge(RELU, reg=REG)

    def everything() -> flipcert.Certificates:
        return model.fit(features.train, features.labels).certify(features.test)

    checked = check_in_double(model, features, settings.size(50, 10), relu_weights)
    reference = _threadings(partial(relu_weights, features.train, features.test))
    yield Record(
        name="ridge-relu",
        group="relu",
        job=f"one ridge, ReLU NTK, {features.shape}, T = {len(features.test):,}: fit and exact radii",
        measured=compare_with_fastest(everything, reference, settings.few_pairs),
        unit="×",
        target=1.5,
        method="fit and certify on all cores over the kernel, one LAPACK Cholesky in float64 and the solves, on one "
        "thread (up to 10,000 samples: or on all cores, whichever is faster), in turns",
        data=features.name,
        checked=checked,
        quick=settings.quick,
    )


def _threadings(work: Callable[[], Any]) -> list[Callable[[], Any]]:
    """The work on all cores, and on one.

    The threads of a factorisation wait for each other at every step. On a machine with anything else to do, that can
    take many times as long as one thread alone; as a reference it would flatter whoever is compared with it.
    """

    def on_one_thread() -> None:
        with threadpool_limits(1, "blas"):
            work()

    return [work, on_one_thread]


def relu_weights(train: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.float64]:
    """Weights of ridge with the ReLU NTK the plain way: kernel, Cholesky, solves.

    On systems this large, several threads of OpenBLAS crash on some machines, so only small ones use them.
    """
    with threadpool_limits(1 if len(train) > 10_000 else None, "blas"):
        return _relu_weights(train, rows)


def _relu_weights(train: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.float64]:
    system = RELU(train).astype(np.float64, order="F")
    system[np.diag_indices_from(system)] += REG
    factor = cholesky(system, lower=True, overwrite_a=True, check_finite=False)
    return cho_solve((factor, True), RELU(rows, train).T.astype(np.float64), check_finite=False).T

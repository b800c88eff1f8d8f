"""Ridge with the ReLU NTK on all of MNIST, unpartitioned: 60,000 x 60,000 numbers, factored in place.

Takes long and needs 10 GB, so it only runs when asked for by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import numpy as np

import flipcert
from benchmarks import peak
from benchmarks.checks import check_in_double
from benchmarks.data import Features, mnist
from benchmarks.records import Record
from benchmarks.rows.ridge import REG, RELU, relu_weights
from benchmarks.settings import Settings
from benchmarks.timing import Spread, seconds
from flipcert.engine.cholesky import triangle_bytes


def rows(settings: Settings) -> Iterator[Record]:
    """Time over the ideal, and peak memory, from one run."""
    small = mnist(2_000, 200)
    checked = check_in_double(flipcert.KernelRidge(RELU, reg=REG), small, 20, relu_weights)
    measured = peak.measure(prepare, work, settings)
    result = measured["result"]
    n, n_test = result["n_train"], result["n_test"]
    job = f"one ridge, ReLU NTK, {result['shape']}, T = {n_test:,}"
    # Multiplications and additions of one Cholesky factorisation, and of two triangular solves a test point.
    ideal = (n**3 / 3 + 2 * n**2 * n_test) / result["flops_a_second"]
    ratio = result["seconds"] / ideal
    yield Record(
        name="mnist-time",
        group="mnist",
        job=f"{job}: fit and exact radii over the ideal",
        measured=Spread(ratio, ratio, ratio, 1),
        unit="×",
        method="one run over n^3/3 + 2 n^2 T operations at the rate of a float32 product of 4096 x 4096, taken before "
        "and after; evaluating the kernel is in the time, not in the ideal: "
        f"about {result['kernel_seconds'] / ideal:.2f} × by itself",
        data=result["data"],
        checked=f"at n = 2,000, {checked}",
        quick=settings.quick,
        details={key: result[key] for key in ("seconds", "kernel_seconds", "flops_a_second")},
    )
    total = (measured["above_data"] + result["data_bytes"]) / peak.GIB
    above = (measured["above_data"] - triangle_bytes(n, np.float32)) / peak.GIB
    yield Record(
        name="mnist-memory",
        group="mnist",
        job=f"{job}: peak memory above the data and half a float32 kernel matrix",
        measured=Spread(above, above, above, 1),
        unit="GiB",
        target=1.5,
        method=f"{peak.METHOD}; {total:.1f} GiB in all",
        data=result["data"],
        quick=settings.quick,
    )


def prepare(settings: Settings) -> Features:
    """The data, in the process that is measured."""
    return mnist(settings.size(60_000, 4_000), settings.size(1_000, 200))


def work(features: Features) -> dict[str, Any]:
    """The job between two measurements of the product rate."""

    def everything() -> None:
        # As on a machine with room for single precision only.
        room = 1.5 * triangle_bytes(len(features.train), np.float32)
        with patch("flipcert.linear.solved_system.available_memory", lambda: room):
            model = flipcert.KernelRidge(RELU, reg=REG).fit(features.train, features.labels)
        assert model.precision_ == "float32"
        model.certify(features.test)

    rates = [_flops_a_second()]
    spent = seconds(everything)
    rates.append(_flops_a_second())
    n, n_test = len(features.train), len(features.test)
    some = features.train[:1024]
    RELU(some[:1], features.train)
    # The matrix is symmetric: half of it, and the rows of the test points.
    kernel_seconds = seconds(lambda: RELU(some, features.train)) * (n / 2 + n_test) / len(some)
    return {
        "n_train": n,
        "n_test": n_test,
        "shape": features.shape,
        "data": features.name,
        "data_bytes": features.train.nbytes + features.test.nbytes,
        "seconds": spent,
        "kernel_seconds": kernel_seconds,
        "flops_a_second": float(np.mean(rates)),
    }


def _flops_a_second(size: int = 4096) -> float:
    """Operations a second of a float32 product, a multiplication and an addition counted apart."""
    square = np.ones((size, size), np.float32)
    square @ square
    return 2 * size**3 / min(seconds(lambda: square @ square) for _ in range(3))

"""What each step of a job costs on this machine, for the model of larger ones (``docs/scale.md``)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

import flipcert
from benchmarks.cost_model import Cluster, Constants, Job, constants_of, predict, product_terms
from benchmarks.data import cifar10, synthetic
from benchmarks.records import Record
from benchmarks.rows.cluster import two_workers
from benchmarks.settings import Settings
from benchmarks.timing import Spread
from flipcert.engine.blocks import block_rows, map_tasks, map_threads
from flipcert.flips.costs import radius_block
from flipcert.labels.labels import Labels

_CORES = 2
_ROWS = 32
# Seconds beside which starting threads takes no time.
_LONG_ENOUGH = 0.5
_UNITS = {
    "product": "s for 10^9 operations", "selection": "s for 10^9 weights", "aggregation": "s for 10^9 weights",
    "transfer": "s for 10^9 bytes",
}  # fmt: skip


def rows(settings: Settings) -> Iterator[Record]:
    """One row a step, with all measurements behind it, and one that compares the model with a job it has not seen."""
    measured: dict[str, dict[str, Any]] = {}
    for step, measure in _STEPS.items():
        terms, times = measure(settings)
        measured[step] = {"terms": terms, "seconds": times}
        rate = 1e9 * times[-1] / terms[-1][0]
        yield Record(
            name=f"scale-{step}",
            group="scale",
            job=step,
            measured=Spread(rate, rate, rate, len(times)),
            unit=_UNITS[step],
            method="fastest of some repetitions, both cores busy",
            details=measured[step],
            quick=settings.quick,
        )
    yield _check(settings, constants_of(measured)[0])


def _check(settings: Settings, constants: Constants) -> Record:
    """The time that the model predicts for a whole job over that which it takes, both on two cores."""
    features = cifar10(settings.n_train, settings.size(4_000, 1_024))
    model = flipcert.KernelSVM().fit(features.train, features.labels)
    (n, d), T = features.train.shape, features.test.shape[0]
    job = Job(n, d, features.n_classes, T, 1, block_rows(T, 4 * n))
    steps = predict(job, Cluster(_CORES, storage=np.inf), constants)
    predicted = steps["product"] + steps["selection"]
    taken = _fastest(lambda: model.certify(features.test), settings)
    ratio = predicted / taken
    return Record(
        name="scale-check",
        group="scale",
        job=f"one SVM, {features.shape}, T = {T:,}",
        measured=Spread(ratio, ratio, ratio, 1),
        unit="×",
        method="time that the model predicts over time that certify takes on two threads",
        details={"predicted": predicted, "taken": taken},
        data=features.name,
        quick=settings.quick,
    )


def _product(settings: Settings) -> tuple[list[list[float]], list[float]]:
    terms, times = [], []
    for n, d in settings.size([(20_000, 128), (50_000, 512), (20_000, 1_024)], [(5_000, 128), (10_000, 512)]):
        right = _random((n, d))
        for block in (4, 32, 512):
            left, out = _random((_CORES * block, d)), np.empty((_CORES * block, n), np.float32)

            def multiply(core: int, left: Any = left, out: Any = out, block: int = block, right: Any = right) -> None:
                own = slice(core * block, (core + 1) * block)
                np.matmul(left[own], right.T, out=out[own])

            terms.append(list(product_terms(n, d, block)))
            times.append(_on_both(multiply, settings))
    return terms, times


def _selection(settings: Settings) -> tuple[list[list[float]], list[float]]:
    """Exact radii from weights of one model."""
    terms, times = [], []
    for n in settings.size((20_000, 50_000, 200_000), (5_000, 20_000)):
        for n_classes in (10, 100, 1_000):
            features = synthetic(n, 64, n_classes, _ROWS)
            weights = features.test @ features.train.T
            labels = Labels.of(features.labels, n_classes, None)
            offset = np.zeros((_ROWS, n_classes))
            work = partial(_of_rows, radius_block, weights, labels, offset)
            terms.append([float(n), float(n_classes)])
            times.append(_on_both(work, settings) / _ROWS)
    return terms, times


def _of_rows(function: Callable[..., Any], weights: Any, labels: Labels, offset: Any, core: int) -> None:
    function(weights, labels, offset)


def _aggregation(settings: Settings) -> tuple[list[list[float]], list[float]]:
    """All of an ensemble but its product."""
    terms, times = [], []
    for n, voters in settings.size(
        [(20_000, 50), (20_000, 500), (50_000, 50), (50_000, 1_000)], [(5_000, 50), (5_000, 100)]
    ):
        for n_classes in (10, 20):
            features = synthetic(n, 64, n_classes, _ROWS)
            model = flipcert.PartitionEnsemble(flipcert.KernelSVM(), voters, partition="random")
            electorate: Any = model.fit(features.train, features.labels)._electorate
            right, out = electorate._product.right, np.empty((_CORES, _ROWS, n), np.float32)

            def multiply(core: int, X: Any = features.test, right: Any = right, out: Any = out) -> None:
                np.matmul(X, right.T, out=out[core])

            def certify(core: int, X: Any = features.test, electorate: Any = electorate) -> None:
                electorate.certify(X, _ROWS, False, 60.0)

            terms.append([float(n), float(voters * n_classes)])
            own = _on_both(certify, settings) - _on_both(multiply, settings)
            times.append(max(own, 1e-9) / _ROWS)
            electorate.release()
    return terms, times


def _transfer(settings: Settings) -> tuple[list[list[float]], list[float]]:
    """Bytes that go to a worker, and tasks that go there and come back."""
    terms, times = [], []
    with two_workers() as client, joblib.parallel_config(backend="dask", client=client):
        for count in (50, 200):
            for size in (0, 100_000, 1_000_000):
                items = [np.zeros(size, np.uint8) for _ in range(count)]
                terms.append([float(size * count), float(count)])
                times.append(_fastest(lambda items=items: map_tasks(len, items, None), settings))  # type: ignore[misc]
    return terms, times


_STEPS = {"product": _product, "selection": _selection, "aggregation": _aggregation, "transfer": _transfer}


def _on_both(work: Callable[[int], None], settings: Settings) -> float:
    """Seconds of what each core does at the same time, so often that starting threads does not count."""

    def seconds(often: int) -> float:
        def again(core: int) -> None:
            for _ in range(often):
                work(core)

        return _fastest(lambda: map_threads(again, range(_CORES), _CORES), settings) / often

    return seconds(math.ceil(_LONG_ENOUGH / seconds(1)))


def _fastest(work: Callable[[], Any], settings: Settings) -> float:
    """Seconds of the fastest of some repetitions: whatever else runs only makes it slower."""
    work()
    taken = []
    for _ in range(settings.pairs):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return min(taken)


def _random(shape: tuple[int, ...]) -> NDArray[np.float32]:
    return np.random.default_rng(0).standard_normal(shape, np.float32)

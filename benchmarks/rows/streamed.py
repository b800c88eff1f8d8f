"""A training set in a mapped file, larger than the budget: on worker processes, and cut into partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import sklearn

import flipcert
from benchmarks.data import Features
from benchmarks.product import product
from benchmarks.records import Record
from benchmarks.rows.cluster import check_bits, on_both, two_workers
from benchmarks.rows.larger_than_memory import VOTERS, mapped
from benchmarks.settings import Settings
from benchmarks.timing import compare


def rows(settings: Settings) -> Iterator[Record]:
    """One SVM on two workers over two threads, and an ensemble over the product."""
    features, budget = mapped(settings)
    job = f"{features.shape}, T = {len(features.test)}, mapped, budget {budget} MiB"
    with sklearn.config_context(working_memory=budget):
        model = flipcert.KernelSVM().fit(features.train, features.labels)
        with two_workers() as client:
            threads, cluster = on_both(model, features.test, client)
            check_bits(cluster(), threads())
            measured = compare(cluster, threads, settings.pairs)
        yield Record(
            name="streamed-workers",
            group="streamed",
            job=f"one SVM, {job}: two worker processes over two threads",
            measured=measured,
            unit="×",
            target=1.3,
            method="certify on a local Dask cluster, tiles of training samples as tasks, over threads, in turns",
            data=features.name,
            checked=f"all {len(features.test)} certificates equal bit for bit",
            quick=settings.quick,
        )
        ensemble = flipcert.PartitionEnsemble(flipcert.KernelSVM(), VOTERS).fit(features.train, features.labels)
        yield Record(
            name="streamed-ensemble",
            group="streamed",
            job=f"ensemble of {VOTERS} SVM, {job}: costs and radii",
            measured=compare(_certifying(ensemble, features), product(features.test, features.train), settings.pairs),
            unit="×",
            target=4.0,
            method="certify over the product, in turns; fitting is apart",
            data=features.name,
            checked="`large` compares its radii with those of weights in memory",
            quick=settings.quick,
        )


def _certifying(model: Any, features: Features) -> Callable[[], Any]:
    return lambda: model.certify(features.test)

"""The same job on two worker processes of a Dask cluster and on two threads: what the way there and back costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import joblib
import numpy as np

import flipcert
from benchmarks.data import cifar10
from benchmarks.records import Record
from benchmarks.settings import Settings
from benchmarks.timing import Spread, compare
from flipcert.results.certificates import Certificates

_WORKERS = 2
_LIMIT = 1.25


def rows(settings: Settings) -> Iterator[Record]:
    """One model and an ensemble; certificates are compared bit by bit."""
    features = cifar10(settings.n_train, settings.size(4_000, 1_024))
    models: dict[str, tuple[str, Any]] = {
        "svm": ("one SVM", flipcert.KernelSVM()),
        "50": ("ensemble of 50 SVM", flipcert.PartitionEnsemble(flipcert.KernelSVM(), 50)),
    }
    measured: dict[str, Spread] = {}
    with two_workers() as client:
        for name, (_, model) in models.items():
            model.fit(features.train, features.labels)
            threads, cluster = on_both(model, features.test, client)
            check_bits(cluster(), threads())
            measured[name] = compare(cluster, threads, settings.pairs)
    # The workers have ended by now, and count as ours.
    for name, (job, _) in models.items():
        yield Record(
            name=f"cluster-{name}",
            group="cluster",
            job=f"{job}, {features.shape}, T = {features.test.shape[0]:,}: two worker processes over two threads",
            measured=measured[name],
            unit="×",
            target=_LIMIT,
            method="certify on a local Dask cluster, the model handed over each time, over that on threads, in turns",
            data=features.name,
            checked=f"all {features.test.shape[0]:,} certificates equal bit for bit",
            quick=settings.quick,
        )


@contextmanager
def two_workers() -> Iterator[Any]:
    """A cluster of two processes with one thread each, on this machine only."""
    from flipcert.cli.cluster import own_cluster

    with own_cluster(_WORKERS) as client:
        yield client


def on_both(model: Any, X: Any, client: Any) -> tuple[Callable[[], Certificates], Callable[[], Certificates]]:
    """Certifying on threads of this process, and on the cluster."""

    def threads() -> Certificates:
        return model.certify(X)

    def cluster() -> Certificates:
        with joblib.parallel_config(backend="dask", client=client):
            return model.certify(X)

    return threads, cluster


def check_bits(found: Certificates, expected: Certificates) -> None:
    """Refuse certificates that differ in anything."""
    for name, values in vars(expected).items():
        if not np.array_equal(getattr(found, name), values):
            raise AssertionError(f"{name} on the cluster differs from that on threads")

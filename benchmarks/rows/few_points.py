"""Few test points: certify over the product of as many, where blocks are filled up."""

from __future__ import annotations

from collections.abc import Iterator

import flipcert
from benchmarks.checks import check_stand_alone
from benchmarks.data import cifar10
from benchmarks.product import product
from benchmarks.records import Record
from benchmarks.settings import Settings
from benchmarks.timing import compare

_TARGETS = {1: 3.0, 64: 1.5, 400: 1.5}
_REST = 0.2


def rows(settings: Settings) -> Iterator[Record]:
    """One point, a few, and some."""
    features = cifar10(settings.n_train, max(_TARGETS))
    model = flipcert.KernelSVM().fit(features.train, features.labels)
    for n_points, target in _TARGETS.items():
        points = features.test[:n_points]
        yield Record(
            name=f"few-{n_points}",
            group="few",
            job=f"one SVM, {features.shape}, T = {n_points}: exact radii, features given",
            measured=compare(
                lambda: model.certify(points),  # noqa: B023
                product(points, features.train),
                settings.pairs,
                rest=_REST,
            ),
            unit="×",
            target=target,
            method="certify over the product of as many points, in turns, a fifth of a second apart: threads of the "
            "product's BLAS go on looking for work meanwhile, on cores that so short a job needs",
            data=features.name,
            checked=check_stand_alone(model.certify(points), features, min(n_points, settings.size(20, 5))),
            quick=settings.quick,
        )

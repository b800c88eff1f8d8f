"""Growth: time against samples, voters, classes and test points, for flipcert and for the algorithms as published."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import flipcert
from benchmarks import published
from benchmarks.data import Features, cifar10, synthetic
from benchmarks.dynamic_program import dynamic_program_radii
from benchmarks.product import product
from benchmarks.records import Record
from benchmarks.rows.aggregation import N_LABELS, random_votes, voters
from benchmarks.rows.upper_bound import halvings
from benchmarks.settings import Settings
from benchmarks.timing import exponent, sweep
from flipcert.ensemble.votes.radius import change_costs

Work = Callable[[], Any]
AXES = {"n": "samples", "N": "voters", "K": "classes", "T": "test points"}
_ENSEMBLE = 50


def rows(settings: Settings) -> Iterator[Record]:
    """All curves."""
    yield from _in_samples(settings)
    yield from _in_voters(settings)
    yield from _in_classes(settings)
    yield from _in_test_points(settings)


def _in_samples(settings: Settings) -> Iterator[Record]:
    features = cifar10(settings.n_train, settings.size(64, 16), standardised=True)
    sizes = halvings(settings.n_train, settings.size(5, 4))
    labels, n_classes = features.labels, features.n_classes
    blocks = [features.test @ features.train[:n].T for n in sizes]
    unit = product(features.test, features.train)
    curve = partial(_curve, settings, "n", unit=unit, data=features.name)
    models = [flipcert.KernelSVM().fit(features.train[:n], labels[:n]) for n in sizes]
    yield curve("radius of one model", sizes, [partial(model.certify, features.test) for model in models])
    for bound in ("lower", "upper"):
        works = [
            partial(flipcert.flip_costs, block, labels[:n], n_classes, bound=bound)
            for n, block in zip(sizes, blocks, strict=True)
        ]
        yield curve(f"{bound} bounds", sizes, works)
    # The baseline takes one row, and its quadratic part no more samples than it can bear.
    rows_of = [(block[0].astype(np.float64), labels[:n], n_classes) for n, block in zip(sizes, blocks, strict=True)]
    lower = [partial(published.lower_costs, *row) for row in rows_of]
    yield curve("lower bounds, as published", sizes, lower, share=len(features.test))
    few = 3
    upper = [partial(_published_upper, *row) for row in rows_of[:few]]
    yield curve("upper bounds, as published", sizes[:few], upper, share=len(features.test))


def _published_upper(weights: NDArray[np.float64], labels: NDArray[np.int64], n_classes: int) -> None:
    for c in range(n_classes):
        published.upper_cost(weights, labels, n_classes, c)


def _in_voters(settings: Settings) -> Iterator[Record]:
    features = cifar10(settings.n_train, settings.size(256, 64))
    curve = partial(_curve, settings, "N", unit=product(features.test, features.train), data=features.name)
    yield curve("ensemble, all of it", settings.partitions, [_certify(features, n) for n in settings.partitions])
    sizes = voters(settings)
    # As many votes as each can bear.
    many, some, single = (settings.size(64, 16), settings.size(8, 4), 1)
    ours = [partial(change_costs, *random_votes(n, many)) for n in sizes]
    yield curve("aggregation", sizes, ours, share=len(features.test) / many)
    program = [partial(dynamic_program_radii, *random_votes(n, some), N_LABELS + 1) for n in sizes]
    yield curve("aggregation, compiled dynamic program", sizes, program, share=len(features.test) / some)
    votes = [random_votes(n, single) for n in sizes]
    baseline = [partial(published.vote_radius, ballot[0], costs[0], N_LABELS) for ballot, costs in votes]
    yield curve("aggregation, as published", sizes, baseline, share=len(features.test))


def _in_classes(settings: Settings) -> Iterator[Record]:
    sizes = settings.size((2, 5, 10, 20, 50, 100, 200, 500, 1000), (2, 10, 50))
    n_train = settings.size(20_000, 4_000)
    problems = [synthetic(n_train, 128, k, settings.size(256, 64)) for k in sizes]
    curve = partial(_curve, settings, "K", unit=product(problems[0].test, problems[0].train), data=problems[0].name)
    yield curve("radius of one model", sizes, [_certify(features) for features in problems])
    # A partition should have a few samples of each class.
    few = [features for features in problems if 2 * features.n_classes * _ENSEMBLE < n_train]
    works = [_certify(features, _ENSEMBLE) for features in few]
    yield curve(f"ensemble, N = {_ENSEMBLE}", sizes[: len(few)], works)


def _in_test_points(settings: Settings) -> Iterator[Record]:
    sizes = settings.size((256, 512, 1024, 2048, 4096, 8192), (256, 512, 1024))
    features = cifar10(settings.n_train, sizes[-1])
    unit = product(features.test, features.train)
    for name, n_partitions in (("radius of one model", None), (f"ensemble, N = {_ENSEMBLE}", _ENSEMBLE)):
        model = _model(n_partitions).fit(features.train, features.labels)
        works = [partial(model.certify, features.test[:t]) for t in sizes]
        yield _curve(settings, "T", name, sizes, works, unit, features.name)


def _model(n_partitions: int | None) -> Any:
    svm = flipcert.KernelSVM()
    return svm if n_partitions is None else flipcert.PartitionEnsemble(svm, n_partitions=n_partitions)


def _certify(features: Features, n_partitions: int | None = None) -> Work:
    return partial(_model(n_partitions).fit(features.train, features.labels).certify, features.test)


def _curve(
    settings: Settings,
    axis: str,
    name: str,
    sizes: Sequence[int],
    works: Sequence[Work],
    unit: Work,
    data: str,
    share: float = 1.0,
) -> Record:
    """Processor times, which neighbours hardly change, over that of the product.

    ``share`` is how many times a work has to be done for all test points.
    """
    times = sweep(works, settings.few_pairs, time.process_time)
    # Apart: threads of a product go on waiting for a while, on the account of whatever comes next.
    products = sweep([unit], settings.few_pairs, time.process_time)
    relative = np.median(times, axis=0) / np.median(products) * share
    words = re.findall(r"\w+", f"growth {AXES[axis]} {name}".lower())
    return Record(
        name="-".join(words),
        group="growth",
        job=name,
        measured=exponent(sizes, times),
        method="slope of log processor time against log size, all sizes in every round",
        data=data,
        quick=settings.quick,
        details={"axis": axis, "sizes": list(sizes), "times": relative.tolist()},
    )

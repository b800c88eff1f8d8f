"""flipcert against the paper's algorithms as published, on the same test points."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

import flipcert
from benchmarks import published, published_loops
from benchmarks.checks import check_bounds
from benchmarks.data import Features, cifar10
from benchmarks.records import Record
from benchmarks.settings import Settings
from benchmarks.timing import Spread, compare

_VARIANTS = {
    "numpy": ("innermost loops in NumPy", published.upper_cost, published.knapsack),
    "loops": ("loops in Python as its pseudo-code has them", published_loops.upper_cost, published_loops.knapsack),
}


def rows(settings: Settings) -> Iterator[Record]:
    """N = 50 and 500, both scalings, two ways of writing the baseline."""
    few = settings.size(4, 2)
    for scaling in ("given", "standardised"):
        features = cifar10(settings.n_train, settings.n_test, scaling == "standardised")
        for n_partitions in (50, 500):
            model = flipcert.PartitionEnsemble(flipcert.KernelSVM(), n_partitions=n_partitions)
            model.fit(features.train, features.labels)
            checked = check_bounds(model.certify(features.test), model, features, few)
            for variant, (wording, attack, solve) in _VARIANTS.items():
                baseline = _baseline(features, model, few, attack, solve)
                times = compare(baseline, partial(model.certify, features.test), settings.few_pairs, warm=False)
                yield Record(
                    name=f"published-{scaling}-{n_partitions}-{variant}",
                    group="published",
                    job=f"as published ({wording}) over flipcert, N = {n_partitions}, {features.shape}, "
                    f"features {scaling}",
                    measured=_a_point(times, settings.n_test / few),
                    unit="×",
                    target=1000.0,
                    at_most=False,
                    method=f"time a test point, weights included: the baseline on the first {few} points, flipcert on "
                    f"T = {settings.n_test:,} that begin with these, in turns",
                    data=features.name,
                    checked=checked,
                    quick=settings.quick,
                )


def _baseline(
    features: Features,
    model: flipcert.PartitionEnsemble,
    count: int,
    attack: published.UpperCost,
    solve: published.Knapsack,
) -> Callable[[], None]:
    """The whole published job for the first test points: weights, bounds, votes."""
    members = [np.flatnonzero(model.partition_ == number) for number in range(model.n_partitions)]
    labels = [features.labels[own] for own in members]

    def run() -> None:
        for row in features.test[:count]:
            weights = features.train @ row
            parts = [weights[own] for own in members]
            published.certify_sample(parts, labels, features.n_classes, features.labels.size, attack, solve)

    return run


def _a_point(times: Spread, points: float) -> Spread:
    """Ratio of times for different numbers of points, as one a point."""
    return Spread(times.median * points, times.low * points, times.high * points, times.count)

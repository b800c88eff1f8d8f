"""Attacks on weights of both signs: how the time for upper bounds grows with the number of samples."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

import flipcert
from benchmarks import published
from benchmarks.checks import Mismatch, agree
from benchmarks.data import Features, cifar10
from benchmarks.records import Record
from benchmarks.settings import Settings
from benchmarks.timing import exponent, sweep


def halvings(largest: int, count: int) -> list[int]:
    """Sizes up to the largest, each half of the next."""
    return [largest // 2**k for k in range(count)][::-1]


def rows(settings: Settings) -> Iterator[Record]:
    """The exponent in n."""
    features = cifar10(settings.n_train, settings.size(64, 16), standardised=True)
    sizes = halvings(settings.n_train, settings.size(6, 4))
    weights = [features.test @ features.train[:n].T for n in sizes]
    works = [
        partial(flipcert.flip_costs, block, features.labels[:n], features.n_classes, bound="upper")
        for n, block in zip(sizes, weights, strict=True)
    ]
    yield Record(
        name="upper-growth",
        group="upper",
        job=f"upper bounds, weights of both signs: growth exponent in n, n = {sizes[0]:,} to {sizes[-1]:,}",
        measured=exponent(sizes, sweep(works, settings.few_pairs)),
        target=1.2,
        method=f"slope of log time against log n; costs of all classes for {len(features.test)} rows of weights, "
        "all n in every round",
        data=features.name,
        checked=check_upper(weights[0], features, settings.size(4, 2)),
        quick=settings.quick,
    )


def check_upper(weights: NDArray[np.float32], features: Features, count: int) -> str:
    """Every upper bound is an attack that works, and none is below the published lower bound."""
    labels, n_classes = features.labels[: weights.shape[1]], features.n_classes
    block = weights[:count]
    upper = flipcert.flip_costs(block, labels, n_classes, bound="upper")
    for t, row in enumerate(block.astype(np.float64)):
        if np.any(upper[t] < published.lower_costs(row, labels, n_classes)):
            raise Mismatch(f"upper bounds of row {t} are below the published lower bounds.")
    for c in range(n_classes):
        for t, witness in enumerate(flipcert.cheapest_flips(block, labels, n_classes, target=c)):
            if upper[t, c] <= labels.size:
                assert witness is not None
                agree(f"size of the attack towards class {c}", t, len(witness), int(upper[t, c]))
                scores = published.class_scores(block[t], witness.apply(labels), n_classes)
                agree("prediction after the attack", t, int(scores.argmax()), c)
    return f"attacks replayed: {count} rows, all classes"

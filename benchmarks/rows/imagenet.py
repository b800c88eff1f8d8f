"""The shape of ImageNet: more than a million samples, a thousand classes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import flipcert
from benchmarks import published
from benchmarks.checks import Mismatch, agree, steady
from benchmarks.data import Features, synthetic
from benchmarks.product import product
from benchmarks.records import Record
from benchmarks.settings import Settings
from benchmarks.timing import compare


def imagenet_shape(settings: Settings) -> Features:
    """Synthetic features of that shape."""
    return synthetic(settings.size(1_280_000, 50_000), 256, settings.size(1000, 100), 64)


def rows(settings: Settings) -> Iterator[Record]:
    """Exact radii of one SVM."""
    features = imagenet_shape(settings)
    model = flipcert.KernelSVM().fit(features.train, features.labels)
    checked = _check(model.certify(features.test), features, count=3, n_rivals=20)
    yield Record(
        name="imagenet",
        group="imagenet",
        job=f"one SVM, {features.shape}, T = {len(features.test)}: exact radii",
        measured=compare(lambda: model.certify(features.test), product(features.test, features.train), settings.pairs),
        unit="×",
        target=2.0,
        method="certify over the product, in turns",
        data=features.name,
        checked=checked,
        quick=settings.quick,
    )


def _check(certificates: flipcert.Certificates, features: Features, count: int, n_rivals: int) -> str:
    """Full sorts for the cheapest class and the highest others: a sort for each of a thousand would take minutes."""
    points = steady(certificates, count)
    weights = (features.test[points] @ features.train.T).astype(np.float64)
    for t, row in zip(points, weights, strict=True):
        scores = published.class_scores(row, features.labels, features.n_classes)
        leader = int(scores.argmax())
        agree("prediction", t, int(certificates.prediction[t]), leader)
        target, radius = int(certificates.target[t]), int(certificates.radius[t])
        for c in {target, *np.argsort(scores)[-n_rivals - 1 : -1].tolist()} - {leader}:
            cost = published.lower_cost(row, features.labels, c, leader, scores[leader] - scores[c])
            if cost <= radius or (c == target and cost != radius + 1):
                raise Mismatch(f"test point {t}: {cost} flips lead to class {c}, but flipcert says radius {radius}.")
    return f"sorted in full for {n_rivals} classes: {points.size} points agree"

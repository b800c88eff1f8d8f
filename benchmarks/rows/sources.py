"""Radii in sources: certify over the product that forms the weights."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import flipcert
from benchmarks.checks import agree, steady
from benchmarks.data import Features, cifar10
from benchmarks.plain import svm_weights
from benchmarks.product import product
from benchmarks.records import Record
from benchmarks.settings import Settings
from benchmarks.timing import compare

N_SOURCES = 747


def rows(settings: Settings) -> Iterator[Record]:
    """One SVM whose labels come from as many sources as those of CIFAR-10N, a few of them with most of the labels."""
    for scaling in ("given", "standardised"):
        features = cifar10(settings.n_train, settings.n_test, scaling == "standardised")
        sources = np.random.default_rng(0).zipf(1.3, features.labels.size) % N_SOURCES
        classes = range(features.n_classes)
        model = flipcert.KernelSVM(classes=classes).fit(features.train, features.labels, source=sources)
        certificates = model.certify(features.test, threat="sources")
        yield Record(
            name=f"sources-{scaling}",
            group="sources",
            job=f"one SVM, {features.shape}, T = {settings.n_test:,}: exact radii in {certificates.n_sources} sources, "
            f"features {scaling}",
            measured=compare(
                lambda: model.certify(features.test, threat="sources"),  # noqa: B023
                product(features.test, features.train),
                settings.pairs,
            ),
            unit="×",
            target=2.5,
            method="certify over the product, in turns; fitting, which only keeps the features, is left out",
            data=features.name,
            checked=_check(certificates, features, sources, settings.size(50, 10)),
            quick=settings.quick,
        )


def _check(certificates: flipcert.Certificates, features: Features, sources: np.ndarray, count: int) -> str:
    """Radii against sums over sources, sorted in full, for every class."""
    points = steady(certificates, count)
    weights = svm_weights(features.train, features.test[points]).astype(np.float64)
    labels, classes = features.labels, range(features.n_classes)
    for t, row in zip(points, weights, strict=True):
        scores = np.bincount(labels, row, features.n_classes)
        first = int(scores.argmax())
        costs = []
        for c in classes:
            if c != first:
                # Best moved to c if it counts, else to the class that is ahead.
                to = np.where(row > 0, c, first)
                gain = row * ((to == c) * 1 - (to == first)) - row * ((labels == c) * 1 - (labels == first))
                closed = np.sort(np.bincount(sources, gain))[::-1].cumsum()
                passed = closed >= scores[first] - scores[c] if c < first else closed > scores[first] - scores[c]
                costs.append(int(passed.argmax()) + 1 if passed.any() else int(certificates.limit) + 1)
        agree("radius in sources", int(t), int(certificates.radius[t]), min(costs) - 1)
    return f"sorted in full: {points.size} points equal"

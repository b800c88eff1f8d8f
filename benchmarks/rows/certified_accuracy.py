"""Certified accuracy of all methods on the same data, one row a method."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import flipcert
from benchmarks.data import digits
from benchmarks.records import Record
from benchmarks.settings import Settings
from benchmarks.timing import Spread

FLIPS = (0, 1, 2, 5, 10, 20, 50)
NETWORK: dict[str, Any] = {"epochs": 2, "learning_rate": 5.0}
METHODS: dict[str, tuple[str, Any]] = {
    "svm": ("ScaLabelCert: `KernelSVM`, linear NTK", flipcert.KernelSVM()),
    "ridge": ("ScaLabelCert: `KernelRidge`, linear NTK, reg 1", flipcert.KernelRidge()),
    "network-intervals": (
        'gradient bounding as published: `BoundedNetwork(method="intervals")`, linear, two steps',
        flipcert.BoundedNetwork(**NETWORK, method="intervals"),
    ),
    "network-auto": (
        "gradient bounding, best of all bounds: `BoundedNetwork()`, linear, two steps",
        flipcert.BoundedNetwork(**NETWORK),
    ),
    "network-squared": (
        "the same on squared loss, rate 0.5: exact",
        flipcert.BoundedNetwork(loss="squared", learning_rate=0.5),
    ),
    "network-hidden": (
        "gradient bounding, 32 hidden units, two steps",
        flipcert.BoundedNetwork(**NETWORK, hidden=(32,)),
    ),
    "smoothing": ("randomized smoothing: `SmoothedLinear()`, reg 1, q 0.01", flipcert.SmoothedLinear()),
    "smoothing-01": (
        "randomized smoothing, q 0.1",
        flipcert.SmoothedLinear(flip_probability=0.1),
    ),
    "smoothing-kl": (
        "randomized smoothing, q 0.1, black-box (KL)",
        flipcert.SmoothedLinear(flip_probability=0.1, method="kl"),
    ),
}


def rows(settings: Settings) -> Iterator[Record]:
    """All methods on digits, centred without labels."""
    features = digits()
    assert features.truth is not None
    for number, (name, (words, model)) in enumerate(METHODS.items()):
        certificates = model.fit(features.train, features.labels).certify(features.test)
        accuracies = np.atleast_1d(certificates.certified_accuracy(features.truth, FLIPS)).tolist()
        median = certificates.median_certified_robustness(features.truth)
        yield Record(
            name=f"accuracy-{number}-{name}",
            group="accuracy",
            job=words,
            measured=Spread(accuracies[0], accuracies[0], accuracies[0], len(features.test)),
            method="certified accuracy by number of flips",
            data=f"{features.name}, {features.shape}",
            quick=settings.quick,
            details={"flips": list(FLIPS), "accuracies": accuracies, "median": int(median)},
        )

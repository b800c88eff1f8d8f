"""Attacks: what worst_flips takes beside certify."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

import flipcert
from benchmarks import published
from benchmarks.checks import Mismatch, agree, steady
from benchmarks.data import Features, synthetic
from benchmarks.plain import svm_weights
from benchmarks.records import Record
from benchmarks.settings import Settings
from benchmarks.timing import compare


def rows(settings: Settings) -> Iterator[Record]:
    """One SVM on many rows with many classes, in memory."""
    features = synthetic(settings.size(100_000, 20_000), 128, 100, settings.size(256, 64))
    model = flipcert.KernelSVM().fit(features.train, features.labels)
    yield Record(
        name="attacks-svm",
        group="attacks",
        job=f"worst_flips, one SVM, {features.shape}, T = {len(features.test)}",
        measured=compare(
            lambda: model.worst_flips(features.test),
            lambda: model.certify(features.test),
            settings.pairs,
            time.process_time,
        ),
        unit="×",
        target=3.0,
        method="processor time of worst_flips over that of certify, in turns",
        data=features.name,
        checked=_check(model, features, settings.size(20, 5)),
        quick=settings.quick,
    )


def _check(model: flipcert.KernelSVM, features: Features, count: int) -> str:
    """Attacks against sums of plain weights, before and after; their sizes against full sorts."""
    certificates = model.certify(features.test)
    points = steady(certificates, count)
    witnesses = model.worst_flips(features.test)
    for t, row in zip(points, svm_weights(features.train, features.test[points]), strict=True):
        plain, witness = published.stand_alone(row, features.labels, features.n_classes), witnesses[t]
        assert witness is not None
        agree("size of the attack", t, len(witness), plain.radius + 1)
        after = np.bincount(witness.apply(features.labels), row, features.n_classes)
        if after.argmax() == plain.prediction:
            raise Mismatch(f"attack on test point {t}: the prediction stays at {plain.prediction}.")
    return f"replayed, sorted in full: {points.size} points"

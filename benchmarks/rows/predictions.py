"""Predictions of models whose weights are a product: predict over the product that would form the weights."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import flipcert
from benchmarks.checks import agree
from benchmarks.data import Features, cifar10
from benchmarks.product import product
from benchmarks.records import Record
from benchmarks.rows.ridge import REG
from benchmarks.settings import Settings
from benchmarks.timing import compare

_Model = flipcert.KernelSVM | flipcert.KernelRidge
_MODELS: dict[str, tuple[str, _Model]] = {
    "svm": ("one SVM", flipcert.KernelSVM()),
    "ridge": ("one ridge", flipcert.KernelRidge(reg=REG)),
}


def rows(settings: Settings) -> Iterator[Record]:
    """Both models, both scalings: weights of near ties are formed after all."""
    for scaling in ("given", "standardised"):
        features = cifar10(settings.n_train, settings.n_test, scaling == "standardised")
        for name, (wording, model) in _MODELS.items():
            model.fit(features.train, features.labels)
            near_ties = _near_ties(model, features)
            yield Record(
                name=f"predict-{name}-{scaling}",
                group="predict",
                job=f"predict, {wording}, {features.shape}, T = {settings.n_test:,}, features {scaling}",
                measured=compare(
                    lambda: model.predict(features.test),  # noqa: B023
                    product(features.test, features.train),
                    settings.pairs,
                ),
                unit="×",
                target=0.02,
                method="predict over the product, in turns, once sums of all classes are there; float32 weights "
                f"decide near ties, {near_ties} points here, in as few blocks of 512 as their places allow",
                data=features.name,
                checked=_check(model, features),
                quick=settings.quick,
            )


def _near_ties(model: _Model, features: Features) -> int:
    linear = model.label_linear_
    assert linear.class_sums is not None
    return int(np.count_nonzero(linear.class_sums.predict(linear.weights.features(features.test)) < 0))


def _check(model: _Model, features: Features) -> str:
    """All predictions against those that come from weights, all of which are formed."""
    scores = model.decision_function(features.test)
    for t, (own, plain) in enumerate(zip(model.predict(features.test), scores.argmax(axis=1), strict=True)):
        agree("prediction", t, int(own), int(plain))
    return f"highest sum of all weights: {len(scores):,} points equal"

"""One SVM on the whole training set: certify over the product that forms its weights."""

from __future__ import annotations

from collections.abc import Iterator

import flipcert
from benchmarks.checks import check_stand_alone
from benchmarks.data import cifar10
from benchmarks.product import product
from benchmarks.records import Record
from benchmarks.settings import Settings
from benchmarks.timing import compare


def rows(settings: Settings) -> Iterator[Record]:
    """Features as given, and standardised: the radius of one model is exact for any weights."""
    for scaling in ("given", "standardised"):
        features = cifar10(settings.n_train, settings.n_test, scaling == "standardised")
        model = flipcert.KernelSVM().fit(features.train, features.labels)
        checked = check_stand_alone(model.certify(features.test), features, settings.size(50, 10))
        yield Record(
            name=f"svm-{scaling}",
            group="svm",
            job=f"one SVM, {features.shape}, T = {settings.n_test:,}: exact radii, features {scaling}",
            measured=compare(
                lambda: model.certify(features.test),  # noqa: B023
                product(features.test, features.train),
                settings.pairs,
            ),
            unit="×",
            target=1.2 if scaling == "given" else 1.3,
            method="certify over the product, in turns; fitting, which only keeps the features, is left out",
            data=features.name,
            checked=checked,
            quick=settings.quick,
        )

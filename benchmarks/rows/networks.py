"""Bounded networks: what certificates take beside training, and the published figures of abstract gradient training."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.base import clone
from sklearn.decomposition import PCA

import flipcert
from benchmarks.checks import Mismatch
from benchmarks.data import Features, digits, mnist
from benchmarks.records import Record
from benchmarks.settings import Settings
from benchmarks.timing import Spread, compare, seconds

NETWORKS = {
    "linear-auto": ("linear, two steps", flipcert.BoundedNetwork()),
    "linear-intervals": ("linear, two steps, intervals alone", flipcert.BoundedNetwork(method="intervals")),
    "linear-squared": ("linear, two steps, squared loss", flipcert.BoundedNetwork(loss="squared", learning_rate=0.5)),
    "hidden": (
        "32 hidden units, two steps, up to 16 flips",
        flipcert.BoundedNetwork(hidden=(32,), max_flips=16),
    ),
}
# Worst-case and nominal accuracy on the second and third thousand of test images, after one and two steps.
PUBLISHED = {1: (0.654, 0.674), 2: (0.645, 0.762)}


def rows(settings: Settings) -> Iterator[Record]:
    """Certificates over training, for points that were never seen before."""
    features = digits()
    for name, (words, model) in NETWORKS.items():

        def fit(model: flipcert.BoundedNetwork = model) -> flipcert.BoundedNetwork:
            return clone(model).fit(features.train, features.labels)

        def certify(model: flipcert.BoundedNetwork = model) -> flipcert.Certificates:
            return clone(model).fit(features.train, features.labels).certify(features.test)

        times = compare(certify, fit, settings.few_pairs)
        rate = len(features.test) / seconds(certify)
        yield Record(
            name=f"network-{name}",
            group="network",
            job=f"network, {words}, {features.shape}, T = {len(features.test)}: fit and certify",
            measured=times,
            unit="×",
            method=f"over fitting the plain model, in turns; {rate:,.0f} test points a second",
            data=features.name,
            checked=_attacked(fit(), features),
            quick=settings.quick,
            details={"points_a_second": rate},
        )


def _attacked(model: flipcert.BoundedNetwork, features: Features, attacks: int = 20) -> str:
    """Train again on flipped labels: no prediction may change inside its radius."""
    rng = np.random.default_rng(0)
    certificates = model.certify(features.test)
    for _ in range(attacks):
        flips = int(rng.integers(1, max(2, certificates.radius.max() + 1)))
        flipped = features.labels.copy()
        # All to one class: the most that random flips can do.
        flipped[rng.choice(flipped.size, size=flips, replace=False)] = rng.integers(0, features.n_classes)
        after = clone(model).fit(features.train, flipped).predict(features.test)
        inside = certificates.radius >= (flipped != features.labels).sum()
        if np.any(inside & (after != certificates.prediction)):
            raise Mismatch("an attack changed a certified prediction.")
    return f"{attacks} attacks, trained again"


def published(settings: Settings) -> Iterator[Record]:
    """MNIST, 32 principal components, a linear model, full batches, 10 flips: as in the code of its authors."""
    features = mnist()
    if features.truth is None:
        raise Mismatch("this row needs MNIST itself.")
    pca = PCA(32, svd_solver="full").fit(features.train.astype(np.float64))
    train, test = (pca.transform(part.astype(np.float64)) for part in (features.train, features.test))
    for epochs, expected in PUBLISHED.items():
        some = slice(1000 * epochs, 1000 * (epochs + 1))
        for method in ("intervals", "auto"):
            model = flipcert.BoundedNetwork(epochs=epochs, method=method, max_flips=10).fit(train, features.labels)
            certificates = model.certify(test[some])
            truth = features.truth[some]
            worst = float(certificates.certified_accuracy(truth, 10))
            nominal = float(np.mean(certificates.prediction == truth))
            if method == "intervals" and (round(worst, 3), round(nominal, 3)) != expected:
                raise Mismatch(f"after {epochs} steps {worst:.3f} and {nominal:.3f}, but published is {expected}.")
            yield Record(
                name=f"published-network-{epochs}-{method}",
                group="published-network",
                job=f"MNIST, 32 principal components, linear, {epochs} step{'s' * (epochs > 1)}, 10 flips: accuracy in "
                f"the worst case, method {method}",
                measured=Spread(worst, worst, worst, 1),
                target=expected[0],
                at_most=False,
                method=f"share of test images {some.start} to {some.stop - 1} that are right and certified; "
                f"{nominal:.3f} without an attack",
                data=features.name,
                checked="the authors' figures, to three digits" if method == "intervals" else "",
            )

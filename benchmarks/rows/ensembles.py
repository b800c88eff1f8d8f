"""Ensembles of SVMs: certify over the product, for every number of partitions; and what fitting them takes."""

from __future__ import annotations

from collections.abc import Iterator

import flipcert
from benchmarks.checks import check_bounds, check_exact_vote
from benchmarks.data import Features, cifar10
from benchmarks.product import product
from benchmarks.records import Record
from benchmarks.settings import Settings
from benchmarks.timing import compare


def given(settings: Settings) -> Iterator[Record]:
    """Features as given: weights are not negative, and every radius is exact."""
    features = cifar10(settings.n_train, settings.n_test)
    for n_partitions in settings.partitions:
        model = _ensemble(n_partitions).fit(features.train, features.labels)
        certificates = model.certify(features.test)
        checked = check_exact_vote(certificates, model, features, settings.size(20, 5))
        yield _record(settings, features, model, certificates, checked, "ensembles")


def standardised(settings: Settings) -> Iterator[Record]:
    """Standardised features: weights of both signs, at the default tightness."""
    features = cifar10(settings.n_train, settings.n_test, standardised=True)
    for n_partitions in settings.partitions:
        model = _ensemble(n_partitions).fit(features.train, features.labels)
        certificates = model.certify(features.test)
        checked = check_bounds(certificates, model, features, settings.size(5, 2))
        yield _record(settings, features, model, certificates, checked, "standardised")


def fits(settings: Settings) -> Iterator[Record]:
    """Fitting: partitioning by content, and keeping the parts."""
    features = cifar10(settings.n_train, settings.n_test)
    for n_partitions in settings.partitions:
        model = _ensemble(n_partitions)
        yield Record(
            name=f"fit-{n_partitions}",
            group="fit",
            job=f"fitting an ensemble of SVMs, N = {n_partitions:,}, {features.shape}",
            measured=compare(
                lambda: model.fit(features.train, features.labels),  # noqa: B023
                product(features.test, features.train),
                settings.few_pairs,
            ),
            unit="×",
            target=1.0 if n_partitions <= 10 else 2.0,
            method=f"fit over the product for T = {settings.n_test:,}, in turns",
            data=features.name,
            quick=settings.quick,
        )


def _ensemble(n_partitions: int) -> flipcert.PartitionEnsemble:
    return flipcert.PartitionEnsemble(flipcert.KernelSVM(), n_partitions=n_partitions)


def _record(
    settings: Settings,
    features: Features,
    model: flipcert.PartitionEnsemble,
    certificates: flipcert.Certificates,
    checked: str,
    group: str,
) -> Record:
    return Record(
        name=f"{group}-{model.n_partitions}",
        group=group,
        job=f"ensemble of SVMs, N = {model.n_partitions:,}, {features.shape}, T = {settings.n_test:,}: costs and "
        f"radii, features {'given' if group == 'ensembles' else group}",
        measured=compare(lambda: model.certify(features.test), product(features.test, features.train), settings.pairs),
        unit="×",
        target=2.5 if model.n_partitions <= 50 else 6.0,
        method="certify over the product, in turns; fitting is apart",
        data=features.name,
        checked=checked,
        quick=settings.quick,
        details={"share_exact": float(certificates.exact.mean())},
    )

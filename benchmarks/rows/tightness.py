"""How often the certified radius is the exact one, how far it is off where not, and what that takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

import flipcert
from benchmarks.checks import Mismatch, check_bounds
from benchmarks.data import Features, cifar10
from benchmarks.product import product
from benchmarks.records import Record
from benchmarks.settings import Settings
from benchmarks.timing import Spread, compare

MODELS: dict[str, float | None] = {"SVM": None, "ridge, reg 1": 1.0, "ridge, reg 100": 100.0}
PARTITIONS = (10, 50, 250, 1000)


def rows(settings: Settings) -> Iterator[Record]:
    """Two scalings, three models, four numbers of partitions; with ``exact`` also what solvers close."""
    for scaling in ("given", "standardised"):
        features = cifar10(settings.n_train, settings.n_test, scaling == "standardised")
        for model_name, reg in MODELS.items():
            for n_partitions in settings.size(PARTITIONS, (10, 250)):
                base = flipcert.KernelSVM() if reg is None else flipcert.KernelRidge(reg=reg)
                model = flipcert.PartitionEnsemble(base, n_partitions=n_partitions)
                model.fit(features.train, features.labels)
                certificates = model.certify(features.test)
                checked = check_bounds(certificates, model, features, settings.size(3, 1), reg)
                times = compare(
                    lambda: model.certify(features.test),  # noqa: B023
                    product(features.test, features.train),
                    settings.few_pairs,
                    warm=False,
                )
                setting: dict[str, Any] = {"model": model_name, "n_partitions": n_partitions, "scaling": scaling}
                yield _record(settings, features, setting, certificates, times, checked, exact=False)
                if settings.exact:
                    yield _solved(settings, features, setting, model, certificates)


def _solved(
    settings: Settings,
    features: Features,
    setting: dict[str, Any],
    model: flipcert.PartitionEnsemble,
    bounds: flipcert.Certificates,
) -> Record:
    """The same with ``exact=True``, once: it has to stay within the bounds."""
    solved: list[flipcert.Certificates] = []
    times = compare(
        lambda: solved.append(model.certify(features.test, exact=True)),
        product(features.test, features.train),
        pairs=1,
        warm=False,
    )
    outside = (solved[0].radius < bounds.radius) | (solved[0].radius_upper > bounds.radius_upper)
    if outside.any():
        raise Mismatch(f"exact radii of {int(outside.sum())} points leave the bounds ({setting}).")
    checked = f"within the default bounds: {len(bounds.radius)} points"
    return _record(settings, features, setting, solved[0], times, checked, exact=True)


def _record(
    settings: Settings,
    features: Features,
    setting: dict[str, Any],
    certificates: flipcert.Certificates,
    times: Spread,
    checked: str,
    exact: bool,
) -> Record:
    share = float(np.mean(certificates.radius == certificates.radius_upper))
    model = str(setting["model"]).replace(",", "").replace(" ", "-").lower()
    call = "certify(X, exact=True)" if exact else "certify(X)"
    return Record(
        name=f"tightness-{setting['scaling']}-{model}-{setting['n_partitions']}{'-exact' if exact else ''}",
        group="tightness",
        job=f"{setting['model']}, N = {setting['n_partitions']}, features {setting['scaling']}: {call}",
        measured=Spread(share, share, share, len(certificates.radius)),
        target=1.0 if exact else 0.99,
        at_most=False,
        method=f"share of {settings.n_test:,} test points with radius == radius_upper; time over the product, in turns",
        data=f"{features.name}, {features.shape}",
        checked=checked,
        quick=settings.quick,
        details=setting
        | {
            "exact": exact,
            "mean_gap": float(np.mean(certificates.radius_upper - certificates.radius)),
            "time": asdict(times),
        },
    )

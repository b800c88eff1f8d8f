"""One attack on all points: what is proven and what is found against time, and what an integer program says."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import flipcert
from benchmarks import collective_program
from benchmarks.data import Features, cifar10, digits
from benchmarks.peak import GIB, measure
from benchmarks.records import Record
from benchmarks.settings import Settings
from benchmarks.timing import Spread

REG = 1000.0


def rows(settings: Settings) -> Iterator[Record]:
    """Digits beside the integer program, 500 points of CIFAR-10 in a few time limits, and its whole test set."""
    small = digits()
    model = flipcert.KernelRidge("linear", reg=10.0).fit(small.train[:600], small.labels[:600])
    for budget in settings.size((2, 4, 8, 12), (2,)):
        record = _record(settings, small, model, small.test[:160], _truth(small)[:160], budget, 10.0, "digits")
        limit = settings.size(60.0, 10.0)
        record.details |= {"program": _program(model, small, budget, limit), "program_limit": limit}
        yield record
    yield _of_all(settings)
    features = cifar10(settings.n_train, settings.size(500, 100), standardised=True)
    model = flipcert.KernelRidge("linear", reg=REG).fit(features.train, features.labels)
    jobs = [(limit, budget) for limit in (15.0, 60.0) for budget in (10, 50, 100, 200)] + [(240.0, 200)]
    for limit, budget in settings.size(jobs, [(10.0, 10)]):
        yield _record(settings, features, model, features.test, _truth(features), budget, limit, "cifar10-500")


def _truth(features: Features) -> Any:
    assert features.truth is not None, "data with labels of the test points"
    return features.truth


def _program(model: Any, features: Features, budget: int, limit: float) -> dict[str, Any]:
    """What HiGHS makes of the full integer program on the points that can change at all."""
    points, truth = features.test[:160], _truth(features)[:160]
    certificates = model.certify(points)
    threatened = (certificates.radius < budget) & certificates.correct(truth)
    linear, rows = model._asked(points)
    weights = linear.formed(rows, np.flatnonzero(threatened)).astype(np.float64)
    start = time.perf_counter()
    found, bound = collective_program.most_changed(weights, linear.labels.codes, 10, budget, limit)
    return {"found": found, "bound": bound, "seconds": time.perf_counter() - start}


def _record(
    settings: Settings, features: Features, model: Any, points: Any, truth: Any, budget: int, limit: float, data: str
) -> Record:
    start = time.perf_counter()
    certificate = model.certify_collectively(points, budget, truth, time_limit=limit)
    taken = time.perf_counter() - start
    replayed = _replayed(model, features, points, truth, certificate)
    at_most = float(certificate.changed_at_most[0])
    return Record(
        name=f"collective-{data}-{budget}-{limit:g}",
        group="collective",
        job=f"ridge, {features.shape}, {certificate.n_points} points, {budget} flips, {limit:g} s",
        measured=Spread(at_most, at_most, at_most, 1),
        method="points that one attack changes at most",
        data=features.name,
        checked=replayed,
        quick=settings.quick,
        details={
            "data": data,
            "budget": budget,
            "limit": limit,
            "seconds": taken,
            "points": certificate.n_points,
            "counted": certificate.n_counted,
            "alone": int(certificate.changed_one_by_one[0]),
            "found": int(certificate.changed_at_least[0]),
        },
    )


def _replayed(model: Any, features: Features, points: Any, truth: Any, certificate: Any) -> str:
    """The attack once more, through ``fit``."""
    attack = certificate.attacks[0]
    if attack is None:
        return "no attack"
    n = certificate.n_labels
    again = type(model)(**model.get_params()).fit(features.train[:n], attack.apply(features.labels[:n]))
    changed = certificate.counted & (again.predict(points) != certificate.prediction)
    if np.count_nonzero(changed) != certificate.changed_at_least[0]:
        raise AssertionError("the attack that was found does something else")
    return "attack replayed through fit"


def prepare(settings: Settings) -> Any:
    """A model and the whole test set."""
    features = cifar10(settings.n_train, settings.size(10_000, 300), standardised=True)
    return flipcert.KernelRidge("linear", reg=REG).fit(features.train, features.labels), features


def work(prepared: Any) -> dict[str, Any]:
    """One attack of 100 flips on all of it."""
    model, features = prepared
    start = time.perf_counter()
    certificate = model.certify_collectively(features.test, 100, _truth(features), time_limit=600.0)
    names = ("changed_at_most", "changed_at_least", "changed_one_by_one")
    return {
        "seconds": time.perf_counter() - start,
        "counted": certificate.n_counted,
        "points": certificate.n_points,
        **{name: int(getattr(certificate, name)[0]) for name in names},
    }


def _of_all(settings: Settings) -> Record:
    """The whole test set, with the memory that it takes."""
    taken = measure(prepare, work, settings)
    result = taken["result"]
    at_most = float(result["changed_at_most"])
    return Record(
        name="collective-cifar10-all-100",
        group="collective",
        job=f"ridge, {result['points']:,} points, 100 flips",
        measured=Spread(at_most, at_most, at_most, 1),
        method="points that one attack changes at most",
        data="CIFAR-10 features, standardised",
        checked="",
        quick=settings.quick,
        details={
            "data": "cifar10-all",
            "budget": 100,
            "limit": 600.0,
            "seconds": result["seconds"],
            "points": result["points"],
            "counted": result["counted"],
            "alone": result["changed_one_by_one"],
            "found": result["changed_at_least"],
            "gib": taken["above_data"] / GIB,
        },
    )

"""A training set in a mapped file, weights that are never held: peak memory, and the same radii as if they were."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import sklearn

import flipcert
from benchmarks import peak
from benchmarks.checks import agree
from benchmarks.data import Features, synthetic
from benchmarks.records import Record
from benchmarks.rows.ridge import REG
from benchmarks.settings import Settings
from benchmarks.timing import Spread
from flipcert.engine.mapped import give_back, scratch

VOTERS = 100
_LIMIT = 1.0
# Megabytes of the budget; with the second one, the weights of all test points are held.
_BUDGET, _QUICK_BUDGET, _PLENTY = 512, 32, 2**16


def rows(settings: Settings) -> Iterator[Record]:
    """One row a model: fit and certify in a process of its own, and once more with weights in memory."""
    budget = settings.size(_BUDGET, _QUICK_BUDGET)
    for name, (job, streamed, held) in _JOBS.items():
        measured = peak.measure(mapped, streamed, settings)
        expected = peak.measure(mapped, held, settings)
        result, reference = measured["result"], expected["result"]
        for t, (own, other) in enumerate(zip(result["certified"], reference["certified"], strict=True)):
            agree("prediction, radius, target", t, own, other)
        above = measured["above_data"] / peak.GIB
        yield Record(
            name=f"large-{name}",
            group="large",
            job=f"{job}, mapped, budget {budget} MiB: peak memory",
            measured=Spread(above, above, above, 1),
            unit="GiB",
            target=_LIMIT,
            method=f"{peak.METHOD}, mapped pages of the file included; fit and certify",
            data=result["data"],
            checked=f"{len(result['certified'])} predictions, radii and targets are those of weights in memory, "
            f"which takes {expected['above_data'] / peak.GIB:.1f} GiB",
            quick=settings.quick,
        )


def mapped(settings: Settings) -> tuple[Features, int]:
    """Training inputs in a scratch file, and the budget."""
    features = synthetic(settings.size(5_000_000, 300_000), 128, 100, 32, room=scratch)
    give_back(features.train)
    return features, settings.size(_BUDGET, _QUICK_BUDGET)


def svm(prepared: tuple[Features, int]) -> dict[str, Any]:
    return certify(flipcert.KernelSVM(), *prepared)


def svm_in_memory(prepared: tuple[Features, int]) -> dict[str, Any]:
    return certify(flipcert.KernelSVM(), prepared[0], _PLENTY)


def ridge(prepared: tuple[Features, int]) -> dict[str, Any]:
    return certify(flipcert.KernelRidge(reg=REG), *prepared)


def ridge_in_memory(prepared: tuple[Features, int]) -> dict[str, Any]:
    return certify(flipcert.KernelRidge(reg=REG), prepared[0], _PLENTY)


def ensemble(prepared: tuple[Features, int]) -> dict[str, Any]:
    return certify(flipcert.PartitionEnsemble(flipcert.KernelSVM(), VOTERS), *prepared)


def ensemble_in_memory(prepared: tuple[Features, int]) -> dict[str, Any]:
    return certify(flipcert.PartitionEnsemble(flipcert.KernelSVM(), VOTERS), prepared[0], _PLENTY)


def certify(model: Any, features: Features, budget: int) -> dict[str, Any]:
    """Fit and certify within a budget."""
    with sklearn.config_context(working_memory=budget):
        certificates = model.fit(features.train, features.labels).certify(features.test)
    columns = (certificates.prediction, certificates.radius, certificates.target)
    return {
        "certified": [list(row) for row in zip(*(column.tolist() for column in columns), strict=True)],
        "data": f"{features.name}, {features.shape}, T = {len(features.test)}",
    }


_Work = Callable[[tuple[Features, int]], dict[str, Any]]
_JOBS: dict[str, tuple[str, _Work, _Work]] = {
    "svm": ("one SVM", svm, svm_in_memory),
    "ridge": ("one ridge, linear NTK", ridge, ridge_in_memory),
    "ensemble": (f"ensemble of {VOTERS} SVM", ensemble, ensemble_in_memory),
}

"""Certify a test set with one model or several, and collect all that a report tells about it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from flipcert.certificates import Certificates
from flipcert.datasets.table import Table
from flipcert.engine.watch import Watcher, watched_by
from flipcert.ensemble.partition import assign_partitions
from flipcert.evaluation.result import Attack, Result
from flipcert.kernels.base import Kernel
from flipcert.kernels.stored import StoredKernel
from flipcert.outcome import Outcome
from flipcert.runs.folder import RunFolder
from flipcert.runs.pictures import pictures_of
from flipcert.runs.settings import Settings


@dataclass(frozen=True, eq=False)
class Job:
    """What to certify, and how.

    Attributes
    ----------
    train, test : Table
        The data.
    settings : sequence of Settings
        The models, one after the other.
    exact : bool
        Close open radii with integer programs.
    time_limit : float
        Seconds for one of them.
    n_attacks : int
        Number of test points whose attacks are found.
    image_shape : tuple of int or None
        Shape of a row, if rows are images.
    n_jobs : int or None
        Threads.
    """

    train: Table
    test: Table
    settings: Sequence[Settings]
    exact: bool = False
    time_limit: float = 60.0
    n_attacks: int = 100
    image_shape: tuple[int, ...] | None = None
    n_jobs: int | None = None


class Stages(Watcher):
    """Looks on at a job and is told which stage it is in; the command line shows that."""

    def stage(self, name: str) -> None:
        """A stage begins."""


def run_job(job: Job, folder: RunFolder | None = None, stages: Stages | None = None) -> list[Result]:
    """Certify the test set with every model; what the folder holds already is not computed again."""
    stages = stages or Stages()
    kernels = _SharedKernels(job, folder)
    results = []
    for number, settings in enumerate(job.settings):
        prefix = f"{settings.name}: " if len(job.settings) > 1 else ""
        watcher = _Keeper(stages, folder, number)
        start = time.perf_counter()
        with watched_by(watcher):
            X_train, X_test, model = kernels.inputs_of(settings, stages)
            stages.stage(f"{prefix}fitting")
            model.fit(X_train, job.train.y, trusted=job.train.trusted)
            stages.stage(f"{prefix}certifying")
            certificates = model.certify(X_test, exact=job.exact, time_limit=job.time_limit)
            seconds = time.perf_counter() - start
            stages.stage(f"{prefix}looking for attacks")
            attacks = _attacks(model, X_test, certificates, job)
        results.append(
            Result(
                name=settings.name,
                certificates=certificates,
                labels=job.test.y,
                model=settings.model,
                n_partitions=settings.partitions,
                settings={name: value for name, value in settings.shown().items() if name != "model"},
                attacks=attacks,
                seconds=seconds,
            )
        )
    return _with_pictures(results, job)


class _Keeper(Watcher):
    """Passes progress on, and keeps finished blocks in the folder of the run."""

    def __init__(self, stages: Stages, folder: RunFolder | None, number: int) -> None:
        self._stages = stages
        self._folder = folder
        self._number = number

    def begin(self, total: int, unit: str) -> None:
        self._stages.begin(total, unit)

    def advance(self, units: int) -> None:
        self._stages.advance(units)

    def recall(self, start: int, n_rows: int) -> Outcome | None:
        return None if self._folder is None else self._folder.recall(self._name(start, n_rows))

    def keep(self, start: int, n_rows: int, result: Outcome) -> None:
        if self._folder is not None:
            self._folder.keep(self._name(start, n_rows), result)

    def _name(self, start: int, n_rows: int) -> str:
        return f"{self._number:04d}-{start:09d}-{n_rows}"


class _SharedKernels:
    """Inputs of each model; scaled features and kernels are computed once for all models that share them."""

    def __init__(self, job: Job, folder: RunFolder | None) -> None:
        self._job = job
        self._folder = folder
        self._scaled: dict[str, tuple[NDArray[Any], NDArray[Any]]] = {}
        self._stored: dict[str, StoredKernel] = {}

    def inputs_of(self, settings: Settings, stages: Stages) -> tuple[NDArray[Any], NDArray[Any], BaseEstimator]:
        """Training and test inputs, and the model to fit on them."""
        X_train, X_test = self._features(settings)
        model = settings.estimator(self._job.n_jobs)
        base = getattr(model, "estimator", model)
        kernel = getattr(base, "kernel", None)
        shared = [other for other in self._job.settings if other.kernel_identity() == settings.kernel_identity()]
        # Finite features make the kernel a product that is cheaper than reading it.
        if not isinstance(kernel, Kernel) or kernel.n_features(X_train.shape[1]) is not None or len(shared) < 2:
            return X_train, X_test, model
        key = settings.kernel_identity()
        if key not in self._stored:
            stages.stage("computing the kernel, once for all models")
            self._stored[key] = self._store(kernel, X_train, X_test)
        stored = self._stored[key]
        stored.load()
        base.set_params(kernel=stored)
        if model is not base:
            # Row numbers say nothing about the content that partitions go by.
            rule = assign_partitions(X_train, settings.partitions, settings.partition_rule, settings.seed)
            model.set_params(partition=rule)
        return stored.train_rows, stored.test_rows, model

    def _features(self, settings: Settings) -> tuple[NDArray[Any], NDArray[Any]]:
        if settings.scale not in self._scaled:
            scaler = settings.scaler().fit(self._job.train.X)
            self._scaled = {settings.scale: (scaler.transform(self._job.train.X), scaler.transform(self._job.test.X))}
        return self._scaled[settings.scale]

    def _store(self, kernel: Kernel, X_train: NDArray[Any], X_test: NDArray[Any]) -> StoredKernel:
        name = f"kernel-{len(self._stored)}.npy"
        path = Path(self._temporary.name) / name if self._folder is None else self._folder.scratch(name)
        return StoredKernel(kernel, X_train, X_test, path, self._job.n_jobs)

    @cached_property
    def _temporary(self) -> TemporaryDirectory[str]:
        """A place for kernels of a job that has no folder; it goes when the job ends."""
        return TemporaryDirectory(prefix="flipcert-")


def _attacks(model: Any, X_test: NDArray[Any], certificates: Certificates, job: Job) -> tuple[Attack, ...]:
    """Attacks on the most fragile and the most robust points, and on some in between."""
    rows = rows_to_attack(certificates, job.test.y, job.n_attacks)
    if rows.size == 0:
        return ()
    y = np.asarray(job.train.y)
    witnesses = model.worst_flips(X_test[rows], exact=job.exact, time_limit=job.time_limit)
    return tuple(
        Attack(row=int(row), indices=witness.indices, old=y[witness.indices], new=witness.labels)
        for row, witness in zip(rows, witnesses, strict=True)
        # In another block, weights may round to another model, one with a smaller attack.
        if witness is not None and len(witness) > certificates.radius[row]
    )


def rows_to_attack(certificates: Certificates, labels: NDArray[Any] | None, number: int) -> NDArray[np.int64]:
    """Test points worth attacking: right predictions, a quarter fragile, a quarter robust, the others spread evenly."""
    right = np.ones(len(certificates), bool) if labels is None else certificates.prediction == labels
    candidates = np.flatnonzero(right)
    order = candidates[np.argsort(certificates.radius[candidates], kind="stable")]
    if order.size <= number:
        return np.sort(order)
    quarter = number // 4
    middle = order[quarter : order.size - quarter]
    spread = middle[np.linspace(0, middle.size - 1, number - 2 * quarter).astype(np.int64)] if number else order[:0]
    return np.sort(np.concatenate([order[:quarter], spread, order[order.size - quarter :]]))


def _with_pictures(results: list[Result], job: Job) -> list[Result]:
    """Add pictures of the test points that are attacked, and of the training rows that a report may show."""
    attacks = [attack for result in results for attack in result.attacks]
    if job.image_shape is None or not attacks:
        return results
    shown = [attack.indices[:_FIRST_FLIPS] for attack in attacks]
    for result in results:
        if result.attacks:
            flipped, counts = np.unique(np.concatenate([a.indices for a in result.attacks]), return_counts=True)
            shown.append(flipped[np.argsort(-counts, kind="stable")[:_MOST_FLIPPED]])
    test = pictures_of(job.test.X, np.unique([attack.row for attack in attacks]), job.image_shape)
    train = pictures_of(job.train.X, np.unique(np.concatenate(shown)), job.image_shape)
    return [replace(result, test_images=test, train_images=train) for result in results]


# Training rows with pictures: the first flips of each attack, and those in the most attacks.
_FIRST_FLIPS, _MOST_FLIPPED = 5, 20

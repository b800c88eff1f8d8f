"""Certify a test set with one model or several, and collect all that a report tells about it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.datasets.table import Table
from flipcert.engine.question import Question
from flipcert.engine.watch import Watcher, watched_by
from flipcert.labels.threats import FLIPS, SOURCES, THREATS
from flipcert.report.result import Attack, Result, SourcePower
from flipcert.results.certificates import Certificates
from flipcert.runs.audit import AuditRequest, audit_result, check_audit
from flipcert.runs.collective import collective_result
from flipcert.runs.folder import RunFolder
from flipcert.runs.inputs import ModelInputs
from flipcert.runs.pictures import pictures_of
from flipcert.runs.row_ids import ids_in, plain_ids
from flipcert.runs.settings import Settings
from flipcert.runs.source_power import powers_of_sources
from flipcert.runs.training import fit


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
    threat : str
        What an attacker may do, and what radii count.
    collective : tuple of int
        Budgets of one attack on all test points, each of which may take as long as one integer program.
    audit : AuditRequest or None
        Which labels are to be listed for a check.
    prepared : dict or None
        What was done to the features before, and how they are scaled: as plain values, and in a sentence ("said").
    """

    train: Table
    test: Table
    settings: Sequence[Settings]
    exact: bool = False
    time_limit: float = 60.0
    n_attacks: int = 100
    image_shape: tuple[int, ...] | None = None
    n_jobs: int | None = None
    threat: str = FLIPS.name
    collective: tuple[int, ...] = ()
    audit: AuditRequest | None = None
    prepared: dict[str, Any] | None = None


class Stages(Watcher):
    """Looks on at a job and is told which stage it is in; the command line shows that."""

    def stage(self, name: str) -> None:
        """A stage begins."""


def run_job(job: Job, folder: RunFolder | None = None, stages: Stages | None = None) -> list[Result]:
    """Certify the test set with every model; what the folder holds already is not computed again."""
    stages = stages or Stages()
    with _scratch(folder) as scratch:
        inputs = ModelInputs(job.train.X, job.test.X, scratch, job.n_jobs)
        results = [_certify(number, job, inputs, folder, stages) for number in range(len(job.settings))]
    return _with_pictures(results, job)


def _certify(number: int, job: Job, inputs: ModelInputs, folder: RunFolder | None, stages: Stages) -> Result:
    """Certify the test set with one of the models."""
    settings = job.settings[number]
    prefix = f"{settings.name}: " if len(job.settings) > 1 else ""
    shared = sum(other.kernel_identity() == settings.kernel_identity() for other in job.settings)
    start = time.perf_counter()
    with watched_by(_Keeper(stages, folder, _patience(job.train.X))):
        # A stored kernel knows its own rows only.
        reuse = shared > 1 and not THREATS[job.threat].changes_rows
        X_train, X_test, model = inputs.prepare(settings, reuse, stages.stage)
        stages.stage(f"{prefix}fitting")
        fit(model, X_train, job.train)
        check_audit(model, X_test, job)
        stages.stage(f"{prefix}certifying")
        certificates = model.certify(X_test, threat=job.threat, exact=job.exact, time_limit=job.time_limit)
        seconds = time.perf_counter() - start
        in_flips = None
        if job.threat == SOURCES.name:
            stages.stage(f"{prefix}certifying in flips")
            in_flips = model.certify(X_test).radius
        rows = rows_to_attack(certificates, job.test.y, job.n_attacks)
        attacks: tuple[Attack, ...] = ()
        # Of run-offs, copies and some models no attack is ever known.
        if np.any(certificates.radius_upper[rows] < certificates.limit):
            stages.stage(f"{prefix}looking for attacks")
            attacks = _attacks(model, X_test, rows, certificates, job)
        powers: tuple[SourcePower, ...] = ()
        if job.threat == SOURCES.name and job.n_attacks:
            stages.stage(f"{prefix}looking at single sources")
            powers = powers_of_sources(model, X_train, X_test, job.train, certificates)
        audit = audit_result(model, X_train, X_test, certificates, job, folder, stages)
        # The model saw scaled features, and perhaps rows of a stored kernel: the settings tell all of it.
        certificates = replace(certificates, model=settings.description())
        collective = collective_result(model, X_test, certificates, job, number, prefix, folder, stages)
    return Result(
        name=settings.name,
        certificates=certificates,
        labels=job.test.y,
        attacks=attacks,
        seconds=seconds,
        in_flips=in_flips,
        powers=powers,
        collective=collective,
        audit=audit,
        preparation=None if job.prepared is None else str(job.prepared["said"]),
        test_ids=plain_ids(job.test.ids),
        train_ids=ids_in([*attacks, *(() if collective is None else collective.attacks)], job.train.ids),
    )


@contextmanager
def _scratch(folder: RunFolder | None) -> Iterator[Path]:
    """A place for kernels; without a folder of the run, one that goes when the job ends."""
    if folder is not None:
        yield folder.scratch
        return
    with TemporaryDirectory(prefix="flipcert-") as temporary:
        yield Path(temporary)


def _patience(X: Any) -> float:
    """Seconds of a run that are as well computed again: four times what it takes to read all of a model on X."""
    return float(X.size * X.dtype.itemsize / 2**28)


class _Keeper(Watcher):
    """Passes progress on, and keeps finished blocks in the folder of the run.

    The name of a question is a digest of all of its model, which may take longer than the answer: nobody asks for it
    where nothing was kept, and blocks wait for it until the run has lasted for some time.
    """

    def __init__(self, stages: Stages, folder: RunFolder | None, patience: float) -> None:
        self._stages = stages
        self._folder = folder
        self._recalls = folder is not None and folder.holds_blocks
        self._keeps_from = time.monotonic() + patience
        self._waiting: list[tuple[Question, Certificates]] = []

    def begin(self, total: int, unit: str) -> None:
        self._stages.begin(total, unit)

    def advance(self, units: int) -> None:
        self._stages.advance(units)

    def narrowed(self, budget: int, at_most: int | None = None, at_least: int | None = None) -> None:
        self._stages.narrowed(budget, at_most, at_least)

    def notice(self, message: str) -> None:
        self._stages.notice(message)

    def recall(self, question: Question) -> Certificates | None:
        if self._folder is None or not self._recalls or question.name is None:
            return None
        return self._folder.recall(question.name)

    def keep(self, question: Question, result: Certificates) -> None:
        if self._folder is None:
            return
        self._waiting.append((question, result))
        if time.monotonic() < self._keeps_from:
            return
        for asked, block in self._waiting:
            if asked.name is not None:
                self._folder.keep(asked.name, block)
        self._waiting.clear()


def _attacks(
    model: Any, X_test: NDArray[Any], rows: NDArray[np.int64], certificates: Certificates, job: Job
) -> tuple[Attack, ...]:
    """The smallest known attacks on some test points."""
    y = np.asarray(job.train.y)
    witnesses = model.worst_flips(X_test[rows], threat=job.threat, exact=job.exact, time_limit=job.time_limit)
    return tuple(
        Attack.of(int(row), witness, y, job.train.givers, job.train.rows)
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
    if job.image_shape is None:
        return results
    test, train = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for result in results:
        test += [np.array([attack.row for attack in result.attacks], np.int64)]
        train += [np.append(own.training_rows[:_FIRST_FLIPS], own.deleted[:_FIRST_FLIPS]) for own in result.attacks]
        if result.collective is not None:
            test += [result.collective.certificate.changed(k)[:_FIRST_POINTS] for k in range(len(job.collective))]
            train += [own.training_rows[:_FIRST_POINTS] for own in result.collective.attacks if own is not None]
        if result.audit is not None:
            train += [
                np.array(
                    [entry.row for entry in result.audit.entries[:_FIRST_CHECKS] if entry.row is not None], np.int64
                )
            ]
    if not np.concatenate(test).size:
        return results
    train = train[:1] if job.threat == SOURCES.name else train
    seen = pictures_of(job.test.X, np.unique(np.concatenate(test)), job.image_shape)
    learnt = pictures_of(job.train.X, np.unique(np.concatenate(train)), job.image_shape)
    return [replace(result, test_images=seen, train_images=learnt) for result in results]


# Flips of an attack whose training rows have pictures: as many as a page shows.
_FIRST_FLIPS = 8
# The same for an attack on all points, and points that it changes.
_FIRST_POINTS = 24
# Labels to check whose rows have pictures.
_FIRST_CHECKS = 100

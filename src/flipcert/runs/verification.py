"""A second opinion on a finished run: some of its points are looked at again, by other means (``flipcert.verify``)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.audit.record import RandomCheck
from flipcert.datasets.table import Table
from flipcert.engine.watch import watched_by
from flipcert.labels.threats import SOURCES, THREATS
from flipcert.runs.compared_audit import compare_audit
from flipcert.runs.compared_check import compare_check
from flipcert.runs.compared_collective import compare_collective
from flipcert.runs.comparisons import (
    LABELS,
    METRICS,
    SETTINGS,
    Comparison,
    Place,
    Verification,
)
from flipcert.runs.inputs import ModelInputs
from flipcert.runs.job import Stages
from flipcert.runs.plain_metrics import flattened, metrics_of
from flipcert.runs.refit import Refit, free_labels
from flipcert.runs.stored_powers import compare_powers
from flipcert.runs.stored_run import StoredRun
from flipcert.runs.training import fit


def verify_run(
    run: StoredRun,
    train: Table,
    test: Table,
    n_points: int,
    seed: int,
    n_jobs: int | None,
    stages: Stages,
    check: RandomCheck | None = None,
) -> Verification:
    """Look again at some points of a run, as many of each of its models.

    Half of the points are drawn from those with a stored attack, as far as there are such points.
    """
    run.check_rows(test.X.shape[0])
    verification = Verification()
    told = f"{run.n_labels}, {run.n_attackable} not trusted"
    counted = f"{train.n_labels}, {np.count_nonzero(free_labels(train))} not trusted"
    n_sources = None if train.givers is None else np.unique(train.givers).size
    if n_sources is not None or run.n_sources is not None:
        told, counted = f"{told}, {run.n_sources} sources", f"{counted}, {n_sources} sources"
    verification.note(LABELS, Place("all"), told, counted)
    space = run.settings[0].classes if run.settings[0].classes is not None else np.asarray(train.y)
    verification.note(LABELS, Place("all"), f"classes {run.classes}", f"classes {np.unique(space).tolist()}")
    for number in range(len(run.settings)):
        _compare_summary(run, number, train, verification)
    compare_check(run, check, verification)
    compare_audit(run, train, verification)
    rng = np.random.default_rng(seed)
    keeps_rows = not THREATS[run.threat].changes_rows
    shares = [part.size for part in np.array_split(np.arange(n_points), len(run.settings))]
    with TemporaryDirectory(prefix="flipcert-") as scratch:
        inputs = ModelInputs(train.X, test.X, Path(scratch), n_jobs)
        for number, settings in enumerate(run.settings):
            rows = _draw(rng, test.X.shape[0], sorted(run.attacks[number]), shares[number])
            if rows.size == 0:
                compare_powers(run, number, train, None, test.X, verification)
                compare_collective(run, number, train, None, train.X, test.X, verification)
                continue
            stages.stage(f"{settings.name}: fitting")
            shared = sum(other.kernel_identity() == settings.kernel_identity() for other in run.settings)
            with watched_by(stages):
                X_train, X_test, model = inputs.prepare(settings, shared > 1 and keeps_rows, stages.stage)
                fit(model, X_train, train)
            stages.stage(f"{settings.name}: looking again")
            stages.begin(rows.size, "points")
            compare_powers(run, number, train, model, X_test, verification)
            compare_collective(run, number, train, model, X_train, X_test, verification)
            refit = Refit(settings, train, test, X_train, X_test, model, rows, verification, run.exposure)
            for row, opinion in zip(rows.tolist(), refit.opinions(), strict=True):
                refit.compare(run.points[number][row], opinion)
                if row in run.attacks[number]:
                    refit.compare_attack(run.points[number][row], opinion, run.attacks[number][row])
                stages.advance(1)
            verification.n_points += rows.size
    return verification


def _compare_summary(run: StoredRun, number: int, train: Table, verification: Verification) -> None:
    """Compare what the summary says of a model with what decides its results, and with the table of all points."""
    settings, told = run.settings[number], run.told[number]
    described = json.loads(json.dumps({"name": settings.name, "partitions": 1, **settings.description()}))
    _compare_named(SETTINGS, settings.name, {"name": told["name"], **told["settings"]}, described, verification)
    n_sources = np.unique(train.givers).size if run.threat == SOURCES.name and train.givers is not None else None
    n_free = int(np.count_nonzero(free_labels(train)))
    counted = metrics_of(run.points[number], train.n_labels, n_free, run.threat, n_sources)
    _compare_named(METRICS, settings.name, flattened(told["metrics"]), counted, verification)


def _compare_named(
    comparison: Comparison, model: str, told: Mapping[str, Any], found: Mapping[str, Any], verification: Verification
) -> None:
    for name in dict.fromkeys([*told, *found]):
        stored, own = (f"{name} {side[name]}" if name in side else f"no {name}" for side in (told, found))
        agrees = name in told and name in found and _same(told[name], found[name])
        verification.note(comparison, Place(model), stored, own, agrees)


def _same(told: Any, found: Any) -> bool:
    """Whether two values are the same; averages may have been added up in another order."""
    if isinstance(told, float) and isinstance(found, float):
        return math.isclose(told, found, rel_tol=1e-9, abs_tol=1e-12)
    return type(told) is type(found) and bool(told == found)


def _draw(rng: np.random.Generator, n_rows: int, attacked: list[int], share: int) -> NDArray[np.int64]:
    """Rows to look at."""
    some = rng.permutation(np.array(attacked, np.int64))[: (share + 1) // 2]
    others = rng.permutation(np.setdiff1d(np.arange(n_rows), some))[: share - some.size]
    return np.sort(np.concatenate([some, others]))

"""One attack on all test points of a run, one budget after the other; what is finished is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from flipcert.collective import Targets
from flipcert.report.result import Collective
from flipcert.report.units import unit_of
from flipcert.report.words import plural
from flipcert.results.certificates import Certificates
from flipcert.results.collective_certificate import CollectiveCertificate, together
from flipcert.runs.folder import RunFolder

if TYPE_CHECKING:
    from flipcert.runs.job import Job, Stages


def collective_result(
    model: Any,
    X_test: NDArray[Any],
    certificates: Certificates,
    job: Job,
    number: int,
    prefix: str,
    folder: RunFolder | None,
    stages: Stages,
) -> Collective | None:
    """What one attack does to all points under the ``number``-th model, for all budgets of the job; None without any.

    Budgets are looked at by themselves, so that one that is finished need not be looked at again.
    """
    if not job.collective:
        return None
    targets: Targets | None = None
    parts = []
    for budget in sorted(job.collective):
        name = f"collective-{number}-{budget}"
        part = None if folder is None else folder.recall_collective(name)
        if part is None or not _answers(part, budget, certificates):
            stages.stage(f"{prefix}one attack of {plural(budget, unit_of(job.threat).noun)} on all points")
            targets = targets or Targets(model, X_test, job.test.y, certificates)
            part = targets.certify(budget, job.time_limit)
            if folder is not None:
                folder.keep_collective(name, part)
        parts.append(part)
    return Collective.of(together(parts), np.asarray(job.train.y), job.train.givers, job.train.rows)


def _answers(kept: CollectiveCertificate, budget: int, certificates: Certificates) -> bool:
    """Whether what was kept is about this budget and these predictions."""
    same = kept.threat == certificates.threat and kept.n_labels == certificates.n_labels
    return same and kept.flips.tolist() == [budget] and np.array_equal(kept.prediction, certificates.prediction)

"""Which labels of a training set to check first, one step after the other; what is finished is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from flipcert.audit.auditor import Auditor
from flipcert.audit.one_list import mixed_list
from flipcert.audit.potential import Chosen
from flipcert.audit.suspicion import Suspicion, suspicion_of
from flipcert.labels.encoding import class_indices
from flipcert.report.audit_result import Audit, AuditEntry
from flipcert.results.certificates import Certificates
from flipcert.runs.folder import RunFolder

if TYPE_CHECKING:
    from flipcert.runs.job import Job, Stages

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class AuditRequest:
    """What is to be audited.

    Attributes
    ----------
    n_labels : int
        How many labels can be checked.
    flips : int
        How many flips predictions are to be proven against.
    share : float
        Share of the list for labels that look wrong.
    n_corrected, n_confirmed : int or None
        How many labels were checked before, and found wrong or right; None if there were no checks.
    """

    n_labels: int
    flips: int
    share: float
    n_corrected: int | None = None
    n_confirmed: int | None = None

    def identity(self) -> dict[str, Any]:
        """What decides the result, as plain values."""
        return {"labels": self.n_labels, "flips": self.flips, "suspicious": self.share}


def check_audit(model: Any, X_test: NDArray[Any], job: Job) -> None:
    """Raise ValueError if no such audit can be made of a fitted model: before anything takes its time."""
    if job.audit is not None:
        Auditor(model, X_test, job.audit.flips, job.test.y).checked_count(job.audit.n_labels)


def audit_result(
    model: Any,
    X_train: NDArray[Any],
    X_test: NDArray[Any],
    certificates: Certificates,
    job: Job,
    folder: RunFolder | None,
    stages: Stages,
) -> Audit | None:
    """The list of labels to check, and what that proves; None where nobody asked."""
    asked = job.audit
    if asked is None:
        return None
    auditor = Auditor(model, X_test, asked.flips, job.test.y, start=None if job.exact else certificates)
    count = auditor.checked_count(asked.n_labels)
    steps = _Steps(folder, stages)

    def chosen() -> Arrays:
        return auditor.choose(count)._asdict()

    def doubt() -> Arrays:
        found = suspicion_of(model, X_train, np.asarray(job.train.y))
        complaint = "{label} is none of the classes {classes}."
        return {"margin": found.margin, "preferred": class_indices(found.preferred, model.classes_, complaint)}

    plan = Chosen(**steps.taken("choosing labels for the proof", "plan", chosen))
    certified = steps.taken("proving after each check", "certified", lambda: {"shares": auditor.certified(plan.units)})
    held_out = steps.taken("planning for one half of the points", "held-out", lambda: {"s": auditor.held_out(count)})
    random = steps.taken("checking at random", "random", lambda: {"shares": auditor.random(count)})
    found = steps.taken("looking for labels that look wrong", "doubt", doubt)
    suspicion = Suspicion(found["margin"], model.classes_[found["preferred"]])
    attackable = auditor.units.attackable
    units = mixed_list(plan.units, suspicion.margin, attackable, count, asked.share)
    listed = steps.taken("proving after the list", "listed", lambda: {"shares": auditor.certified(units)})
    weighs_on = dict(zip(plan.units.tolist(), plan.weighs_on.tolist(), strict=True))
    of_list = Chosen(units, np.array([weighs_on.get(unit, 0) for unit in units.tolist()], np.int64))
    return Audit(
        plan=auditor.plan(plan, certified["shares"], held_out=held_out["s"], random=random["shares"]),
        listed=auditor.plan(of_list, listed["shares"]),
        entries=tuple(_entry(unit, job, suspicion, weighs_on.get(unit)) for unit in units.tolist()),
        n_suspects=int(np.count_nonzero(suspicion.margin[attackable] > 0)),
        n_corrected=asked.n_corrected,
        n_confirmed=asked.n_confirmed,
    )


def _entry(label: int, job: Job, suspicion: Suspicion, weighs_on: int | None) -> AuditEntry:
    train = job.train
    return AuditEntry(
        index=label,
        row=label,
        id=None if train.ids is None else train.ids[label].item(),
        label=np.asarray(train.y)[label].item(),
        source=None if train.givers is None else train.givers[label].item(),
        weighs_on=weighs_on,
        margin=float(suspicion.margin[label]),
        preferred=suspicion.preferred[label].item(),
    )


class _Steps:
    """Steps of an audit, each kept in the folder of the run when it is finished."""

    def __init__(self, folder: RunFolder | None, stages: Stages) -> None:
        self._folder, self._stages = folder, stages

    def taken(self, stage: str, name: str, step: Callable[[], Arrays]) -> Arrays:
        """What a step finds, or has found before."""
        name = f"audit-{name}"
        found = None if self._folder is None else self._folder.recall_arrays(name)
        if found is None:
            self._stages.stage(stage)
            found = step()
            if self._folder is not None:
                self._folder.keep_arrays(name, found)
        return found

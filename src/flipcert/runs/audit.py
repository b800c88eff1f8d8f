"""Which labels of a training set to check first, one step after the other; what is finished is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from flipcert.audit.auditor import Auditor
from flipcert.audit.checks import Units
from flipcert.audit.one_list import mixed_list
from flipcert.audit.potential import Chosen
from flipcert.audit.suspicion import Suspicion, suspicion_of
from flipcert.labels.encoding import class_indices
from flipcert.labels.threats import FLIPS
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
        Auditor(model, X_test, job.audit.flips, job.test.y, job.threat).checked_count(job.audit.n_labels)


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
    auditor = Auditor(model, X_test, asked.flips, job.test.y, job.threat, start=None if job.exact else certificates)
    count = auditor.checked_count(asked.n_labels)
    steps = _Steps(folder, stages)

    def chosen() -> Arrays:
        return auditor.choose(count)._asdict()

    def doubt() -> Arrays:
        found = suspicion_of(model, X_train, np.asarray(job.train.y))
        complaint = "{label} is none of the classes {classes}."
        preferred = class_indices(found.preferred, model.classes_, complaint)
        return {"margin": found.margin, "preferred": preferred, "by_folds": np.array(found.by_folds)}

    plan = Chosen(**steps.taken("choosing labels for the proof", "plan", chosen))
    certified = steps.taken("proving after each check", "certified", lambda: {"shares": auditor.certified(plan.units)})
    held_out = steps.taken("planning for one half of the points", "held-out", lambda: {"s": auditor.held_out(count)})
    # One point has no other half.
    others = held_out["s"] if X_test.shape[0] > 1 else None
    random = steps.taken("checking at random", "random", lambda: {"shares": auditor.random(count)})
    found = steps.taken("looking for labels that look wrong", "doubt", doubt)
    suspicion = Suspicion(found["margin"], model.classes_[found["preferred"]], bool(found["by_folds"]))
    looks = _Looks.of(auditor.units, suspicion)
    units = mixed_list(plan.units, looks.doubt, auditor.units.attackable, count, asked.share)
    listed = steps.taken("proving after the list", "listed", lambda: {"shares": auditor.certified(units)})
    weighs_on = dict(zip(plan.units.tolist(), plan.weighs_on.tolist(), strict=True))
    of_list = Chosen(units, np.array([weighs_on.get(unit, 0) for unit in units.tolist()], np.int64))
    return Audit(
        plan=auditor.plan(plan, certified["shares"], held_out=others, random=random["shares"]),
        listed=auditor.plan(of_list, listed["shares"]),
        entries=tuple(
            _entry(unit, job, auditor.units, suspicion, looks, weighs_on.get(unit)) for unit in units.tolist()
        ),
        n_suspects=int(looks.n_suspects.sum()),
        n_corrected=asked.n_corrected,
        n_confirmed=asked.n_confirmed,
    )


class _Looks(NamedTuple):
    """How wrong units look: by how much, and how many of their labels that are not trusted."""

    doubt: NDArray[np.float64]
    n_labels: NDArray[np.int64]
    n_suspects: NDArray[np.int64]

    @classmethod
    def of(cls, units: Units, suspicion: Suspicion) -> _Looks:
        """Labels by the margin; sources by how many more of their labels look wrong than of all."""
        movable, wrong = units.labels.coded.movable, suspicion.margin > 0
        n_labels = np.bincount(units.of_label[movable], minlength=units.count)
        n_suspects = np.bincount(units.of_label[movable & wrong], minlength=units.count)
        if units.threat is FLIPS:
            return cls(suspicion.margin, n_labels, n_suspects)
        shares = n_suspects / np.maximum(n_labels, 1)
        return cls(shares - n_suspects.sum() / max(int(n_labels.sum()), 1), n_labels, n_suspects)


def _entry(unit: int, job: Job, units: Units, suspicion: Suspicion, looks: _Looks, weighs_on: int | None) -> AuditEntry:
    """A label, or a source, with all that is known of it."""
    train, label = job.train, unit
    known: dict[str, Any] = {"index": unit, "weighs_on": weighs_on, "margin": float(looks.doubt[unit])}
    known |= {"n_labels": int(looks.n_labels[unit]), "n_suspects": int(looks.n_suspects[unit])}
    if units.threat is not FLIPS:
        assert units.labels.sources is not None, "refused otherwise"
        source = units.labels.sources.ids[unit].item()
        return AuditEntry(row=None, id=None, label=None, source=source, preferred=None, **known)
    return AuditEntry(
        row=label,
        id=None if train.ids is None else train.ids[label].item(),
        label=np.asarray(train.y)[label].item(),
        source=None if train.givers is None else train.givers[label].item(),
        preferred=suspicion.preferred[label].item(),
        by_folds=suspicion.by_folds,
        **known,
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

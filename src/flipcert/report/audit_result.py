"""A list of labels to check, with all that a report tells about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flipcert.results.audit_plan import AuditPlan


@dataclass(frozen=True)
class AuditEntry:
    """A label to check, or a source with all its labels, and why.

    Attributes
    ----------
    index : int
        The label, by its place in the training set; or the source, by its place among all.
    row : int or None
        The training row that a label is about; None if it is a source.
    id : Any
        What that row is called; None if nobody said.
    label : Any
        What it says; None if it is a source.
    source : Any
        The source, or who gave the label; None if nobody said.
    weighs_on : int or None
        How many predictions that were not proven yet it weighed on when it was planned; None if it was not.
    margin : float
        How much a model that did not see a label prefers another class; negative if it does not. Of a source, by how
        much the share of its labels that look wrong is above that of all.
    preferred : Any
        The class that comes first among the others; None if it is a source.
    n_labels, n_suspects : int
        Number of its labels that are not trusted, and of those that look wrong.
    by_folds : bool
        Whether that model did not see the other labels of its fold either (cross-validation).
    """

    index: int
    row: int | None
    id: Any
    label: Any
    source: Any
    weighs_on: int | None
    margin: float
    preferred: Any
    n_labels: int
    n_suspects: int
    by_folds: bool = False

    @property
    def looks_wrong(self) -> bool:
        """Whether a model that did not see it prefers another class; of a source, more often than of all labels."""
        return self.margin > 0


@dataclass(frozen=True, eq=False)
class Audit:
    """Which labels to check first, and what that proves.

    Attributes
    ----------
    plan : AuditPlan
        The checks that prove most, beside what they do for other points, and random ones.
    listed : AuditPlan
        What the list proves, in its order, if all its labels turn out right.
    entries : tuple of AuditEntry
        The list: labels that the proof hangs on and labels that look wrong.
    n_suspects : int
        How many of all labels that are not trusted look wrong to the model.
    n_corrected : int or None
        How many labels were corrected in checks before this one; None if there were none.
    n_confirmed : int or None
        How many turned out right.
    """

    plan: AuditPlan
    listed: AuditPlan
    entries: tuple[AuditEntry, ...]
    n_suspects: int
    n_corrected: int | None = None
    n_confirmed: int | None = None

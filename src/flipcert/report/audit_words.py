"""What checks of labels prove, and why a label is on a list, in words."""

from __future__ import annotations

from flipcert.report.audit_result import Audit, AuditEntry
from flipcert.report.words import Sentence, outside, percent, plural
from flipcert.results.audit_plan import AuditPlan

# What a list of labels to check is not; pages and pages of documentation say the same.
NOT_ERRORS = (
    "A label can matter without being wrong: it is on the list because proofs hang on it, not because it looks like a "
    "mistake, unless its reason says so."
)
NOT_OTHERS = (
    "A check of chosen labels proves nothing about labels that were not checked. To bound how many of them are wrong, "
    "check labels drawn at random (flipcert check)."
)
NOT_PROOF = (
    "That a label looks wrong is an estimate, by a model that did not see it; it may be right. Change labels only "
    "after a look."
)
IF_RIGHT = (
    "All curves assume that the labels that are checked turn out right. Where one is wrong, correct it, fit again and "
    "plan again: flipcert audit --checked does that."
)


def reason(entry: AuditEntry) -> str:
    """Why a label is on the list."""
    told = []
    if entry.weighs_on:
        told.append(f"weighs on {plural(entry.weighs_on, 'prediction')} not proven yet")
    if entry.row is None:
        told.append(_of_source(entry))
    elif entry.looks_wrong:
        without = "without it and the rest of its fold (cross-validation)" if entry.by_folds else "without it"
        told.append(f"looks wrong: {without}, the model says {outside(entry.preferred)}")
    return "; ".join(told) or "no proof hangs on it; it fills the list"


def _of_source(entry: AuditEntry) -> str:
    """How many labels of a source look wrong."""
    if entry.n_labels == 1:
        return f"its only label {'looks' if entry.n_suspects else 'does not look'} wrong"
    if entry.n_suspects == 0:
        return f"none of its {entry.n_labels:,} labels looks wrong"
    return f"{entry.n_suspects:,} of its {entry.n_labels:,} labels {'looks' if entry.n_suspects == 1 else 'look'} wrong"


def kept(plan: AuditPlan) -> str:
    """What is counted."""
    return "correct and proven" if plan.counts_correct else "proven"


def against(plan: AuditPlan) -> str:
    """What predictions are proven against."""
    return f"against {plural(plan.flips, 'flip' if plan.sources is None else 'source')}"


def finding(audit: Audit) -> Sentence:
    """What checking all of the list proves."""
    own = audit.listed
    before, after = (round(share * own.n_points) for share in (own.certified[0], own.certified[-1]))
    unit = "label" if own.sources is None else "source"
    checks = f"Checking {f'the one {unit}' if len(own) == 1 else f'the {len(own):,} {unit}s'} of the list"
    checks += "" if own.sources is None else f" ({plural(own.indices.size, 'label')})"
    if after == before:
        whole = f"{before:,} of {plural(own.n_points, 'prediction')} {kept(own)} {against(own)}"
        return Sentence(f"{checks} proves ", "no more than before", f": {whole}")
    raised = f"{checks} raises the predictions that are {kept(own)} {against(own)} from "
    right = "it turns out right" if own.indices.size == 1 else "they turn out right"
    return Sentence(raised, f"{before:,} to {after:,}", f" of {own.n_points:,}, if {right}")


def evidence(audit: Audit) -> list[str]:
    """How much of that is due to the plan, and whether it helps other predictions."""
    plan = audit.plan
    before = "before any check" if audit.n_corrected is None else "after the checks so far"
    told = [
        f"{percent(plan.certified[0])} are {kept(plan)} {before}. With as many checks as the list has: "
        f"{percent(plan.certified[-1])} if all are planned for the proof, "
        f"{percent(audit.listed.certified[-1])} by the list, which also looks for mistakes."
    ]
    if plan.random is not None:
        told[0] += f" Random checks take it to {percent(plan.random[-1])} on average"
        if plan.held_out is not None:
            told[0] += (
                ", and checks that are planned for one half of the test points, measured on the other half, to "
                f"{percent(plan.held_out[-1])}"
            )
            if plan.held_out[-1] < plan.certified[-1]:
                told[0] += ": a plan helps the predictions it was made for, and others less"
        told[0] += "."
    if audit.n_corrected is not None and audit.n_confirmed is not None:
        told.append(
            f"Checked before: {plural(audit.n_corrected + audit.n_confirmed, 'label')}, of which "
            f"{audit.n_corrected:,} {'was' if audit.n_corrected == 1 else 'were'} wrong and corrected; all of them are "
            "trusted now."
        )
    many = "looks" if audit.n_suspects == 1 else "look"
    told.append(f"{plural(audit.n_suspects, 'label')} of {plan.n_attackable:,} that can be attacked {many} wrong.")
    return told

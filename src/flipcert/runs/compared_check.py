"""What a run says of the random check before it, looked at again: counted from files, the bound in whole numbers."""

from __future__ import annotations

from flipcert.audit.record import RandomCheck
from flipcert.runs.comparisons import BY_CHANCE, CHECKED, Place, Verification
from flipcert.runs.describe import BY_CHECK
from flipcert.runs.plain_check import is_largest
from flipcert.runs.stored_run import StoredRun

# Labels that are checked until whole numbers take too long.
_MOST = 10_000


def compare_check(run: StoredRun, check: RandomCheck | None, verification: Verification) -> None:
    """Compare what is told of a check with the file that was filled in, as it was read again."""
    if check is None or run.check is None:
        return
    told, note = run.check, verification.note
    counted = {"labels": "n_labels", "trusted": "n_trusted", "drawn": "n_drawn", "checked": "n_checked"}
    counted |= {"wrong": "n_wrong", "goes": "n_batches", "seed": "seed"}
    for name, own in counted.items():
        note(CHECKED, Place("all"), f"{told.get(own)} {name}", f"{getattr(check, own)} {name}")
    most, left = told.get("wrong_at_most"), told.get("remaining_at_most")
    if check.n_checked > _MOST:
        verification.leave_out("How many labels are wrong at most was not computed again: too many were checked.")
    else:
        about = (check.n_labels, check.n_checked, check.n_wrong, check.confidence, check.peeked)
        holds = isinstance(most, int) and left == most - check.n_wrong and is_largest(*about, most)
        note(BY_CHANCE, Place("all"), f"{most} wrong, {left} remaining", "another bound", holds)
    for settings, point, lines in zip(run.settings, run.told, run.points, strict=True):
        proven = sum(line["radius"] >= check.remaining for line in lines)
        found = {"predictions": proven, "share": proven / max(len(lines), 1)}
        note(CHECKED, Place(settings.name), f"same predictions {point[BY_CHECK]}", f"same predictions {found}")

"""A random check as files tell it: draw labels, and see whether what comes back is what was drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.audit.record import RandomCheck, draw_order
from flipcert.datasets.checked import CHECKED, ROW, CheckedLabels, columns_of_checks, read_checked, write_to_check
from flipcert.datasets.joining import texts
from flipcert.datasets.table import Table
from flipcert.report.words import plural

# Columns beside the labels: the place of a label in the draw, how many were drawn, the go in which it was drawn, and
# the seed. Whoever leaves out lines at the end has stopped early, and that shows.
DRAW, OF, BATCH, SEED = "draw", "of", "batch", "seed"
_LARGEST = 2**63


def draw_check(
    path: Path, train: Table, n_draw: int, seed: int, *, id: str | None, confidence: float, peeked: bool
) -> RandomCheck:
    """Draw labels that are not trusted, and write them to a file to fill in; the check if all of them are right."""
    order = _order(train, seed)
    _refuse_too_many(n_draw, order.size, train)
    rows = order[:n_draw]
    _refuse_another_draw(path, texts(rows if id is None else np.asarray(train.ids)[rows]), seed, id)
    write_to_check(path, train, rows, id=id, beside=_places([1] * n_draw, seed))
    return RandomCheck(order.size, train.X.shape[0] - order.size, n_draw, n_draw, 0, 1, confidence, peeked, seed)


def draw_more(
    path: Path, train: Table, n_more: int, checked: CheckedLabels, check: RandomCheck, id: str | None
) -> RandomCheck:
    """Draw the next labels of a check that is filled in, and write all to another file; the check if they are right."""
    if left := check.n_drawn - check.n_checked:
        raise ValueError(
            f"{checked.source} has {plural(left, 'label')} that nobody has looked at; fill "
            f"{'it' if left == 1 else 'these'} in before more are drawn."
        )
    order = _order(train, check.seed)
    _refuse_too_many(check.n_drawn + n_more, order.size, train, check.n_drawn)
    draws, batches = (np.array(_numbers(checked, name)) for name in (DRAW, BATCH))
    lines = np.argsort(draws)
    total = check.n_drawn + n_more
    write_to_check(
        path,
        train,
        order[:total],
        id=id,
        checked=[*texts(checked.labels[lines]), *[""] * n_more],
        beside=_places([*batches[lines], *[batches.max() + 1] * n_more], check.seed),
    )
    return replace(check, n_drawn=total, n_checked=total, n_batches=check.n_batches + 1, peeked=True)


def read_check(
    path: Path, train: Table, *, id: str | None, classes: Sequence[Any] | None, confidence: float, peeked: bool
) -> tuple[CheckedLabels, RandomCheck]:
    """A file that was filled in, if it holds what was drawn from this training set.

    The labels that were looked at must be the first ones of the draw. If there are others, or if some were drawn when
    results were known, somebody may have stopped because of what was found: the bound is the one for that.
    """
    checked = read_checked(path, train, id=id, classes=classes, beside=(DRAW, OF, BATCH, SEED))
    source = checked.source
    draws, totals, batches, seeds = (_numbers(checked, name) for name in (DRAW, OF, BATCH, SEED))
    for name, values in ((OF, totals), (SEED, seeds)):
        if len(set(values)) > 1:
            other = next(own for own in values if own != values[0])
            raise ValueError(f"{source} has both {values[0]} and {other} in column {name!r}; a check is one draw.")
    n, seed = totals[0], seeds[0]
    order = _order(train, seed)
    if n > order.size:
        raise ValueError(f"{source} says that {n:,} labels were drawn, of the {order.size:,} that {train.source} has.")
    called = texts(np.arange(train.X.shape[0]) if id is None else np.asarray(train.ids))
    for row, place in zip(checked.rows.tolist(), draws, strict=True):
        if not 1 <= place <= n or order[place - 1] != row:
            raise ValueError(
                f"{source} has {called[row]!r} as number {place} of {n} that were drawn, which it is not with seed "
                f"{seed}, {train.source} and this --trusted; a check holds the labels that were drawn, and no others."
            )
    looked = np.zeros(n, np.bool_)
    looked[np.array(draws) - 1] = checked.looked
    n_checked = int(looked.sum())
    if n_checked == 0:
        raise ValueError(f"{source} has an empty column 'checked'; write there what each label should be.")
    if not looked[:n_checked].all():
        gap, later = int(np.argmin(looked)), n - 1 - int(np.argmax(looked[::-1]))
        raise ValueError(
            f"{source} has no checked label for {called[order[gap]]!r}, number {gap + 1} of the draw, but one for "
            f"number {later + 1}; fill labels in in the order of the draw, right ones too."
        )
    n_batches = len(set(batches))
    n_trusted = train.X.shape[0] - order.size
    return checked, RandomCheck(
        n_labels=order.size,
        n_trusted=n_trusted,
        n_drawn=n,
        n_checked=n_checked,
        n_wrong=int(checked.wrong.sum()),
        n_batches=n_batches,
        confidence=confidence,
        peeked=peeked or n_checked < n or n_batches > 1,
        seed=seed,
    )


def corrected(train: Table, checked: CheckedLabels, classes: Sequence[Any] | None) -> Table:
    """The training set with what was found put right, and trusted.

    With a label space that is read from the labels, a correction must not take a class away: right labels that nobody
    has looked at may be of that class, and nothing would be proven about these.
    """
    after = checked.corrected(train)
    lost = [] if classes is not None else np.setdiff1d(np.asarray(train.y), np.asarray(after.y)).tolist()
    if lost:
        raise ValueError(
            f"the corrections of {checked.source} leave no label {lost[0]!r} in {train.source}; name the label space "
            "with --classes, so that it does not depend on them."
        )
    return after


def _places(batches: Sequence[Any], seed: int) -> dict[str, Sequence[Any]]:
    """What a draw is known by, a line each."""
    n = len(batches)
    return {DRAW: range(1, n + 1), OF: [n] * n, BATCH: batches, SEED: [seed] * n}


def _order(train: Table, seed: int) -> NDArray[np.int64]:
    """Training rows whose labels are not trusted, in the order of the draw."""
    free = np.arange(train.X.shape[0]) if train.trusted is None else np.flatnonzero(~train.trusted)
    if free.size == 0:
        raise ValueError(f"{train.source} has trusted labels only; there is nothing to check.")
    return np.asarray(free[draw_order(free.size, seed)], np.int64)


def _refuse_another_draw(path: Path, ids: Sequence[str], seed: int, id: str | None) -> None:
    """Raise ValueError if a draw would be lost that somebody may have been given, filled in or not."""
    try:
        held = columns_of_checks(str(path)) if path.is_file() else {}
    except ValueError:
        return  # no such file, which is refused in other words
    if CHECKED not in held or any(cell.strip() for cell in held[CHECKED]):
        return  # likewise
    before, seeds = held.get(ROW if id is None else id, []), set(held.get(SEED, []))
    both = min(len(before), len(ids))
    if seeds != {str(seed)} or before[:both] != list(ids[:both]):
        which = f"another draw (seed {seeds.pop()})" if seeds else "another list"
        raise ValueError(
            f"--out {path} holds {which} that is not filled in yet, and to draw again is no random check; name another "
            "file, or remove this one if nobody has looked at its labels."
        )


def _refuse_too_many(wanted: int, n_labels: int, train: Table, drawn: int = 0) -> None:
    if wanted > n_labels:
        which = " that are not trusted" if n_labels < train.X.shape[0] else ""
        before = f", of which {drawn:,} are drawn already" if drawn else ""
        raise ValueError(
            f"--labels must be at most {n_labels - drawn:,}: {train.source} has {plural(n_labels, 'label')}{which}"
            f"{before}; got {wanted - drawn:,}."
        )


def _numbers(checked: CheckedLabels, name: str) -> list[int]:
    """A column of whole numbers, as a spreadsheet may have left them."""
    values = []
    for line, text in enumerate(checked.beside[name]):
        try:
            number = float(text)
            values.append(int(text) if text.strip().isdecimal() else int(number))
            if number != values[-1] or not 0 <= number < _LARGEST:
                raise ValueError
        except (ValueError, OverflowError):
            raise ValueError(
                f"column {name!r} of {checked.source} must hold the numbers that were written there; line {line + 2} "
                f"has {text!r}."
            ) from None
    return values

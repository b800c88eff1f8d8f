"""Operations on training rows, as attacks make them: chosen for two classes, and replayed in whole numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.flips._jit import row_changes as jit
from flipcert.flips.new_rows import NewRows
from flipcert.flips.rows import IntegerRow
from flipcert.labels.labels import Labels
from flipcert.labels.threats import DELETIONS, EDITS, INSERTIONS, MOVES, REPLACEMENTS, Threat
from flipcert.results.witness import Witness

# What compiled code calls the threats.
KINDS = {
    DELETIONS.name: jit.DELETE,
    INSERTIONS.name: jit.INSERT,
    REPLACEMENTS.name: jit.REPLACE,
    EDITS.name: jit.EDIT,
    MOVES.name: jit.MOVE,
}


@dataclass
class Operations:
    """Labels that change (sample, class), rows that go, and how many new rows of one class there are.

    If new rows stand in for those that go (``replaces``), there are as many of both. The first new rows may be
    ``opposed``: of the class that is to lose, with the opposite input, so that they lower it by as much.
    """

    flips: list[tuple[int, int]]
    deleted: list[int]
    new_class: int
    inserted: int = 0
    replaces: bool = False
    opposed: int = 0
    losing_class: int = 0

    def __len__(self) -> int:
        return len(self.flips) + len(self.deleted) + (0 if self.replaces else self.inserted)

    def witness(self, threat: Threat, new_input: NDArray[Any] | None) -> Witness:
        """The same for a user; all new rows have the same input, or its opposite."""
        inserted = np.empty((0, 0)) if new_input is None else np.repeat(new_input[None], self.inserted, axis=0)
        inserted[: self.opposed] *= -1
        labels = np.full(self.inserted, self.new_class, np.int64)
        labels[: self.opposed] = self.losing_class
        return Witness.of(
            self.flips,
            deleted=np.array(self.deleted, np.int64),
            inserted=inserted,
            inserted_labels=labels,
            threat=threat.name,
        )


def pair_attack(
    row: IntegerRow,
    threat: Threat,
    first: int,
    c: int,
    new: int,
    at_most: int,
    kept: frozenset[int] = frozenset(),
    insert_first: int = 0,
    opposed: int = 0,
) -> Operations | None:
    """Fewest operations that lift class c above the first, the largest gains first; None if ``at_most`` do not.

    Some rows may have to be kept as they are, and some new ones to come in any case; ``opposed`` of the new ones are of
    the first class, with the opposite input, which closes the gap as much.
    """
    labels = row.labels
    missing = row.scores[first] - row.scores[c] + (c > first)  # whole numbers: to pass a tie takes one more
    attack = Operations([], [], c, insert_first, threat is REPLACEMENTS)
    missing -= insert_first * new

    def holds_open(i: int) -> int:
        return row.weights[i] if labels.codes[i] == first else -row.weights[i] if labels.codes[i] == c else 0

    rows: list[int] = []
    if threat is not INSERTIONS:
        movable = (i for i in np.flatnonzero(labels.coded.movable).tolist() if i not in kept)
        rows = sorted(movable, key=holds_open, reverse=True)
    for i in rows:
        gain = holds_open(i)
        if threat is REPLACEMENTS:
            gain += new
        if missing <= 0 or len(attack) >= at_most or gain <= 0 or (threat is EDITS and 2 * gain <= new):
            break
        if threat is EDITS:
            attack.flips.append((i, c if labels.codes[i] == first else first))
            missing -= 2 * gain
            continue
        attack.deleted.append(i)
        attack.inserted += threat is REPLACEMENTS
        missing -= gain
    if threat in (INSERTIONS, EDITS) and new > 0 and missing > 0:
        count = -(-missing // new)
        attack.inserted += count
        missing -= count * new
    if attack.inserted >= opposed:
        attack.opposed, attack.losing_class = opposed, first
    return attack if missing <= 0 and len(attack) <= at_most else None


def replayed(row: IntegerRow, attack: Operations, new: int, in_fixed_space: bool = False) -> int | None:
    """Which class wins after the operations; None if ``fit`` refuses what they leave.

    In a fixed space nothing is refused, as the voter of an ensemble without rows still votes.
    """
    labels = row.labels
    codes = labels.codes.copy()
    for i, q in attack.flips:
        codes[i] = q
    left = np.ones(codes.size, np.bool_)
    left[attack.deleted] = False
    scores = list(row.offset)
    for i in np.flatnonzero(left).tolist():
        scores[codes[i]] += row.weights[i]
    scores[attack.new_class] += (attack.inserted - attack.opposed) * new
    scores[attack.losing_class] -= attack.opposed * new
    counts = np.bincount(codes[left], minlength=labels.n_classes)
    counts[attack.new_class] += attack.inserted - attack.opposed
    counts[attack.losing_class] += attack.opposed
    if in_fixed_space:
        return scores.index(max(scores))
    if not counts.any():
        return None
    if labels.space_is_fixed:
        return scores.index(max(scores))
    there = np.flatnonzero(counts).tolist()
    return None if len(there) < 2 else max(there, key=lambda q: (scores[q], -q))


def integer_row(
    threat: Threat, weights: NDArray[Any], labels: Labels, offset: NDArray[np.float64], new_rows: NewRows, t: int
) -> IntegerRow:
    """One row in integers; ``others`` are what new rows weigh at most, and what the one weighs that is known."""
    row = IntegerRow(weights, labels, offset, (new_rows.most[t], max(new_rows.real[t], 0.0)))
    if threat is not DELETIONS:
        row.others[0] = max(row.others[0], max(map(abs, row.weights)))
    return row

"""Rows of weights whose training rows are deleted, inserted, replaced or edited: exact radii, and attacks.

The cheapest change of prediction lifts one class above the predicted one, the largest gains first. Compiled code finds
it in doubles; integers decide what these leave open. What ``fit`` would refuse is no attack: a training set without
rows, and, where the label space is read from the labels, one of a single class; nor can a class win that has no row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flipcert.exceptions import CertificateError
from flipcert.flips._jit import row_changes as jit
from flipcert.flips._jit.ladder import new_ladder
from flipcert.flips.costs import Radii
from flipcert.flips.new_rows import NewRows
from flipcert.flips.operations import KINDS, Operations, integer_row, pair_attack, replayed
from flipcert.flips.rows import IntegerRow
from flipcert.flips.whole_rows import RowsBehind, WholeRows
from flipcert.labels.labels import Labels
from flipcert.labels.threats import DELETIONS, EDITS, INSERTIONS, REPLACEMENTS, Threat
from flipcert.results.witness import Witness


@dataclass
class _Changes:
    """Cheapest changes of a block of rows, and the attacks on rows whose label space matters."""

    radii: Radii
    rival: NDArray[np.int64]
    lawful: dict[int, Operations]


class RowChanges(RowsBehind):
    """A block of rows whose training rows come and go.

    Parameters
    ----------
    rows : WholeRows
        The rows as they are.
    threat : Threat
        What is done to training rows.
    new_rows : NewRows
        What new rows weigh.
    """

    def __init__(self, rows: WholeRows, threat: Threat, new_rows: NewRows) -> None:
        super().__init__(rows)
        self._held, self._threat, self._new_rows = rows, threat, new_rows
        self._labels: Labels = rows.labels

    def radii(self) -> Radii:
        """Cost of changing the prediction of each row: proven, and of an attack that is known."""
        return self._changes().radii

    def witnesses(self) -> list[Witness | None]:
        """Smallest known attack on the prediction of each row; None if there is none."""
        changes = self._changes()
        return [self._witness(changes, t) for t in range(self._held.weights.shape[0])]

    def _witness(self, changes: _Changes, t: int) -> Witness | None:
        cost, first = int(changes.radii.known[t]), int(changes.radii.prediction[t])
        if cost == self._threat.unreachable(self._labels):
            return None
        attack = changes.lawful.get(t)
        row = self._integers(t)
        if attack is None:
            attack = pair_attack(row, self._threat, first, int(changes.rival[t]), row.others[1], cost)
        if attack is None or len(attack) != cost or replayed(row, attack, row.others[1]) in (None, first):
            raise CertificateError("a witness did not change the prediction when replayed; please report this row.")
        return attack.witness(self._threat, self._new_rows.inputs[t] if self._new_rows.inputs.size else None)

    def _integers(self, t: int) -> IntegerRow:
        """One row in integers, with what new rows weigh at most, and really."""
        return integer_row(self._threat, self.row(t), self._labels, self._held.offset[t], self._new_rows, t)

    def _changes(self) -> _Changes:
        labels, threat, new_rows = self._labels, self._threat, self._new_rows
        n_rows, unreachable = self._held.weights.shape[0], threat.unreachable(labels)
        prediction, second, lower, upper, rival, target = (np.zeros(n_rows, np.int64) for _ in range(6))
        margin, decided = np.zeros(n_rows), np.zeros(n_rows, np.bool_)
        jit.change_rows(
            self._held.weights, labels.coded, self._held.offset, KINDS[threat.name], new_rows.most, new_rows.real,
            labels.n_movable, unreachable, new_ladder(labels.n_labels, labels.n_classes),
            prediction, second, lower, upper, rival, target, margin, decided,
        )  # fmt: skip
        for t in np.flatnonzero(~decided).tolist():
            row = self._integers(t)
            second[t] = row.runner_up if labels.n_classes > 1 else row.prediction
            for new, costs in zip(row.others, (lower, upper), strict=True):
                cost, prediction[t], rival[t], room, target[t] = row.run(
                    jit.cheapest_row_change, KINDS[threat.name], new, labels.n_movable, 0, unreachable
                )
                costs[t] = cost
                margin[t] = row.as_float(room) if costs is lower else margin[t]
            if target[t] == -2:
                attack = pair_attack(row, threat, int(prediction[t]), int(rival[t]), row.others[1], int(upper[t]))
                assert attack is not None, "it has this cost"
                target[t] = int(replayed(row, attack, row.others[1], in_fixed_space=True))  # type: ignore[arg-type]
        changes = _Changes(Radii(prediction, second, lower, target, margin, upper), rival, {})
        self._keep_to_the_law(changes)
        self._keep_to_the_regime(changes.radii)
        return changes

    def _keep_to_the_law(self, changes: _Changes) -> None:
        """Put attacks that ``fit`` refuses right, or give them up."""
        labels, radii = self._labels, changes.radii
        unreachable = self._threat.unreachable(labels)
        if self._threat is DELETIONS:
            # All rows cannot go.
            for costs in (radii.cost, radii.known):
                costs[costs == labels.n_labels] = unreachable
            radii.target[radii.known == unreachable] = -1
        if labels.space_is_fixed:
            return
        for t in self._in_doubt(radii):
            row, first = self._integers(t), int(radii.prediction[t])
            lower, attack = self._lawful_change(row, first)
            radii.cost[t] = lower
            radii.known[t], radii.target[t] = unreachable, -1
            if attack is not None:
                radii.known[t] = len(attack)
                radii.target[t] = int(replayed(row, attack, row.others[1]))  # type: ignore[arg-type]
                changes.lawful[t] = attack

    def _in_doubt(self, radii: Radii) -> list[int]:
        """Rows whose cheapest change may remove a class that has to stay, or is dearer than to remove the predicted."""
        labels, threat = self._labels, self._threat
        unreachable = threat.unreachable(labels)
        prediction, known = radii.prediction, radii.known
        doubtful = threat.to_remove(labels)[prediction] <= np.minimum(radii.cost, labels.n_labels)
        if threat is INSERTIONS:
            return []
        to_empty = threat.to_empty(labels)
        for q in np.flatnonzero(to_empty < unreachable).tolist():
            enough = (to_empty[q] <= known) & (known < unreachable)
            ahead = prediction == q
            if labels.n_classes > 2:
                enough &= ~ahead  # the predicted class may go
            if enough.any():
                weights = self.at(np.flatnonzero(labels.codes == q))
                # The rows that go are those that hold the gap open, unless all are replaced.
                go = np.where(ahead, (weights > 0).all(axis=1), (weights < 0).all(axis=1))
                doubtful |= enough & (ahead if threat is REPLACEMENTS else go)
        return np.flatnonzero(doubtful).tolist()

    def _lawful_change(self, row: IntegerRow, first: int) -> tuple[int, Operations | None]:
        """Fewest operations, proven, that change the prediction of a row; and an attack that ``fit`` accepts."""
        labels, threat = self._labels, self._threat
        lower = unreachable = threat.unreachable(labels)
        known: list[Operations] = []
        for c in range(labels.n_classes):
            if c == first:
                continue
            # Where an attack that was put right costs no more than what is proven, it is exact.
            proven = [len(own) for own in _lifts(row, threat, first, c, row.others[0], proof=True)]
            lower = min([lower, *proven])
            known.extend(_lifts(row, threat, first, c, row.others[1], proof=False))
            if self._new_rows.odd:
                known.extend(_lifts_with_an_opposite(row, threat, first, c, row.others[1]))
        if threat.to_remove(labels)[first] < unreachable:
            rows = np.flatnonzero(labels.codes == first).tolist()
            lower = min(lower, len(rows))
            replaces = threat is REPLACEMENTS
            known.append(Operations([], rows, row.runner_up, len(rows) if replaces else 0, replaces))
        lawful = [
            own for own in known if len(own) < unreachable and replayed(row, own, row.others[1]) not in (None, first)
        ]
        return lower, min(lawful, key=len, default=None)

    def _keep_to_the_regime(self, radii: Radii) -> None:
        """Prove nothing beyond what leaves the weights as they are, and give up attacks that go there."""
        within, unreachable = self._new_rows.within, self._threat.unreachable(self._labels)
        if within >= self._labels.n_labels:
            return
        np.minimum(radii.cost, within + 1, out=radii.cost)
        beyond = radii.known > within
        radii.known[beyond] = unreachable
        radii.target[beyond] = -1


def _lifts(row: IntegerRow, threat: Threat, first: int, c: int, new: int, proof: bool) -> Iterator[Operations]:
    """Cheapest operations that lift class c above the first and leave a row of it; of two classes, one of either.

    For a proof, attacks may be left in that empty the first class: nothing is known of new rows that would keep it.
    """
    codes, movable = row.labels.codes, row.labels.coded.movable
    keep_first = row.labels.n_classes == 2 and (threat is DELETIONS or not proof)
    spare = [_least(row, first, 1)] if keep_first and movable[codes == first].all() else []
    unlimited = row.labels.unreachable
    if threat is REPLACEMENTS or not movable[codes == c].all():
        options = [(spare, 0)]
    elif threat is DELETIONS:
        options = [([*spare, _least(row, c, -1)], 0)]
    else:
        options = [([*spare, _least(row, c, -1)], 0), (spare, 1)]
    for kept, insert_first in options:
        attack = pair_attack(row, threat, first, c, new, unlimited, frozenset(kept), insert_first)
        if attack is not None:
            yield attack


def _lifts_with_an_opposite(row: IntegerRow, threat: Threat, first: int, c: int, new: int) -> Iterator[Operations]:
    """Cheapest operations, of two classes, that lift class c above the first and leave a new row of the first.

    It has the opposite input, and so closes the gap as much as a new row of class c.
    """
    if threat not in (REPLACEMENTS, EDITS) or row.labels.n_classes > 2:
        return
    # Of class c, a row is left, or a new one comes too.
    for kept, beside in (([_least(row, c, -1)], 0), ([], 1)):
        insert_first = 0 if threat is REPLACEMENTS else 1 + beside
        attack = pair_attack(
            row, threat, first, c, new, row.labels.unreachable, frozenset(kept), insert_first, opposed=1
        )
        if attack is not None:
            yield attack


def _least(row: IntegerRow, c: int, sign: int) -> int:
    """The row of class c that gains least if it goes."""
    return min(np.flatnonzero(row.labels.codes == c).tolist(), key=lambda i: sign * row.weights[i])

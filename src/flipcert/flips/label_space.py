"""Rows of a label-linear classifier whose label space is read from the labels.

An attacker who flips away all labels of the predicted class removes it, and whatever is predicted then, it is another
class. But a class that is to win needs a label, and a training set needs two classes: flips that empty the class which
they lift above the predicted one are no attack. Both matter only where a class has no more labels than there are flips;
all other rows are as they would be in a fixed label space.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from heapq import nlargest, nsmallest
from itertools import groupby, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from flipcert.flips._jit.ladder import UNDECIDED
from flipcert.flips._jit.reach import cheapest_change
from flipcert.flips.costs import Radii
from flipcert.flips.rows import DoubleRow, IntegerRow
from flipcert.flips.whole_rows import Rows, RowsBehind
from flipcert.labels.labels import Labels
from flipcert.labels.threats import DELETIONS, FLIPS, Threat
from flipcert.results.flip_costs import FlipCosts
from flipcert.results.witness import Witness, classes_after

NAME_THE_SPACE = ", or name the label space with classes=[...], so that no class of it can be flipped away"


class RowsOfOpenSpace(RowsBehind):
    """Rows as any others, whose cheapest changes of prediction leave the labels in a state that can be fitted.

    Parameters
    ----------
    rows : Rows
        The same rows in a fixed label space.
    labels : Labels
        Training labels.
    offset : ndarray of shape (n_rows, n_classes)
        Label-independent part of the scores.
    """

    def __init__(self, rows: Rows, labels: Labels, offset: NDArray[np.float64]) -> None:
        super().__init__(rows)
        self._labels = labels
        self._offset = offset

    def radii(self) -> Radii:
        """Exact cost of changing the prediction of each row."""
        radii = self._rows.radii()
        for t, change in self._other_changes(radii.prediction, radii.cost):
            radii.cost[t], radii.target[t] = change.cost, change.winner
        return radii

    def witnesses(self) -> list[Witness | None]:
        """Fewest flips that change the prediction of each row; None if nothing does."""
        witnesses = self._rows.witnesses()
        cost = np.array([self._labels.unreachable if own is None else len(own) for own in witnesses])
        if np.all(cost < self._labels.flips_to_empty.min()):
            return witnesses  # no class can go, so nobody has to be told what is predicted now
        for t, change in self._other_changes(self._rows.scores()[1], cost):
            witnesses[t] = change.witness
        return witnesses

    def _other_changes(self, prediction: NDArray[np.int64], cost: NDArray[np.int64]) -> Iterator[tuple[int, Change]]:
        """Rows whose cheapest change is another than in a fixed label space, where it has that cost; and the change."""
        removal = FLIPS.to_remove(self._labels)[prediction]
        # Nothing is cheaper than what is cheapest in a fixed label space, but for the removal of the class itself.
        removed = (removal <= cost) & (removal < self._labels.unreachable)
        in_doubt = self._may_empty_the_winner(prediction, cost) & ~removed
        for t in np.flatnonzero(removed | in_doubt).tolist():
            weights = self.row(t)
            if removed[t] or not self._leaves_the_winner(t, weights):
                yield t, cheapest_lawful_change(IntegerRow(weights, self._labels, self._offset[t]))

    def _may_empty_the_winner(self, prediction: NDArray[np.int64], cost: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Where so many flips could leave no label of a class that has to keep one.

        An attack on class a for class c moves no label away from c that counts for it, nor from a one that counts
        against it.
        """
        labels = self._labels
        doubtful = np.zeros(cost.size, np.bool_)
        for q in np.flatnonzero(labels.flips_to_empty < labels.unreachable).tolist():
            enough = (labels.flips_to_empty[q] <= cost) & (cost < labels.unreachable)
            predicted = prediction == q
            if labels.n_classes > 2:
                # The predicted class may go.
                enough &= ~predicted
            if enough.any():
                weights = self._rows.at(np.flatnonzero(labels.codes == q))
                doubtful |= enough & np.where(predicted, (weights > 0).all(axis=1), (weights < 0).all(axis=1))
        return doubtful

    def _leaves_the_winner(self, t: int, weights: NDArray[Any]) -> bool:
        """Whether the change that is cheapest in a fixed label space is an attack here too; False if in doubt."""
        row = DoubleRow(weights, self._labels, self._offset[t])
        cost, _, winner, _ = row.run(cheapest_change, row.slack, self._labels.unreachable)
        if cost == UNDECIDED:
            return False
        left = classes_after(row.recorded(cost), self._labels)
        return bool(left[winner] and left.sum() > 1)


def open_costs(costs: FlipCosts, rows: Rows, labels: Labels, threat: Threat = FLIPS) -> FlipCosts:
    """Bounds on costs as they are if the label space is read from the labels.

    A rival that is removed need not be beaten, so no cost is proven beyond that of removing another class; an attack
    that may leave no label of its class, or of any other, is given up.
    """
    if threat is DELETIONS:
        # A training set needs a row.
        lower, upper = (np.where(own == labels.n_labels, labels.unreachable, own) for own in (costs.lower, costs.upper))
        costs = replace(costs, lower=lower, upper=upper)
    if labels.space_is_fixed or max(costs.lower.max(), costs.upper.max()) < threat.to_empty(labels).min():
        return costs
    own = np.arange(labels.n_classes) == costs.prediction[:, None]
    radii = rows.radii()
    proven = np.maximum(np.minimum(costs.lower, threat.to_remove_another(labels)), radii.cost[:, None])
    # Which attacks on another threat than flips leave labels of all classes is not looked into.
    harmless = costs.upper < threat.to_empty(labels).min()
    known = np.where(harmless, costs.upper, threat.unreachable(labels))
    if threat is FLIPS:
        known = _lawful_upper(costs.upper, rows, labels)
    reached = np.arange(labels.n_classes) == radii.target[:, None]
    known = np.where(reached, radii.known[:, None], known)
    return replace(costs, lower=np.where(own, 0, proven), upper=np.where(own, 0, known))


def _lawful_upper(upper: NDArray[np.int64], rows: Rows, labels: Labels) -> NDArray[np.int64]:
    """Costs of attacks that leave a label of the class they lead to, and of another."""
    lawful = upper.copy()
    for c in range(labels.n_classes):
        others = (labels.codes != c) & labels.coded.movable
        emptied = (labels.flips_to_empty[c] <= upper[:, c]) & (upper[:, c] < labels.unreachable)
        for t in np.flatnonzero(emptied).tolist():
            weights = rows.row(t)
            # Labels that count for the class are not moved away from it.
            if np.all(weights[labels.codes == c] < 0):
                # One more that counts for it, or not at all, may always join; if none does, there is no attack.
                joins = np.any(weights[others] >= 0)
                lawful[t, c] = lawful[t, c] + 1 if joins else labels.unreachable
        if np.all(labels.coded.movable[labels.codes != c]):
            lawful[lawful[:, c] >= np.count_nonzero(others), c] = labels.unreachable
    return lawful


class Change(NamedTuple):
    """A change of prediction: its cost, the class that then wins (-1: there is none), and the flips."""

    cost: int
    winner: int
    witness: Witness | None


def cheapest_lawful_change(row: IntegerRow) -> Change:
    """Fewest flips that change the prediction and leave labels of the class that wins, and of another."""
    labels, first = row.labels, row.prediction
    attacks = [_lift(row, c, first) for c in range(labels.n_classes) if c != first]
    if FLIPS.to_remove(labels)[first] < labels.unreachable:
        # Wherever its labels go, the class is gone; the runner-up makes the best use of them.
        attacks.append([(i, row.runner_up) for i in np.flatnonzero(labels.codes == first).tolist()])
    known = [Witness.of(flips) for flips in attacks if flips is not None]
    if not known:
        return Change(labels.unreachable, -1, None)
    witness = min(known, key=len)
    scores, left = row.scores_under(witness.apply(labels.codes)), classes_after(witness, labels)
    winner = max(np.flatnonzero(left).tolist(), key=lambda c: (scores[c], -c))
    return Change(len(witness), winner, witness)


class _Sample(NamedTuple):
    """A label between classes c (to be lifted) and a (predicted): what moving it to either gains for c."""

    sample: int
    label: int
    to_c: int
    to_a: int

    @property
    def gain(self) -> int:
        """The most that relabelling gains."""
        return max(self.to_c, self.to_a, 0)

    def gain_as(self, q: int, c: int) -> int:
        """What relabelling gains if the label has to become q, which is one of the two."""
        return self.to_c if q == c else self.to_a


def _lift(row: IntegerRow, c: int, a: int) -> list[tuple[int, int]] | None:
    """Fewest flips (sample, new class) that lift class c above the predicted a and leave a label of c.

    Of two classes, a has to keep a label as well. Some label has to end as each such class: one that has it now and is
    left alone, or one that is flipped to it. Which one is tried; all others are flipped by their gains, largest first.
    Of labels alike in class and sign of the weight, the one that loses least is best, or the next if that one is taken.
    """
    labels = row.labels
    movable = labels.coded.movable
    samples = []
    for i, (y, w) in enumerate(zip(labels.codes.tolist(), row.weights, strict=True)):
        if movable[i]:
            samples.append(_Sample(i, y, to_c=w * ((y != c) + (y == a)), to_a=-w * ((y != a) + (y == c))))
    by_gain = sorted((s for s in samples if s.gain > 0), key=lambda s: -s.gain)
    need = row.scores[a] - row.scores[c] + (c > a)  # whole numbers: to pass a tie takes one more
    best: list[tuple[int, int]] | None = None
    to_keep = (c,) if labels.n_classes > 2 else (a, c)
    for keepers in product(*(_keepers(row, samples, q, c) for q in to_keep)):
        taken = {s.sample for s, _ in keepers}
        if len(taken) < len(keepers):
            continue
        flips = [(s.sample, q) for (s, flipped), q in zip(keepers, to_keep, strict=True) if flipped]
        missing = need - sum(s.gain_as(q, c) for (s, flipped), q in zip(keepers, to_keep, strict=True) if flipped)
        for s in by_gain:
            if missing <= 0 or (best is not None and len(flips) >= len(best)):
                break
            if s.sample not in taken:
                flips.append((s.sample, c if s.to_c >= s.to_a else a))
                missing -= s.gain
        if missing <= 0 and (best is None or len(flips) < len(best)):
            best = flips
    return best


def _keepers(row: IntegerRow, samples: list[_Sample], q: int, c: int) -> list[tuple[_Sample, bool]]:
    """Labels that may be the one which ends as q, and whether they have to be flipped for that."""
    trusted = np.flatnonzero((row.labels.codes == q) & ~row.labels.coded.movable)
    if trusted.size:
        return [(_Sample(int(trusted[0]), q, 0, 0), False)]
    stay = nsmallest(2, (s for s in samples if s.label == q), key=lambda s: s.gain)

    def kind(s: _Sample) -> tuple[int, bool]:
        return s.label, s.gain_as(q, c) >= 0

    others = sorted((s for s in samples if s.label != q), key=kind)
    flip = [s for _, alike in groupby(others, kind) for s in nlargest(2, alike, key=lambda s: s.gain_as(q, c))]
    return [(s, False) for s in stay] + [(s, True) for s in flip]

"""The fewest sources that change a prediction, row by row and in whole numbers: which they are, and what they do."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import nsmallest
from itertools import accumulate, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from flipcert.exceptions import CertificateError
from flipcert.flips._jit.sources import cheapest_by_sources
from flipcert.flips.rows import IntegerRow, interpreted
from flipcert.labels.labels import Labels
from flipcert.labels.threats import SOURCES
from flipcert.results.witness import Witness, classes_after


@dataclass(frozen=True)
class SourceChange:
    """A change of prediction: its cost in sources, the class that then wins (-1: there is none), and the attack."""

    cost: int
    winner: int
    witness: Witness | None
    prediction: int = -1
    runner_up: int = -1
    margin: float = 0.0


def cheapest_change_by_sources(weights: NDArray[Any], labels: Labels, offset: NDArray[np.float64]) -> SourceChange:
    """Fewest sources that change the prediction of one row in a fixed label space, in whole numbers."""
    row, cells = IntegerRow(weights, labels, offset), labels.cells
    plus, minus = (np.zeros(cells.source.size + labels.n_classes, object) for _ in range(2))
    for cell, weight in zip(cells.of.tolist(), row.weights, strict=True):
        (plus if weight >= 0 else minus)[cell] += abs(weight)
    base, gains = (np.zeros(cells.n_sources, object) for _ in range(2))
    after = np.zeros(labels.n_classes, object)
    cost, first, winner, margin = interpreted(cheapest_by_sources)(
        plus, minus, cells, row.scores, 0, SOURCES.unreachable(labels), base, gains, after
    )
    second = row.runner_up if labels.n_classes > 1 else first
    return SourceChange(int(cost), int(winner), None, int(first), int(second), row.as_float(margin))


def attack_of_change(
    weights: NDArray[Any], labels: Labels, offset: NDArray[np.float64], cost: int, first: int, target: int
) -> Witness:
    """So many sources that change the prediction of one row, known to be enough in a fixed label space.

    They turn it to ``target`` if sources that tie are taken as they come; the class that they lift may be another one.
    """
    known: Witness | None = None
    for witness in _candidates(weights, labels, offset, cost, first, target):
        after = witness.apply(labels.codes)
        winner = winner_among(range(labels.n_classes), weights.astype(np.float64), after, offset)
        if winner == target:
            return witness
        known = witness if known is None and winner != first else known
    if known is None:
        raise CertificateError("an attack by sources did not work when replayed; please report this row.")
    return known


def _candidates(
    weights: NDArray[Any], labels: Labels, offset: NDArray[np.float64], cost: int, first: int, target: int
) -> Iterator[Witness]:
    """The strongest sources against the predicted class, for one class after the other."""
    assert labels.sources is not None
    numbers, codes, sources = weights.astype(np.float64), labels.codes, labels.sources.codes
    others = sorted((c for c in range(labels.n_classes) if c != first), key=lambda c: c != target)
    for c in others:
        power = np.bincount(sources, _label_gains(numbers, labels, first, c), len(labels.sources))
        chosen = np.argsort(-power, kind="stable")[:cost]
        rank = np.full(len(labels.sources), cost)
        rank[chosen] = np.arange(cost)
        to = np.where(numbers > 0, c, np.where(numbers < 0, first, codes))
        moved = np.flatnonzero((rank[sources] < cost) & labels.coded.movable & (to != codes))
        moved = moved[np.lexsort((-np.abs(numbers[moved]), rank[sources[moved]]))]
        yield Witness(moved, to[moved], sources=chosen, threat=SOURCES.name)
    # Gains that differ by less than rounding: in whole numbers there is no doubt.
    row = IntegerRow(weights, labels, offset)
    for gap in (_Gap(row, first, c) for c in others):
        yield gap.attack(sorted(range(len(gap.gains)), key=lambda j: -gap.gains[j])[:cost], {})


def powers_of(
    weights: NDArray[Any], labels: Labels, offset: NDArray[np.float64], first: int, asked: NDArray[np.int64]
) -> list[bool]:
    """Whether each of some sources alone changes the prediction of one row, in whole numbers."""
    row = IntegerRow(weights, labels, offset)
    gaps = [_Gap(row, first, c) for c in range(labels.n_classes) if c != first]
    if labels.space_is_fixed:
        return [any(0 < gap.gains[j] >= gap.need for gap in gaps) for j in asked.tolist()]
    removed = SOURCES.to_remove(labels)[first] == 1
    owner = -1 if not removed or labels.sources is None else int(labels.sources.codes[labels.codes == first][0])
    return [j == owner or any(_lift(gap, only=j) is not None for gap in gaps) for j in asked.tolist()]


def _label_gains(numbers: NDArray[np.float64], labels: Labels, a: int, c: int) -> NDArray[np.float64]:
    """What each label closes at most of the gap between class a and class c."""
    codes = labels.codes
    once = (codes != np.where(numbers > 0, c, a)).astype(np.float64)
    twice = codes == np.where(numbers > 0, a, c)
    # What overflows is largest, whatever it is: whether it is enough is looked at exactly.
    with np.errstate(over="ignore"):
        return np.where(labels.coded.movable, np.abs(numbers) * (once + twice), 0.0)


def exact_lead(
    weights: NDArray[np.float64], codes: NDArray[np.int64], offset: NDArray[np.float64], c: int, q: int
) -> float:
    """The score of class c minus that of class q, or, if that is too large, 1 with its sign: the sign is exact."""
    terms = np.concatenate([weights[codes == c], -weights[codes == q], [offset[c], -offset[q]]])
    try:
        return math.fsum(terms.tolist())
    except OverflowError:
        exact = sum(map(Fraction, terms.tolist()))
        return float((exact > 0) - (exact < 0))


def lawful_change_by_sources(weights: NDArray[Any], labels: Labels, offset: NDArray[np.float64]) -> SourceChange:
    """The same where the label space is read from the labels: they must be such that can be fitted.

    Whoever holds all labels of the predicted class may remove it; but the class that is to win needs a label, and a
    training set two classes.
    """
    row = IntegerRow(weights, labels, offset)
    first = row.prediction
    attacks: list[Witness | None]
    attacks = [_lift(_Gap(row, first, c)) for c in range(labels.n_classes) if c != first]
    if SOURCES.to_remove(labels)[first] <= SOURCES.limit(labels):
        attacks.append(removal(labels, first, row.runner_up))
    known = [attack for attack in attacks if attack is not None]
    if not known:
        return SourceChange(SOURCES.unreachable(labels), -1, None)
    witness = min(known, key=len)
    winner = winner_after(weights, labels, offset, witness)
    if winner == first or np.count_nonzero(classes_after(witness, labels)) < 2:
        raise CertificateError("a witness did not change the prediction when replayed; please report this row.")
    return SourceChange(len(witness), winner, witness)


def removal(labels: Labels, first: int, second: int) -> Witness:
    """All labels of the predicted class go: wherever they go, it is gone; the second makes the best use of them."""
    assert labels.sources is not None
    own = np.flatnonzero(labels.codes == first)
    held = labels.sources.codes[own]
    return Witness(own, np.full(own.size, second), sources=np.unique(held), threat=SOURCES.name)


def winner_after(weights: NDArray[Any], labels: Labels, offset: NDArray[np.float64], witness: Witness) -> int:
    """Which class of those that are left is predicted after an attack, exactly."""
    left = np.flatnonzero(classes_after(witness, labels)).tolist()
    return winner_among(left, weights.astype(np.float64), witness.apply(labels.codes), offset)


def winner_among(
    classes: Sequence[int], weights: NDArray[np.float64], codes: NDArray[np.int64], offset: NDArray[np.float64]
) -> int:
    """The class with the highest exact score, ties to the smaller."""
    best, *others = classes
    for c in others:
        if exact_lead(weights, codes, offset, c, best) > 0:
            best = c
    return best


class _Keeper(NamedTuple):
    """A label that has to end as a given class, whose it is, and what that leaves open of the gap; -1: any it has."""

    sample: int
    source: int
    label: int
    loss: int


class _Gap:
    """The gap between the predicted class a and a class c, and what each source closes of it."""

    def __init__(self, row: IntegerRow, a: int, c: int) -> None:
        self.row, self.labels, self.a, self.c = row, row.labels, a, c
        assert self.labels.sources is not None
        self.need = row.scores[a] - row.scores[c] + (c > a)  # whole numbers: to pass a tie takes one more
        self.gains = [0] * len(self.labels.sources)
        self.samples: list[list[int]] = [[] for _ in self.gains]
        codes = self.labels.codes.tolist()
        for i in np.flatnonzero(self.labels.coded.movable).tolist():
            source = int(self.labels.sources.codes[i])
            self.samples[source].append(i)
            self.gains[source] += self.gain(i, codes[i])

    def gain(self, i: int, y: int) -> int:
        """The most that a label closes."""
        w = self.row.weights[i]
        return w * ((y != self.c) + (y == self.a)) if w > 0 else -w * ((y != self.a) + (y == self.c))

    def ending(self, i: int, as_c: bool) -> tuple[int, int]:
        """What a label becomes if it has to end as c, or as another class, and how much less that closes."""
        y, w = int(self.labels.codes[i]), self.row.weights[i]
        if as_c:
            return self.c, 2 * max(-w, 0)
        if w <= 0:
            return (self.a if w < 0 or y == self.c else y), 0
        third = [q for q in range(self.labels.n_classes) if q not in (self.a, self.c)]
        return (self.a, 2 * w) if not third else (y if y in third else third[0], w)

    def attack(self, sources: list[int], kept: dict[int, int]) -> Witness:
        """All that some sources do, strongest first; ``kept`` says what some labels end as."""
        flips = []
        for j in sorted(sources, key=lambda j: -self.gains[j]):
            own = sorted(self.samples[j], key=lambda i: -abs(self.row.weights[i]))
            for i in own:
                y, w = int(self.labels.codes[i]), self.row.weights[i]
                to = kept.get(i, self.c if w > 0 else self.a if w < 0 else y)
                if to != y:
                    flips.append((i, to))
        order = np.array(sorted(sources, key=lambda j: -self.gains[j]), np.int64)
        return Witness.of(flips, sources=order, threat=SOURCES.name)


def _lift(gap: _Gap, only: int | None = None) -> Witness | None:
    """Fewest sources that lift class c above a and leave a label of c, and one of another class; or one given source.

    For each number of sources, the largest gains are best, but for what it takes to keep such labels: a source that
    stays honest and holds one, or a label of a corrupt source that ends so, at a loss. Which one is tried; beyond the
    best two of a kind none can be better, as at most one of them is taken by the other label to keep.
    """
    asked = range(len(gap.samples)) if only is None else (only,)
    useful = sorted((j for j in asked if gap.samples[j]), key=lambda j: -gap.gains[j])
    both = [_Keepers(gap, useful, as_c) for as_c in (True, False)]
    enough = (k for k, total in enumerate(accumulate(gap.gains[j] for j in useful), 1) if total >= gap.need)
    for count in range(next(enough, len(useful) + 1), len(useful) + 1):
        for keepers in product(*(own.among(count) for own in both)):
            corrupt = [k for k in keepers if k is not None and k.sample >= 0]
            honest = {k.source for k in keepers if k is not None and k.sample < 0}
            forced = {k.source for k in corrupt}
            if forced & honest or len({k.sample for k in corrupt}) < len(corrupt) or len(forced) > count:
                continue
            others = [j for j in useful if j not in forced and j not in honest][: count - len(forced)]
            chosen = [*forced, *others]
            if sum(gap.gains[j] for j in chosen) - sum(k.loss for k in corrupt) >= gap.need:
                return gap.attack(chosen, {k.sample: k.label for k in corrupt})
    return None


class _Keepers:
    """What may leave a label of class c, or one of another class."""

    def __init__(self, gap: _Gap, useful: list[int], as_c: bool) -> None:
        labels = gap.labels
        assert labels.sources is not None
        there = (labels.codes == gap.c) == as_c
        self._gains = gap.gains
        # Those of sources that are not asked stay as trusted ones do.
        movable = labels.coded.movable & np.isin(labels.sources.codes, useful)
        self._trusted = bool(np.any(there & ~movable))
        holders = set(labels.sources.codes[there].tolist())
        # The weakest sources that hold one are missed least.
        self._honest = [_Keeper(-1, j, -1, 0) for j in [j for j in reversed(useful) if j in holders][:2]]
        self._corrupt = [
            nsmallest(2, (_Keeper(i, j, *gap.ending(i, as_c)) for i in gap.samples[j]), key=lambda k: k.loss)
            for j in useful
        ]

    def among(self, count: int) -> Iterator[_Keeper | None]:
        """A trusted label (None), an honest source, or a label of a corrupt one, if so many are corrupt."""
        if self._trusted:
            yield None
            return
        yield from self._honest
        # Sources that are chosen anyway, the one that has to go if another is forced in, and all others.
        chosen, last, others = (self._corrupt[: count - 1], self._corrupt[count - 1 : count], self._corrupt[count:])
        yield from nsmallest(2, (k for own in chosen for k in own), key=lambda k: k.loss)
        yield from (k for own in last for k in own)
        yield from nsmallest(2, (k for own in others for k in own), key=lambda k: k.loss - self._gains[k.source])

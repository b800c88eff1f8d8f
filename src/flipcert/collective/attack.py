"""One attack on many points of a label-linear model: flips that change as many of their predictions as can be found.

What is found need not be the most: it is a lower bound beside the proven upper one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from flipcert.collective.every_attack import EveryAttack
from flipcert.collective.exchange import Exchange
from flipcert.collective.points import LinearPoints
from flipcert.engine.clock import working_time
from flipcert.labels.labels import Labels
from flipcert.results.witness import Witness

# Rounds: some beginnings, the best of which is disturbed until that has failed so many times in a row. After so many
# rounds in vain, what is known is taken to be all that can be found.
_BEGINNINGS, _FAILURES, _ROUNDS_IN_VAIN, _ROUNDS_IN_VAIN_EMPTIED = 4, 40, 12, 3
# How smooth the count of changed points is: at first, and while flips are exchanged one by one.
_HOT, _COLD, _HEATS, _DISTURBED, _LAST = (0.6, 0.3, 1.0), 0.04, (0.25, 0.12, 0.06), 0.2, 0.06
_STEPS = 200
# Sets of classes that are emptied, at most, and the part of the time for all of them.
_EMPTIED, _EMPTYING = 6, 0.3


def find_attack(
    points: LinearPoints,
    budget: int,
    deadline: float,
    starts: Sequence[Witness] = (),
    seed: int = 0,
    enough: int | None = None,
) -> Witness | None:
    """Find at most ``budget`` flips that change many predictions, in class indices; None if none change any.

    ``starts`` are attacks to begin with, and whoever changes ``enough`` points need not look further.
    """
    labels = points.labels
    budget = min(budget, labels.n_movable)
    enough = points.n_points if enough is None else min(enough, points.n_points)
    if budget <= 0 or enough <= 0:
        return None
    known = [own for own in (possible(start, labels, budget) for start in starts) if own]
    if working_time() >= deadline:
        return Witness.of(list(known[0].items())) if known else None
    # Weights may be so large or small that sums of them are not: then less is found.
    with np.errstate(all="ignore"):
        best, emptied = _best(points, budget, deadline, known, seed, enough)
        attack = _in_order(points, best, emptied) if best else None
    # Where sums overflow, flips may look as if nobody needed them.
    return attack if attack is not None and len(attack) else None


def _best(
    points: LinearPoints, budget: int, deadline: float, known: list[dict[int, int]], seed: int, enough: int
) -> tuple[dict[int, int], tuple[int, ...]]:
    """The attack that changes most, and the classes that it empties."""
    best: dict[int, int] = {}
    emptied: tuple[int, ...] = ()
    count = 0
    removals = list(_removals(points, budget))
    for place, removed in enumerate([*removals, ()]):
        if count >= enough:
            break
        # The last search is the usual one, with no class removed and all the time that is left.
        share = _EMPTYING / len(removals) if place < len(removals) else 1.0
        own_deadline = min(deadline, working_time() + share * max(0.0, deadline - working_time()))
        exchange = Exchange(points, budget, own_deadline, seed, removed)
        every = EveryAttack(exchange)
        if not every.takes_too_long() and every.run():
            found, changed = every.best, every.count
        else:
            search = _Search(exchange, enough)
            search.run([] if removed else known, _ROUNDS_IN_VAIN_EMPTIED if removed else _ROUNDS_IN_VAIN)
            found, changed = search.best, search.count
        if changed > count:
            best, count, emptied = found, changed, removed
    return best, emptied


class _Search:
    """Rounds of beginnings and disturbances, with the best attack so far."""

    def __init__(self, exchange: Exchange, enough: int) -> None:
        self._exchange, self._enough = exchange, enough
        self._random = exchange.random
        self._even = np.ones(exchange.n_points)
        self.best: dict[int, int] = {}
        self.count = 0

    def run(self, known: list[dict[int, int]], patience: int) -> None:
        """Look for attacks until there is no time, or no hope."""
        ends = [self._settled_from(own, known) for own in known]
        vain = 0
        while not self._done() and vain < patience:
            before = self.count
            for number in range(_BEGINNINGS):
                if not self._done():
                    ends.append(self._begun(number))
            if ends:
                self._climb(*max(ends, key=lambda end: end[0]))
            ends = []
            vain = vain + 1 if self.count == before else 0

    def _done(self) -> bool:
        return self._exchange.late() or self.count >= self._enough

    def _record(self) -> None:
        count = self._exchange.n_changed()
        if count > self.count:
            self.best, self.count = self._exchange.flips(), count

    def _uneven(self, power: float = 0.7) -> NDArray[np.float64]:
        """Random weights of points, so that others come first."""
        return self._random.exponential(size=self._even.size) ** power

    def _end(self) -> tuple[float, dict[int, int]]:
        self._record()
        return self._exchange.worth(_LAST), self._exchange.flips()

    def _settled_from(self, flips: dict[int, int], known: list[dict[int, int]]) -> tuple[float, dict[int, int]]:
        """An attack that was given, improved."""
        exchange = self._exchange
        exchange.renew(flips, self._even, _HEATS[0], [sample for own in known for sample in own])
        self._record()
        exchange.settle(self._even, _HEATS)
        return self._end()

    def _begun(self, number: int) -> tuple[float, dict[int, int]]:
        """An attack from nothing."""
        exchange = self._exchange
        weight = self._even if self.count == 0 else self._uneven()
        hot = _HOT[number % len(_HOT)]
        middle = _HEATS[1]
        exchange.renew({}, weight, hot)
        exchange.anneal(weight, hot, middle, _STEPS // 2)
        exchange.renew(exchange.flips(), weight, middle)
        exchange.anneal(weight, middle, _COLD, _STEPS // 2)
        self._record()
        exchange.settle(self._even, _HEATS)
        return self._end()

    def _climb(self, worth: float, flips: dict[int, int]) -> None:
        """Disturb an attack, let it settle, and keep what is better."""
        exchange = self._exchange
        exchange.renew(flips, self._even, _HEATS[1])
        failures = 0
        while not self._done() and failures < _FAILURES:
            exchange.take(flips)
            self._disturb()
            exchange.settle(self._even, _HEATS[1:])
            new, settled = self._end()
            if new > worth + 1e-9:
                worth, flips, failures = new, settled, 0
            else:
                failures += 1
                if failures % 10 == 0:
                    exchange.renew(flips, self._uneven(), _HEATS[1])

    def _disturb(self) -> None:
        exchange, kind = self._exchange, self._random.randint(3)
        if kind == 0:
            exchange.drop(self._random.uniform(0.06, 0.34))
            return
        if kind == 1:
            weight = self._uneven()
        else:
            # Buy one of the nearest points, and sell one.
            lead = exchange.leads() / exchange.scale
            weight = np.where(lead < 0, 1.0, 0.3)
            changed, others = np.flatnonzero(lead < 0), np.flatnonzero(lead >= 0)
            if others.size:
                weight[self._random.choice(others[np.argsort(lead[others])][:15])] = 6.0
            if changed.size:
                weight[self._random.choice(changed)] = 0.1
        exchange.settle(weight, (_DISTURBED,), 1)


def possible(start: Witness, labels: Labels, budget: int) -> dict[int, int]:
    """The flips of an attack that can be made and change a label, as many as there may be; none may empty a class."""
    flips: dict[int, int] = {}
    left = np.bincount(labels.codes, minlength=labels.n_classes)
    for sample, to in zip(start.indices.tolist(), start.labels.tolist(), strict=True):
        code = int(labels.codes[sample])
        keeps = labels.space_is_fixed or left[code] > 1
        if labels.coded.movable[sample] and to != code and sample not in flips and keeps and len(flips) < budget:
            flips[sample] = to
            left[code] -= 1
            left[to] += 1
    return flips


def _removals(points: LinearPoints, budget: int) -> Iterator[tuple[int, ...]]:
    """Sets of classes that flips can empty, so that nothing is predicted to be in them; two classes are left.

    Those with the most points come first.
    """
    labels = points.labels
    cost = labels.flips_to_empty
    held = np.bincount(points.prediction, minlength=labels.n_classes)
    able = [c for c in np.argsort(-held, kind="stable").tolist() if cost[c] <= budget][:_EMPTIED]
    sets = [
        chosen
        for size in range(1, min(len(able), labels.n_classes - 2) + 1)
        for chosen in combinations(able, size)
        if cost[list(chosen)].sum() <= budget
    ]
    yield from sorted(sets, key=lambda chosen: -held[list(chosen)].sum())[:_EMPTIED]


def _in_order(points: LinearPoints, flips: dict[int, int], removed: tuple[int, ...]) -> Witness:
    """The flips that are needed, most influential first."""
    exchange = Exchange(points, len(flips), np.inf, 0, removed)
    return Witness.of(exchange.needed(flips))

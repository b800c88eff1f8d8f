"""Exhaustive search for the cheapest attack, in integers: for small rows, and those no solver can be trusted with."""

from __future__ import annotations

import time

import numpy as np

from flipcert.flips.rows import IntegerRow
from flipcert.results.witness import Witness

# Python recurses once for each flip on the way.
_DEEPEST = 500


class OutOfBudget(Exception):
    """The search may visit no more nodes, or its time is up."""


def find_attack(
    row: IntegerRow,
    target: int,
    lower: int,
    upper: int,
    *,
    nodes: float = np.inf,
    deadline: float = np.inf,
) -> Witness | None:
    """Cheapest attack on ``target`` of at least ``lower`` and fewer than ``upper`` flips; None if there is none."""
    search = _Search(row, target, nodes, deadline)
    for budget in range(lower, upper):
        flips = search.within(budget)
        if flips is not None:
            return Witness.of(flips)
    return None


class _Search:
    """Depth-first search over the flips, largest weights first, pruned by what each rival alone still needs."""

    def __init__(self, row: IntegerRow, target: int, nodes: float, deadline: float) -> None:
        self.target = target
        self.nodes = nodes
        self.deadline = deadline
        self.rivals = [q for q in range(row.labels.n_classes) if q != target]
        # Flips that can help: positive weights of other classes to the target, negative ones to a rival.
        self.samples = [sample for sample in row.movable if sample[2] < 0 or sample[1] != target]
        self.needs = [int(row.scores[q] - row.scores[target]) + (q < target) for q in self.rivals]

    def within(self, budget: int) -> list[tuple[int, int]] | None:
        """An attack of at most ``budget`` flips, or None if there is none."""
        if budget > _DEEPEST:
            raise OutOfBudget
        flips: list[tuple[int, int]] = []
        return flips if self._extend(0, budget, self.needs, frozenset(), flips) else None

    def _extend(
        self, position: int, budget: int, needs: list[int], closed: frozenset[int], flips: list[tuple[int, int]]
    ) -> bool:
        """Try to meet all needs with samples from ``position`` on.

        Of two samples that move the same way the larger is never worse, so once a positive weight of a class, or a
        negative one of the target, is passed over, that class is ``closed`` for such flips.
        """
        if all(need <= 0 for need in needs):
            return True
        for here in range(position, len(self.samples)):
            self._count_node()
            if not self._could_suffice(here, budget, needs, closed):
                return False
            index, old, weight = self.samples[here]
            ordered = weight > 0 or old == self.target
            if ordered and old in closed:
                continue
            for to in [self.target] if weight > 0 else [q for q in self.rivals if q != old]:
                flips.append((index, to))
                left = [need - gain for need, gain in zip(needs, self._gains(old, to, weight), strict=True)]
                if self._extend(here + 1, budget - 1, left, closed, flips):
                    return True
                flips.pop()
            if ordered:
                closed = closed | {old}
        return False

    def _gains(self, old: int, to: int, weight: int) -> list[int]:
        """By how much a flip closes the gap to each rival."""
        raised = weight * ((to == self.target) - (old == self.target))
        return [raised + weight * ((old == q) - (to == q)) for q in self.rivals]

    def _could_suffice(self, position: int, budget: int, needs: list[int], closed: frozenset[int]) -> bool:
        """Whether the largest gains left cover what each rival alone, and all rivals together, still need."""
        if budget == 0:
            return False
        usable = [
            (abs(weight), old, weight > 0)
            for _, old, weight in self.samples[position:]
            if not ((weight > 0 or old == self.target) and old in closed)
        ]
        for q, need in zip(self.rivals, needs, strict=True):
            if need <= 0:
                continue
            twice = [2 * size for size, old, positive in usable if (old, positive) in ((q, True), (self.target, False))]
            once = [size for size, old, positive in usable if old not in (q, self.target)]
            if sum(sorted(twice[:budget] + once[:budget], reverse=True)[:budget]) < need:
                return False
        # A flip to the target, or of one of its negative weights, gains its size K times in all; others gain nothing.
        together = [size for size, old, positive in usable if positive or old == self.target]
        return sum(together[:budget]) * (len(self.rivals) + 1) >= sum(needs)

    def _count_node(self) -> None:
        self.nodes -= 1
        if self.nodes < 0 or time.monotonic() > self.deadline:
            raise OutOfBudget

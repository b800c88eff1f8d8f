"""Exact flip costs where weights have both signs and the bounds do not meet.

The fewest flips that make class c win is an integer program. Small instances are searched directly, in integers; the
others go to HiGHS (``relaxed_program.py``).
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import LinearConstraint

from flipcert.exceptions import UnsolvedError
from flipcert.flips.relaxed_program import RelaxedProgram, in_common_unit
from flipcert.flips.rows import IntegerRow
from flipcert.flips.search import OutOfBudget, find_attack
from flipcert.results.witness import Witness

# Up to this many samples a short search in Python beats setting up a solver.
_FEW_SAMPLES = 64
_QUICK_NODES = 1000


def exact_cost(row: IntegerRow, target: int, lower: int, upper: int, time_limit: float) -> int:
    """Fewest flips that make ``target`` win, given proven bounds on it."""
    attack = cheapest_attack(row, target, lower, upper, time_limit)
    return upper if attack is None else len(attack)


def cheapest_attack(row: IntegerRow, target: int, lower: int, upper: int, time_limit: float) -> Witness | None:
    """Return a cheapest attack if it has fewer than ``upper`` flips; None proves that there is no such attack."""
    deadline = time.monotonic() + time_limit
    if len(row.movable) <= _FEW_SAMPLES:
        try:
            return find_attack(row, target, lower, upper, nodes=_QUICK_NODES)
        except OutOfBudget:
            pass
    lower, attack = _Program(row, target).solve(lower, upper, deadline)
    if attack is not None:
        upper = len(attack)
    if lower >= upper:
        return attack
    try:
        better = find_attack(row, target, lower, upper, deadline=deadline)
        return attack if better is None else better
    except OutOfBudget:
        raise UnsolvedError(
            f"the exact cost of class {target} was not proven within time_limit={time_limit:g} s "
            f"(it is between {lower} and {upper}); raise time_limit, or take the two bounds."
        ) from None


class _Program:
    """The integer program of one row and target, one variable for each way to flip samples of equal weight."""

    def __init__(self, row: IntegerRow, target: int) -> None:
        self.row = row
        self.target = target
        n_classes = row.labels.n_classes
        self.rivals = [q for q in range(n_classes) if q != target]
        pools: dict[tuple[int, int], list[int]] = {}
        for i, q, weight in row.movable:
            pools.setdefault((q, weight), []).append(i)
        self.samples: list[list[int]] = []
        self.moves: list[tuple[int, int]] = []  # (pool, new class)
        for (q, weight), members in pools.items():
            if weight > 0:
                ways = [] if q == target else [target]
            else:
                ways = [r for r in self.rivals if r != q]
            self.moves += [(len(self.samples), way) for way in ways]
            if ways:
                self.samples.append(members)
        gains = [self._gains(pool, to) for pool, to in self.moves]
        self.gains, self.needs = in_common_unit(row, target, self.rivals, gains)

    def _gains(self, pool: int, to: int) -> list[int]:
        """By how much one flip closes the gap to each rival."""
        first = self.samples[pool][0]
        weight, old = self.row.weights[first], int(self.row.labels.codes[first])
        step = {old: -weight}
        step[to] = step.get(to, 0) + weight
        return [step.get(self.target, 0) - step.get(rival, 0) for rival in self.rivals]

    def solve(self, lower: int, upper: int, deadline: float) -> tuple[int, Witness | None]:
        """Improved lower bound, and an attack of fewer than ``upper`` flips if one was found."""
        pools = np.array([pool for pool, _ in self.moves], np.int64)
        sizes = np.array([len(samples) for samples in self.samples], dtype=float)
        shape = (sizes.size, pools.size)
        each_pool = sparse.csr_array((np.ones(pools.size), (pools, np.arange(pools.size))), shape=shape)
        program = RelaxedProgram(
            self.gains,
            self.needs,
            capacity=sizes[pools],
            counted=np.ones(pools.size),
            replay=self._replay,
            links=[LinearConstraint(each_pool, -np.inf, sizes)],
        )
        return program.solve(lower, upper, deadline)

    def _replay(self, amounts: NDArray[np.int64]) -> Witness | None:
        """Turn amounts into flips and keep them only if the target then wins, in integers."""
        remaining = [list(samples) for samples in self.samples]
        indices: list[int] = []
        classes: list[int] = []
        for (pool, to), amount in zip(self.moves, amounts, strict=True):
            for _ in range(amount):
                if not remaining[pool]:
                    return None
                indices.append(remaining[pool].pop())
                classes.append(to)
        codes = self.row.labels.codes.copy()
        codes[indices] = classes
        if self.row.winner_under(codes) != self.target:
            return None
        return Witness.of(list(zip(indices, classes, strict=True)))

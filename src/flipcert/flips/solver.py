"""Exact flip costs where weights have both signs and the bounds do not meet.

The fewest flips that make class c win is an integer program. Small instances are searched directly, in integers; the
others go to HiGHS, which works in floats and is trusted accordingly: its attack counts only once replayed in integers,
its bound only as that of a *relaxed* program that no rounding could have made too tight.
"""

from __future__ import annotations

import math
import time

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from flipcert.exceptions import UnsolvedError
from flipcert.flips.rows import IntegerRow
from flipcert.flips.search import OutOfBudget, find_attack
from flipcert.results.witness import Witness

# Feasibility and integrality tolerance of HiGHS, on rows scaled to a largest coefficient of 1, with room to spare.
TOLERANCE = 4e-6
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
        # In the largest unit that all gains are multiples of, so that equal or round weights become small numbers.
        unit = math.gcd(*(gain for each in gains for gain in each)) or 1
        self.gains = [[gain // unit for gain in each] for each in gains]
        gaps = [(rival, row.scores[rival] - row.scores[target]) for rival in self.rivals]
        # The least whole number of units that closes a gap: more than closes it where a tie is not enough.
        self.needs = [gap // unit + 1 if rival < target else -(-gap // unit) for rival, gap in gaps]

    def _gains(self, pool: int, to: int) -> list[int]:
        """By how much one flip closes the gap to each rival."""
        first = self.samples[pool][0]
        weight, old = self.row.weights[first], int(self.row.labels.codes[first])
        step = {old: -weight}
        step[to] = step.get(to, 0) + weight
        return [step.get(self.target, 0) - step.get(rival, 0) for rival in self.rivals]

    def solve(self, lower: int, upper: int, deadline: float) -> tuple[int, Witness | None]:
        """Improved lower bound, and an attack of fewer than ``upper`` flips if one was found."""
        if not self.moves:
            return upper, None
        bound, attack = self._solve_shifted(lower, upper, -1, deadline)
        if attack is None and bound < upper:
            # The relaxed optimum wins only within the tolerance: ask for one that wins by more.
            _, attack = self._solve_shifted(bound, upper, +1, deadline)
        return bound, attack

    def _solve_shifted(self, lower: int, upper: int, side: int, deadline: float) -> tuple[int, Witness | None]:
        """Solve with every constraint relaxed (-1) or tightened (+1) by more than solver and rounding can err."""
        largest = max(max(abs(gain) for gain in gains) for gains in self.gains)
        n_moves = len(self.moves)
        # In whole numbers, half a unit relaxes nothing, as long as the tolerance is smaller than that.
        exact_model = n_moves * largest < 0.5 / TOLERANCE
        shift = 0.5 / largest if exact_model else TOLERANCE
        if exact_model and side > 0:
            return lower, None
        # All flips together can neither gain more than this nor lose more: a larger need is out of reach, and how far
        # below nothing a negative one is (it may not fit a float) does not matter.
        most = sum(len(samples) for samples in self.samples) * largest
        if max(self.needs) > most:
            return upper, None
        needs = [max(need, -most - largest) for need in self.needs]
        gains = sparse.csr_array(np.array([[gain / largest for gain in g] for g in self.gains]).T)
        pools = np.array([pool for pool, _ in self.moves])
        capacity = np.array([len(self.samples[pool]) for pool in pools], dtype=float)
        each_pool = sparse.csr_array((np.ones(n_moves), (pools, np.arange(n_moves))))
        result = milp(
            np.ones(n_moves),
            integrality=np.ones(n_moves),
            bounds=Bounds(0.0, capacity),
            constraints=[
                LinearConstraint(gains, np.array([need / largest + side * shift for need in needs]), np.inf),
                LinearConstraint(each_pool, -np.inf, np.array([len(s) for s in self.samples], dtype=float)),
                LinearConstraint(np.ones((1, n_moves)), lower, upper - 1),
            ],
            options={"mip_rel_gap": 0.0, "time_limit": max(deadline - time.monotonic(), 0.01)},
        )
        if result.status == 2:  # infeasible: no attack below the known one
            return upper, None
        attack = None if result.x is None else self._replay(np.rint(result.x).astype(int))
        dual = result.mip_dual_bound
        if dual is not None and math.isfinite(dual):
            lower = max(lower, min(upper, math.ceil(dual - 1e-6)))
        return lower, attack

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

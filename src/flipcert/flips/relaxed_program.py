"""Integer programs in floats whose answers are proofs.

HiGHS is trusted as far as floats go: its attack counts only once replayed in whole numbers, its bound only as that of a
*relaxed* program that no rounding could have made too tight.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from flipcert.flips.rows import IntegerRow
from flipcert.results.witness import Witness

# Feasibility and integrality tolerance of HiGHS, on rows scaled to a largest coefficient of 1, with room to spare.
_TOLERANCE = 4e-6


def in_common_unit(
    row: IntegerRow, target: int, rivals: Sequence[int], gains: Sequence[Sequence[int]]
) -> tuple[list[list[int]], list[int]]:
    """Gains over each rival, and what closes each gap, in the largest unit that all gains are multiples of.

    Equal or round weights so become small numbers.
    """
    unit = math.gcd(*(gain for each in gains for gain in each)) or 1
    gaps = [(rival, row.scores[rival] - row.scores[target]) for rival in rivals]
    # The least whole number of units that closes a gap: more than closes it where a tie is not enough.
    needs = [gap // unit + 1 if rival < target else -(-gap // unit) for rival, gap in gaps]
    return [[gain // unit for gain in each] for each in gains], needs


@dataclass
class RelaxedProgram:
    """The least number of units whose gains close all gaps.

    Attributes
    ----------
    gains : list of list of int
        What one of each variable closes of each gap.
    needs : list of int
        What closes each gap.
    capacity : ndarray
        The most of each variable.
    counted : ndarray
        1 for variables that are units, 0 for others.
    replay : callable
        The attack that amounts of all variables stand for, if it works in whole numbers; else None.
    links : list of LinearConstraint
        What else holds.
    """

    gains: list[list[int]]
    needs: list[int]
    capacity: NDArray[np.float64]
    counted: NDArray[np.float64]
    replay: Callable[[NDArray[np.int64]], Witness | None]
    links: list[LinearConstraint] = field(default_factory=list)

    def solve(self, lower: int, upper: int, deadline: float) -> tuple[int, Witness | None]:
        """Improved lower bound, and an attack of fewer than ``upper`` units if one was found."""
        if self.capacity.size == 0:
            return upper, None
        bound, attack = self._solve_shifted(lower, upper, -1, deadline)
        if attack is None and bound < upper:
            # The relaxed optimum wins only within the tolerance: ask for one that wins by more.
            _, attack = self._solve_shifted(bound, upper, +1, deadline)
        return bound, attack

    def _solve_shifted(self, lower: int, upper: int, side: int, deadline: float) -> tuple[int, Witness | None]:
        """Solve with every constraint relaxed (-1) or tightened (+1) by more than solver and rounding can err."""
        largest = max(max(abs(gain) for gain in gains) for gains in self.gains) or 1
        # In whole numbers, half a unit relaxes nothing, as long as the tolerance is smaller than that.
        exact_model = len(self.gains) * largest < 0.5 / _TOLERANCE
        shift = 0.5 / largest if exact_model else _TOLERANCE
        if exact_model and side > 0:
            return lower, None
        # All together can neither gain more than this nor lose more: a larger need is out of reach, and how far below
        # nothing a negative one is (it may not fit a float) does not matter.
        most = int(self.capacity.sum()) * largest
        if max(self.needs) > most:
            return upper, None
        needs = np.array([max(need, -most - largest) / largest + side * shift for need in self.needs])
        gains = sparse.csr_array(np.array([[gain / largest for gain in each] for each in self.gains]).T)
        result = milp(
            self.counted,
            integrality=np.ones(self.capacity.size),
            bounds=Bounds(0.0, self.capacity),
            constraints=[
                LinearConstraint(gains, needs, np.inf),
                LinearConstraint(self.counted[None], lower, upper - 1),
                *self.links,
            ],
            options={"mip_rel_gap": 0.0, "time_limit": max(deadline - time.monotonic(), 0.01)},
        )
        if result.status == 2:  # infeasible: no attack below the known one
            return upper, None
        attack = None if result.x is None else self.replay(np.rint(result.x).astype(int))
        dual = result.mip_dual_bound
        if dual is not None and math.isfinite(dual):
            lower = max(lower, min(upper, math.ceil(dual - 1e-6)))
        return lower, attack

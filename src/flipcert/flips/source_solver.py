"""The fewest sources that lead to a class, by an integer program.

HiGHS works in floats and is trusted accordingly: its attack counts only once replayed in whole numbers, its bound only
as that of a *relaxed* program that no rounding could have made too tight.
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
from flipcert.flips.search import OutOfBudget
from flipcert.flips.solver import TOLERANCE
from flipcert.flips.source_search import find_source_attack, moves_of_source
from flipcert.labels.threats import SOURCES
from flipcert.results.witness import Witness


def cheapest_source_attack(row: IntegerRow, target: int, lower: int, upper: int, time_limit: float) -> Witness | None:
    """Return a cheapest attack if it takes fewer than ``upper`` sources; None proves that there is no such attack."""
    deadline = time.monotonic() + time_limit
    program = _Program(row, target)
    bound, attack = program.solve(lower, upper, -1, deadline)
    if attack is None and bound < upper:
        # The relaxed optimum wins only within the tolerance: ask for one that wins by more.
        _, attack = program.solve(bound, upper, +1, deadline)
    best = upper if attack is None else len(attack)
    try:
        better = find_source_attack(row, target, bound, best, deadline)
        return attack if better is None else better
    except OutOfBudget:
        raise UnsolvedError(
            f"the exact cost of class {target} in sources was not proven within time_limit={time_limit:g} s "
            f"(it is between {bound} and {best}); raise time_limit, or take the two bounds."
        ) from None


class _Program:
    """One variable a source, and one for each way that labels of equal weight which count against a class may go.

    Labels that count for their class are best put to the target, against all rivals at once.
    """

    def __init__(self, row: IntegerRow, target: int) -> None:
        labels, n_classes = row.labels, row.labels.n_classes
        assert labels.sources is not None
        self.row, self.target = row, target
        self.rivals = [q for q in range(n_classes) if q != target]
        movable = np.flatnonzero(labels.coded.movable).tolist()
        self.sources = sorted({int(labels.sources.codes[i]) for i in movable})
        place = {j: k for k, j in enumerate(self.sources)}
        gains = [[0] * len(self.rivals) for _ in self.sources]
        pools: dict[tuple[int, int, int], list[int]] = {}
        for i in movable:
            y, w, k = int(labels.codes[i]), row.weights[i], place[int(labels.sources.codes[i])]
            if w > 0 and y != target:
                gains[k] = [own + w * (1 + (y == q)) for own, q in zip(gains[k], self.rivals, strict=True)]
            elif w < 0:
                pools.setdefault((k, y, w), []).append(i)
        self.pools = list(pools.items())
        self.ways = [(p, r) for p, ((_, y, _), _) in enumerate(self.pools) for r in self.rivals if r != y]
        for p, r in self.ways:
            (_, y, w), _ = self.pools[p]
            gains.append([-w * ((y == target) - (y == q) + (r == q)) for q in self.rivals])
        # In the largest unit that all gains are multiples of, so that equal or round weights become small numbers.
        unit = math.gcd(*(gain for each in gains for gain in each)) or 1
        self.gains = [[gain // unit for gain in each] for each in gains]
        gaps = [(rival, row.scores[rival] - row.scores[target]) for rival in self.rivals]
        self.needs = [gap // unit + 1 if rival < target else -(-gap // unit) for rival, gap in gaps]

    def solve(self, lower: int, upper: int, side: int, deadline: float) -> tuple[int, Witness | None]:
        """Improved lower bound, and an attack of fewer than ``upper`` sources if one was found.

        Every constraint is relaxed (-1) or tightened (+1) by more than solver and rounding can err.
        """
        n_sources, n_ways = len(self.sources), len(self.ways)
        if n_sources == 0:
            return upper, None
        sizes = np.array([len(members) for _, members in self.pools], dtype=float)
        capacity = np.append(np.ones(n_sources), [sizes[p] for p, _ in self.ways])
        largest = max((max(abs(gain) for gain in gains) for gains in self.gains), default=0) or 1
        exact_model = (n_sources + n_ways) * largest < 0.5 / TOLERANCE
        if exact_model and side > 0:
            return lower, None
        shift = 0.5 / largest if exact_model else TOLERANCE
        most = int(capacity.sum()) * largest
        if max(self.needs) > most:
            return upper, None
        needs = [max(need, -most - largest) / largest + side * shift for need in self.needs]
        gains = sparse.csr_array(np.array([[gain / largest for gain in g] for g in self.gains]).T)
        counts = np.append(np.ones(n_sources), np.zeros(n_ways))
        constraints = [
            LinearConstraint(gains, np.array(needs), np.inf),
            LinearConstraint(counts[None], lower, upper - 1),
        ]
        if n_ways:
            # Labels of a pool move only if their source is corrupt, and each once.
            pool = np.array([p for p, _ in self.ways])
            own = np.array([k for (k, _, _), _ in self.pools])
            shape = (sizes.size, n_sources + n_ways)
            moved = sparse.csr_array((np.ones(n_ways), (pool, n_sources + np.arange(n_ways))), shape=shape)
            held = sparse.csr_array((sizes, (np.arange(sizes.size), own)), shape=shape)
            constraints.append(LinearConstraint(moved - held, -np.inf, 0.0))
        result = milp(
            counts,
            integrality=np.ones(n_sources + n_ways),
            bounds=Bounds(0.0, capacity),
            constraints=constraints,
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
        """The attack that amounts stand for, if the target then wins, in whole numbers."""
        n_sources = len(self.sources)
        taken = [k for k in range(n_sources) if amounts[k]]
        flips = [flip for k in taken for flip in moves_of_source(self.row, self.sources[k], self.target, -1)]
        flips = [(i, to) for i, to in flips if to >= 0]
        remaining = [list(members) for _, members in self.pools]
        for (p, r), amount in zip(self.ways, amounts[n_sources:].tolist(), strict=True):
            if amount > len(remaining[p]) or (amount and self.pools[p][0][0] not in taken):
                return None
            flips += [(remaining[p].pop(), r) for _ in range(amount)]
        witness = Witness.of(flips, sources=np.array([self.sources[k] for k in taken], np.int64), threat=SOURCES.name)
        codes = witness.apply(self.row.labels.codes)
        return witness if self.row.winner_under(codes) == self.target else None

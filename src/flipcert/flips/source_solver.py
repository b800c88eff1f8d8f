"""The fewest sources that lead to a class, by an integer program, or by trying them where floats cannot decide."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import LinearConstraint

from flipcert.exceptions import UnsolvedError
from flipcert.flips.relaxed_program import RelaxedProgram, in_common_unit
from flipcert.flips.rows import IntegerRow
from flipcert.flips.search import OutOfBudget
from flipcert.flips.source_search import find_source_attack, moves_of_source
from flipcert.labels.threats import SOURCES
from flipcert.results.witness import Witness


def cheapest_source_attack(row: IntegerRow, target: int, lower: int, upper: int, time_limit: float) -> Witness | None:
    """Return a cheapest attack if it takes fewer than ``upper`` sources; None proves that there is no such attack."""
    deadline = time.monotonic() + time_limit
    bound, attack = _Program(row, target).solve(lower, upper, deadline)
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
        self.gains, self.needs = in_common_unit(row, target, self.rivals, gains)

    def solve(self, lower: int, upper: int, deadline: float) -> tuple[int, Witness | None]:
        """Improved lower bound, and an attack of fewer than ``upper`` sources if one was found."""
        n_sources, n_ways = len(self.sources), len(self.ways)
        sizes = np.array([len(members) for _, members in self.pools], dtype=float)
        links = []
        if n_ways:
            # Labels of a pool move only if their source is corrupt, and each once.
            pool = np.array([p for p, _ in self.ways])
            own = np.array([k for (k, _, _), _ in self.pools])
            shape = (sizes.size, n_sources + n_ways)
            moved = sparse.csr_array((np.ones(n_ways), (pool, n_sources + np.arange(n_ways))), shape=shape)
            held = sparse.csr_array((sizes, (np.arange(sizes.size), own)), shape=shape)
            links.append(LinearConstraint(moved - held, -np.inf, 0.0))
        program = RelaxedProgram(
            self.gains,
            self.needs,
            capacity=np.append(np.ones(n_sources), [sizes[p] for p, _ in self.ways]),
            counted=np.append(np.ones(n_sources), np.zeros(n_ways)),
            replay=self._replay,
            links=links,
        )
        return program.solve(lower, upper, deadline)

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

"""The fewest flips after which support vector machines rank classes otherwise, as an integer program (LabelCert).

The duals of a machine are optimal for flipped labels if and only if every point has its dual at 1 or a margin of at
least 1, and its dual at 0 or a margin of at most 1. Binary variables choose the labels and, point by point, which of
the two holds. Everything is in units of the kernel times C, so that duals lie between 0 and 1.

The solver works in floats. All constraints are relaxed by more than its tolerances, so a bound that it proves is one on
the true problem; an attack that it finds is only a suggestion until a machine was fitted to it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from flipcert.classifiers.milp_svm._jit.dual import score_ranges
from flipcert.classifiers.milp_svm.machine import Machine

# Feasibility and integrality tolerance of HiGHS, with room to spare.
TOLERANCE = 4e-6


@dataclass
class Solution:
    """What the solver found out: no attack has fewer flips than ``bound``; the class of each sample in a suggestion."""

    bound: int
    classes: NDArray[np.int64] | None
    solved: bool


@dataclass
class ConstraintRows:
    """ConstraintRows of linear constraints, collected one by one."""

    entries: list[tuple[int, NDArray[np.int64], NDArray[np.float64]]] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)

    def add(self, columns: Any, values: Any, low: float = -np.inf, high: float = np.inf) -> None:
        """Demand ``low <= values @ x[columns] <= high``, up to the tolerance."""
        values = np.atleast_1d(np.asarray(values, float))
        slack = TOLERANCE * max(1.0, float(np.abs(values).max(initial=0.0)))
        self.entries.append((len(self.low), np.atleast_1d(columns), values))
        self.low.append(low - slack)
        self.high.append(high + slack)

    def matrix(self, n_columns: int) -> LinearConstraint:
        """All rows as one constraint."""
        rows = np.concatenate([np.full(columns.size, row) for row, columns, _ in self.entries])
        columns = np.concatenate([columns for _, columns, _ in self.entries])
        values = np.concatenate([values for *_, values in self.entries])
        table = sparse.csr_array((values, (rows, columns)), shape=(len(self.low), n_columns))
        return LinearConstraint(table, np.array(self.low), np.array(self.high))


class Program:
    """Fewest flips, at most ``budget``, after which ``target`` is at least level with every class in ``rivals``.

    Parameters
    ----------
    machines : dict
        The machine of each class that takes part, one class against the rest. With two classes in all, that of the
        second alone: the decision value of the first is its negative.
    codes, movable : ndarray of shape (n,)
        Class of each sample, and whether it can be flipped.
    n_classes : int
        Size of the label space.
    point : ndarray of shape (n,)
        Kernel of the test point with the training points, times C.
    target, rivals
        Classes to be compared.
    budget : int
        Largest number of flips to be considered; a smaller one makes for tighter constraints.
    slack : float
        By how much the target may stay behind and still count as level.
    """

    def __init__(
        self,
        machines: dict[int, Machine],
        codes: NDArray[np.int64],
        movable: NDArray[np.bool_],
        n_classes: int,
        point: NDArray[np.float64],
        target: int,
        rivals: list[int],
        budget: int,
        slack: float,
    ) -> None:
        self.codes = codes
        self.n_classes = n_classes
        self.budget = budget
        self.part = sorted(machines)
        n = codes.size
        # Columns of a class that takes part: labels, whether a dual is at 0, at 1; the duals, and with their signs.
        self.columns = {c: np.arange(5 * n).reshape(5, n) + 5 * n * k for k, c in enumerate(self.part)}
        self.n_columns = 5 * n * len(self.part)
        self.low, self.high = np.zeros(self.n_columns), np.ones(self.n_columns)
        self.integral = np.zeros(self.n_columns)
        self.rows = ConstraintRows()
        self.cost = np.zeros(self.n_columns)
        self.offset = 0.0
        self._add_labels(movable)
        for c in self.part:
            self._add_machine(c, machines[c], movable)
        for rival in rivals:
            columns: list[Any] = []
            values: list[Any] = []
            for c, sign in ((target, 1.0), (rival, -1.0)):
                if c in machines:
                    columns.append(self.columns[c][4])
                    values.append(sign * point)
            if len(machines) == 1:
                values = [values[0] * 2.0]  # the other one is its negative
            # In units of the largest entry, as the tolerance is for such rows.
            joined = np.concatenate(values)
            unit = max(float(np.abs(joined).max()), np.finfo(float).tiny)
            self.rows.add(np.concatenate(columns), joined / unit, low=-slack / unit)

    def _add_labels(self, movable: NDArray[np.bool_]) -> None:
        """A sample has at most one label; it counts as flipped if that is another one."""
        for c in self.part:
            labels = self.columns[c][0]
            self.integral[labels] = 1
            own = self.codes == c
            self.low[labels] = np.where(~movable & own, 1.0, 0.0)
            self.high[labels] = np.where(~movable & ~own, 0.0, 1.0)
            # Flipped away from a class that takes part, or from another one to it.
            self.cost[labels] = np.where(own, -1.0, np.where(np.isin(self.codes, self.part), 0.0, 1.0))
            self.offset += float(own.sum())
        if len(self.part) > 1:
            everyone = len(self.part) == self.n_classes
            for i in range(self.codes.size):
                labels = [int(self.columns[c][0][i]) for c in self.part]
                self.rows.add(labels, np.ones(len(labels)), low=1.0 if everyone else -np.inf, high=1.0)
        used = np.flatnonzero(self.cost)
        self.rows.add(used, self.cost[used], high=self.budget - self.offset)

    def _add_machine(self, c: int, machine: Machine, movable: NDArray[np.bool_]) -> None:
        """Optimality of the duals of one class, with constants as small as the budget allows."""
        n = self.codes.size
        labels, at_zero, at_one, duals, signed = self.columns[c]
        self.integral[at_zero] = self.integral[at_one] = 1
        self.low[signed] = -1.0
        least, most = np.empty(n), np.empty(n)
        score_ranges(
            machine.kernel, machine.signs, machine.duals, machine.active, machine.scores, movable, self.budget, least,
            most,
        )  # fmt: skip
        # Decision values within a little more than that: tolerances, the duality gap, and rounding, which is less.
        room = TOLERANCE * (1.0 + np.abs(machine.kernel).sum(axis=1))
        room += np.sqrt(np.diag(machine.kernel) * machine.gap) + machine.gap
        least, most = least - room, most + room
        for i in range(n):
            positive = machine.signs[i] > 0
            y, zero, one, a, z = labels[i], at_zero[i], at_one[i], duals[i], signed[i]
            # z = a if the label is 1, -a if it is 0
            self.rows.add([z, a], [1.0, -1.0], high=0.0)
            self.rows.add([z, a], [1.0, 1.0], low=0.0)
            self.rows.add([z, a, y], [1.0, -1.0, -2.0], low=-2.0)
            self.rows.add([z, a, y], [1.0, 1.0, -2.0], high=0.0)
            self.rows.add([a, zero], [1.0, 1.0], high=1.0)
            self.rows.add([a, one], [1.0, -1.0], low=0.0)
            self._fix(i, positive, bool(movable[i]), least[i], most[i], y, zero, one)
            used = np.flatnonzero(machine.kernel[i])
            score, values = signed[used], machine.kernel[i, used]
            low, high = float(least[i]), float(most[i])
            # label 1: a margin of at least 1 unless the dual is at 1, of at most 1 unless it is at 0
            if positive or movable[i]:
                below, above = max(1.0 - low, 0.0), max(high - 1.0, 0.0)
                self._imply(score, values, [one, y], [below, -below], 1.0 - below, lower=True)
                self._imply(score, values, [zero, y], [-above, above], 1.0 + above, lower=False)
            # label 0: the same for the negative
            if not positive or movable[i]:
                below, above = max(1.0 + high, 0.0), max(-low - 1.0, 0.0)
                self._imply(score, values, [one, y], [-below, -below], -1.0, lower=False)
                self._imply(score, values, [zero, y], [above, above], -1.0, lower=True)

    def _imply(self, score: Any, values: Any, switches: list[Any], constants: Any, limit: float, lower: bool) -> None:
        """Bound a decision value unless a switch is on."""
        if constants[0] == 0.0:
            return
        columns, row = np.concatenate([score, switches]), np.concatenate([values, constants])
        unit = max(1.0, float(np.abs(row).max()))
        bound = {"low" if lower else "high": limit / unit}
        self.rows.add(columns, row / unit, **bound)

    def _fix(self, i: int, positive: bool, movable: bool, low: float, high: float, y: int, zero: int, one: int) -> None:
        """Where all decision values within the budget are on one side of a margin, the dual is known."""
        states = [positive] if not movable else [True, False]
        for label in states:
            least, most = (low, high) if label else (-high, -low)
            # `there` is 1 where the label is `label`: y or 1 - y
            sign, start = (1.0, 0.0) if label else (-1.0, 1.0)
            if most < 1.0:  # inside the margin: the dual is at 1
                self.rows.add([one, y], [1.0, -sign], low=start)
                self.rows.add([zero, y], [1.0, sign], high=1.0 - start)
            elif least > 1.0:  # outside: it is at 0
                self.rows.add([zero, y], [1.0, -sign], low=start)
                self.rows.add([one, y], [1.0, sign], high=1.0 - start)

    def exclude(self, classes: NDArray[np.int64]) -> None:
        """Leave out one labelling that was fitted and is known not to be an attack."""
        columns, values, same = [], [], 0
        for c in self.part:
            for i in range(self.codes.size):
                columns.append(int(self.columns[c][0][i]))
                values.append(-1.0 if classes[i] == c else 1.0)
                same += classes[i] == c
        self.rows.add(columns, values, low=1.0 - same)

    def solve(self, time_limit: float) -> Solution:
        """Ask HiGHS; ``budget + 1`` is a proven bound if there is no attack within the budget."""
        result = milp(
            self.cost,
            integrality=self.integral,
            bounds=Bounds(self.low, self.high),
            constraints=self.rows.matrix(self.n_columns),
            options={"mip_rel_gap": 0.0, "time_limit": max(time_limit, 0.01)},
        )
        if result.status == 2:
            return Solution(self.budget + 1, None, True)
        bound = 0
        if result.mip_dual_bound is not None and math.isfinite(result.mip_dual_bound):
            bound = min(self.budget + 1, math.ceil(result.mip_dual_bound + self.offset - TOLERANCE))
        return Solution(max(bound, 0), None if result.x is None else self._classes(result.x), result.status == 0)

    def _classes(self, x: NDArray[np.float64]) -> NDArray[np.int64]:
        """The class of each sample in a solution; outside the program a sample keeps its class, or takes any other."""
        chosen = np.full(self.codes.size, -1)
        for c in self.part:
            chosen[x[self.columns[c][0]] > 0.5] = c
        others = [c for c in range(self.n_classes) if c not in self.part]
        elsewhere = np.where(np.isin(self.codes, others), self.codes, others[0] if others else self.codes)
        return np.where(chosen >= 0, chosen, elsewhere)

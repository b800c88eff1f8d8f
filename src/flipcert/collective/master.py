"""The linear program behind a collective bound on the columns seen so far, solved by an interior-point method.

    maximise  sum w_t b_t   subject to   b_t <= (G x)_j  for every cut j of t,   b <= 1,   x >= 0,
              sum of cost * x <= r,   and at most one choice a unit.

G is dense, with a few hundred to a few thousand rows and columns: Cholesky factors of whichever side is shorter make
short work of it, where a simplex method meets a degenerate program. Nothing here has to be trusted. The multipliers of
the cuts go into a bound that holds for any of them, and a solution that is cut short is as good a proposal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from flipcert.engine.clock import working_time

_MOST_STEPS = 60
# How much of the way to the nearest bound is gone.
_STEP = 0.99

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Solution:
    """What came of a program.

    Attributes
    ----------
    value : float
        Its value, nearly.
    shares : ndarray of shape (n_cuts,)
        Multipliers of the cuts, at least zero.
    chosen : ndarray of shape (n_columns,)
        How much of each column is chosen.
    changed : ndarray of shape (n_points,)
        How much of each point is changed.
    """

    value: float
    shares: Vector
    chosen: Vector
    changed: Vector


class _Program(NamedTuple):
    """Coefficients, the point of each cut, unit (as places) and cost of each column, and where units begin."""

    matrix: Vector
    point: NDArray[np.int64]
    unit: NDArray[np.int64]
    cost: Vector
    starts: NDArray[np.int64]
    budget: float
    n_points: int

    @property
    def several(self) -> NDArray[np.bool_]:
        """Columns whose unit has another column."""
        return np.bincount(self.unit)[self.unit] > 1

    def by_point(self, values: Vector) -> Vector:
        return np.bincount(self.point, values, self.n_points).astype(np.float64)

    def by_unit(self, values: Vector) -> Vector:
        return np.add.reduceat(values, self.starts)

    def rows(self, chosen: Vector, changed: Vector) -> tuple[Vector, ...]:
        """What stands on the left of all inequalities: cuts, points, the budget, units."""
        spent = np.array([self.cost @ chosen])
        return changed[self.point] - self.matrix @ chosen, changed, spent, self.by_unit(chosen)

    def columns(self, y: tuple[Vector, ...]) -> tuple[Vector, Vector]:
        """The same, transposed: what multipliers of the inequalities add up to, for columns and points."""
        return self.cost * y[2] + y[3][self.unit] - self.matrix.T @ y[0], self.by_point(y[0]) + y[1]


def solve_master(
    matrix: Vector,
    point: NDArray[np.int64],
    unit: NDArray[np.int64],
    weight: Vector,
    budget: float,
    tolerance: float,
    deadline: float,
    cost: Vector,
) -> Solution:
    """Solve the program to a relative gap of ``tolerance``, or as far as there is time.

    Rows of the matrix ascend by point, columns by unit. ``weight`` is that of each point.
    """
    n_points = weight.size
    starts = np.flatnonzero(np.diff(unit, prepend=-1))
    places = np.searchsorted(unit[starts], unit)
    program = _Program(matrix, point, places, cost, starts, budget, n_points)
    # Primal variables and slacks of the inequalities; their multipliers and the reduced costs.
    chosen, changed = np.full(unit.size, min(0.5, budget / cost.sum())), np.full(n_points, 0.5)
    right = (np.zeros(point.size), np.ones(n_points), np.array([budget]), np.ones(starts.size))
    left = program.rows(chosen, changed)
    slack: tuple[Vector, ...] = tuple(np.maximum(own - used, 0.1) for own, used in zip(right, left, strict=True))
    share = 0.5 * (weight / np.bincount(point, minlength=n_points))[point]
    worth = matrix.T @ share
    count = int(max(1, min(budget, worth.size)))
    price = max(float(np.partition(worth / np.maximum(cost, 1.0), -count)[-count]), 0.01)
    more = np.maximum(0.1, np.maximum.reduceat(worth - price * cost, starts) + 0.1)
    y: tuple[Vector, ...] = (share, 0.5 * weight, np.array([price]), more)
    reduced: tuple[Vector, ...] = (np.maximum(0.1, price * cost + more[places] - worth), np.full(n_points, 0.2))
    v: tuple[Vector, ...] = (chosen, changed)
    best, smallest = Solution(float(weight.sum()), share, chosen, changed), np.inf
    with np.errstate(all="ignore"):
        for _ in range(_MOST_STEPS):
            primal = tuple(b - a - s for b, a, s in zip(right, program.rows(*v), slack, strict=True))
            aim = (np.zeros(unit.size), weight)
            dual = tuple(c - a + z for c, a, z in zip(aim, program.columns(y), reduced, strict=True))
            pairs = [*zip(v, reduced, strict=True), *zip(slack, y, strict=True)]
            count = sum(p.size for p, _ in pairs)
            gap = sum(float(p @ q) for p, q in pairs) / count
            value = float(y[1].sum() + budget * y[2][0] + y[3].sum())
            wrong = max(float(np.abs(own).max()) for own in primal + dual)
            if not gap + wrong < 10.0 * smallest:
                break  # rounding has the upper hand
            if gap + wrong < smallest:
                best, smallest = Solution(value, np.maximum(y[0], 0.0), v[0], v[1]), gap + wrong
            close = abs(value - weight @ v[1]) <= tolerance * max(1.0, abs(value))
            if (close and wrong < 1e-6) or working_time() > deadline:
                break
            try:
                direction = _directions(program, v, reduced, slack, y, primal, dual)
            except (np.linalg.LinAlgError, ValueError):
                break
            # Where a full step would lead tells how far to aim from the boundary.
            step = direction([-p * q for p, q in pairs])
            on_v, on_y = _reach(v + slack, step[0]), _reach(reduced + y, step[1])
            after = sum(
                float((p + on_v * dp) @ (q + on_y * dq)) for (p, q), dp, dq in zip(pairs, step[0], step[1], strict=True)
            )
            aimed = gap * (after / count / gap) ** 3
            step = direction([aimed - p * q - dp * dq for (p, q), dp, dq in zip(pairs, step[0], step[1], strict=True)])
            on_v, on_y = _STEP * _reach(v + slack, step[0]), _STEP * _reach(reduced + y, step[1])
            if not all(np.isfinite(own).all() for own in step[0] + step[1]):
                break
            moved_v = [p + on_v * dp for p, dp in zip(v + slack, step[0], strict=True)]
            moved_y = [q + on_y * dq for q, dq in zip(reduced + y, step[1], strict=True)]
            v, slack = tuple(moved_v[:2]), tuple(moved_v[2:])
            reduced, y = tuple(moved_y[:2]), tuple(moved_y[2:])
    return best


def _reach(values: tuple[Vector, ...], steps: tuple[Vector, ...]) -> float:
    """The largest step, up to one, that leaves everything positive."""
    longest = 1.0
    for value, step in zip(values, steps, strict=True):
        down = step < 0
        if down.any():
            longest = min(longest, float((-value[down] / step[down]).min()))
    return longest


Step = tuple[tuple[Vector, ...], tuple[Vector, ...]]


def _directions(
    program: _Program,
    v: tuple[Vector, ...],
    reduced: tuple[Vector, ...],
    slack: tuple[Vector, ...],
    y: tuple[Vector, ...],
    primal: tuple[Vector, ...],
    dual: tuple[Vector, ...],
) -> Callable[[list[Vector]], Step]:
    """Newton's direction for any aim of the products of pairs, from one factorisation.

    The aims are those of columns, points, and the slacks of cuts, points, budget and units. Returned are the steps of
    what is primal (columns, points, slacks) and of what is dual (reduced costs, multipliers), in the same order.
    """
    ease = tuple(p / q for p, q in zip(v, reduced, strict=True))
    stiff = tuple(s / q for s, q in zip(slack, y, strict=True))
    by_cuts = program.point.size <= program.unit.size
    multipliers = (_by_cuts if by_cuts else _by_columns)(program, ease, stiff)

    def direction(aims: list[Vector]) -> Step:
        towards = [aim / p + d for aim, p, d in zip(aims[:2], v, dual, strict=True)]
        missing = [r - aim / q for r, aim, q in zip(primal, aims[2:], y, strict=True)]
        dy = multipliers(towards, missing)
        turned = program.columns(dy)
        dv = tuple(e * (to - own) for e, to, own in zip(ease, towards, turned, strict=True))
        dz = tuple(own - d for own, d in zip(turned, dual, strict=True))
        ds = tuple(aim / q - s * d for aim, q, s, d in zip(aims[2:], y, stiff, dy, strict=True))
        return dv + ds, dz + dy

    return direction


Solver = Callable[[list[Vector], list[Vector]], tuple[Vector, ...]]


def _by_cuts(program: _Program, ease: tuple[Vector, ...], stiff: tuple[Vector, ...]) -> Solver:
    """Multipliers from a system in the cuts, once points, budget and units are eliminated."""
    matrix, point, unit = program.matrix, program.point, program.unit
    spent = program.cost * ease[0]
    of_unit = program.by_unit(spent)
    units, points = program.by_unit(ease[0]) + stiff[3], ease[1] + stiff[1]
    # Of a unit with one column, what is eliminated is a smaller ease of that. (NumPy knows a product with itself.)
    several = program.several
    halves = matrix * np.sqrt(np.where(several, ease[0], ease[0] * (stiff[3] / units)[unit]))
    system = halves @ halves.T
    if several.any():
        firsts = np.flatnonzero(np.diff(unit[several], prepend=-1))
        summed = np.add.reduceat(matrix[:, several] * ease[0][several], firsts, axis=1)
        summed /= np.sqrt(units[unit[several][firsts]])
        system -= summed @ summed.T
    system += (point[:, None] == point) * (ease[1] - ease[1] ** 2 / points)[point]
    system[np.diag_indices(point.size)] += stiff[0]
    factor = scipy.linalg.cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
    edge = matrix @ (ease[0] * (of_unit / units)[unit] - spent)
    corner = program.cost @ spent + stiff[2] - (of_unit**2 / units).sum()
    bent = scipy.linalg.cho_solve(factor, edge, check_finite=False)

    def solve(towards: list[Vector], missing: list[Vector]) -> tuple[Vector, ...]:
        rows = program.rows(ease[0] * towards[0], ease[1] * towards[1])
        cuts, of_points, budget, of_units = (own - lacks for own, lacks in zip(rows, missing, strict=True))
        share = of_units / units
        cuts = cuts - (ease[1] * of_points / points)[point] + matrix @ (ease[0] * share[unit])
        straight = scipy.linalg.cho_solve(factor, cuts, check_finite=False)
        d_budget = (budget - of_unit @ share - edge @ straight) / (corner - edge @ bent)
        d_cuts = straight - bent * d_budget
        d_points = (of_points - ease[1] * program.by_point(d_cuts)) / points
        d_units = (of_units + program.by_unit(ease[0] * (matrix.T @ d_cuts)) - of_unit * d_budget) / units
        return d_cuts, d_points, d_budget, d_units

    return solve


def _by_columns(program: _Program, ease: tuple[Vector, ...], stiff: tuple[Vector, ...]) -> Solver:
    """Multipliers from a system in the columns, once cuts and points are eliminated."""
    matrix, point, unit = program.matrix, program.point, program.unit
    halves = matrix / np.sqrt(stiff[0])[:, None]
    system = halves.T @ halves
    halves /= np.sqrt(stiff[0])[:, None]
    firsts = np.flatnonzero(np.diff(point, prepend=-1))
    of_point = np.zeros((program.n_points, unit.size))
    of_point[point[firsts]] = np.add.reduceat(halves, firsts, axis=0)
    points = 1.0 / ease[1] + program.by_point(1.0 / stiff[0]) + 1.0 / stiff[1]
    halves = of_point / np.sqrt(points)[:, None]
    system -= halves.T @ halves
    system += np.outer(program.cost, program.cost / stiff[2])
    system += (unit[:, None] == unit) * (1.0 / stiff[3])[unit]
    system[np.diag_indices(unit.size)] += 1.0 / ease[0]
    factor = scipy.linalg.cho_factor(system, lower=True, overwrite_a=True, check_finite=False)

    def solve(towards: list[Vector], missing: list[Vector]) -> tuple[Vector, ...]:
        scaled = [lacks / own for lacks, own in zip(missing, stiff, strict=True)]
        more = program.columns((scaled[0], scaled[1], scaled[2], scaled[3]))
        to_columns, to_points = towards[0] + more[0], towards[1] + more[1]
        chosen = scipy.linalg.cho_solve(factor, to_columns + of_point.T @ (to_points / points), check_finite=False)
        changed = (to_points + of_point @ chosen) / points
        rows = program.rows(chosen, changed)
        return tuple((own - lacks) / s for own, lacks, s in zip(rows, missing, stiff, strict=True))

    return solve

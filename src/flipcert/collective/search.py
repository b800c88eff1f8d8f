"""The search for good multipliers of a collective bound: a linear program on few choices, and passes over all."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from flipcert.collective._jit.covers import leave_out
from flipcert.collective.cuts import Cuts, cuts_of
from flipcert.collective.effects import Columns, Effects, Seen
from flipcert.collective.master import Solution, solve_master

# Floors of the first cuts, as shares of the gap that a budget has to close; of many points fewer, for speed.
_THETAS, _FEW_THETAS, _MANY_POINTS = (0.0, 0.5, 0.8), (0.0, 0.6), 1000
# Shares are whole multiples of this, so that their sums are exact.
_UNIT = 2.0**-20
# Choices that the program begins with, and that join it at a time; programs up to the last size have all of them.
_FIRST, _MORE, _ALL = 1500, 1500, 2000
# When the program and the full pass agree, and how many times cuts may join.
_CLOSE, COVER_ROUNDS = 0.004, 6
# Shares of cuts that are of no use.
_LITTLE = 1e-4
# What is left of a gap at least when units are left out of a cut, and by how much a cut has to be violated.
_LEAST_LEFT, _VIOLATED = 0.05, 0.001


class Search:
    """The search for one budget: what it has proven, and which shares of which cuts it wants to try next."""

    def __init__(self, effects: Effects, budget: int, points: NDArray[np.int64]) -> None:
        self.budget = budget
        self._effects, self._points = effects, points
        self._bound = float(points.size)
        self.finished = points.size == 0 or budget == 0
        thetas = _THETAS if points.size <= _MANY_POINTS else _FEW_THETAS
        repeated = np.repeat(points, len(thetas))
        self.cuts = self._cuts(repeated, np.tile(thetas, points.size), [np.empty(0, np.int64)] * repeated.size)
        self.shares = np.full(repeated.size, _rounded_down(0.5 / len(thetas)))
        self._columns = Columns(np.empty(0, np.int64), np.empty(0, np.int64))
        # What changing each point counts for in the program, and choices that need no look.
        self._weight = np.ones(points.size)
        self._barred: NDArray[np.bool_] | None = None
        self._solution: Solution | None = None
        self._seen: Seen | None = None
        self._rounds = 0

    @property
    def at_most(self) -> int:
        """What is proven so far."""
        return 0 if self.budget == 0 else math.floor(self._bound)

    @property
    def n_points(self) -> int:
        """How many points it is about."""
        return self._points.size

    @property
    def is_solved(self) -> bool:
        """Whether it came to an end by itself, with a solution of its program."""
        return self.finished and self._solution is not None

    @property
    def takes_one_each(self) -> bool:
        """Whether every choice takes one of the budget."""
        return bool(self._effects.spent[-1] == 1)

    def proven(self, at_most: int) -> None:
        """Take what was proven elsewhere."""
        self._bound = min(self._bound, float(at_most))

    @property
    def favourites(self) -> Columns:
        """Choices that the program makes, the fullest first."""
        if self._solution is None:
            return self._columns
        order = np.argsort(-self._solution.chosen, kind="stable")
        order = order[self._solution.chosen[order] > 1e-3]
        return Columns(self._columns.unit[order], self._columns.option[order])

    def hears(self, prices: NDArray[np.float64]) -> bool:
        """Take the prices of all choices at the shares that were asked about; whether that proves more than before."""
        if self._barred is not None:
            prices[self._barred] = 0.0
        self._prices = prices
        worth = self._worth(prices)
        # The shares are exact, and so is their sum; what follows rounds twice.
        self._now = ((self._points.size - self._given()) + worth) * (1.0 + 2.0**-50)
        better = self._now < self._bound
        self._bound = min(self._bound, self._now)
        return better

    def _given(self) -> float:
        """What all shares add up to, exactly."""
        return float(self.shares.sum())

    def _worth(self, prices: NDArray[np.float64]) -> float:
        """The most that an attack can be worth, rounded up."""
        return self._effects.worth(prices, self.budget, self.shares.size)

    def goes_on(self, deadline: float) -> None:
        """Find shares to try next, or finish."""
        solution = self._solution
        if solution is not None and self._agrees(solution) and not self._cut_deeper(solution):
            self.finished = True
            return
        self._choose_columns()
        self._solve(deadline)

    def _agrees(self, solution: Solution) -> bool:
        """Whether more choices would change nothing that counts."""
        value = solution.value - (self._weight.sum() - self._points.size)
        return self._now <= value * (1.0 + _CLOSE) or math.floor(self._bound) <= value

    def _choose_columns(self) -> None:
        """Add the choices with the highest prices, and drop those that have become cheap."""
        prices, n_options = self._prices, self._effects.n_options
        if prices.size <= _ALL:
            unit, option = np.nonzero(prices > 0.0)
        elif self._effects.spent[-1] > 1:
            unit, option = _corners(prices, self._effects.spent)
            if self._solution is not None:
                kept = self._solution.chosen > 1e-6
                unit = np.concatenate([unit, self._columns.unit[kept]])
                option = np.concatenate([option, self._columns.option[kept]])
        else:
            best = prices.max(axis=1)
            # What the last unit of the budget costs. Cheaper ones would not be chosen, at these shares.
            level = np.partition(best, -min(self.budget, best.size))[-min(self.budget, best.size)]
            count = min(max(_FIRST, 12 * self.budget), best.size)
            if self._solution is not None:
                count = min(_MORE, int(np.count_nonzero(best > 0.9 * level)))
            units = np.sort(np.argpartition(best, -count)[-count:])
            taken = prices[units] > 0.8 * level
            taken[np.arange(count), prices[units].argmax(axis=1)] = True
            place, option = np.nonzero(taken)
            unit = units[place]
            kept = prices[self._columns.unit, self._columns.option] > 0.8 * level
            if self._solution is not None:
                kept |= self._solution.chosen > 1e-6
            unit = np.concatenate([unit, self._columns.unit[kept]])
            option = np.concatenate([option, self._columns.option[kept]])
        places = np.unique(unit * n_options + option)
        if self._barred is not None:
            places = places[~self._barred.ravel()[places]]
        self._columns = Columns(places // n_options, places % n_options)
        self._seen = None

    def _solve(self, deadline: float) -> None:
        """Shares from the program on the chosen columns."""
        if self._columns.unit.size == 0:
            self.finished = True
            return
        matrix, point = self._rows()
        tolerance = 0.01 if self._solution is None else 0.002
        budget, cost = self._budget_and_costs()
        self._takes(
            solve_master(matrix, point, self._columns.unit, self._weight, budget, tolerance, deadline, cost), point
        )

    def _rows(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Coefficients of the chosen columns in all cuts, and the place of each cut's point."""
        if self._seen is None:
            self._seen = self._effects.seen(np.unique(self._columns.unit))
        return self._seen.coefficients(self.cuts, self._columns), np.searchsorted(self._points, self.cuts.point)

    def _takes(self, solution: Solution, point: NDArray[np.int64]) -> None:
        """Go by the solution of a program: its shares are tried next."""
        self._solution = solution
        total = np.bincount(point, solution.shares, self._points.size)
        self.shares = _rounded_down(solution.shares / np.maximum(1.0, total / self._weight)[point])

    def _budget_and_costs(self) -> tuple[float, NDArray[np.float64]]:
        """What the program may spend, and what each of its columns takes of that."""
        return float(self.budget), self._effects.spent[self._columns.option].astype(np.float64)

    def _cut_deeper(self, solution: Solution) -> bool:
        """Add cuts that leave out what is chosen more than a point is changed; False if none is violated, or enough."""
        if self._rounds == COVER_ROUNDS or self._seen is None:
            return False
        self._rounds += 1
        found = self._covers(solution, self._seen)
        if found is None:
            return False
        used = self.shares > _LITTLE
        # Every point keeps a cut.
        used[np.unique(self.cuts.point, return_index=True)[1]] = True
        self.cuts = self.cuts.only(used).joined(found)
        return True

    # What closes more than there are numbers for closes the gap.
    @np.errstate(over="ignore", divide="ignore", invalid="ignore")
    def _covers(self, solution: Solution, seen: Seen) -> Cuts | None:
        """Violated cuts, if there are any."""
        chosen = solution.chosen > 1e-6
        columns = Columns(self._columns.unit[chosen], self._columns.option[chosen])
        units, place = np.unique(columns.unit, return_inverse=True)
        amount = np.bincount(place, solution.chosen[chosen])
        order = np.argsort(-amount, kind="stable")
        points, thetas, left_out, closed = [], [], [], []
        places = np.searchsorted(seen.units, units)
        for t, changed in zip(self._points.tolist(), solution.changed.tolist(), strict=True):
            more = order[: np.count_nonzero(amount > changed)]
            if not 0.0 < changed < 1.0 or more.size == 0:
                continue
            active = self._effects.costs[t] <= self.budget
            gains, gaps = seen.most(t, places[more])[:, active], self._effects.gaps[t][active]
            out, above = np.zeros(more.size, np.bool_), np.zeros(gaps.size)
            for theta in _THETAS:
                floor = theta * gaps / self.budget
                count = leave_out(gains, floor, (1.0 - theta - _LEAST_LEFT) * gaps, out, above)
                if count == 0:
                    continue
                points.append(t)
                thetas.append(theta)
                left_out.append(np.sort(units[more[out]]))
                own = np.zeros(self._effects.gaps.shape[1])
                own[active] = above * (1.0 + (count + 8) * 2.0**-52)
                closed.append(own)
        if not points:
            return None
        cuts = self._cuts(np.array(points), np.array(thetas), left_out, np.array(closed))
        reached = seen.coefficients(cuts, columns) @ solution.chosen[chosen]
        changed = solution.changed[np.searchsorted(self._points, cuts.point)]
        violated = changed - reached > _VIOLATED
        return cuts.only(violated) if violated.any() else None

    def _cuts(
        self,
        point: NDArray[np.int64],
        theta: NDArray[np.float64],
        left_out: list[NDArray[np.int64]],
        closed: NDArray[np.float64] | None = None,
    ) -> Cuts:
        gaps, active = self._effects.gaps[point], self._effects.costs[point] <= self.budget
        return cuts_of(point, gaps, active, self.budget, theta, left_out, closed)


def _rounded_down(shares: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """Shares as multiples of a small unit."""
    return np.floor(np.asarray(shares) / _UNIT) * _UNIT


def _corners(prices: NDArray[np.float64], spent: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Units and options that no mixture of others is better than: the upper hull of each unit's prices over costs."""
    units, options = [], []
    for unit, own in enumerate(prices.tolist()):
        hull = [(0, 0.0, -1)]
        for option, (cost, price) in enumerate(zip(spent.tolist(), own, strict=True)):
            if price <= hull[-1][1]:
                continue
            while len(hull) > 1 and (hull[-1][1] - hull[-2][1]) * (cost - hull[-2][0]) <= (price - hull[-2][1]) * (
                hull[-1][0] - hull[-2][0]
            ):
                hull.pop()
            hull.append((cost, price, option))
        units += [unit] * (len(hull) - 1)
        options += [option for _, _, option in hull[1:]]
    return np.array(units, np.int64), np.array(options, np.int64)

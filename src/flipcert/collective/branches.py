"""Attacks told apart by what they change and touch: a bound that holds for each kind, holds for all.

That no attack changes more than k points is shown for those that change a certain point, and for those that do not; and
where that is not enough, for each of the two again. What is assumed sharpens the bound of ``bound.py`` by itself:

- a point that stays as it is does not count;
- a point that changes counts for 1 less its shares, *however large* these are, because its cuts add up to at least one;
- a unit that stays as it is is worth nothing;
- a unit that is touched takes its part of the budget, so that the others have one less;
- a choice that no attack on more than k points can contain, by its price and those of the best others, is barred.

A point that the program changes by half tells most apart. If it changes none in part, units are told apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy

import numpy as np
from numpy.typing import NDArray

from flipcert.collective.effects import Columns
from flipcert.collective.search import COVER_ROUNDS, Search
from flipcert.engine.blocks import map_threads
from flipcert.engine.clock import working_time

# Points of which no more is tried: each step takes a program on all of them.
_MOST_POINTS = 400
# Kinds of attacks that are looked at at once.
_AT_ONCE = 8
# Rounds of cuts for each kind of attack; there are many.
_ROUNDS = 1
# What a point counts for that is to change: more than any that are lost for it.
_WEIGHT = 8.0
# How much of a point has to change to be worth a distinction, or of a unit.
_SOME = 0.02
# Next to nothing: what a touched unit takes of the rest of the budget, and what is left of that at least.
_FREE, _NOTHING_LEFT = 1e-6, 1e-3


def lowered(search: Search, deadline: float) -> Iterator[int]:
    """Prove one point fewer, and one more, as long as that works; bounds are told as they are proven."""
    while Branch.begins(search) and _holds(Branch(search), search.at_most - 1, deadline):
        search.proven(search.at_most - 1)
        yield search.at_most


def _holds(root: Branch, target: int, deadline: float) -> bool:
    """Whether no attack changes more points than that, as far as can be shown in time."""
    open_ones = [root]
    while open_ones:
        # All have to be bounded, and none is of use to another: some at once, on threads.
        asked = [open_ones.pop() for _ in range(min(_AT_ONCE, len(open_ones)))]
        proven = map_threads(lambda branch: branch.proves(target, deadline), asked, None)
        for branch in (own for own, done in zip(asked, proven, strict=True) if not done):
            both = branch.told_apart() if working_time() < deadline else ()
            if not both:
                return False
            open_ones += both
    return True


class Branch(Search):
    """A search among attacks of which something is assumed; it goes on where another one has come to."""

    def __init__(self, search: Search) -> None:
        vars(self).update(vars(search))
        self._touched = np.empty(0, np.int64)
        self._solved = True

    @staticmethod
    def begins(search: Search) -> bool:
        """Whether attacks on so many points are worth telling apart, and every choice takes one of the budget."""
        return search.at_most > 0 and search.is_solved and search.n_points <= _MOST_POINTS and search.takes_one_each

    def proves(self, target: int, deadline: float) -> bool:
        """Whether no more points than that are changed by any such attack."""
        # Without points there is no program to solve.
        if self.at_most <= target or working_time() >= deadline:
            return self.at_most <= target
        self.finished, self._rounds = False, COVER_ROUNDS - _ROUNDS
        if self._columns.unit.size == 0:
            self._solution = None
        elif not self._solved:
            self._solve(deadline)
        while True:
            self.hears(self._effects.prices([(self.cuts, self.shares)])[0])
            if self.at_most <= target:
                return True
            if self._touched.size == 0:
                self._bar(target)
            if working_time() < deadline:
                self.goes_on(deadline)
            if self.finished or working_time() >= deadline:
                return False

    def told_apart(self) -> tuple[Branch, ...]:
        """Two kinds of these attacks, of which each is one; none if the program decides everything."""
        if self._solution is None:
            return ()
        point = _by_half(np.where(self._weight > 1.0, 0.0, self._solution.changed))
        if point is not None:
            return self._without(point), self._with(point)
        chosen = np.bincount(self._columns.unit, self._solution.chosen, self._effects.n_units).astype(np.float64)
        chosen[self._touched] = 0.0
        unit = _by_half(chosen)
        if unit is None or self._touched.size == self.budget:
            return ()
        return self._not_touching(unit), self._touching(unit)

    def _with(self, point: int) -> Branch:
        weight = self._weight.copy()
        weight[point] = _WEIGHT
        return self._where(_weight=weight)

    def _without(self, point: int) -> Branch:
        points, rest = np.delete(self._points, point), self.cuts.point != self._points[point]
        return self._where(
            _points=points,
            _weight=np.delete(self._weight, point),
            cuts=self.cuts.only(rest),
            shares=self.shares[rest],
            _bound=min(self._bound, float(points.size)),
        )

    def _touching(self, unit: int) -> Branch:
        return self._where(_touched=np.append(self._touched, unit))

    def _not_touching(self, unit: int) -> Branch:
        barred = np.zeros(self._prices.shape, np.bool_) if self._barred is None else self._barred.copy()
        barred[unit] = True
        kept = self._columns.unit != unit
        return self._where(_barred=barred, _columns=Columns(self._columns.unit[kept], self._columns.option[kept]))

    def _where(self, **assumed: object) -> Branch:
        """The same under one more assumption. Nothing that branches share is ever written to."""
        branch = copy(self)
        vars(branch).update(assumed, _solved=False)
        return branch

    def _worth(self, prices: NDArray[np.float64]) -> float:
        """The touched units, and what is best of the others."""
        left, n_cuts = self.budget - self._touched.size, self.shares.size
        if left == self.budget:
            return super()._worth(prices)
        others = prices.copy()
        others[self._touched] = 0.0
        most = self._effects.worth(others, left, n_cuts) if left else 0.0
        own = self._effects.worth(prices[self._touched], self._touched.size, n_cuts)
        return (own + most) * (1.0 + 2.0**-50)

    def _budget_and_costs(self) -> tuple[float, NDArray[np.float64]]:
        budget, cost = super()._budget_and_costs()
        free = np.isin(self._columns.unit, self._touched)
        return max(budget - self._touched.size, _NOTHING_LEFT), np.where(free, _FREE, cost)

    def _bar(self, target: int) -> None:
        """Bar choices that no attack on more points contains: the best that goes with one is worth too little."""
        prices = self._prices
        best = prices.max(axis=1)
        count = min(self.budget, best.size)
        top = np.partition(best, -count)[-count:]
        total = float(top.sum())
        worth = prices + (total - np.maximum(best, top.min()))[:, None]
        # Prices err by a share of themselves, and sums by a share of the largest.
        worth += (total + prices) * ((self.shares.size + count + 64) * 2.0**-52) + 1e-300
        barred = ((self._points.size - self.shares.sum()) + worth) * (1.0 + 2.0**-50) < target + 1
        self._barred = barred if self._barred is None else barred | self._barred


def _by_half(amounts: NDArray[np.float64]) -> int | None:
    """Where an amount is nearest to a half, if any is above next to nothing."""
    some = np.flatnonzero(amounts > _SOME)
    return int(some[np.abs(amounts[some] - 0.5).argmin()]) if some.size else None

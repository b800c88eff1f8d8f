"""Rows about what voters cost and rows about shared flips, in one bound on an attack on an ensemble.

A point may have shares of rows of either kind, at most one in all. An attack that gives ``e`` flips to a voter gets the
price of that many flips on it, and the prices of at most ``e`` of its labels besides: it is worth no more than the best
division of the flips among voters. The program has columns of both kinds, and no voter has more labels than flips.
"""

from __future__ import annotations

from copy import copy
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from flipcert.collective._jit.turns import most_within
from flipcert.collective.master import Solution, solve_master
from flipcert.collective.search import COVER_ROUNDS, Search

# Rounds of cuts: both searches have had theirs.
_ROUNDS = 2
# Next to nothing: what it is worth to the program that a voter has flips left, and what a label costs beside its voter.
_LITTLE, _FREE = 1e-3, 1e-6


class Mixed(Search):
    """A search for shares of both kinds of rows, which begins where two searches about the same points have come to.

    Parameters
    ----------
    ballots : Search
        That of ``BallotEffects``.
    turns : Search
        That of ``VoteEffects``.
    voter : ndarray of int64
        The voter of each label; they ascend.
    deadline : float
        When the first program has to be solved.
    """

    def __init__(self, ballots: Search, turns: Search, voter: NDArray[np.int64], deadline: float) -> None:
        vars(self).update(vars(ballots))
        self._turns, self._voter = copy(turns), voter
        self._bounds = np.searchsorted(voter, np.arange(turns._effects.n_units + 1))
        self._bound = min(ballots._bound, turns._bound)
        self._rounds = self._turns._rounds = COVER_ROUNDS - _ROUNDS
        # Those two have come to their ends; this one begins.
        self.finished = False
        self._solve(deadline)
        # More columns are worth no less: the whole program would prove nothing new, either.
        assert self._solution is not None, "of the search that it begins with, at least"
        self.finished |= self._solution.value >= self.at_most

    @staticmethod
    def begins(ballots: Search, turns: Search | None) -> bool:
        """Whether two searches came to their ends on the same points, of which there are some."""
        return (
            turns is not None
            and ballots.at_most > 0
            and ballots.is_solved
            and turns.is_solved
            and np.array_equal(ballots._points, turns._points)
        )

    def _given(self) -> float:
        return super()._given() + self._turns._given()

    def _worth(self, prices: NDArray[np.float64]) -> float:
        """The best division of the flips among voters, rounded up."""
        turns = self._turns
        (turns._prices,) = turns._effects.prices([(turns.cuts, turns.shares)])
        most = most_within(self._profile(turns._prices, prices), self.budget)
        n_cuts = max(turns.shares.size, self.shares.size)
        return float(most) * (1.0 + (n_cuts + self.budget + self._bounds.size + 32) * 2.0**-52) + 1e-300

    def _profile(self, of_turns: NDArray[np.float64], of_labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """What each voter is worth with 1, 2, ... flips, those of the best labels included: (n_voters, most flips)."""
        # A voter that has more flips than it has labels, or than any turn takes, closes no more.
        most = max(of_turns.shape[1], int(np.diff(self._bounds).max()))
        flips = np.arange(1, min(self.budget, most) + 1)
        worth = of_turns[:, np.minimum(flips, of_turns.shape[1]) - 1]
        best = of_labels.max(axis=1)
        for p, (begin, end) in enumerate(pairwise(self._bounds.tolist())):
            top = np.cumsum(-np.sort(-best[begin:end])[: self.budget])
            if top.size:
                worth[p] += top[np.minimum(flips, top.size) - 1]
        return worth

    def _choose_columns(self) -> None:
        super()._choose_columns()
        self._turns._choose_columns()

    def _cut_deeper(self, solution: Solution) -> bool:
        """Cuts of either kind that the solution violates."""
        turns = self._turns
        assert turns._solution is not None, "both have their part of a solution"
        return super()._cut_deeper(solution) | turns._cut_deeper(turns._solution)

    def _solve(self, deadline: float) -> None:
        """Shares of both kinds from one program; that labels need flips is a row of a point that counts for nothing."""
        turns = self._turns
        if self._columns.unit.size == 0 or turns._columns.unit.size == 0:
            self.finished = True
            return
        (by_labels, of_labels), (by_turns, of_turns) = self._rows(), turns._rows()
        voters, n_points, n_voters = np.arange(self._bounds.size - 1), self.n_points, self._bounds.size - 1
        spent = turns._effects.spent[turns._columns.option].astype(np.float64)
        flipped = (self._voter[self._columns.unit] == voters[:, None]).astype(np.float64)
        given = np.where(turns._columns.unit == voters[:, None], spent, 0.0)
        matrix = np.block(
            [
                [by_labels, np.zeros((of_labels.size, spent.size))],
                [np.zeros((of_turns.size, flipped.shape[1])), by_turns],
                [-flipped, given],
            ]
        )
        point = np.concatenate([of_labels, of_turns, n_points + voters])
        order = np.argsort(point, kind="stable")
        unit = np.concatenate([self._columns.unit, self._effects.n_units + turns._columns.unit])
        weight = np.concatenate([self._weight, np.full(n_voters, _LITTLE)])
        cost = np.concatenate([np.full(flipped.shape[1], _FREE), spent])
        whole = solve_master(matrix[order], point[order], unit, weight, float(self.budget), 0.002, deadline, cost)
        shares = np.empty(point.size)
        shares[order] = whole.shares
        changed, total = whole.changed[:n_points], np.bincount(point, shares)[point]
        shares /= np.maximum(1.0, total)
        value = whole.value - _LITTLE * float(whole.changed[n_points:].sum())
        ends = of_labels.size, of_labels.size + of_turns.size
        self._takes(Solution(value, shares[: ends[0]], whole.chosen[: flipped.shape[1]], changed), of_labels)
        turns._takes(Solution(value, shares[ends[0] : ends[1]], whole.chosen[flipped.shape[1] :], changed), of_turns)

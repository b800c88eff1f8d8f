"""One attack on many points of an ensemble of label-linear voters: flips that change as many as can be found.

What is found need not be the most: it is a lower bound beside the proven upper one, and is replayed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from flipcert.collective._jit.vote_trials import point_worth, set_label, try_labels, vote_slopes, voter_part
from flipcert.collective.attack import possible
from flipcert.collective.vote_points import VotePoints
from flipcert.engine.clock import working_time
from flipcert.results.witness import Witness

# Flips that are tried for the place of one, and places after which they are chosen anew.
_TRIED, _LASTS = 200, 20
# How near to a change a point has to be to count, while flips are exchanged; and what it counts for at most.
_HEATS, _NEARLY = (0.25, 0.12, 0.06), 0.6
# Sweeps in which all flips are exchanged, and disturbances in vain after which the search ends.
_SWEEPS, _FAILURES = 3, 40
# A lead below this part of the largest score counts as a tie.
_TIE = 1e-11


class VoteAttack:
    """Flips in hand, and what they do to all votes on some points.

    Parameters
    ----------
    points : VotePoints
        Points and the weights of all voters.
    rows : ndarray of int64
        The points that are to be changed.
    budget : int
        Flips, at most.
    deadline : float
        When to stop looking.
    seed : int
        For disturbances.
    """

    def __init__(
        self, points: VotePoints, rows: NDArray[np.int64], budget: int, deadline: float, seed: int = 0
    ) -> None:
        self._points, self._rows, self._budget, self._deadline = points, rows, budget, deadline
        self._random = np.random.RandomState(seed)
        labels = points.labels
        self._left = np.bincount(labels.codes, minlength=labels.n_classes)
        self._to: dict[int, int] = {}
        votes = points.votes[rows]
        self._counts = np.zeros((rows.size, labels.n_classes), np.int64)
        np.add.at(self._counts, (np.arange(rows.size)[:, None], votes), 1)
        self._winner = self._counts.argmax(axis=1)
        self._scores = np.ascontiguousarray(points.scores[rows].transpose(1, 0, 2))
        self._gaps = np.ascontiguousarray(points.gaps[rows].transpose(1, 0, 2))
        # A smaller class wins a tie.
        self._scores -= np.arange(labels.n_classes) * _TIE * np.abs(self._scores).max(initial=0.0)
        self._parts, self._now = np.empty(self._scores.shape), np.empty(self._scores.shape[:2], np.int64)
        classes = np.arange(labels.n_classes)
        self._soft = (self._winner[:, None] < classes).astype(np.float64)
        self._counts[:] = 0
        for p in range(votes.shape[1]):
            for t in range(rows.size):
                now = self._now[p, t] = voter_part(
                    self._scores[p, t], self._gaps[p, t], self._winner[t], self._parts[p, t]
                )
                self._counts[t, now] += 1
        self._soft += self._parts.sum(axis=0)
        rivals = np.where(classes == self._winner[:, None], np.inf, self._soft)
        self._scale = np.maximum(1.0, rivals.min(axis=1))
        self._even = np.ones(rows.size)
        self.best: dict[int, int] = {}
        self.count = 0

    def find(self, starts: Sequence[Witness], enough: int) -> Witness | None:
        """The best attack that is found; None if none changes any. Starts are in columns of the points."""
        ends = []
        for start in [*(possible(own, self._points.labels, self._budget) for own in starts), {}]:
            if not self._late(enough):
                self._take(start)
                ends.append(self._settled(self._even, _HEATS))
        failures = 0
        worth, flips = max(ends, key=lambda end: end[0], default=(0.0, {}))
        while failures < _FAILURES and not self._late(enough):
            self._take(flips)
            self._drop(self._random.uniform(0.05, 0.35))
            if self._random.rand() < 0.5:
                self._sweep(self._random.exponential(size=self._even.size) ** 0.7, _HEATS[1])
            now, found = self._settled(self._even, _HEATS[1:])
            failures += 1
            if now > worth:
                worth, flips, failures = now, found, 0
        if not self.best:
            return None
        columns = np.array(list(self.best), np.int64)
        return Witness(self._points.members[columns], np.array(list(self.best.values()), np.int64))

    def _late(self, enough: int | None = None) -> bool:
        return working_time() >= self._deadline or (enough is not None and self.count >= enough)

    def _settled(self, weight: NDArray[np.float64], heats: Sequence[float]) -> tuple[float, dict[int, int]]:
        """Exchange flips until hardly any moves; what that is worth, and the flips."""
        for heat in heats:
            for _ in range(_SWEEPS):
                moved = self._sweep(weight, heat)
                self._record()
                if self._late() or moved <= 0.05 * self._budget:
                    break
        return self._worth(heats[-1]), dict(self._to)

    def _record(self) -> None:
        count = int(np.count_nonzero(self._counts.argmax(axis=1) != self._winner))
        if count > self.count:
            self.best, self.count = dict(self._to), count

    def _worth(self, heat: float) -> float:
        worth = 0.0
        for t in range(self._rows.size):
            worth += point_worth(self._soft[t], self._counts[t], self._winner[t], self._scale[t], heat, _NEARLY)
        return worth

    def _take(self, flips: dict[int, int]) -> None:
        """Have these flips in hand and no others. They empty no class, though the way there may."""
        new = {own: self._code(own) for own in self._to if own not in flips} | flips
        for (column, to), weights in zip(new.items(), self._weights_of(list(new)), strict=True):
            self._put(column, to, weights)

    def _drop(self, share: float) -> None:
        inside = list(self._to)
        dropped = [inside[k] for k in self._random.permutation(len(inside))[: max(1, round(share * len(inside)))]]
        for column, weights in zip(dropped, self._weights_of(dropped), strict=True):
            self._set(column, self._code(column), weights)

    def _code(self, column: int) -> int:
        return int(self._points.labels.codes[column])

    def _weights_of(self, columns: Sequence[int]) -> NDArray[np.float64]:
        """Weights of some labels on all points, of shape (n_columns, n_points)."""
        weights = self._points.columns(np.array(columns, np.int64))[self._rows]
        return np.ascontiguousarray(weights.T)

    def _set(self, column: int, to: int, weights: NDArray[np.float64]) -> bool:
        """Give a label a class, unless that empties a class which the label space would lose."""
        old = self._to.get(column, self._code(column))
        if old != to and self._left[old] <= 1 and not self._points.labels.space_is_fixed:
            return False
        self._put(column, to, weights)
        return True

    def _put(self, column: int, to: int, weights: NDArray[np.float64]) -> None:
        """Give a label a class."""
        old = self._to.get(column, self._code(column))
        if old == to:
            return
        set_label(
            self._scores, self._gaps, self._winner, int(self._points.voter[column]), weights, old, to,
            self._parts, self._now, self._soft, self._counts,
        )  # fmt: skip
        self._left[old] -= 1
        self._left[to] += 1
        if to == self._code(column):
            del self._to[column]
        else:
            self._to[column] = to

    def _sweep(self, weight: NDArray[np.float64], heat: float) -> int:
        """Fill up the budget, then take out each flip in turn and put in the best there is; how many moved."""
        moved = 0
        inside = list(self._to)
        self._random.shuffle(inside)
        places: list[int | None] = [None] * (self._budget - len(inside)) + list(inside)
        for k, column in enumerate(places):
            if self._late():
                break
            if k % _LASTS == 0:
                tried, to, rows = self._promising(weight, heat, inside)
            before = None
            if column is not None:
                before, own = self._to.get(column), self._weights_of([column])
                if before is None or not self._set(column, self._code(column), own[0]):
                    continue
            free = np.flatnonzero([int(other) not in self._to for other in tried])
            worth = self._tried(tried[free], to[free], rows[free], weight, heat)
            best = int(worth.argmax()) if worth.size else -1
            if column is None or before is None:
                moved += best >= 0 and self._set(int(tried[free[best]]), int(to[free[best]]), rows[free[best]])
                continue
            again = self._tried(np.array([column]), np.array([before]), own, weight, heat)[0]
            better = best >= 0 and worth[best] > again * (1 + 1e-9)
            if better and self._set(int(tried[free[best]]), int(to[free[best]]), rows[free[best]]):
                moved += 1
            else:
                self._set(column, before, own[0])
        return moved

    def _tried(
        self,
        tried: NDArray[np.int64],
        to: NDArray[np.int64],
        rows: NDArray[np.float64],
        weight: NDArray[np.float64],
        heat: float,
    ) -> NDArray[np.float64]:
        out = np.empty(tried.size)
        try_labels(
            self._scores, self._gaps, self._winner, self._points.voter[tried], rows, self._points.labels.codes[tried],
            to, self._parts, self._now, self._soft, self._counts, self._scale, weight, heat, _NEARLY, out,
        )  # fmt: skip
        return out

    def _promising(
        self, weight: NDArray[np.float64], heat: float, inside: list[int]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Labels and new classes that help most, to first order, with the weights of each on all points."""
        slopes = np.zeros((self._points.n_points, *self._scores.shape[::2]))
        own = np.empty((self._rows.size, *self._scores.shape[::2]))
        vote_slopes(
            self._scores, self._gaps, self._winner, self._soft, self._counts, self._scale, weight, heat, own
        )  # fmt: skip
        largest = float(np.abs(own).max(initial=0.0))
        slopes[self._rows] = own / largest if largest > 0.0 else own
        gains = self._points.pull(slopes)
        codes = self._points.labels.codes
        each = np.arange(codes.size)
        gains -= gains[each, codes][:, None]
        gains[each, codes] = -np.inf
        gains[~self._points.labels.coded.movable] = -np.inf
        flat = gains.ravel()
        best = np.argpartition(-flat, _TRIED)[:_TRIED] if flat.size > _TRIED else np.arange(flat.size)
        best = best[np.isfinite(flat[best])]
        tried, to = np.divmod(best, gains.shape[1])
        units, place = np.unique(tried, return_inverse=True)
        columns = np.ascontiguousarray(self._points.columns(units)[self._rows].T)
        return tried, to, columns[place]

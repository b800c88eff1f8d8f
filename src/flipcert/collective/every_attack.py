"""Every attack there is, where budgets are small enough to go through them all."""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import NDArray

from flipcert.collective._jit.exchange import trials
from flipcert.collective.exchange import Exchange
from flipcert.engine.clock import working_time

# Seconds that it may take, also as a part of the time there is; what a step costs at least, and for each of its points.
_SECONDS, _PART = 3.0, 0.25
_STEP, _POINT = 3e-5, 3e-9
_BYTES = 2**28


class EveryAttack:
    """The best of all attacks on the points of an exchange; the last flip of each is tried with all others at once."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self.best: dict[int, int] = {}
        self.count = 0

    def takes_too_long(self) -> bool:
        """Whether there are too many."""
        exchange = self._exchange
        held, others = exchange.held.size, exchange.n_movable - exchange.held.size
        labels = exchange.classes.size
        if 8 * exchange.n_movable * exchange.n_points > _BYTES:
            return True
        steps = 0
        for k in range(max(1, exchange.budget - held)):
            steps += comb(others, k) * labels ** (k + held)
            if steps > _SECONDS / _STEP:
                return True
        seconds = steps * (_STEP + exchange.n_movable * labels * exchange.n_points * _POINT)
        return seconds > min(_SECONDS, _PART * (exchange.deadline - working_time()))

    def run(self) -> bool:
        """Go through all attacks; False if the time did not suffice."""
        exchange = self._exchange
        exchange.admit_all()
        which, new = exchange.all_flips()
        self._which, self._new, self._old = which, new, exchange.codes[which]
        self._weight, self._unit = np.ones(exchange.n_points), np.ones(exchange.n_points)
        return self._from(0, exchange.base, exchange.labels_left(), {})

    def _from(self, place: int, scores: NDArray[np.float64], left: NDArray[np.int64], flips: dict[int, int]) -> bool:
        """Go through the attacks that go on with candidates from a place on."""
        exchange = self._exchange
        if exchange.late():
            return False
        must = place < exchange.held.size
        room = exchange.budget - len(flips)
        if not must:
            self._last(place, scores, left, flips)
            if room == 1:
                return True
        for p in range(place, place + 1 if must else exchange.samples.size):
            for to in exchange.classes.tolist():
                old = int(exchange.codes[p])
                if to == old:
                    continue
                after, kept = scores.copy(), left.copy()
                after[old] -= exchange.rows[p]
                after[to] += exchange.rows[p]
                kept[old] -= 1
                kept[to] += 1
                own = {**flips, int(exchange.samples[p]): to}
                if room == 1:
                    self._take(self._changed(after), kept, own)
                elif not self._from(p + 1, after, kept, own):
                    return False
        return True

    def _changed(self, scores: NDArray[np.float64]) -> int:
        self._exchange.scores = scores
        return self._exchange.n_changed()

    def _take(self, count: int, left: NDArray[np.int64], flips: dict[int, int]) -> None:
        if count > self.count and (left[self._exchange.classes] > 0).all():
            self.count, self.best = count, flips

    def _last(self, place: int, scores: NDArray[np.float64], left: NDArray[np.int64], flips: dict[int, int]) -> None:
        """Try no flip more, and every single one."""
        exchange = self._exchange
        self._take(self._changed(scores), left, flips)
        empty = exchange.classes[left[exchange.classes] <= 0]
        fits = (self._which >= place) & (left[self._old] > 1)
        if empty.size:
            fits &= (self._new == empty[0]) & (empty.size == 1)
        which, old, new = self._which[fits], self._old[fits], self._new[fits]
        if which.size == 0:
            return
        count = np.empty(which.size)
        trials(exchange.rows, which, old, new, scores, exchange.own, self._unit, self._weight, 0.0, count)
        k = int(count.argmax())
        if count[k] + exchange.n_removed > self.count:
            self.count = int(count[k]) + exchange.n_removed
            self.best = {**flips, int(exchange.samples[which[k]]): int(new[k])}

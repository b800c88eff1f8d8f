r"""How far flips can move a sum of gradients of a linear model, for every parameter and number of flips.

Flipping sample i lowers the gradient of class c and feature j by at most :math:`x_{ij}` if the sample is of another
class and :math:`x_{ij} > 0`, or by :math:`-x_{ij}` if it is of class c and :math:`x_{ij} < 0`; it raises it in the
opposite cases. (Twice that under squared loss.) This does not depend on the parameters, so the r largest are added up
once for all r.

It does, if a gradient is clipped. Under cross-entropy, an entry below the clip never is, because shares are at most
one, and larger ones gain at least as much as the clip: they come first, one by one, and only what is left of the flips
goes to the table. Under squared loss, every entry may be clipped. The first step starts from parameters that are known,
and has a table of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.classifiers.network._jit.clipped import clipped_sums, clipped_table
from flipcert.classifiers.network._jit.top import top_sums
from flipcert.classifiers.network.plan import Plan
from flipcert.classifiers.network.training import Samples
from flipcert.engine.blocks import map_threads, memory_budget

# Part of the memory budget that a table may take.
_PART = 8
# Features that are sorted at a time; the fewer, the less memory.
_COLUMNS = 16
# Entries below the clip by this factor do not meet it, whatever is rounded.
_BELOW = 0.999

Floats = NDArray[np.float64]


class FlipGains:
    """Sums of the largest gains, by number of flips, up to a number that fits the memory.

    Tables are by feature, end of the interval, class and number of flips.
    """

    def __init__(self, plan: Plan, samples: Samples, n_jobs: int | None) -> None:
        n_features, n_classes = plan.widths
        self._n_jobs = n_jobs
        self._codes, self._movable = samples.codes.numpy(), samples.movable.numpy()
        self._factor = 1.0 if plan.loss == "cross-entropy" else 2.0
        self._clip = plan.clip
        self._from = np.inf if plan.clip is None else _BELOW * plan.clip if plan.loss == "cross-entropy" else 0.0
        room = memory_budget() // _PART // (16 * n_classes * (n_features + 1))
        self._n_movable = int(self._movable.sum())
        self._most = min(max(1, room), self._n_movable)
        self._table = np.empty((n_features + 1, 2, n_classes, self._most + 1))
        self._first: Floats | None = None
        self._starts = list(range(0, n_features + 1, _COLUMNS))
        inputs = samples.inputs.numpy()

        def tabulate(start: int) -> list[tuple[NDArray[np.int64], Floats]]:
            columns = _columns(inputs, slice(start, start + _COLUMNS))
            large = np.abs(columns) > self._from
            own = [(rows, column[rows]) for rows, column in zip(map(np.flatnonzero, large), columns, strict=True)]
            columns[large] = 0.0
            order = np.argsort(-np.abs(columns), axis=1)
            columns *= self._factor
            table = self._table[start : start + _COLUMNS]
            top_sums(columns, order, self._codes, self._movable, table[:, 0], table[:, 1])
            return own

        # Rows and values of the entries that may be clipped, by feature.
        self._large = [own for part in map_threads(tabulate, self._starts, n_jobs) for own in part]

    def of(self, flips: int, back: tuple[Floats, Floats], first: bool) -> tuple[Floats, Floats]:
        """What flips can take from the lower ends and add to the upper ends of all sums, of shape (classes, features).

        If there is a clip, ``back`` has the ends of the loss's gradients, of shape (samples, classes), and what the
        clip itself does to the sums is part of the result.
        """
        shape = self._table.shape[:3]
        flips = min(flips, self._n_movable)
        left = np.full(shape, flips)
        if self._clip is None:
            moved = self._look_up(self._table, left)
        elif first:
            if self._first is None:
                self._first = np.empty_like(self._table)
                self._clip_features(clipped_table, back, (), (self._table, self._first))
            moved = self._look_up(self._first, left)
        else:
            moved = np.empty(shape)
            self._clip_features(clipped_sums, back, (flips,), (moved, left))
            moved += self._look_up(self._table, left)
        return moved[:, 0].T, moved[:, 1].T

    def _clip_features(
        self,
        function: Callable[..., None],
        back: tuple[Floats, Floats],
        options: tuple[int, ...],
        tables: tuple[NDArray[Any], NDArray[Any]],
    ) -> None:
        """Call a compiled function on all features, with its part of the tables."""
        common = (*back, self._codes, self._movable, self._clip, self._factor, self._from, *options)

        def some(start: int) -> None:
            for j in range(start, min(start + _COLUMNS, len(self._large))):
                function(*self._large[j], *common, *(table[j] for table in tables))

        map_threads(some, self._starts, self._n_jobs)

    def _look_up(self, table: Floats, flips: NDArray[np.int64]) -> Floats:
        """Sums for numbers of flips; beyond the table, every further gain is at most its last one."""
        if self._most == 0:
            return table[..., 0]
        inside = np.minimum(flips, self._most)[..., None]
        sums: Floats = np.take_along_axis(table, inside, axis=-1)[..., 0]
        further = np.maximum(flips - self._most, 0)
        return sums + further * (table[..., -1] - table[..., -2])


def _columns(inputs: Floats, features: slice) -> Floats:
    """Some features of all samples, a row each, and ones for the biases after the last."""
    columns = inputs[:, features].T
    if features.stop > inputs.shape[1]:
        columns = np.concatenate([columns, np.ones((1, inputs.shape[0]))])
    return np.array(columns, order="C")

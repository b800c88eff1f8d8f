r"""Caps: how much one sample and class can contribute to the remainder at most, whatever r flips are made.

A contribution is :math:`p_{ik}\,\xi(w_{ik})` in docs/logistic.md. It is known as soon as it is known how far r flips
can move the centred score of that entry; and that is the theorem itself with this score in place of a gap. So caps
follow from caps: tables that the theorem maps below themselves hold (the attack, grown continuously, never gets past
them).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from flipcert.classifiers.logistic._jit.entries import remainders, strongest
from flipcert.classifiers.logistic.kernel_leverage import KernelLeverage, Pairs, blocks_of, levers_of
from flipcert.classifiers.logistic.leverage import Table, Terms
from flipcert.classifiers.logistic.rounding import UNIT, above
from flipcert.engine.blocks import map_threads

# Forms that are kept for each entry; the others are bounded by the largest of them.
_KEPT = 256
# Alphas that are tried, as shares of the way from the smallest to what the largest form needs.
_SHARES = np.array([0.0, 0.1, 0.3, 1.0])
# Steps until tables must have settled, and how much they are stretched in each.
_STEPS, _STRETCH = 10, 1.02
# Numbers of flips that have caps of their own; those between take the next.
_BUDGETS = (*range(1, 17), 18, 20, 22, 25, 28, 32, 36, 40, 45, 50, 57, 64)


@dataclass(frozen=True)
class Caps:
    """Tables of caps (classes, samples), by numbers of flips."""

    tables: dict[int, Table]

    def at(self, r: int) -> Table | None:
        """Caps that hold for r flips, if any are known."""
        known = [budget for budget in self.tables if budget >= r]
        return self.tables[min(known)] if known else None

    @classmethod
    def of(cls, pairs: Pairs, terms: Terms, leverages: list[KernelLeverage], n_jobs: int | None) -> Caps:
        """Go over all pairs once more, for first orders and for the strongest forms; then settle each budget."""
        limit = max((leverage.limit for leverage in leverages), default=0)
        if limit == 0:
            return cls({})
        labels, spectrum, norms = pairs.labels, pairs.spectrum, pairs.objective.norms
        matrix, off = pairs.matrix(1.0 / spectrum.values), pairs.error(1.0 / float(spectrum.values[0]))
        blocks = blocks_of(labels)
        found = map_threads(partial(_look_at, pairs, matrix, off, limit), blocks, n_jobs)
        first, forms = zip(*found, strict=True)
        pushes, pulls = (np.concatenate(part, axis=2) for part in zip(*first, strict=True))
        values, places, rest = (np.concatenate(part) for part in zip(*forms, strict=True))
        # Norms of centred classes are below 1.5; of their images under the inverse, that over the smallest eigenvalue.
        lengths = np.repeat(1.5 * norms / float(spectrum.values[0]), labels.n_classes)
        entries = _Entries(
            pairs.P.T,
            pairs.error_of_probabilities,
            above(pushes + terms.residual * lengths.reshape(-1, labels.n_classes).T, labels.n_labels),
            above(pulls + terms.residual * lengths.reshape(-1, labels.n_classes).T, labels.n_labels),
            (values, places, rest),
            above(2.0 * off * float(norms.max()) * np.repeat(norms, labels.n_classes)),
            above(terms.share * lengths**2 / (2.0 * terms.penalty)),
            labels.coded.movable,
        )
        budgets = [r for r in _BUDGETS if r < limit] + [limit]
        tables = map_threads(lambda r: entries.settle(r, [one for one in leverages if one.limit >= r]), budgets, n_jobs)
        return cls({r: table for r, table in zip(budgets, tables, strict=True) if table is not None})


@dataclass(frozen=True)
class _Entries:
    """What is known of each entry: first orders, (flips, classes, samples), and forms, (samples and classes, kept)."""

    P: Table
    error_of_probabilities: float
    pushes: Table
    pulls: Table
    forms: tuple[Table, NDArray[np.int32], Table]
    error: Table
    over: Table
    movable: NDArray[np.bool_]

    def settle(self, r: int, leverages: list[KernelLeverage]) -> Table | None:
        """Caps for r flips, or None if none were found that hold."""
        K, n = self.P.shape
        best = (np.inf, leverages[0].levers[r - 1], 0.0)
        for leverage in leverages:
            budget, lever = leverage.budget(r), leverage.levers[r - 1]
            gains = np.sort(budget.seconds[0].max(axis=0)[self.movable])[-r:]
            second = float(above(budget.weights[0] * gains.sum() + budget.constant, r + 16))
            best = min(best, (second / (1.0 - float(lever.max())), lever, second), key=lambda one: one[0])
        _, lever, second = best
        room = np.ascontiguousarray(1.0 - lever - 1e-15).ravel()
        if room.min() <= 0.0:
            return None
        push, pull = self.pushes[r - 1], self.pulls[r - 1]
        rise, fall = push, pull
        up, down = np.empty((2, n * K))
        for _ in range(_STEPS):
            rise, fall = rise * _STRETCH + 1e-100, fall * _STRETCH + 1e-100
            caps = self._caps(rise, fall)
            if not np.isfinite(caps).all():
                return None
            remainders(
                *self.forms, self.error, room, np.ascontiguousarray(caps).ravel(), second, self.over, _SHARES, up, down
            )
            # A remainder that is positive pulls, a negative one pushes.
            pulled = above(pull + above(up, _KEPT + 16).reshape(n, K).T)
            pushed = above(push + above(down, _KEPT + 16).reshape(n, K).T)
            if (pulled < fall).all() and (pushed < rise).all():
                return caps
            rise, fall = np.maximum(pushed, rise), np.maximum(pulled, fall)
        return None

    def _caps(self, rise: Table, fall: Table) -> Table:
        """Contributions of entries whose centred scores rise and fall by no more than so much."""
        off = 1.0 + 2.0 * self.error_of_probabilities
        K = self.P.shape[0]
        with np.errstate(over="ignore"):
            # The divergence of a sample is the logarithm of the mean of exponentials.
            spread = above(off * (self.P * np.exp(np.minimum(rise, 709.0))).sum(axis=0), K + 16)
            divergence = np.log(spread) + 16.0 * UNIT * (1.0 + np.abs(np.log(spread)))
            square = (self.P * np.square(np.maximum(rise, fall))).sum(axis=0)
            steep = _xi(rise.max(axis=0)) / np.square(rise.max(axis=0))
            divergence = np.minimum(divergence, above(off * steep * square, K + 16))
            # A probability that grows adds at most what it can grow to.
            grown = np.minimum(off * self.P * _xi(rise), 1.0)
            return np.asarray(above(np.maximum(grown, off * self.P * _xi(-(fall + divergence)))))


def _xi(w: Table) -> Table:
    """``exp(w) - 1 - w``, rounded up."""
    grown = np.expm1(w)
    return np.asarray(above(grown - w + 16.0 * UNIT * (np.abs(grown) + np.abs(w))))


def _look_at(
    pairs: Pairs, matrix: Table, off: float, most: int, rows: slice
) -> tuple[tuple[Table, Table], tuple[Table, NDArray[np.int32], Table]]:
    """Pushes and pulls of some samples, and their strongest forms: values, places and what no other exceeds."""
    K, P = pairs.objective.n_classes, np.ascontiguousarray(pairs.P.T)
    tables = pairs.tables(matrix, rows)
    values = np.empty((tables.shape[0], K, _KEPT))
    places = np.empty((tables.shape[0], K, _KEPT), np.int32)
    rest = np.empty((tables.shape[0], K))
    for place, (table, p) in enumerate(zip(tables, pairs.P[rows], strict=True)):
        strongest(table, p, P, values[place], places[place], rest[place])
    forms = values.reshape(-1, _KEPT), places.reshape(-1, _KEPT), rest.ravel()
    return levers_of(pairs, tables, off, most, rows), forms

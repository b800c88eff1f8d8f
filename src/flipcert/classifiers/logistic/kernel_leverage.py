"""Levers from all pairs of samples: tighter than norms, at the price of one pass over pairs for each mu."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from flipcert.classifiers.logistic._jit.gains import cross_sums, flip_sums
from flipcert.classifiers.logistic.leverage import APART, Budget, NormLeverage, Table
from flipcert.classifiers.logistic.objective import Objective
from flipcert.classifiers.logistic.rounding import UNIT, above, gamma
from flipcert.classifiers.logistic.spectrum import Spectrum
from flipcert.engine.blocks import map_threads, memory_budget
from flipcert.labels.labels import Labels

# Flips that tables go up to; beyond that, norms have to do.
_MOST = 64
# Samples whose forms with all others a thread holds at a time, at most, and the part of the memory budget for that.
_BLOCK, _PART = 16, 8


@dataclass(frozen=True)
class Pairs:
    """Forms between all pairs of samples and classes, some samples at a time."""

    objective: Objective
    labels: Labels
    P: Table
    error_of_probabilities: float
    spectrum: Spectrum

    def matrix(self, function: Table) -> Table:
        """A function of the matrix near the Hessian."""
        product: Table = (self.spectrum.vectors * function) @ self.spectrum.vectors.T
        return product

    def error(self, largest: float) -> float:
        """How far a form with such a matrix may be off, relative to norms; differences of classes included."""
        m, d, K = self.spectrum.values.size, self.objective.X.shape[1], self.objective.n_classes
        entry = 2.2 * self.spectrum.skew + 1.2 * gamma(m + 2) * m + 2.2 * gamma(d + 2) * np.sqrt(m) + 16.0 * UNIT
        off = 4.0 * entry + 8.0 * gamma(K + 8) + 4.0 * self.error_of_probabilities
        return float(above(largest * off))

    def tables(self, matrix: Table, rows: slice) -> Table:
        """Forms of some samples (first) and their classes with all classes and samples."""
        X, K = self.objective.X, self.objective.n_classes
        d = X.shape[1]
        image = (X[rows] @ matrix.reshape(K, d, K * d)).reshape(K, -1, K, d)
        table: Table = image.transpose(1, 0, 2, 3) @ X.T
        return table


class KernelLeverage:
    """Levers and second orders for each number of flips, in tables."""

    def __init__(self, norm: NormLeverage, levers: Table, seconds: Table, scales: list[float], constant: float) -> None:
        self.mu = norm.mu
        self.norm = norm
        self.levers, self.seconds, self.scales, self.constant = levers, seconds, scales, constant
        self.limit = levers.shape[0]

    @classmethod
    def of(cls, pairs: Pairs, norm: NormLeverage, n_jobs: int | None) -> KernelLeverage:
        """Go over all pairs twice: for levers, then for second orders of as many flips as levers allow."""
        labels, spectrum = pairs.labels, pairs.spectrum
        most = min(_MOST, labels.n_movable)
        shifted = spectrum.values + norm.mu
        matrix, off = pairs.matrix(1.0 / shifted), pairs.error(1.0 / float(shifted[0]))
        blocks = blocks_of(labels)

        def levers_in(rows: slice) -> tuple[Table, Table]:
            return levers_of(pairs, pairs.tables(matrix, rows), off, most, rows)

        found = map_threads(levers_in, blocks, n_jobs)
        rest = norm.reach * norm.terms.length_of_residual(norm.mu)
        levers = above(np.concatenate([pull for _, pull in found], axis=2) + rest, labels.n_labels)
        pushes = above(np.concatenate([push for push, _ in found], axis=2) + rest, labels.n_labels).max(axis=(1, 2))
        limit = int(np.count_nonzero(levers.max(axis=(1, 2)) < 1.0))
        if limit == 0:
            return cls(norm, levers[:0], levers[:0], [], 0.0)
        # One Q for all budgets; what another one needs of it more, or less, is a factor.
        coefficients = norm.terms.coefficients(norm.mu, float(pushes[(limit - 1) // 3]), norm.typical)
        scales = [norm.terms.scale(norm.mu, push, coefficients) for push in pushes[:limit].tolist()]
        function = (coefficients[0] * spectrum.values + coefficients[1]) / shifted**2
        matrix, off = pairs.matrix(function), pairs.error(float(function.max()))
        seconds = np.concatenate(map_threads(partial(_seconds, pairs, matrix, off, limit), blocks, n_jobs), axis=2)
        seconds = above(seconds * (1.0 + APART), labels.n_labels)
        return cls(norm, levers[:limit], seconds, scales, norm.terms.constant(norm.mu, coefficients))

    def budget(self, r: int) -> Budget:
        """What r flips can do."""
        seconds, scale = self.seconds[r - 1], self.scales[r - 1]
        return Budget(self.levers[r - 1], 1.0, (seconds, seconds), (scale, 0.0), float(above(scale * self.constant)))


def blocks_of(labels: Labels) -> list[slice]:
    """Samples whose forms with all others a thread holds at a time."""
    together = min(_BLOCK, max(1, memory_budget() // _PART // (8 * labels.n_classes**2 * labels.n_labels)))
    return [slice(start, start + together) for start in range(0, labels.n_labels, together)]


def levers_of(
    pairs: Pairs, tables: Table, off: float, most: int, rows: slice
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Pushes and pulls of up to so many flips on the centred scores of some samples: (flips, classes, samples).

    ``tables`` are the forms of these samples with all.
    """
    codes, movable, norms = pairs.labels.codes, pairs.labels.coded.movable, pairs.objective.norms
    K = pairs.objective.n_classes
    pushes, pulls = np.empty((2, tables.shape[0], most, K))
    for place, (table, p) in enumerate(zip(tables, pairs.P[rows], strict=True)):
        error = off * norms[rows][place]
        flip_sums(table, p, codes, movable, norms, error, pushes[place], pulls[place])
    return pushes.transpose(1, 2, 0), pulls.transpose(1, 2, 0)


def _seconds(pairs: Pairs, matrix: Table, off: float, most: int, rows: slice) -> NDArray[np.float64]:
    """Second orders of flips of some samples together with up to so many less one others."""
    codes, movable, norms = pairs.labels.codes, pairs.labels.coded.movable, pairs.objective.norms
    tables = pairs.tables(matrix, rows)
    sums = np.empty((tables.shape[0], most, pairs.objective.n_classes))
    for place, table in enumerate(tables):
        itself = rows.start + place
        cross_sums(table, codes[itself], itself, codes, movable, norms, off * norms[itself], sums[place])
    return np.maximum(sums, 0.0).transpose(1, 2, 0)

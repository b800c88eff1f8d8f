r"""The bound itself: how many flips provably leave a class behind the predicted one. docs/logistic.md has the theorem.

Its free parameters, :math:`\mu`, :math:`\nu` and :math:`\alpha`, may be anything: some are tried and the best proof counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from flipcert.classifiers.logistic._jit.gains import centre_pair, flip_pair, largest_gains, steepest
from flipcert.classifiers.logistic.kernel_leverage import KernelLeverage
from flipcert.classifiers.logistic.leverage import NormLeverage, Table
from flipcert.classifiers.logistic.preparation import Fit, Preparation
from flipcert.classifiers.logistic.rounding import UNIT, above, gamma, row_norms, size

# Multiples of the smallest alpha that are tried where a larger one may pay.
_ALPHAS = (1.0, 1.5, 2.5)


class _Pair(NamedTuple):
    """A test point, the predicted class and a rival, for one nu: what does not depend on the number of flips."""

    gap: float
    centred: Table
    first: Table
    # What is divided by alpha, and what is lost in any case.
    over_alpha: float
    lost: float
    alphas: tuple[float, ...]


@dataclass
class Bound:
    """Proofs about the predictions of a fit."""

    fit: Fit
    preparation: Preparation
    nus: tuple[float, ...]

    def __post_init__(self) -> None:
        objective, spectrum = self.fit.objective, self.preparation.spectrum
        d, K = objective.X.shape[1], objective.n_classes
        self.P = np.ascontiguousarray(self.fit.P.T)
        self.images = spectrum.error_of_images(d)
        self.relative = 6.0 * gamma(d + K + 8) + 4.2 * self.images + 2.1 * self.fit.error_of_probabilities

    def bytes_per_row(self) -> int:
        """Memory that a test point takes."""
        K, n = self.fit.objective.n_classes, self.fit.labels.n_labels
        return 8 * (2 * K * K * n + 4 * K * self.preparation.spectrum.values.size)

    def raise_floor(
        self, T: NDArray[np.float64], scores: Table, prediction: NDArray[np.int64], floor: NDArray[np.int64], least: bool
    ) -> None:
        """Raise ``floor[t, c]``, the flips that are proven not to lead to class c, from what is proven so far.

        If only the ``least`` of a row matters, no class is raised beyond what some other one has been found to need.
        """
        spectrum, objective = self.preparation.spectrum, self.fit.objective
        K, d, m = objective.n_classes, objective.X.shape[1], spectrum.values.size
        coordinates = np.ascontiguousarray((T @ spectrum.vectors.reshape(K, d, m)).transpose(1, 0, 2))
        lengths = row_norms(T)
        for nu in [ratio * objective.penalty for ratio in self.nus]:
            inverse = 1.0 / (spectrum.values + nu)
            reaches = self._on_samples(coordinates, inverse)
            for leverage in self.preparation.leverages:
                pull = inverse
                if nu > 0.0:
                    pull = inverse * (1.0 + self._cross(nu, leverage.mu) / (spectrum.values + leverage.mu))
                linear = self._on_samples(coordinates, pull) if nu > 0.0 else reaches
                for t in range(T.shape[0]):
                    a, most = int(prediction[t]), leverage.limit
                    for c in np.lexsort((-scores[t], floor[t])).tolist():
                        gap = self._gap(scores[t], a, c, lengths[t])
                        if c == a or gap <= 0.0:
                            continue
                        floor[t, c] = max(floor[t, c], 0)
                        if floor[t, c] < most:
                            pair = self._pair(
                                gap, coordinates[t, a] - coordinates[t, c], reaches[t], linear[t], a, c, nu, inverse,
                                pull, lengths[t],
                            )  # fmt: skip
                            floor[t, c] = self._search(leverage, pair, int(floor[t, c]), most)
                        if least:
                            most = min(most, int(floor[t, c]))

    def settle_nothing(
        self, T: NDArray[np.float64], scores: Table, prediction: NDArray[np.int64], floor: NDArray[np.int64]
    ) -> None:
        """Raise ``floor`` to zero where no flips at all leave a class behind for certain, however a fit is rounded."""
        for t, length in enumerate(row_norms(T)):
            for c in range(scores.shape[1]):
                if self._gap(scores[t], int(prediction[t]), c, length) > 0.0:
                    floor[t, c] = max(floor[t, c], 0)

    def _cross(self, nu: float, mu: float) -> float:
        return (1.0 + self.preparation.terms.tilt) * nu * mu / self.fit.objective.penalty

    def _on_samples(self, coordinates: Table, function: Table) -> Table:
        """Scores of all samples (last) under a function of the matrix applied to (point, class) pairs."""
        objective = self.fit.objective
        K, d = objective.n_classes, objective.X.shape[1]
        images = ((coordinates * function) @ self.preparation.spectrum.vectors.T).reshape(-1, d)
        table: Table = (images @ objective.X.T).reshape(coordinates.shape[0], K, K, -1)
        return table

    def _gap(self, scores: Table, a: int, c: int, length: float) -> float:
        """How far class a is ahead of c, less all that this and the scores of a refit may be off."""
        objective = self.fit.objective
        d = objective.X.shape[1]
        largest = objective.largest_weights + objective.solver_error() + size(self.fit.W)
        off = 1.5 * objective.solver_error() * length + 4.2 * gamma(d + 4) * largest * length
        return float(scores[a] - scores[c]) - float(above(off))

    def _pair(
        self, gap: float, difference: Table, reaches: Table, linear: Table, a: int, c: int, nu: float, inverse: Table,
        pull: Table, length: float,
    ) -> _Pair:  # fmt: skip
        objective, terms = self.fit.objective, self.preparation.terms
        steep, far = (float(above(function.max())) * length for function in (inverse, pull))
        centred, first = np.empty_like(self.P), np.empty_like(self.P)
        centre_pair(reaches[a], reaches[c], self.P, above(self.relative * steep * objective.norms), centred)
        slack = above(self.relative * far * objective.norms)
        flip_pair(linear[a], linear[c], self.fit.labels.codes, slack, first)
        long = size(difference * inverse) + 2.5 * steep * self.images
        over_alpha = ((1.0 + terms.tilt) * nu**2 + terms.share) * long**2 / (2.0 * objective.penalty)
        lost = 1.5 * terms.residual * far
        return _Pair(gap, centred, first, float(above(over_alpha)), float(above(lost)), _ALPHAS if nu > 0 else (1.0,))

    def _search(self, leverage: NormLeverage | KernelLeverage, pair: _Pair, proven: int, most: int) -> int:
        """The most flips that are proven not to close a gap: in growing steps, then halving what is left."""
        step, failed = 1, most + 1
        while proven + 1 < failed:
            r = min(proven + step, failed - 1)
            if self._fall(leverage, pair, r) < pair.gap:
                proven, step = r, 2 * step
            else:
                failed, step = r, max(1, (r - proven) // 2)
        return proven

    def _fall(self, leverage: NormLeverage | KernelLeverage, pair: _Pair, r: int) -> float:
        """No r flips make a difference of scores fall by more: the least that some alpha proves."""
        budget = leverage.budget(r)
        labels = self.fit.labels
        smallest = steepest(pair.centred, budget.lever, budget.scale) * (1.0 + 16.0 * UNIT) + 1e-200
        least = math.inf
        if smallest < math.inf:
            for alpha in [smallest * factor for factor in pair.alphas]:
                gains = largest_gains(
                    pair.first, alpha, budget.seconds[0], budget.weights[0], budget.seconds[1], budget.weights[1],
                    labels.codes, labels.coded.movable, r,
                )  # fmt: skip
                fall = above(gains, r + 16) + pair.over_alpha / alpha + alpha * budget.constant + pair.lost
                least = min(least, above(fall))
        return least

r"""The bound itself: how many flips provably leave a class behind the predicted one. docs/logistic.md has the theorem.

Its free parameters, :math:`\mu` and :math:`\alpha`, may be anything: some are tried, the best proof counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from flipcert.classifiers.logistic._jit.gains import centre, excess, flips, largest_gains, steepest
from flipcert.classifiers.logistic.kernel_leverage import KernelLeverage
from flipcert.classifiers.logistic.leverage import NormLeverage, Table
from flipcert.classifiers.logistic.preparation import Fit, Preparation
from flipcert.classifiers.logistic.rounding import UNIT, above, gamma, row_norms, size

# Alphas that are tried, as parts of the one that covers all entries.
_ALPHAS = (1.0, 0.8, 0.63, 0.5, 0.4, 0.3, 0.22, 0.15)


# What single precision may lose to underflow, for inputs of a size that it is used for.
_LOST = 1e-25


class _Points(NamedTuple):
    """Test points: predicted classes, norms, coordinates of (point, class) pairs, and gaps to all classes."""

    prediction: NDArray[np.int64]
    lengths: Table
    coordinates: Table
    gaps: Table


class _Pair(NamedTuple):
    """A test point, the predicted class and a rival: what does not depend on the number of flips."""

    gap: float
    centred: Table
    first: Table
    # What is divided by alpha, and what is lost in any case.
    over_alpha: float
    lost: float


@dataclass
class Bound:
    """Proofs about the predictions of a fit.

    Attributes
    ----------
    fit : Fit
    preparation : Preparation
    single : bool
        Whether scores of training samples are computed in single precision, twice as fast; errors count either way.
    """

    fit: Fit
    preparation: Preparation
    single: bool = False

    def __post_init__(self) -> None:
        objective, spectrum = self.fit.objective, self.preparation.spectrum
        d, K = objective.X.shape[1], objective.n_classes
        self.P = np.ascontiguousarray(self.fit.P.T)
        self.X: NDArray[Any] = objective.X.astype(np.float32) if self.single else objective.X
        self.lost = _LOST if self.single else 0.0
        self.images = spectrum.error_of_images(d)
        # Products are exact to the unit of their type; so are, in single precision, both factors.
        rounding = gamma(d + K + 8) * (2.0**29 if self.single else 1.0)
        self.relative = 6.0 * rounding + 4.2 * self.images + 2.1 * self.fit.error_of_probabilities

    @staticmethod
    def fits_single(fit: Fit) -> bool:
        """Whether inputs are of a size that single precision neither loses nor overflows on."""
        return 1e-8 < float(fit.objective.norms.max()) < 1e8 and 1e-8 < fit.objective.penalty < 1e8

    def bytes_per_row(self) -> int:
        """Memory that a test point takes."""
        K, n = self.fit.objective.n_classes, self.fit.labels.n_labels
        return 8 * (K * n + 6 * K * self.preparation.spectrum.values.size)

    def raise_floor(
        self,
        T: NDArray[np.float64],
        scores: Table,
        prediction: NDArray[np.int64],
        floor: NDArray[np.int64],
        least: bool,
    ) -> None:
        """Raise ``floor[t, c]``, the flips that are proven not to lead to class c, from what is proven so far.

        If only the ``least`` of a row matters, no class is raised beyond what some other one has been found to need.
        """
        points = self._points(T, scores, prediction)
        left = points.gaps > 0.0
        floor[left] = np.maximum(floor[left], 0)
        self._raise_by_norms(points, floor)
        most = np.full(T.shape[0], self.preparation.limit)
        rows = np.arange(T.shape[0])
        # A rival of each point at a time, the nearest first: others may not have to be looked at.
        while (left := left & (floor < most[:, None])).any():
            order = np.where(left, floor, np.iinfo(np.int64).max)
            nearest = np.where(order == order.min(axis=1, keepdims=True), points.gaps, np.inf)
            rivals = np.where(left, nearest, np.inf).argmin(axis=1)
            some = rows[left[rows, rivals]]
            self._raise_pairs(points, some, rivals[some], most, floor)
            left[some, rivals[some]] = False
            if least:
                most[some] = np.minimum(most[some], floor[some, rivals[some]])

    def _points(self, T: NDArray[np.float64], scores: Table, prediction: NDArray[np.int64]) -> _Points:
        spectrum = self.preparation.spectrum
        K, d, m = self.fit.objective.n_classes, T.shape[1], spectrum.values.size
        coordinates = np.ascontiguousarray((T @ spectrum.vectors.reshape(K, d, m)).transpose(1, 0, 2))
        return _Points(prediction, row_norms(T), coordinates, self._gaps(T, scores, prediction))

    def _raise_by_norms(self, points: _Points, floor: NDArray[np.int64]) -> None:
        """Prove what norms alone prove, without a look at any sample: enough for rivals that are far behind."""
        spectrum, terms = self.preparation.spectrum, self.preparation.terms
        values, rows = spectrum.values, np.arange(points.lengths.size)
        differences = points.coordinates[rows, points.prediction][:, None] - points.coordinates
        for norm in self.preparation.norms:
            function = np.sqrt(values + norm.mu) / values
            reach = above(np.sqrt(np.einsum("tcm,m->tc", np.square(differences), function**2)), values.size + 8)
            reach += above(2.5 * self.images * float(function.max()) * points.lengths)[:, None]
            # Some budgets do: a larger one that is proven is proof of all below it.
            for r in {min(2**power + half, norm.limit) for power in range(17) for half in (0, 2**power // 2)} - {0}:
                alpha, second = norm.steepness(r), norm.second(r)
                long = above(1.5 / float(values[0]) * points.lengths)[:, None]
                over = terms.share * long**2 / (2.0 * terms.penalty * np.maximum(alpha * reach, 1e-200))
                fall = reach * (norm.sums[r] + alpha * second) + over
                proven = above(fall) < points.gaps
                floor[proven] = np.maximum(floor[proven], r)

    def _raise_pairs(
        self,
        points: _Points,
        rows: NDArray[np.int64],
        rivals: NDArray[np.int64],
        most: NDArray[np.int64],
        floor: NDArray[np.int64],
    ) -> None:
        """Raise the floors of one rival for each of some points."""
        differences = points.coordinates[rows, points.prediction[rows]] - points.coordinates[rows, rivals]
        tables = self._on_samples(differences)
        for place, (t, c) in enumerate(zip(rows.tolist(), rivals.tolist(), strict=True)):
            pair = self._pair(points.gaps[t, c], differences[place], tables[place], points.lengths[t])
            capped = most[t] < self.preparation.limit
            for leverage in self.preparation.leverages:
                floor[t, c] = self._search(leverage, pair, int(floor[t, c]), int(most[t]), capped)

    def settle_nothing(
        self, T: NDArray[np.float64], scores: Table, prediction: NDArray[np.int64], floor: NDArray[np.int64]
    ) -> None:
        """Raise ``floor`` to zero where no flips at all leave a class behind for certain, however a fit is rounded."""
        ahead = self._gaps(T, scores, prediction) > 0.0
        floor[ahead] = np.maximum(floor[ahead], 0)

    def _on_samples(self, coordinates: Table) -> NDArray[Any]:
        """Scores of all samples (last) in each class under the inverse of the matrix."""
        objective, spectrum = self.fit.objective, self.preparation.spectrum
        K, d = objective.n_classes, objective.X.shape[1]
        images: NDArray[Any] = ((coordinates / spectrum.values) @ spectrum.vectors.T).reshape(-1, d)
        with np.errstate(over="ignore", invalid="ignore"):
            table: NDArray[Any] = images.astype(self.X.dtype, copy=False) @ self.X.T
        if self.single and not np.isfinite(table).all():
            table = images @ objective.X.T
        return table.reshape(coordinates.shape[0], K, -1)

    def _gaps(self, T: NDArray[np.float64], scores: Table, prediction: NDArray[np.int64]) -> Table:
        """How far the predicted class is ahead of all, less all that this and the scores of a refit may be off."""
        objective, rows = self.fit.objective, np.arange(prediction.size)
        largest = objective.largest_weights + objective.solver_error() + size(self.fit.W)
        off = (1.5 * objective.solver_error() + 4.2 * gamma(T.shape[1] + 4) * largest) * row_norms(T)
        gaps: Table = scores[rows, prediction][:, None] - scores - above(off)[:, None]
        gaps[rows, prediction] = 0.0
        return gaps

    def _pair(self, gap: float, difference: Table, scores: NDArray[Any], length: float) -> _Pair:
        """What does not depend on the number of flips, for a test point and two classes."""
        objective, terms, values = self.fit.objective, self.preparation.terms, self.preparation.spectrum.values
        steep = float(above(1.0 / float(values[0]))) * length
        slack = above(self.relative * steep * objective.norms) + self.lost
        centred, first = np.empty_like(self.P), np.empty_like(self.P)
        centre(scores, self.P, slack, centred)
        flips(scores, self.fit.labels.codes, slack, first)
        long = size(difference / values) + 2.5 * steep * self.images
        over_alpha = terms.share * long**2 / (2.0 * objective.penalty)
        return _Pair(gap, centred, first, float(above(over_alpha)), float(above(1.5 * terms.residual * steep)))

    def _search(
        self, leverage: NormLeverage | KernelLeverage, pair: _Pair, proven: int, most: int, capped: bool
    ) -> int:
        """The most flips that are proven not to close a gap: in growing steps, then halving what is left.

        Where ``most`` is what another class has been found to need, that is tried at first.
        """
        most = min(most, leverage.limit)
        if capped and most > proven and self._fall(leverage, pair, most) < pair.gap:
            return most
        step, failed = 1, most + (0 if capped else 1)
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
        caps = self.preparation.caps.at(r)
        # From here on, no entry is in excess of what alpha covers.
        enough = steepest(pair.centred, budget.lever, budget.scale) * (1.0 + 16.0 * UNIT) + 1e-200
        if enough == math.inf:
            return math.inf

        def fall(part: float) -> float:
            alpha, beyond = enough * part, 0.0
            if part < 1.0 and caps is not None:
                beyond = above(excess(pair.centred, budget.lever, budget.scale, caps, alpha), caps.size + 16)
            gains = largest_gains(
                pair.first, alpha, budget.seconds[0], budget.weights[0], budget.seconds[1], budget.weights[1],
                labels.coded.movable, r,
            )  # fmt: skip
            lost = pair.over_alpha / alpha + alpha * budget.constant + pair.lost
            return float(above(above(gains, r + 16) + beyond + lost))

        if caps is None:
            return fall(1.0)
        # It is convex in alpha: from the middle, go the way that is downhill until it is proven or there is none.
        middle = len(_ALPHAS) // 2
        least = fall(_ALPHAS[middle])
        for way in (_ALPHAS[middle + 1 :], _ALPHAS[middle - 1 :: -1]):
            downhill = False
            for part in way:
                if least < pair.gap:
                    return least
                following = fall(part)
                if following >= least:
                    break
                least, downhill = following, True
            if downhill:
                break
        return least

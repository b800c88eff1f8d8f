r"""The bound itself: how many flips provably leave a class behind the predicted one. docs/logistic.md has the theorem.

Its free parameters, :math:`\mu`, :math:`\nu` and :math:`\alpha`, may be anything: some are tried, the best proof
counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from flipcert.classifiers.logistic._jit.gains import centre_pair, excess, flip_pair, largest_gains, steepest
from flipcert.classifiers.logistic.kernel_leverage import KernelLeverage
from flipcert.classifiers.logistic.leverage import NormLeverage, Table
from flipcert.classifiers.logistic.preparation import Fit, Preparation
from flipcert.classifiers.logistic.rounding import UNIT, above, gamma, row_norms, size

# Alphas that are tried, as multiples of the one that covers all entries, and which of them that is.
_ALPHAS = (4.0, 2.5, 1.6, 1.0, 0.8, 0.63, 0.5, 0.4, 0.3, 0.22, 0.15)
_COVERED = 3


# What single precision may lose to underflow, for inputs of a size that it is used for.
_LOST = 1e-25


@dataclass
class _Image:
    """A function of the matrix near the Hessian, and scores of all samples under it for (point, class) pairs."""

    function: Table
    tables: NDArray[Any] = field(init=False)


class _Pair(NamedTuple):
    """A test point, the predicted class and a rival, for one nu: what does not depend on the number of flips."""

    gap: float
    centred: Table
    # First orders of flips for each mu; one, under 0, for all of them if nu is 0.
    firsts: dict[float, Table]
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
    nus : tuple of float
        Values of nu that are tried, in units of the penalty.
    single : bool
        Whether scores of training samples are computed in single precision, twice as fast; errors count either way.
    """

    fit: Fit
    preparation: Preparation
    nus: tuple[float, ...]
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
        tables = 1 + (len(self.preparation.leverages) if max(self.nus) > 0.0 else 0)
        return 8 * (tables * K * K * n + 4 * K * self.preparation.spectrum.values.size)

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
        spectrum, objective = self.preparation.spectrum, self.fit.objective
        K, d, m = objective.n_classes, objective.X.shape[1], spectrum.values.size
        coordinates = np.ascontiguousarray((T @ spectrum.vectors.reshape(K, d, m)).transpose(1, 0, 2))
        lengths = row_norms(T)
        for nu in [ratio * objective.penalty for ratio in self.nus]:
            direct = _Image(1.0 / (spectrum.values + nu))
            images = {0.0: direct} | {
                mu: _Image(direct.function * (1.0 + self._cross(nu, mu) / (spectrum.values + mu)))
                for mu in {leverage.mu for leverage in self.preparation.leverages if nu > 0.0}
            }
            for image in images.values():
                image.tables = self._on_samples(coordinates, image.function)
            for t in range(T.shape[0]):
                a, most = int(prediction[t]), self.preparation.limit
                for c in np.lexsort((-scores[t], floor[t])).tolist():
                    gap = self._gap(scores[t], a, c, lengths[t])
                    if c == a or gap <= 0.0:
                        continue
                    floor[t, c] = max(floor[t, c], 0)
                    if floor[t, c] < most:
                        pair = self._pair(gap, coordinates[t, a] - coordinates[t, c], t, a, c, nu, lengths[t], images)
                        for leverage in self.preparation.leverages:
                            capped = most < self.preparation.limit
                            floor[t, c] = self._search(leverage, pair, int(floor[t, c]), most, capped)
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

    def _on_samples(self, coordinates: Table, function: Table) -> NDArray[Any]:
        """Scores of all samples (last) under a function of the matrix applied to (point, class) pairs."""
        objective = self.fit.objective
        K, d = objective.n_classes, objective.X.shape[1]
        images: NDArray[Any] = ((coordinates * function) @ self.preparation.spectrum.vectors.T).reshape(-1, d)
        with np.errstate(over="ignore", invalid="ignore"):
            table: NDArray[Any] = images.astype(self.X.dtype, copy=False) @ self.X.T
        if self.single and not np.isfinite(table).all():
            table = images @ objective.X.T
        return table.reshape(coordinates.shape[0], K, K, -1)

    def _gap(self, scores: Table, a: int, c: int, length: float) -> float:
        """How far class a is ahead of c, less all that this and the scores of a refit may be off."""
        objective = self.fit.objective
        d = objective.X.shape[1]
        largest = objective.largest_weights + objective.solver_error() + size(self.fit.W)
        off = 1.5 * objective.solver_error() * length + 4.2 * gamma(d + 4) * largest * length
        return float(scores[a] - scores[c]) - float(above(off))

    def _pair(
        self,
        gap: float,
        difference: Table,
        t: int,
        a: int,
        c: int,
        nu: float,
        length: float,
        images: dict[float, _Image],
    ) -> _Pair:
        """What does not depend on the number of flips, for a test point and two classes."""
        objective, terms = self.fit.objective, self.preparation.terms
        direct = images[0.0]
        steep = float(above(direct.function.max())) * length
        centred = np.empty_like(self.P)
        slack = above(self.relative * steep * objective.norms) + self.lost
        centre_pair(direct.tables[t, a], direct.tables[t, c], self.P, slack, centred)
        firsts, lost = {}, 0.0
        for mu, image in images.items():
            if mu > 0.0 or nu == 0.0:
                far = float(above(image.function.max())) * length
                firsts[mu] = np.empty_like(self.P)
                slack = above(self.relative * far * objective.norms) + self.lost
                flip_pair(image.tables[t, a], image.tables[t, c], self.fit.labels.codes, slack, firsts[mu])
                lost = max(lost, 1.5 * terms.residual * far)
        long = size(difference * direct.function) + 2.5 * steep * self.images
        over_alpha = ((1.0 + terms.tilt) * nu**2 + terms.share) * long**2 / (2.0 * objective.penalty)
        return _Pair(gap, centred, firsts, float(above(over_alpha)), float(above(lost)))

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
        first = pair.firsts.get(leverage.mu, pair.firsts.get(0.0))
        caps = self.preparation.caps.at(r)
        # From here on, no entry is in excess of what alpha covers.
        enough = steepest(pair.centred, budget.lever, budget.scale) * (1.0 + 16.0 * UNIT) + 1e-200
        if enough == math.inf:
            return math.inf

        def fall(place: int) -> float:
            alpha = enough * _ALPHAS[place]
            beyond = 0.0
            if alpha < enough:
                if caps is None:
                    return math.inf
                beyond = above(excess(pair.centred, budget.lever, budget.scale, caps, alpha), caps.size + 16)
            gains = largest_gains(
                first, alpha, budget.seconds[0], budget.weights[0], budget.seconds[1], budget.weights[1],
                labels.coded.movable, r,
            )  # fmt: skip
            lost = pair.over_alpha / alpha + alpha * budget.constant + pair.lost
            return float(above(above(gains, r + 16) + beyond + lost))

        # It is convex in alpha: go downhill until it is proven or there is no way down.
        place = _COVERED if caps is None else _COVERED + 3
        least, step = fall(place), -1
        turned = False
        while least >= pair.gap:
            following = fall(place + step) if 0 <= place + step < len(_ALPHAS) else math.inf
            if following < least:
                place, least, turned = place + step, following, True
            elif turned:
                break
            else:
                step, turned = -step, True
        return least

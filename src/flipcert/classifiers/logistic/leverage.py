r"""How far r flips can move the scores of training samples, to first order, and what that costs to second order.

All in terms of :math:`M = (H_0 + \mu)^{-1}` and :math:`Q`, functions of a matrix near the Hessian (``spectrum.py``).
The names are those of docs/logistic.md: ``lever`` is b, the *pull* on centred scores, and ``most`` is B, the push.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flipcert.classifiers.logistic.rounding import UNIT, above

Table = NDArray[np.float64]

# The s of the proof: what cross terms with the rest of the gradient are charged to.
APART = 2.0**-20


@dataclass(frozen=True)
class Budget:
    """What enters the bound for one number of flips.

    ``scale * lever`` is b of each class and sample; the second order of a flip is
    ``weights[0] * seconds[0] + weights[1] * seconds[1]``, and that of what the fit left of the gradient ``constant``.
    """

    lever: Table
    scale: float
    seconds: tuple[Table, Table]
    weights: tuple[float, float]
    constant: float


@dataclass(frozen=True)
class Terms:
    """What the theorem takes besides mu: the penalty, the distance to the Hessian and what the fit left."""

    penalty: float
    distance: float
    residual: float
    smallest: float

    @property
    def tilt(self) -> float:
        """The tau of the proof: how squares are parted into what is known and what is off."""
        return max(self.distance / self.penalty, UNIT)

    @property
    def share(self) -> float:
        """The kappa of the proof: what the distance adds to squared lengths of V and v."""
        return float(above(2.0 * (1.0 + 1.0 / self.tilt) * self.distance**2))

    def coefficients(self, mu: float, push: float, typical: tuple[float, float]) -> tuple[float, float]:
        """Q as a combination of ``h / (h + mu)^2`` and ``1 / (h + mu)^2``, for the c that suits them best.

        ``typical`` are the forms of a flip with both, on average.
        """
        best = (math.inf, (math.inf, math.inf))
        for curved, flat in self._choices(mu, push):
            best = min(best, (curved * typical[0] + flat * typical[1], (curved, flat)))
        return best[1]

    def scale(self, mu: float, push: float, known: tuple[float, float]) -> float:
        """How many times a known Q is at least some Q of another push: both are combinations of the same two."""
        return float(above(min(max(curved / known[0], flat / known[1]) for curved, flat in self._choices(mu, push))))

    def _choices(self, mu: float, push: float) -> list[tuple[float, float]]:
        """Coefficients of Q for some values of c, rounded up."""
        square = ((1.0 + self.tilt) * mu**2 + self.share) / (2.0 * self.penalty)
        most = 1.0 + square / mu if mu > 0.0 else 1.0
        choices = []
        for c in np.linspace(0.0, most * (1.0 - 1e-12), 65).tolist():
            curve = c * c * theta(c * push)
            curved, flat = 1.0 - c + curve, (1.0 - c) * mu + square + curve * self.distance
            # The difference may be far smaller than what it is one of.
            flat += 8.0 * UNIT * ((1.0 + c) * mu + square)
            if flat >= 0.0:
                choices.append((float(above(curved)), float(above(flat))))
        return choices

    def length_of_residual(self, mu: float) -> float:
        """Norm of what the fit left of the gradient, in the norm of M."""
        return float(above(self.residual / math.sqrt(self.smallest + mu)))

    def constant(self, mu: float, coefficients: tuple[float, float]) -> float:
        """Second order of what the fit left of the gradient: its squared norm in Q, times 1 + 1 / s."""
        curved, flat = coefficients
        largest = curved / (self.smallest + mu) + flat / (self.smallest + mu) ** 2
        return float(above((1.0 + 1.0 / APART) * self.residual**2 * largest))


def theta(x: float) -> float:
    """``(exp(x) - 1 - x) / x^2`` for x >= 0, rounded up."""
    if x > 700.0:
        return math.inf
    if x < 0.5:
        term, total = 0.5, 0.5
        for k in range(3, 24):
            term *= x / k
            total += term
        return float(above(total, 64))
    return float(above((math.expm1(x) - x) / (x * x), 64))


class NormLeverage:
    """Levers by the Cauchy-Schwarz inequality: norms of what a flip changes and of what it reaches."""

    def __init__(self, mu: float, terms: Terms, reach: Table, curved: Table, flat: Table, longest: Table) -> None:
        self.mu = mu
        self.terms = terms
        self.reach = reach
        self.curved, self.flat = curved, flat
        # Norms of flips, running sums of the largest: entry r for r flips.
        self.sums = above(np.concatenate([[0.0], np.cumsum(np.sort(longest)[::-1])]), longest.size)
        self.sums = self.sums + terms.length_of_residual(mu)
        self.largest = float(curved.max(initial=0.0)), float(flat.max(initial=0.0))
        self.typical = float(curved.mean()), float(flat.mean())
        self.furthest = float(reach.max(initial=0.0))
        below = np.flatnonzero(above(self.sums * self.furthest) < 1.0)
        self.limit = int(below[-1]) if below.size else 0
        self._budgets: dict[int, Budget] = {}

    def budget(self, r: int) -> Budget:
        """What r flips can do."""
        if r not in self._budgets:
            self._budgets[r] = self._budget(r)
        return self._budgets[r]

    def steepness(self, r: int) -> float:
        """The alpha that r flips need for a direction of length one, in the norm that is dual to that of flips."""
        return float(above(self.furthest / (1.0 - float(above(self.sums[r] * self.furthest)))))

    def second(self, r: int) -> float:
        """What r flips, and what the fit left of the gradient, amount to in second order at most."""
        budget = self.budget(r)
        return float(above(r * self.largest[0] * budget.weights[0] + r * self.largest[1] * budget.weights[1])) + (
            budget.constant
        )

    def _budget(self, r: int) -> Budget:
        scale = float(above(self.sums[r]))
        coefficients = self.terms.coefficients(self.mu, float(above(scale * self.furthest)), self.typical)
        many = above(r * (1.0 + APART))
        return Budget(
            lever=self.reach,
            scale=scale,
            seconds=(self.curved, self.flat),
            weights=(many * coefficients[0], many * coefficients[1]),
            constant=self.terms.constant(self.mu, coefficients),
        )

"""One support vector machine without bias, solved as far as double precision goes, with a bound on what is left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.classifiers._svm_dual import descend

_SWEEPS, _ROUNDS = 200, 60
# Duality gap that counts as solved, for each point and unit of the objective.
_GAP = 1e-13


@dataclass
class Machine:
    """A binary machine in units of its kernel times C: duals lie between 0 and 1.

    Attributes
    ----------
    kernel : ndarray of shape (n, n)
        C times the kernel of the training points.
    signs : ndarray of shape (n,)
        Labels, -1 or 1.
    duals, scores : ndarray of shape (n,)
        Dual variables and decision values of the training points.
    gap : float
        Duality gap. The primal objective is strongly convex, so the decision value of a point with kernel k against
        itself errs by at most the root of ``2 gap k``.
    """

    kernel: NDArray[np.float64]
    signs: NDArray[np.float64]
    duals: NDArray[np.float64]
    scores: NDArray[np.float64]
    gap: float

    @classmethod
    def fit(cls, kernel: NDArray[np.float64], signs: NDArray[np.float64], start: Any = None) -> Machine:
        """Solve for the duals, beginning with those of another machine if given."""
        duals = np.full(signs.size, 0.5) if start is None else start.copy()
        best: Machine | None = None
        for _ in range(_ROUNDS):
            scores = kernel @ (duals * signs)
            descend(kernel, signs, duals, scores, _SWEEPS)
            for candidate in (duals, _polished(kernel, signs, duals, scores)):
                machine = cls._of(kernel, signs, candidate)
                if best is None or machine.gap < best.gap:
                    best = machine
            assert best is not None
            if best.gap <= solved_gap(signs.size):
                return best
        assert best is not None
        return best

    @classmethod
    def _of(cls, kernel: NDArray[np.float64], signs: NDArray[np.float64], duals: NDArray[np.float64]) -> Machine:
        coefficients = duals * signs
        scores = kernel @ coefficients
        hinge = np.maximum(1.0 - signs * scores, 0.0)
        gap = float(coefficients @ scores + hinge.sum() - duals.sum())
        return cls(kernel, signs, duals.copy(), scores, max(gap, 0.0))

    @property
    def active(self) -> NDArray[np.float64]:
        """Slope of the hinge of each point if its label were flipped."""
        # At the kink either slope is a subgradient; near it, the larger one is the safe choice.
        return (-self.signs * self.scores < 1.0 + 1e-6).astype(np.float64)

    def flipped(self, indices: NDArray[np.int64]) -> Machine:
        """The machine with some labels flipped."""
        signs, start = self.signs.copy(), self.duals.copy()
        signs[indices] *= -1.0
        start[indices] = 1.0
        return Machine.fit(self.kernel, signs, start)


def solved_gap(n: int) -> float:
    """Duality gap up to which a machine of n points counts as solved."""
    return _GAP * (1 + n)


def _polished(
    kernel: NDArray[np.float64],
    signs: NDArray[np.float64],
    duals: NDArray[np.float64],
    scores: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Put the points between the bounds right onto the margin: one linear system."""
    free = np.flatnonzero((duals > 1e-9) & (duals < 1.0 - 1e-9))
    if free.size == 0:
        return duals
    correction, *_ = np.linalg.lstsq(kernel[np.ix_(free, free)], signs[free] - scores[free], rcond=1e-14)
    polished = duals.copy()
    polished[free] = np.clip(duals[free] + signs[free] * correction, 0.0, 1.0)
    return polished

"""One support vector machine without bias, solved as far as double precision goes, with a bound on what is left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.classifiers.milp_svm._jit.dual import descend
from flipcert.classifiers.milp_svm.interior_point import central_path

_SWEEPS, _ROUNDS = 200, 5
# Duality gap for each point that counts as solved: this, or what rounding leaves if it is more, but not beyond all use.
_GAP, _LARGEST_GAP = 1e-13, 1e-6


@dataclass
class Machine:
    """A binary machine in units of its kernel times C: duals lie between 0 and 1.

    Attributes
    ----------
    kernel : ndarray of shape (n, n)
        C times the kernel of the training points, positive semi-definite.
    signs : ndarray of shape (n,)
        Labels, -1 or 1.
    duals, scores : ndarray of shape (n,)
        Dual variables and decision values of the training points.
    gap : float
        Duality gap at most, rounding included. The primal objective is strongly convex, so the decision value of a
        point with kernel k against itself errs by at most the root of ``gap k``.
    goal : float
        Gap up to which the machine counts as solved; the same for all labels.
    """

    kernel: NDArray[np.float64]
    signs: NDArray[np.float64]
    duals: NDArray[np.float64]
    scores: NDArray[np.float64]
    gap: float
    goal: float

    @classmethod
    def fit(cls, kernel: NDArray[np.float64], signs: NDArray[np.float64], start: Any = None) -> Machine:
        """Solve for the duals, beginning with those of another machine if given; ``is_solved`` tells the outcome."""
        n = signs.size
        rounding = rounding_of_sums(kernel)
        goal = (n + 1) * min(_GAP + 2.0 * rounding, _LARGEST_GAP)
        best: Machine | None = None
        # What overflows is not solved, and need not be told twice.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for duals in _attempts(kernel, signs, np.full(n, 0.5) if start is None else start.copy()):
                scores = kernel @ (duals * signs)
                hinge = 1.0 - signs * scores
                # Point by point, so that nothing large cancels.
                gap = np.where(hinge > 0.0, hinge * (1.0 - duals), -hinge * duals).sum() + rounding * duals.sum()
                if best is None or gap < best.gap:
                    best = cls(kernel, signs, duals.copy(), scores, float(gap), goal)
                if best.is_solved:
                    break
        assert best is not None
        return best

    @property
    def is_solved(self) -> bool:
        """Whether the gap is as small as it has to be; the duals of other machines prove nothing."""
        return self.gap <= self.goal

    @property
    def active(self) -> NDArray[np.float64]:
        """Slope of the hinge of each point if its label were flipped."""
        # At the kink either slope is a subgradient; near it, the larger one is the safe choice.
        return (-self.signs * self.scores < 1.0 + 1e-6 + self.gap).astype(np.float64)

    def flipped(self, indices: NDArray[np.int64]) -> Machine:
        """The machine with some labels flipped."""
        signs, start = self.signs.copy(), self.duals.copy()
        signs[indices] *= -1.0
        start[indices] = 1.0
        return Machine.fit(self.kernel, signs, start)


def rounding_of_sums(kernel: NDArray[np.float64]) -> float:
    """By how much combinations of rows of a kernel are off, summed up, for each unit of their coefficients.

    The sums are rounded, in whatever order, and so is the kernel: what it lacks to be positive semi-definite.
    """
    return 2.0 * (kernel.shape[0] + 2) * float(np.finfo(np.float64).eps * np.abs(kernel).sum(axis=1).max())


def _attempts(
    kernel: NDArray[np.float64], signs: NDArray[np.float64], duals: NDArray[np.float64]
) -> Iterator[NDArray[np.float64]]:
    """Duals to be judged: by coordinate descent, which is fast; where it stalls, by an interior-point method."""
    for _ in range(_ROUNDS):
        descend(kernel, signs, duals, kernel @ (duals * signs), _SWEEPS)
        yield _polished(kernel, signs, duals)
        yield duals
    for inner in central_path(kernel, signs):
        yield _polished(kernel, signs, inner)
        yield inner


def _polished(
    kernel: NDArray[np.float64], signs: NDArray[np.float64], duals: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Put the points near a bound onto it, and those between the bounds right onto the margin: one linear system."""
    polished = np.where(duals < 1e-9, 0.0, np.where(duals > 1.0 - 1e-9, 1.0, duals))
    free = np.flatnonzero((polished > 0.0) & (polished < 1.0))
    if free.size == 0:
        return polished
    missing = signs[free] - kernel[free] @ (polished * signs)
    correction, *_ = np.linalg.lstsq(kernel[np.ix_(free, free)], missing, rcond=1e-14)
    polished[free] = np.clip(polished[free] + signs[free] * correction, 0.0, 1.0)
    return polished

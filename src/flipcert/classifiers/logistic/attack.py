"""Attacks on a prediction: the flips of largest influence, refitted, with influences of both ends until few are left.

Influence proves nothing, and nothing here has to be proven but the last step: a refit was solved up to a residual, and
strong convexity says how far the minimiser may be from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from flipcert.classifiers.logistic.minimiser import State, descend
from flipcert.classifiers.logistic.preparation import Fit
from flipcert.classifiers.logistic.rounding import above, gamma, row_norms, size
from flipcert.classifiers.logistic.spectrum import Spectrum
from flipcert.results.witness import Witness

# Refits for one rival, steps of a conjugate gradient, and how far off scores of a refit may be, as a part of the gap.
_REFITS, _CONJUGATE, _CLOSE = 12, 12, 1e-3


@dataclass
class Attacker:
    """Looks for attacks on the predictions of a fit."""

    fit: Fit
    spectrum: Spectrum
    margin: float = field(init=False)

    def __post_init__(self) -> None:
        objective = self.fit.objective
        d = objective.X.shape[1]
        largest = objective.largest_weights + objective.solver_error()
        # What the scores of any accepted fit may be off, relative to the norm of the test point.
        self.margin = float(above(1.5 * objective.solver_error() + 4.2 * gamma(d + 4) * largest))

    def attack(self, t: NDArray[np.float64], prediction: int, rivals: int) -> dict[int, Witness]:
        """Attacks on one prediction, by the class that wins; for so many rivals, those first that seem nearest."""
        search = _Search(self, t, prediction)
        order = [c for c in np.argsort(search.estimates, kind="stable").tolist() if c != prediction]
        for c in order[:rivals]:
            search.go_for(c, cheapest=rivals < len(order))
        return {c: search.witness(c) for c in search.found}

    def solve(self, gradient: NDArray[np.float64]) -> NDArray[np.float64]:
        """The inverse of the Hessian of the fit, nearly."""
        vectors, values = self.spectrum.vectors, np.maximum(self.spectrum.values, self.fit.objective.penalty)
        step: NDArray[np.float64] = vectors @ ((vectors.T @ gradient) / values)
        return step

    def refit(self, codes: NDArray[np.int64], W: NDArray[np.float64], off: float) -> State:
        """Weights for other labels that are at most so far from the minimiser, or as near as doubles come."""
        objective = self.fit.objective
        goal = max(off * objective.penalty, objective.goal / 8.0)
        return descend(objective, codes, W, goal, lambda state: self.influence(state, state.gradient, 0.05))

    def influence(self, state: State, U: NDArray[np.float64], left_over: float) -> NDArray[np.float64]:
        """The inverse of the Hessian at a state, applied to U: conjugate gradients from what is known of the fit's."""
        objective = self.fit.objective
        X, P = objective.X, state.P

        def curved(V: NDArray[np.float64]) -> NDArray[np.float64]:
            Z = X @ V.T
            Z -= np.einsum("ij,ij->i", P, Z)[:, None]
            return (P * Z).T @ X + objective.penalty * V

        V = self.solve(U.ravel()).reshape(U.shape)
        left = U - curved(V)
        goal = left_over * np.linalg.norm(U)
        direction, old = np.zeros_like(U), 1.0
        for _ in range(_CONJUGATE):
            if np.linalg.norm(left) <= goal:
                break
            steep = self.solve(left.ravel()).reshape(U.shape)
            new = float(np.sum(left * steep))
            if not 0.0 < new < np.inf:
                break
            direction = steep + (new / old) * direction
            image = curved(direction)
            curvature = float(np.sum(direction * image))
            if not 0.0 < curvature < np.inf:
                break  # rounding has the upper hand
            step = new / curvature
            V, left, old = V + step * direction, left - step * image, new
        return V


class _Search:
    """Attacks on one test point."""

    def __init__(self, attacker: Attacker, t: NDArray[np.float64], prediction: int) -> None:
        self.attacker = attacker
        self.fit = fit = attacker.fit
        self.t, self.a = t, prediction
        self.length = float(row_norms(t[None])[0])
        self.scores = fit.W @ t
        self.found: dict[int, NDArray[np.int64]] = {}
        self.upper = np.full(fit.objective.n_classes, fit.labels.unreachable)
        self.gains0: dict[int, NDArray[np.float64]] = {}
        self.estimates = np.full(fit.objective.n_classes, np.inf)
        self.order = np.arange(fit.labels.n_labels)
        for c in range(fit.objective.n_classes):
            if c != prediction:
                self.gains0[c] = self._gains(attacker.solve(self._difference(c).ravel()))
                self.estimates[c] = self._needed(self.gains0[c], c)

    def _difference(self, c: int) -> NDArray[np.float64]:
        U = np.zeros_like(self.fit.W)
        U[self.a], U[c] = self.t, -self.t
        return U

    def _gains(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        """What flipping each sample (rows) to each class takes from a gap, by influence; -inf where it cannot be."""
        labels = self.fit.labels
        scores = self.fit.objective.X @ V.reshape(self.fit.W.shape).T
        gains = scores[np.arange(labels.n_labels), labels.codes][:, None] - scores
        gains[np.arange(labels.n_labels), labels.codes] = -np.inf
        gains[~labels.coded.movable] = -np.inf
        return gains

    def _needed(self, gains: NDArray[np.float64], c: int) -> int:
        """Flips that close the gap if influences add up."""
        best = np.sort(gains.max(axis=1))[::-1]
        closed = np.cumsum(np.maximum(best, 0.0)) > self.scores[self.a] - self.scores[c]
        return int(closed.argmax()) + 1 if closed.any() else self.fit.labels.unreachable

    def go_for(self, c: int, cheapest: bool) -> None:
        """Look for a small attack after which c is ahead; note whoever wins."""
        labels = self.fit.labels
        gains, W = self.gains0[c], self.fit.W
        too_few, most = 0, labels.n_movable
        r = int(self.estimates[c])
        close = _CLOSE * float(self.scores[self.a] - self.scores[c]) / max(self.length, 1e-100)
        for _ in range(_REFITS):
            known = int(self.upper.min() if cheapest else self.upper[c])
            r = min(max(r, too_few + 1), known - 1, most)
            if r <= too_few:
                return
            best = gains.max(axis=1)
            chosen = np.argsort(-best, kind="stable")[:r]
            chosen = chosen[best[chosen] > 0.0]
            codes = labels.codes.copy()
            codes[chosen] = gains[chosen].argmax(axis=1)
            state = self.attacker.refit(codes, W, close)
            scores = state.W @ self.t
            if not (scores[self.a] < scores[c] and self._note(state, codes, int(chosen.size))):
                if chosen.size < r:
                    return  # no flip is left that helps
                too_few = r
            W = state.W
            # A gap falls by the mean of the influences at both ends, to second order.
            end = self._gains(self.attacker.influence(state, self._difference(c), 0.01))
            gains = np.where(np.isfinite(end), 0.5 * (self.gains0[c] + end), -np.inf)
            r = self._needed(gains, c)
            if r <= too_few:
                # Influence promises too much here: halve what is left, or take larger steps until there is an attack.
                known = int(self.upper.min() if cheapest else self.upper[c])
                r = (too_few + known) // 2 if known <= most else too_few + 1 + too_few // 4

    def _note(self, state: State, codes: NDArray[np.int64], flips: int) -> bool:
        """Keep an attack if its winner is ahead by more than refits may be off."""
        scores = state.W @ self.t
        winner = int(scores.argmax())
        objective = self.fit.objective
        residual = objective.residual(state.W, state.P, codes) / objective.penalty
        off = self.length * (1.5 * residual + self.attacker.margin + 4.2 * gamma(self.t.size + 4) * size(state.W))
        if winner == self.a or scores[winner] - np.delete(scores, winner).max() <= above(off):
            return False
        if flips < self.upper[winner]:
            self.upper[winner] = flips
            self.found[winner] = codes
        return True

    def witness(self, c: int) -> Witness:
        """The flips of a noted attack, those of largest influence first."""
        codes, labels = self.found[c], self.fit.labels
        flipped = np.flatnonzero(codes != labels.codes)
        order = flipped[np.argsort(-self.gains0[c][flipped, codes[flipped]], kind="stable")]
        return Witness(order, codes[order])

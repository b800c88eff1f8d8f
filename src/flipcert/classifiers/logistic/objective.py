"""The objective of penalised softmax regression: its gradient and its Hessian, and how far doubles may be off."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from flipcert.classifiers.logistic.rounding import ROWS, UNDERFLOW, UNIT, above, gamma, row_norms, size

# Units in the last place that exp may be off; those of NumPy and of C libraries are off by one or two.
_EXP = 8


@dataclass
class Objective:
    """``sum_i logsumexp(W x_i) - (W x_i)[y_i] + penalty / 2 |W|^2`` over matrices W with a row for each class.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        Inputs, with a constant feature if there is an intercept.
    penalty : float
        One over C.
    n_classes : int
        Number of rows of W.
    norms : ndarray of shape (n,)
        Norms of the inputs, rounded up.
    """

    X: NDArray[np.float64]
    penalty: float
    n_classes: int
    norms: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        self.norms = row_norms(self.X)

    @property
    def n_parameters(self) -> int:
        """Entries of W."""
        return self.n_classes * self.X.shape[1]

    @property
    def total(self) -> float:
        """Sum of the norms of the inputs."""
        return float(above(self.norms.sum(), self.norms.size))

    @property
    def largest_weights(self) -> float:
        """No minimiser has a larger norm, whatever the labels: the objective is no larger there than at zero."""
        return float(above(math.sqrt(2.0 * self.norms.size * math.log(self.n_classes) / self.penalty)))

    @property
    def goal(self) -> float:
        """Norm of the gradient that a fit has to come down to; the same for all labels.

        A few times what rounding may add up to for the largest weights that there can be.
        """
        rounding = 4.0 * self.error_of_probabilities(self.largest_weights) + 2.0 * self._chain + 1e-12
        return float(above(self.total * rounding + 16.0 * UNIT * self.penalty * self.largest_weights))

    @property
    def _chain(self) -> float:
        """Relative error of a sum over all samples of products of three numbers, added up in pieces of ``ROWS``."""
        return gamma(min(ROWS, self.norms.size) + self.norms.size // ROWS + 8)

    def solver_error(self) -> float:
        """How far from the minimiser a fit may be that was accepted: by strong convexity."""
        return float(above(self.goal / self.penalty))

    def logits(self, W: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores of all samples."""
        return np.concatenate([self.X[rows] @ W.T for rows in self.pieces()])

    def pieces(self) -> list[slice]:
        """Rows that are added up together."""
        return [slice(start, start + ROWS) for start in range(0, self.X.shape[0], ROWS)]

    def probabilities(self, W: NDArray[np.float64]) -> NDArray[np.float64]:
        """Probabilities of all classes for each sample."""
        return softmax(self.logits(W))

    def error_of_probabilities(self, weights: float) -> float:
        """Largest relative error of probabilities at weights of this norm; so their errors add up to no more in a row.

        Scores are off by rounding, and twice that enters the exponent; 0.1 stands for "not known".
        """
        shift = (gamma(self.X.shape[1] + 2) + 3.0 * UNIT) * weights * float(self.norms.max())
        return 2.2 * shift + (self.n_classes + 2 * _EXP + 8) * UNIT + UNDERFLOW if shift < 0.01 else 0.1

    def value(self, W: NDArray[np.float64], codes: NDArray[np.int64]) -> float:
        """The objective itself."""
        logits = self.logits(W)
        loss = logsumexp(logits, axis=1) - logits[np.arange(codes.size), codes]
        return float(loss.sum() + 0.5 * self.penalty * np.sum(W * W))

    def gradient(self, W: NDArray[np.float64], P: NDArray[np.float64], codes: NDArray[np.int64]) -> NDArray[np.float64]:
        """The gradient at W, where probabilities are P."""
        total = self.penalty * W
        for rows in self.pieces():
            total += (P[rows] - (codes[rows, None] == np.arange(self.n_classes))).T @ self.X[rows]
        return total

    def residual(self, W: NDArray[np.float64], P: NDArray[np.float64], codes: NDArray[np.int64]) -> float:
        """Norm of the gradient at W, rounded up: zero at the minimiser."""
        left = np.sqrt(np.square(P - (codes[:, None] == np.arange(self.n_classes))).sum(axis=1))
        weights = size(W)
        rounding = (self.error_of_probabilities(weights) + 4.0 * UNIT) * self.total
        rounding += self._chain * above(float(left @ self.norms), self.norms.size + self.n_classes)
        rounding += 8.0 * UNIT * self.penalty * weights
        return float(above(size(self.gradient(W, P, codes)) + rounding))

    def hessian(self, P: NDArray[np.float64]) -> NDArray[np.float64]:
        """The Hessian where probabilities are P, classes before features; symmetric to the last bit."""
        K, d = self.n_classes, self.X.shape[1]
        blocks = np.zeros((K, d, K, d))
        for rows in self.pieces():
            X, p = self.X[rows], P[rows]
            for k in range(K):
                for other in range(k + 1):
                    curvature = p[:, k] * (float(k == other) - p[:, other])
                    blocks[k, :, other, :] += X.T @ (X * curvature[:, None])
        H = blocks.reshape(K * d, K * d)
        H[np.diag_indices_from(H)] += self.penalty
        lower = np.tril(H)
        return lower + np.tril(lower, -1).T

    def error_of_hessian(self, P: NDArray[np.float64], weights: float) -> float:
        """How far the Hessian may be off, in norm, at weights of a given norm: probabilities, products and sums."""
        squares = self.norms**2
        spread = np.maximum(1.0 - np.square(P).sum(axis=1), 0.0) + 4 * self.n_classes * UNIT
        off = (4.0 * self.error_of_probabilities(weights) + 8.0 * UNIT) * float(squares.sum())
        off += (self._chain + 8.0 * UNIT) * float(spread @ squares) + 4.0 * UNIT * self.penalty * self.n_parameters
        return float(above(off, self.norms.size))


def softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities of scores, row by row."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares: NDArray[np.float64] = powers / powers.sum(axis=1, keepdims=True)
    return shares

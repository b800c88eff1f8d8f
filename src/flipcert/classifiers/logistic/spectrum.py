r"""The Hessian at the fitted weights, as far as doubles know it: exact eigenpairs of a matrix that is near it.

The computed eigenvectors :math:`E` are near an exactly orthogonal matrix (the polar factor of :math:`E`), and this with
the computed eigenvalues :math:`h` makes an exactly known symmetric matrix :math:`H_0`. How far the Hessian is from
:math:`H_0` at most follows from residuals, after the fact; no eigensolver has to be trusted. Proofs use functions of
:math:`H_0`, and count the distance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flipcert.classifiers.logistic.rounding import UNIT, above, gamma, size

_COLUMNS = 512


@dataclass(frozen=True)
class Spectrum:
    """Eigenpairs of a matrix near the Hessian.

    Attributes
    ----------
    values : ndarray of shape (m,)
        Eigenvalues, from the smallest; exact by definition.
    vectors : ndarray of shape (m, m)
        Eigenvectors as columns, off by at most ``skew`` in norm from exactly orthogonal ones.
    distance : float
        From the Hessian to the matrix with these eigenpairs, at most, in norm.
    skew : float
    """

    values: NDArray[np.float64]
    vectors: NDArray[np.float64]
    distance: float
    skew: float

    @classmethod
    def of(cls, hessian: NDArray[np.float64], error: float) -> Spectrum:
        """Decompose a computed Hessian that may be off by so much in norm."""
        values, vectors = np.linalg.eigh(hessian)
        m, length = values.size, size(vectors)
        left, skew = 0.0, 0.0
        for start in range(0, m, _COLUMNS):
            columns = slice(start, start + _COLUMNS)
            some = vectors[:, columns]
            image = hessian @ some - some * values[columns]
            products = vectors.T @ some
            products[np.arange(start, min(start + _COLUMNS, m)), np.arange(some.shape[1])] -= 1.0
            left += size(image) ** 2
            skew += size(products) ** 2
        largest = float(np.abs(values).max())
        left = above(np.sqrt(left)) + gamma(m + 4) * (size(hessian) + largest) * length
        skew = float(above(np.sqrt(skew) + gamma(m + 4) * length**2))
        # The polar factor is Q = E S^-1, S^2 = E'E: |S - 1| <= skew, and Q'HQ - h = S^-1 (E'(HE - Eh)) S^-1 + ...
        distance = error + 1.2 * left + 2.5 * skew * largest
        return cls(values, vectors, float(above(distance)), skew if skew < 0.1 else np.inf)

    def error_of_coordinates(self, n_features: int) -> float:
        """Error of coordinates of a (class, input) pair in the basis of eigenvectors, relative to the input's norm."""
        return float(above(self.skew + gamma(n_features + 2) * size(self.vectors)))

    def error_of_images(self, n_features: int) -> float:
        """Error of a function of the matrix applied to such a pair, relative to its norm and the largest value."""
        there = self.error_of_coordinates(n_features)
        back = self.skew + gamma(self.values.size + 2) * size(self.vectors)
        return float(above(1.2 * (there + back + 64.0 * UNIT)))

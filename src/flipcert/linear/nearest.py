"""Weights of the nearest training inputs, found from the inputs alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.rounding import Factor, row_norms
from flipcert.kernels.base import Kernel
from flipcert.linear._jit.distances import nearest_rows, weigh_by_distance
from flipcert.linear.weights import Weights


class NearestWeights(Weights):
    """Weights of the nearest training inputs; points that tie for the last places share them equally.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Training inputs.
    count : int
        Number of neighbours.
    by : {"uniform", "distance"} or Kernel
        Equal weights, one over the distance, or a kernel.
    """

    def __init__(self, X: NDArray[Any], count: int, by: str | Kernel) -> None:
        self.n_samples, self.dtype = X.shape[0], X.dtype
        self._X = X
        self._count = count
        self._by = by
        self._train = Factor.of(X)
        # Distances in double precision, in a unit (a power of two, so that nothing rounds) in which squares neither
        # overflow nor vanish; the largest such unit that is a double will do for subnormal numbers.
        self._unit = np.ldexp(1.0, min(1023, -int(np.frexp(np.abs(X).max())[1])))
        self._scaled = X.astype(np.float64) * self._unit
        self._squares = row_norms(self._scaled) ** 2

    def form(self, X: NDArray[Any], out: NDArray[Any], left_out: NDArray[np.int64] | None = None) -> None:
        """Write the weights of all training samples for each row of X to ``out``.

        The sample that is ``left_out`` of a row, if any, is no neighbour of it; another one takes its place.
        """
        share, distance = self._neighbors(X, left_out)
        if isinstance(self._by, Kernel):
            self._by.write(X, self._X, out)
            out *= share
        elif self._by == "distance":
            weigh_by_distance(share, distance, out)
        else:
            out[:] = share

    def _neighbors(
        self, X: NDArray[Any], left_out: NDArray[np.int64] | None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Shares and distances of all training points for a block of rows."""
        points = X.astype(np.float64) * self._unit
        squares = row_norms(points) ** 2
        reach = (np.sqrt(squares) + np.sqrt(self._squares.max())) ** 2
        if not np.isfinite(reach).all():
            raise ValueError(
                "distances overflow: test points are too far from the training inputs; rescale the features."
            )
        rough = -2.0 * (points @ self._scaled.T)
        rough += squares[:, None]
        rough += self._squares
        # Rounding of the product and the sums, and what underflow may have taken.
        error = 4.0 * (X.shape[1] + 4) * (np.finfo(np.float64).eps * reach + np.finfo(np.float64).tiny)
        share = np.zeros(rough.shape, self.dtype)
        distance = np.empty(rough.shape)
        count = self._count
        if left_out is not None:
            rough[np.arange(left_out.size), left_out] = np.inf
            count = min(count, self.n_samples - 1)
        nearest_rows(points, self._scaled, rough, error, count, share, distance)
        return share, distance

    def rounding(self, X: NDArray[Any], formed: NDArray[Any] | None) -> NDArray[np.float64]:
        """Neighbours and distances are measured the same way in every block; only a kernel brings a product in."""
        return self._by.rounding(X, self._train) if isinstance(self._by, Kernel) else np.zeros(X.shape[0])

    def lost(self, X: NDArray[Any], sizes: Callable[[], NDArray[Any]]) -> NDArray[np.bool_]:
        """Rows whose weights underflowed; only those of a kernel can."""
        return self._by.lost(X, self._train, sizes()) if isinstance(self._by, Kernel) else super().lost(X, sizes)

    def why(self, X: NDArray[Any], small: bool) -> str:
        """The kernel, if there is one, or else the features."""
        return self._by.why(X, self._X, small) if isinstance(self._by, Kernel) else super().why(X, small)

    def in_unit_of_users(self, scores: NDArray[np.float64], formed: NDArray[Any] | None) -> NDArray[np.float64]:
        """Scores as shares of all the weight around a point."""
        assert formed is not None
        total = np.abs(formed).sum(axis=1, dtype=np.float64, keepdims=True)
        return scores / np.where(total > 0, total, 1.0)

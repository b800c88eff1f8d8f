"""Weights of the nearest training inputs, found from the inputs alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.rounding import Factor
from flipcert.engine.sparse import dense, training_rows
from flipcert.kernels.base import Kernel
from flipcert.linear._jit.distances import share_places, weigh_by_distance
from flipcert.linear.neighbor_search import NeighborSearch
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
        self._X = training_rows(X)
        self._count = count
        self._by = by
        self._train = by.factor(self._X) if isinstance(by, Kernel) else Factor.of(self._X)
        self._search = NeighborSearch(self._X)

    def form(self, X: NDArray[Any], out: NDArray[Any]) -> None:
        """Write the weights of all training samples for each row of X to ``out``."""
        self._weigh(X, *self._search.nearest(X, self._count), self._count, out)

    def form_without_own(self, rows: slice, out: NDArray[Any]) -> None:
        """Write the weights for some training rows, none of which is its own neighbour: another takes its place."""
        count = min(self._count, self.n_samples - 1)
        if count == 0:
            out[:] = 0.0
            return
        self._weigh(dense(self._X[rows]), *self._search.nearest_others(rows, count), count, out)

    def _weigh(
        self,
        X: NDArray[Any],
        distance: NDArray[np.float64],
        border: NDArray[np.float64],
        count: int,
        out: NDArray[Any],
    ) -> None:
        """Write the weights of neighbours at these distances."""
        share = np.empty(distance.shape, self.dtype)
        share_places(distance, border, count, share)
        if isinstance(self._by, Kernel):
            self._by.write(X, self._X, out)
            out *= share
        elif self._by == "distance":
            weigh_by_distance(share, np.sqrt(distance, out=distance), out)
        else:
            out[:] = share

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

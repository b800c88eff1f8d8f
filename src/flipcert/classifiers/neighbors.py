"""Weighted nearest neighbours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flipcert.classifiers._jit.distances import nearest_rows, weigh_by_distance
from flipcert.classifiers.label_linear import LabelLinearClassifier
from flipcert.engine.rounding import Factor, row_norms
from flipcert.kernels.base import Kernel, as_kernel


class WeightedNeighbors(LabelLinearClassifier):
    """Nearest neighbours in Euclidean distance, each with a weight; the class with the largest sum is the prediction.

    Neighbours are found from the inputs alone. Points that tie for the last places share them equally, so neither the
    labels nor the order of the training rows ever breaks a tie.

    Parameters
    ----------
    n_neighbors : int or None, default=5
        Number of neighbours; None takes all training points.
    weights : {"uniform", "distance"}, kernel object or callable, default="uniform"
        Equal weights, one over the distance (a neighbour at distance zero outweighs all others), or a kernel
        ``k(X, Z)``.
    classes : array-like, optional
        The whole label space, a set. Give it where you know it: read from ``y`` by default, it is in the hands of an
        attacker, who can remove a class by flipping all its labels, and no certificate goes beyond that.
    n_jobs : int, optional
        Threads; all cores by default.

    Attributes
    ----------
    classes_ : ndarray
        The label space, sorted; ties go to the class that comes first.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import flipcert
    >>> X, y = load_iris(return_X_y=True)
    >>> model = flipcert.WeightedNeighbors(n_neighbors=9).fit(X[::2], y[::2])
    >>> model.certify(X[1::2]).radius[:5]
    array([4, 4, 4, 4, 4])
    """

    def __init__(
        self,
        n_neighbors: int | None = 5,
        weights: Any = "uniform",
        classes: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.classes = classes
        self.n_jobs = n_jobs

    def _fit_inputs(self, X: NDArray[Any]) -> None:
        if isinstance(self.weights, str) and self.weights in ("uniform", "distance"):
            self._kernel: Kernel | None = None
        elif self.weights is None or isinstance(self.weights, str) or not callable(self.weights):
            raise ValueError(f'weights must be "uniform", "distance" or a kernel object; got {self.weights!r}.')
        else:
            self._kernel = as_kernel(self.weights)
        self._count = X.shape[0]
        if self.n_neighbors is not None:
            whole = isinstance(self.n_neighbors, (int, np.integer)) and not isinstance(self.n_neighbors, bool)
            if not whole or not self.n_neighbors >= 1:
                raise ValueError(f"n_neighbors must be a positive whole number or None; got {self.n_neighbors!r}.")
            if self.n_neighbors > X.shape[0]:
                raise ValueError(
                    f"n_neighbors={self.n_neighbors} is more than the {X.shape[0]} training samples; "
                    "use fewer, or None for all."
                )
            self._count = int(self.n_neighbors)
        self.X_fit_ = X
        self._train = Factor.of(X)
        # Distances in double precision, in a unit (a power of two, so that nothing rounds) in which squares neither
        # overflow nor vanish; the largest such unit that is a double will do for subnormal numbers.
        self._unit = np.ldexp(1.0, min(1023, -int(np.frexp(np.abs(X).max())[1])))
        self._scaled = X.astype(np.float64) * self._unit
        self._squares = row_norms(self._scaled) ** 2

    def _weights(self, X: NDArray[Any], out: NDArray[Any]) -> None:
        share, distance = self._neighbors(X)
        if self._kernel is not None:
            self._kernel.write(X, self.X_fit_, out)
            out *= share
        elif self.weights == "distance":
            weigh_by_distance(share, distance, out)
        else:
            out[:] = share

    def _neighbors(self, X: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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
        share = np.zeros(rough.shape, self._dtype)
        distance = np.empty(rough.shape)
        nearest_rows(points, self._scaled, rough, error, self._count, share, distance)
        return share, distance

    def _rounding(self, X: NDArray[Any], weights: NDArray[Any] | None) -> NDArray[np.float64]:
        # Neighbours and distances are measured the same way in every block; only a kernel brings a product in.
        return np.zeros(X.shape[0]) if self._kernel is None else self._kernel.rounding(X, self._train)

    def _lost(self, X: NDArray[Any], sizes: Callable[[], NDArray[Any]]) -> NDArray[np.bool_]:
        return super()._lost(X, sizes) if self._kernel is None else self._kernel.lost(X, self._train, sizes())

    def _why(self, X: NDArray[Any], small: bool) -> str:
        return super()._why(X, small) if self._kernel is None else self._kernel.why(X, self.X_fit_, small)

    def _shown_scores(self, scores: NDArray[np.float64], weights: NDArray[Any] | None) -> NDArray[np.float64]:
        """Scores as shares of all the weight around a point."""
        assert weights is not None
        total = np.abs(weights).sum(axis=1, dtype=np.float64, keepdims=True)
        return scores / np.where(total > 0, total, 1.0)

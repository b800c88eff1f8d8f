"""Who is near whom: exact neighbours, whatever block they are looked for in."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.rounding import row_norms
from flipcert.engine.sparse import SparseRows, dense, write_product
from flipcert.linear._jit.distances import measure_nearest

# Squares of smaller numbers lose digits.
_SMALLEST = 2.0**-485


class NeighborSearch:
    """Finds the nearest training inputs in Euclidean distance; all that tie for the last place.

    A product tells who is far away. Who is near is measured by differences, feature by feature, so that equal inputs
    have equal distances, and no bit depends on the block.

    Parameters
    ----------
    X : ndarray or SparseRows of shape (n_samples, n_features)
        Training inputs.
    """

    def __init__(self, X: Any) -> None:
        self.n_samples = X.shape[0]
        # Distances in double precision, in a unit (a power of two, so that nothing rounds) in which squares neither
        # overflow nor vanish; the largest such unit that is a double will do for subnormal numbers.
        numbers = X.csr.data if isinstance(X, SparseRows) else X
        self._unit = np.ldexp(1.0, min(1023, -int(np.frexp(np.abs(numbers).max(initial=0.0))[1])))
        self._scaled = X.scaled(self._unit) if isinstance(X, SparseRows) else X.astype(np.float64) * self._unit
        largest = self._largest_entries()
        lost = np.count_nonzero((largest > 0) & (largest < _SMALLEST))
        if lost:
            raise ValueError(
                f"distances underflow: {lost} of {X.shape[0]} inputs are so much smaller than the largest that their "
                "differences vanish beside it; rescale the features, or drop what is far from all others."
            )
        self._squares = row_norms(self._scaled) ** 2

    def _largest_entries(self) -> NDArray[np.float64]:
        """Largest magnitude in each training input."""
        if isinstance(self._scaled, SparseRows):
            return self._scaled.largest_entries
        return np.asarray(np.abs(self._scaled).max(axis=1))

    def nearest(self, X: NDArray[Any], count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Squared distances of all training inputs from each row of X, and of its ``count``-th nearest one.

        Distances beyond that, which are known not to matter, are infinite.
        """
        points = X.astype(np.float64) * self._unit
        rough, error = self._rough(points, row_norms(points) ** 2)
        return rough, self._measured(points, rough, error, count)

    def nearest_others(self, rows: slice, count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The same of some training inputs, none of which is its own neighbour; copies of it may be."""
        points = dense(self._scaled[rows])
        rough, error = self._rough(points, self._squares[rows])
        own = np.arange(points.shape[0])
        rough[own, own + rows.start] = np.inf
        return rough, self._measured(points, rough, error, count)

    def _rough(
        self, points: NDArray[np.float64], squares: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Squared distances by a product, less the square of each row, and bounds on the error of each row."""
        reach = (np.sqrt(squares) + np.sqrt(self._squares.max())) ** 2
        if not np.isfinite(reach).all():
            raise ValueError(
                "distances overflow: test points are too far from the training inputs; rescale the features."
            )
        write_product(-2.0 * points, self._scaled, rough := np.empty((points.shape[0], self.n_samples)))
        rough += self._squares
        # Rounding of the product and the sums, and what underflow may have taken.
        return rough, 4.0 * (points.shape[1] + 4) * (np.finfo(np.float64).eps * reach + np.finfo(np.float64).tiny)

    def _measured(
        self, points: NDArray[np.float64], rough: NDArray[np.float64], error: NDArray[np.float64], count: int
    ) -> NDArray[np.float64]:
        """Measure candidates in place; returns the distance of the last neighbour of each row."""
        border = np.empty(points.shape[0])
        others = self._scaled.arrays if isinstance(self._scaled, SparseRows) else self._scaled
        measure_nearest(points, others, rough, error, count, border)
        return border

"""Weights of label spreading: a point takes labels from its neighbours, these from theirs, and so on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.blocks import SMALLEST_BLOCK
from flipcert.linear._jit.spreading import WIDTH, spread
from flipcert.linear.neighbor_graph import neighbor_graph
from flipcert.linear.neighbor_search import NeighborSearch
from flipcert.linear.weights import Weights

# How far, as a share of its norm 1 / (1 - alpha), the polynomial may be from (I - alpha S)^-1.
ACCURACY = 1e-6
# Nobody waits for more.
_MOST_STEPS = 100_000


def chebyshev_coefficients(alpha: float) -> NDArray[np.float64]:
    r"""Those of :math:`1 / (1 - \alpha x)` on [-1, 1], as many as its accuracy takes.

    They are :math:`c_0 = 1/r` and :math:`c_j = 2 q^j / r` with :math:`r = \sqrt{1 - \alpha^2}` and
    :math:`q = \alpha / (1 + r)`, so the ones left out add up to :math:`2 q^{m+1} / (r (1 - q))`.
    """
    root = np.sqrt((1.0 - alpha) * (1.0 + alpha))
    ratio = max(alpha / (1.0 + root), float(np.finfo(np.float64).tiny))
    allowed = ACCURACY / (1.0 - alpha) * root * (1.0 - ratio) / 2.0
    n_steps = max(1, int(np.ceil(np.log(allowed) / np.log(ratio))) - 1)
    if n_steps > _MOST_STEPS:
        raise ValueError(
            f"alpha={alpha} is so close to 1 that labels would have to be spread {n_steps} steps; take a smaller alpha."
        )
    # By products, which are the same on every machine; powers need not be.
    coefficients = np.cumprod(np.append(2.0 / root, np.full(n_steps, ratio)))
    coefficients[0] /= 2.0
    return coefficients


class SpreadWeights(Weights):
    r"""Weights :math:`w(t) = s_t P(S)` of the labelled rows, on the symmetric graph of nearest neighbours.

    :math:`S = D^{-1/2} A D^{-1/2}` is the graph, :math:`s_t` is :math:`d_i^{-1/2}` for each neighbour i of the point,
    and P a polynomial, fixed beforehand, that is close to :math:`(1 - \alpha x)^{-1}`. The inverse has no negative
    entry, so an entry of the polynomial that is negative becomes zero, which brings it closer.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        Inputs, those of labelled rows first.
    n_labeled : int
        How many of them have labels.
    n_neighbors : int
        Neighbours of each row, and of a test point.
    alpha : float
        How much of its label a row takes from its neighbours, above 0 and below 1.
    n_jobs : int or None
        Threads that look for neighbours.
    """

    def __init__(self, X: NDArray[Any], n_labeled: int, n_neighbors: int, alpha: float, n_jobs: int | None) -> None:
        self.n_samples, self.dtype = n_labeled, X.dtype
        self.coefficients = chebyshev_coefficients(alpha)
        self._search = NeighborSearch(X)
        self._count = min(n_neighbors, X.shape[0])
        self._graph = neighbor_graph(self._search, n_neighbors, n_jobs)
        # What a neighbour adds to the square of s_t; nothing where no label could ever be reached through it.
        component = self._graph.components()
        self._squares = np.isin(component, component[:n_labeled]) / np.maximum(self._graph.degrees, 1)

    @property
    def n_steps(self) -> int:
        """Degree of the polynomial."""
        return self.coefficients.size - 1

    def features(self, X: NDArray[Any]) -> NDArray[np.bool_]:
        """Which rows of the graph are neighbours of each row of X."""
        distance, border = self._search.nearest(X, self._count)
        return np.asarray(distance <= border[:, None])

    def form(self, X: NDArray[Any], out: NDArray[Any]) -> None:
        """Write the weights of all labelled rows to ``out``, given the neighbours of each point."""
        # A block is filled up with copies of its first row: they are not worth a walk through the graph.
        copies = np.all(X[0] == X, axis=1)
        copies[0] = False
        if not copies.any():
            spread(*self._graph, self.coefficients, X, out)
            return
        own = np.flatnonzero(~copies)
        formed = np.empty((own.size, out.shape[1]), out.dtype)
        spread(*self._graph, self.coefficients, X[own], formed)
        out[own] = formed
        out[copies] = out[0]

    def rounding(self, X: NDArray[Any], formed: NDArray[Any] | None) -> NDArray[np.float64]:
        """Sums over neighbours are rounded in their order, which is that of the rows; later steps magnify that."""
        assert formed is not None
        start = np.sqrt([self._squares[near].sum() for near in X])
        steps = np.arange(1.0, self.coefficients.size + 1)
        growth = np.sqrt(max(self._graph.degrees.mean(), 1.0)) * np.sum(self.coefficients * steps**1.5)
        error = float(np.finfo(np.float64).eps) / 2 * growth * start
        if self.dtype == np.float64:
            return error
        sizes = np.sqrt(np.einsum("ij,ij->i", formed, formed, dtype=np.float64))
        return error + float(np.finfo(self.dtype).eps) / 2 * sizes

    def in_unit_of_users(self, scores: NDArray[np.float64], formed: NDArray[Any] | None) -> NDArray[np.float64]:
        """Scores as shares of all the weight that labels have at a point."""
        assert formed is not None
        total = formed.sum(axis=1, dtype=np.float64, keepdims=True)
        return scores / np.where(total > 0, total, 1.0)

    @property
    def bytes_per_row(self) -> int:
        """Beside the weights: distances, which rows are near (twice), and what goes through the graph."""
        in_graph = 3 * 8 * WIDTH // SMALLEST_BLOCK
        return super().bytes_per_row + self._search.n_samples * (8 + 2 + in_graph)

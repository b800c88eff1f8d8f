"""The symmetric graph of nearest neighbours, made from the inputs alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from flipcert.engine.blocks import map_rows
from flipcert.engine.memory import available_memory, gigabytes
from flipcert.linear.neighbor_search import NeighborSearch

# What an edge takes while the graph is made: found, turned round, and both of them joined.
_BYTES_PER_EDGE = 24


class NeighborGraph(NamedTuple):
    """Two rows are neighbours if one of them is among the nearest of the other.

    Attributes
    ----------
    begins : ndarray of int64 of shape (n_rows + 1,)
        Where the neighbours of each row begin in ``members``.
    members : ndarray of int32 of shape (n_edges,)
        Neighbours of all rows, each in ascending order; no row is its own.
    """

    begins: NDArray[np.int64]
    members: NDArray[np.int32]

    @property
    def degrees(self) -> NDArray[np.int64]:
        """Number of neighbours of each row."""
        return np.diff(self.begins)

    def components(self) -> NDArray[np.int32]:
        """A number for each row, the same for rows between which there is a way."""
        n_rows = self.begins.size - 1
        edges = csr_array((np.ones(self.members.size, np.int8), self.members, self.begins), shape=(n_rows, n_rows))
        return np.asarray(connected_components(edges, directed=False)[1])


def neighbor_graph(search: NeighborSearch, n_neighbors: int, n_jobs: int | None) -> NeighborGraph:
    """Join each row with its nearest ones, ties for the last place included; with all others, if there are no more."""
    n_rows = search.n_samples
    count = min(n_neighbors, n_rows - 1)
    if count == 0:
        return NeighborGraph(np.zeros(n_rows + 1, np.int64), np.zeros(0, np.int32))
    most = available_memory() / _BYTES_PER_EDGE
    found: list[int] = []

    def nearest(rows: slice) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        distance, border = search.nearest_others(rows, count)
        near = distance <= border[:, None]
        found.append(int(np.count_nonzero(near)))
        if sum(found) > most:
            raise ValueError(
                f"so many of the {n_rows} rows are equally far from each other that n_neighbors={n_neighbors}, with "
                f"all ties, makes a graph beyond the {gigabytes(most * _BYTES_PER_EDGE)} of memory that are available; "
                "use PartitionEnsemble, or fewer copies of rows."
            )
        members = np.nonzero(near)[1].astype(np.int32)
        return np.count_nonzero(near, axis=1), members

    # Distances, what is sorted of them, and what is near.
    parts = map_rows(nearest, n_rows, 3 * 8 * n_rows, n_jobs)
    begins = np.cumsum(np.concatenate([[0], *(sizes for sizes, _ in parts)]))
    members = np.concatenate([own for _, own in parts])
    directed = csr_array((np.ones(members.size, np.int8), members, begins), shape=(n_rows, n_rows))
    graph = directed + directed.T.tocsr()
    graph.sort_indices()
    return NeighborGraph(graph.indptr.astype(np.int64), graph.indices.astype(np.int32, copy=False))

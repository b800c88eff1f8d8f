"""Nearest neighbours of a block, decided by distances that do not depend on how the block was cut. Compiled."""

from __future__ import annotations

import numpy as np

from flipcert.engine._jit.sparse import places_of_entries, squared_apart
from flipcert.engine.jit import compiled


@compiled
def measure_nearest(X, Z, rough, error, n_neighbors, border):
    """Find the neighbours of every row of X among the rows of Z: those at most as far as ``border[t]``.

    Z is a matrix, or the three arrays of a sparse one.

    ``rough`` holds squared distances within ``error``, but for a term that all of a row have in common. Only candidates
    near the border are measured, directly; all others become infinite. ``border`` gets the squared distance of the last
    neighbour: whoever ties with it is one too.
    """
    n_train = rough.shape[1]
    measured = np.empty(n_train)
    for t in range(X.shape[0]):
        reach = np.partition(rough[t], n_neighbors - 1)[n_neighbors - 1] + 4.0 * error[t]
        count = 0
        filled = places_of_entries(X[t])
        for i in range(n_train):
            if rough[t, i] <= reach:
                rough[t, i] = squared_apart(X[t], filled, 1.0, Z, i, 1.0)
                measured[count] = rough[t, i]
                count += 1
            else:
                rough[t, i] = np.inf
        border[t] = np.partition(measured[:count], n_neighbors - 1)[n_neighbors - 1]


@compiled
def share_places(distance, border, n_neighbors, share):
    """How much of a full neighbour each sample is, in units that make all shares whole numbers.

    Points that tie for the last places divide them equally.
    """
    for t in range(distance.shape[0]):
        closer = 0
        tied = 0
        for i in range(distance.shape[1]):
            if distance[t, i] < border[t]:
                closer += 1
            elif distance[t, i] == border[t]:
                tied += 1
        places = n_neighbors - closer
        for i in range(distance.shape[1]):
            if distance[t, i] > border[t]:
                share[t, i] = 0
            elif tied == places:
                share[t, i] = 1
            else:
                share[t, i] = tied if distance[t, i] < border[t] else places


@compiled
def weigh_by_distance(share, distance, weights):
    """Weights proportional to one over the distance; where a neighbour is at distance zero, only such neighbours."""
    for t in range(share.shape[0]):
        nearest = np.inf
        for i in range(share.shape[1]):
            if share[t, i] > 0:
                nearest = min(nearest, distance[t, i])
        for i in range(share.shape[1]):
            if share[t, i] == 0:
                weights[t, i] = 0.0
            elif nearest == 0.0:
                weights[t, i] = share[t, i] if distance[t, i] == 0.0 else 0.0
            else:
                # Relative to the nearest one, so that tiny distances cannot overflow.
                weights[t, i] = share[t, i] * (nearest / distance[t, i])

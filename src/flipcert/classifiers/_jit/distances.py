"""Nearest neighbours of a block, decided by distances that do not depend on how the block was cut. Compiled."""

from __future__ import annotations

import numpy as np

from flipcert.engine.jit import compiled


@compiled
def squared_distance(x, z):
    """Sum of squared differences in double precision, in the order of the features."""
    total = 0.0
    for j in range(x.size):
        difference = np.float64(x[j]) - np.float64(z[j])
        total += difference * difference
    return total


@compiled
def nearest_rows(X, Z, rough, error, n_neighbors, share, distance):
    """Find the neighbours of every row of X among the rows of Z.

    ``rough`` holds squared distances within ``error``; only candidates near the border are measured again, directly.
    ``share[t, i]`` becomes how much of a full neighbour sample i is, in units that make all shares whole numbers:
    points that tie for the last places divide them equally. ``distance`` gets the distances of neighbours.
    """
    n_train = Z.shape[0]
    measured = np.empty(n_train)
    for t in range(X.shape[0]):
        border = np.partition(rough[t], n_neighbors - 1)[n_neighbors - 1] + 4.0 * error[t]
        count = 0
        for i in range(n_train):
            if rough[t, i] <= border:
                distance[t, i] = squared_distance(X[t], Z[i])
                measured[count] = distance[t, i]
                count += 1
            else:
                distance[t, i] = np.inf
        last = np.partition(measured[:count], n_neighbors - 1)[n_neighbors - 1]
        closer = 0
        tied = 0
        for i in range(n_train):
            if distance[t, i] < last:
                closer += 1
            elif distance[t, i] == last:
                tied += 1
        places = n_neighbors - closer
        for i in range(n_train):
            if distance[t, i] > last:
                share[t, i] = 0
            elif tied == places:
                share[t, i] = 1
            else:
                share[t, i] = tied if distance[t, i] < last else places
            distance[t, i] = np.sqrt(distance[t, i])


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

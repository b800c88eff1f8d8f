"""A polynomial of the neighbour graph, applied to many points at a time. Compiled.

Each column is added up in the order of the graph, whatever stands in the others: bits of a point do not depend on its
company.
"""

from __future__ import annotations

import numpy as np

from flipcert.engine.jit import compiled

# Points that go through the graph together: a cache line of each row of it.
WIDTH = 8


@compiled
def spread(begins, members, coefficients, near, weights):
    """Write the weights of the first rows of a graph for each test point: ``sum_j c_j s T_j(S)``, negative ones as 0.

    ``members[begins[i]:begins[i + 1]]`` are the neighbours of row i, and ``near[t, i]`` tells whether row i is one of
    point t. With D the degrees, ``S = D^-1/2 A D^-1/2`` and ``D^-1 A`` differ by a scale of the rows only, which is
    given back at the end: products of the latter are sums over neighbours.
    """
    n_rows = begins.size - 1
    degree = np.maximum(begins[1:] - begins[:-1], 1).astype(np.float64)
    before = np.empty((n_rows, WIDTH))
    now = np.empty((n_rows, WIDTH))
    total = np.empty((n_rows, WIDTH))
    for first in range(0, near.shape[0], WIDTH):
        width = min(WIDTH, near.shape[0] - first)
        for i in range(n_rows):
            for c in range(WIDTH):
                before[i, c] = 0.0
                now[i, c] = 1.0 / degree[i] if c < width and near[first + c, i] else 0.0
                total[i, c] = coefficients[0] * now[i, c]
        for j in range(1, coefficients.size):
            step(begins, members, (1.0 if j == 1 else 2.0) / degree, coefficients[j], now, before, total)
            before, now = now, before
        for c in range(width):
            for i in range(weights.shape[1]):
                weights[first + c, i] = max(np.sqrt(degree[i]) * total[i, c], 0.0)


@compiled
def step(begins, members, scale, coefficient, now, before, total):
    """Turn T_j-1 (``before``) into T_j+1 = 2 S T_j - T_j-1, T_j being ``now``, and add its share to the total."""
    for i in range(begins.size - 1):
        row = before[i]
        for c in range(WIDTH):
            row[c] = -row[c]
        for place in range(begins[i], begins[i + 1]):
            neighbor = now[members[place]]
            for c in range(WIDTH):
                row[c] += scale[i] * neighbor[c]
        for c in range(WIDTH):
            total[i, c] += coefficient * row[c]

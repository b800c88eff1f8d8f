"""Products and distances of inputs that are mostly zeros. Compiled.

Every sum runs over the features in their order, and zeros are left out of it, which changes no bit. So no result
depends on the block that a row is in, nor on who is the first factor.
"""

from __future__ import annotations

import numpy as np
from numba.core import types
from numba.extending import overload

from flipcert.engine.jit import compiled


@compiled
def multiply_columns(left, begins, rows, values, out):
    """Write ``left @ Z.T`` to ``out``; of Z, column j has ``values`` in ``rows``, from ``begins[j]`` on."""
    for t in range(left.shape[0]):
        own = out[t]
        own[:] = 0
        for j in range(left.shape[1]):
            x = left[t, j]
            if x != 0:
                for place in range(begins[j], begins[j + 1]):
                    own[rows[place]] += x * values[place]


@compiled
def squares_in_order(X):
    """Squared norm of each row in double precision: what the product of the row with itself comes to."""
    squares = np.zeros(X.shape[0])
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            squares[i] += np.float64(X[i, j]) * np.float64(X[i, j])
    return squares


@compiled
def squares_of_entries(begins, values):
    """The same of rows of which only what is not zero is there."""
    squares = np.zeros(begins.size - 1)
    for i in range(begins.size - 1):
        for place in range(begins[i], begins[i + 1]):
            squares[i] += np.float64(values[place]) * np.float64(values[place])
    return squares


@compiled
def places_of_entries(x):
    """Where x is not zero; what numba has for it takes longer to compile than all that it is for."""
    places = np.empty(x.size, np.int64)
    count = 0
    for k in range(x.size):
        if x[k] != 0:
            places[count] = k
            count += 1
    return places[:count]


@compiled
def _apart_from_dense(x, filled, to_x, Z, i, to_z):
    total = 0.0
    for k in range(x.size):
        apart = to_x * np.float64(x[k]) - to_z * np.float64(Z[i, k])
        total += apart * apart
    return total


@compiled
def _apart_from_sparse(x, filled, to_x, Z, i, to_z):
    begins, columns, values = Z
    total = 0.0
    place, stop, k = begins[i], begins[i + 1], 0
    while place < stop or k < filled.size:
        if place == stop or (k < filled.size and filled[k] < columns[place]):
            apart = to_x * np.float64(x[filled[k]])
            k += 1
        else:
            apart = -to_z * np.float64(values[place])
            if k < filled.size and filled[k] == columns[place]:
                apart += to_x * np.float64(x[filled[k]])
                k += 1
            place += 1
        total += apart * apart
    return total


def squared_apart(x, filled, to_x, Z, i, to_z):
    """Squared distance of ``to_x * x`` from ``to_z`` times row i of Z, in double precision, feature after feature.

    Z is a matrix, or the three arrays of a sparse one; ``filled`` tells where x is not zero.
    """
    measure = _apart_from_sparse if isinstance(Z, tuple) else _apart_from_dense
    return measure(x, filled, to_x, Z, i, to_z)


@overload(squared_apart)
def _squared_apart(x, filled, to_x, Z, i, to_z):
    measure = _apart_from_dense if isinstance(Z, types.Array) else _apart_from_sparse
    return lambda x, filled, to_x, Z, i, to_z: measure(x, filled, to_x, Z, i, to_z)

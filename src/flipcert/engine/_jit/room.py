"""Room to work in, and where the smallest number is. Compiled: numba's own would be, anew for each way to ask."""

from __future__ import annotations

import numpy as np

from flipcert.engine.jit import compiled


@compiled
def room_for_doubles(size):
    """Room for so many doubles."""
    return np.empty(size, np.float64)


@compiled
def room_for_integers(size):
    """Room for so many whole numbers."""
    return np.empty(size, np.int64)


@compiled
def zero_doubles(size):
    """So many zeros, as doubles."""
    zeros = np.empty(size, np.float64)
    for i in range(size):
        zeros[i] = 0.0
    return zeros


@compiled
def zero_integers(size):
    """So many zeros, as whole numbers."""
    zeros = np.empty(size, np.int64)
    for i in range(size):
        zeros[i] = 0
    return zeros


@compiled
def first_smallest(numbers):
    """Where the smallest number is, the first of several."""
    best = 0
    for i in range(1, numbers.size):
        if numbers[i] < numbers[best]:
            best = i
    return best

"""The reference of most rows: the one matrix product that forms all weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Weights of one block of rows; a block of the library is as large.
_BLOCK_BYTES = 2**28
_LARGEST_BLOCK = 256

DEFINITION = """\
*The product* is the one matrix product that forms all weights: `X_test @ X_train.T` in float32 by NumPy on all cores,
in blocks of at most 256 rows and 256 MiB, all into one buffer."""


def product(test: NDArray[Any], train: NDArray[Any]) -> Callable[[], None]:
    """A function that forms all weights, block by block, and keeps none."""
    rows = _LARGEST_BLOCK
    while rows > 1 and rows * train.shape[0] * train.itemsize > _BLOCK_BYTES:
        rows //= 2
    # One buffer for all blocks: fresh memory for each would make the reference slower than it has to be.
    buffer = np.empty((min(rows, test.shape[0]), train.shape[0]), train.dtype)

    def run() -> None:
        for start in range(0, test.shape[0], rows):
            block = test[start : start + rows]
            np.matmul(block, train.T, out=buffer[: block.shape[0]])

    return run

"""The grid of columns: weights of very many training samples are formed in tiles, on one grid for every job.

A matrix product may round differently in another shape. Weights that are held whole and weights that are streamed are
the same products, tile by tile, so they are the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

# Training samples of a tile. A product gets no faster with more, and most training sets are one tile.
COLUMNS = 2**16


def tiles(n_samples: int) -> list[slice]:
    """Ranges of training samples, in order.

    >>> [(tile.start, tile.stop) for tile in tiles(100_000)]
    [(0, 65536), (65536, 100000)]
    """
    return [slice(start, min(start + COLUMNS, n_samples)) for start in range(0, n_samples, COLUMNS)]


def write_tiles(write: Callable[[slice, NDArray[Any]], None], out: NDArray[Any]) -> None:
    """Fill an array of weights with ``write(samples, part)``, tile by tile."""
    for samples in tiles(out.shape[1]):
        write(samples, out[:, samples])

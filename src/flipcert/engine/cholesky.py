"""Cholesky factorisation in place, of a symmetric matrix that would not fit into memory twice.

Only the lower triangle is held, in rows of tiles that end at the diagonal: half a square. The grid of tiles depends on
the size of the matrix alone, and every tile is the result of one sequence of operations, so threads change nothing.

Products are left to numpy, which takes views as they are and lets other threads run meanwhile. The wrappers of LAPACK
in scipy copy what is not contiguous and hold the interpreter lock; they see tiles on the diagonal only, once. Small
blocks on the diagonal of the factor are replaced by their inverses, so that solving is nothing but products.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dpotrf, dtrtri, spotrf, strtri

from flipcert.engine.blocks import map_threads, one_blas_thread
from flipcert.engine.watch import counted

# Rows of the blocks on the diagonal that are inverted. Their condition is at most the root of that of the system, so
# that the rounding of their inverses stays below what is expected of solving it.
_LEAF = 64


class Cholesky:
    """A symmetric matrix, held as its lower triangle; once factorised in place, a solver of its systems.

    Parameters
    ----------
    size : int
        Number of rows and columns.
    dtype : float32 or float64
        Precision of the matrix and of all that is done with it.
    tile : int, optional
        Rows of a tile; fixed by the size of the matrix by default.
    """

    def __init__(self, size: int, dtype: DTypeLike, tile: int | None = None) -> None:
        tile = tile_size(size) if tile is None else tile
        self.size = size
        self._grid = [slice(start, min(start + tile, size)) for start in range(0, size, tile)]
        self._rows = [np.empty((place.stop - place.start, place.stop), dtype) for place in self._grid]

    def fill(self, values: Callable[[slice, slice], NDArray[Any]], n_jobs: int | None) -> NDArray[np.float64]:
        """Write the matrix and return the sum of magnitudes in each of its rows.

        ``values(rows, columns)`` is asked for the tiles on and below the diagonal; of a tile on the diagonal, where
        both slices are the same, only the lower triangle counts.
        """

        def write(corner: tuple[int, int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            i, j = corner
            tile = self._rows[i][:, self._grid[j]]
            block = values(self._grid[i], self._grid[j])
            # What does not fit the precision shows in the sums, and so does what they come to.
            with np.errstate(over="ignore", invalid="ignore"):
                tile[...] = block
                magnitudes = np.abs(tile if i > j else np.tril(tile))
                by_row = magnitudes.sum(axis=1, dtype=np.float64)
                if i == j:
                    np.fill_diagonal(magnitudes, 0)
                return by_row, magnitudes.sum(axis=0, dtype=np.float64)

        corners = [(i, j) for i in range(len(self._grid)) for j in range(i + 1)]
        written = counted(len(corners), "tiles of the kernel")
        sums = np.zeros(self.size)
        for (i, j), (by_row, by_column) in zip(corners, map_threads(write, corners, n_jobs, done=written), strict=True):
            with np.errstate(over="ignore", invalid="ignore"):
                sums[self._grid[i]] += by_row
                sums[self._grid[j]] += by_column
        return sums

    def factorise(self, shift: float, n_jobs: int | None) -> None:
        """Replace the matrix plus ``shift`` times the identity by its factor; LinAlgError if it is not definite."""
        for place, row in zip(self._grid, self._rows, strict=True):
            np.einsum("ii->i", row[:, place])[...] += shift
        with one_blas_thread:
            self._finish_row(0)
        n_rows = len(self._grid)
        factorised = counted(n_rows * (n_rows - 1) // 2, "tiles of its factor")
        for j in range(n_rows - 1):
            map_threads(partial(self._next_tile, j), range(j + 1, n_rows), n_jobs, done=factorised)

    def solve(self, rows: NDArray[Any]) -> None:
        """Replace each row by the solution for it as right-hand side, in place.

        On one thread: what runs in parallel are blocks of rows.
        """
        for place, row in zip(self._grid, self._rows, strict=True):
            rows[:, place] -= rows[:, : place.start] @ row[:, : place.start].T
            _solve_lower(rows[:, place], row[:, place])
        for j, place in reversed(list(enumerate(self._grid))):
            for i in range(j + 1, len(self._grid)):
                rows[:, place] -= rows[:, self._grid[i]] @ self._rows[i][:, place]
            _solve_upper(rows[:, place], self._rows[j][:, place])

    def _next_tile(self, j: int, i: int) -> None:
        """Column j of the factor in row i; all columns before it, and row j, are there."""
        start, tile = self._grid[j].start, self._rows[i][:, self._grid[j]]
        tile -= self._rows[i][:, :start] @ self._rows[j][:, :start].T
        _solve_lower(tile, self._rows[j][:, start:])
        if i == j + 1:
            # The next column waits for this tile on the diagonal, so it is not left to the end.
            self._finish_row(i)

    def _finish_row(self, i: int) -> None:
        start = self._grid[i].start
        before, tile = self._rows[i][:, :start], self._rows[i][:, start:]
        tile -= before @ before.T
        _factorise(tile)


def tile_size(size: int) -> int:
    """Rows of a tile: as many as pay, if that leaves enough tiles for all cores.

    >>> [tile_size(size) for size in (100, 1_000, 60_000)]
    [512, 512, 1024]
    """
    return 512 if size < 16_384 else 1024


def triangle_bytes(size: int, dtype: DTypeLike) -> int:
    """Memory that the matrix takes."""
    return size * (size + tile_size(size)) // 2 * np.dtype(dtype).itemsize


def _factorise(tile: NDArray[Any]) -> None:
    """Factor of a tile on the diagonal, from its lower triangle, with inverses on its own diagonal."""
    potrf, trtri = (spotrf, strtri) if tile.dtype == np.float32 else (dpotrf, dtrtri)
    # LAPACK reads by columns: it sees the upper triangle of the transpose.
    factor, failed = potrf(tile.T, lower=False, clean=False, overwrite_a=True)
    if failed:
        raise LinAlgError
    tile[...] = factor.T
    for here in _leaves(tile):
        tile[here, here] = np.tril(trtri(tile[here, here], lower=True)[0])


def _solve_lower(rows: NDArray[Any], factor: NDArray[Any]) -> None:
    """Solve ``factor @ x = row`` for each row, in place."""
    for here in _leaves(factor):
        rows[:, here] -= rows[:, : here.start] @ factor[here, : here.start].T
        rows[:, here] = rows[:, here] @ factor[here, here].T


def _solve_upper(rows: NDArray[Any], factor: NDArray[Any]) -> None:
    """Solve ``factor.T @ x = row`` for each row, in place."""
    for here in reversed(_leaves(factor)):
        rows[:, here] -= rows[:, here.stop :] @ factor[here.stop :, here]
        rows[:, here] = rows[:, here] @ factor[here, here]


def _leaves(tile: NDArray[Any]) -> list[slice]:
    """Blocks on the diagonal of a tile."""
    return [slice(start, min(start + _LEAF, len(tile))) for start in range(0, len(tile), _LEAF)]

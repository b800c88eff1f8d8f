"""Weights of annotations: each of the several labels of a row has a share of the weight of the row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.magnitude import smallest_whole
from flipcert.engine.tiles import tiles
from flipcert.linear.weights import Weights


class Shares:
    """What each annotation has of the weight of its row.

    Parameters
    ----------
    row : ndarray of int64 of shape (n_annotations,)
        The row of each annotation.
    share : ndarray of shape (n_annotations,)
        What it has of that, in the type of the weights.
    n_rows : int
        Number of rows.
    """

    def __init__(self, row: NDArray[np.int64], share: NDArray[Any], n_rows: int) -> None:
        self.row = row
        self.share = share
        self.n_rows = n_rows
        # Multiplying by a power of two rounds nothing.
        self.is_exact = bool(np.isin(np.frexp(share)[0], (0.0, 0.5)).all())

    @classmethod
    def of(cls, weights: Weights) -> Shares:
        """Those of a model; where rows have one label each, all of the row."""
        if isinstance(weights, SharedRows):
            return weights.shares
        return cls(np.arange(weights.n_samples), np.ones(weights.n_samples, weights.dtype), weights.n_samples)

    @classmethod
    def join(cls, parts: list[Shares]) -> Shares:
        """Those of several models, whose rows come one after the other."""
        begins = np.cumsum([0, *(part.n_rows for part in parts)])
        rows = [part.row + begin for part, begin in zip(parts, begins, strict=False)]
        return cls(np.concatenate(rows), np.concatenate([part.share for part in parts]), int(begins[-1]))

    def write(self, of_rows: NDArray[Any], out: NDArray[Any]) -> None:
        """Write the weights of all annotations, given those of the rows."""
        np.take(of_rows, self.row, axis=1, out=out, mode="clip")
        with np.errstate(invalid="ignore", under="ignore"):  # whoever uses the weights refuses what is out of range
            out *= self.share

    def rounding(self, of_rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """By how much rounding could move weights, given by how much it moves those of the rows.

        All annotations of a row move together, and by its weight at most. A weight that moves, moves by a bit or more,
        and rounding its product with a share moves that by no more than as much again.
        """
        return of_rows if self.is_exact else 2.0 * of_rows


class SharedRows(Weights):
    """Weights of rows, each shared by the annotations of the row.

    A share is rounded to the type of the weights, and so is its product with the weight of the row. Both are the same
    wherever they are computed: labels are certified for these very numbers.

    Parameters
    ----------
    of_rows : Weights
        The weights of the rows.
    row : ndarray of int64 of shape (n_annotations,)
        The row of each annotation; all rows have one.
    share : ndarray of float64 of shape (n_annotations,)
        What each has of its row, not negative.
    """

    def __init__(self, of_rows: Weights, row: NDArray[np.int64], share: NDArray[np.float64]) -> None:
        self.of_rows = of_rows
        self.shares = Shares(row, share.astype(of_rows.dtype), of_rows.n_samples)
        self.n_samples, self.dtype = row.size, of_rows.dtype
        self.has_offset = of_rows.has_offset
        # A tile of annotations needs the tiles of all rows that they are about.
        self.comes_in_tiles = of_rows.comes_in_tiles and bool(np.all(np.diff(row) >= 0))
        # The annotation with the largest share of each row tells best what the row had.
        order = np.lexsort((share, row))
        self._largest = order[np.append(np.diff(row[order]) > 0, True)]

    def features(self, X: NDArray[Any]) -> NDArray[Any]:
        """What the weights of the rows take."""
        return self.of_rows.features(X)

    def form(self, X: NDArray[Any], out: NDArray[Any]) -> None:
        """Write the weights of all annotations for each row of X to ``out``."""
        whole = np.empty((X.shape[0], self.of_rows.n_samples), self.dtype)
        self.of_rows.form(X, whole)
        self.shares.write(whole, out)

    def tile_writer(self, X: NDArray[Any]) -> Callable[[slice, NDArray[Any]], None]:
        """What writes the weights of a range of annotations for each row of X to an array."""
        write = self.of_rows.tile_writer(X)
        grid = tiles(self.of_rows.n_samples)
        width = grid[0].stop

        def write_annotations(samples: slice, out: NDArray[Any]) -> None:
            row, share = self.shares.row[samples], self.shares.share[samples]
            for rows in grid[row[0] // width : row[-1] // width + 1]:
                write(rows, tile := np.empty((X.shape[0], rows.stop - rows.start), self.dtype))
                own = slice(*np.searchsorted(row, (rows.start, rows.stop)).tolist())
                with np.errstate(invalid="ignore", under="ignore"):
                    np.multiply(tile[:, row[own] - rows.start], share[own], out=out[:, own])

        return write_annotations

    def rounding(self, X: NDArray[Any], formed: NDArray[Any] | None) -> NDArray[np.float64]:
        """By how much rounding could move each row of weights."""
        return self.shares.rounding(self.of_rows.rounding(X, self._seen_by_rows(formed)))

    def lost(self, X: NDArray[Any], sizes: Callable[[], NDArray[Any]]) -> NDArray[np.bool_]:
        """Rows whose weights underflowed, before they were shared or because of that."""
        lost = self.of_rows.lost(X, sizes)
        if self.shares.is_exact and self.shares.share[self._largest].min() == 1:
            return lost
        for t in np.flatnonzero(~lost & (sizes() < smallest_whole(self.dtype))):
            self.of_rows.form(X[t : t + 1], own := np.empty((1, self.of_rows.n_samples), self.dtype))
            lost[t] = own.any()
        return lost

    def why(self, X: NDArray[Any], small: bool) -> str:
        """What makes weights of the rows so small, or so large."""
        return self.of_rows.why(X, small)

    def offset(self, X: NDArray[Any], n_classes: int) -> NDArray[np.float64]:
        """Label-independent part of the scores; it has nothing to do with how labels share a row."""
        return self.of_rows.offset(X, n_classes)

    def in_unit_of_users(self, scores: NDArray[np.float64], formed: NDArray[Any] | None) -> NDArray[np.float64]:
        """Scores in the unit of those of the rows."""
        return self.of_rows.in_unit_of_users(scores, self._seen_by_rows(formed))

    @property
    def bytes_per_row(self) -> int:
        """Weights of the rows are there while they are shared."""
        return super().bytes_per_row + self.of_rows.bytes_per_row

    def _seen_by_rows(self, formed: NDArray[Any] | None) -> NDArray[Any] | None:
        """Weights of the rows again, to rounding."""
        return None if formed is None else formed[:, self._largest] / self.shares.share[self._largest]


def shared_weights(of_rows: Weights, row: NDArray[np.int64], share: NDArray[np.float64]) -> Weights:
    """Weights of annotations; those of the rows as they are, if each has one annotation and these are in order."""
    one_each = np.array_equal(row, np.arange(of_rows.n_samples)) and bool(np.all(share == 1))
    return of_rows if one_each else SharedRows(of_rows, row, share)

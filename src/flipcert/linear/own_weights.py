"""Weights that a user's own code makes from inputs: asked for block by block, and checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from flipcert.engine.magnitude import smallest_whole
from flipcert.engine.rounding import SAFETY, row_norms
from flipcert.engine.tiles import tiles, write_tiles
from flipcert.linear.weights import Weights

# Training rows that are weighed twice, and alone, before anything is built on the weights.
_FEW = 8


class Smoother(Protocol):
    """What a user writes; see ``flipcert.LabelLinearClassifier``. It was fitted to inputs, and holds no labels."""

    def weights(self, X: NDArray[Any]) -> Any:
        """Weights of all training rows for each row of X."""

    def weight_tile(self, X: NDArray[Any], start: int, stop: int) -> Any:
        """Those of some training rows, if they come in tiles."""

    def weight_rounding(self, X: NDArray[Any]) -> Any:
        """By how much rounding could move each row of weights, or None."""


class OwnWeights(Weights):
    """Weights of a user's smoother, in the precision of its training inputs.

    Parameters
    ----------
    smoother : Smoother
        Fitted to X.
    X : ndarray of shape (n_samples, n_features)
        Training inputs.
    comes_in_tiles : bool
        Whether it forms weights of some training rows alone.
    """

    def __init__(self, smoother: Smoother, X: NDArray[Any], comes_in_tiles: bool) -> None:
        self.n_samples, self.dtype = X.shape[0], X.dtype
        self.comes_in_tiles = comes_in_tiles
        self._smoother = smoother
        # Errors as of sums over the features; nobody knows better, unless more is seen or told.
        self._relative_error = float(np.finfo(X.dtype).eps) / 2 * float(np.sqrt(X.shape[0] * X.shape[1]))

    def form(self, X: NDArray[Any], out: NDArray[Any]) -> None:
        """Write the weights of all training samples for each row of X to ``out``."""
        if self.comes_in_tiles:
            write_tiles(self.tile_writer(X), out)
        else:
            out[:] = self._kept(self._numbers(X))

    def tile_writer(self, X: NDArray[Any]) -> Callable[[slice, NDArray[Any]], None]:
        """What writes the weights of a range of training samples for each row of X to an array."""

        def write(samples: slice, out: NDArray[Any]) -> None:
            out[:] = self._kept(self._numbers(X, samples))

        return write

    def rounding(self, X: NDArray[Any], formed: NDArray[Any] | None) -> NDArray[np.float64]:
        """What the smoother tells of its rounding, or an estimate by the size of its weights.

        Where all of them are next to zero, nobody knows whether they underflowed.
        """
        told = self._told_rounding(X)
        if told is not None:
            return told
        largest = self._largest(X) if formed is None else np.abs(formed).max(axis=1)
        return np.maximum(self._relative_error * largest.astype(np.float64), smallest_whole(self.dtype))

    def lost(self, X: NDArray[Any], sizes: Callable[[], NDArray[Any]]) -> NDArray[np.bool_]:
        """Rows whose weights are next to zero only because they are kept in single precision."""
        lost = np.zeros(X.shape[0], np.bool_)
        if self.dtype == np.float64:
            return lost
        small = np.flatnonzero(sizes() < smallest_whole(self.dtype))
        for samples in self._grid if small.size else ():
            numbers = self._numbers(X[small], samples)
            lost[small] |= (self._kept(numbers) != numbers).any(axis=1)
        return lost

    def why(self, X: NDArray[Any], small: bool) -> str:
        """What their type is, and how to have another."""
        name = self._name("weights")
        return f"{name} are kept in the precision of the inputs, {self.dtype}; rescale them{self._or_more_bits}"

    @property
    def bytes_per_row(self) -> int:
        """Weights as they come, which may be doubles, are there while they are copied."""
        return super().bytes_per_row + self.n_samples * 8

    def require_steady(self, X: NDArray[Any]) -> None:
        """Raise ValueError if weights of a few rows of X change from call to call, or with the rows beside them.

        It is no proof that others never do. Rounding is measured, where nobody tells how large it is.
        """
        few = X[np.linspace(0, X.shape[0] - 1, min(X.shape[0], _FEW)).astype(np.int64)]
        together = self.formed_rows(few)
        name, beyond_rounding = self._name("weights"), most_by_rounding(self.dtype)
        if not np.array_equal(together, self.formed_rows(few)):
            raise ValueError(
                f"{name} changed when the same rows were asked for again; a certificate needs the same numbers each "
                "time: draw none at random there, and keep nothing from call to call."
            )
        ends = [0, len(few) - 1]
        beside, alone = together[ends], np.concatenate([self.formed_rows(few[t : t + 1]) for t in ends])
        moved = relative_difference(alone, beside)
        told = self._told_rounding(few[ends])
        if told is None and moved > beyond_rounding:
            raise ValueError(
                f"{name} of a row moved by {moved:.2g} of the largest when the row was asked for without the others; "
                "they must depend on the training rows and that row alone. If this is rounding, tell how large it is "
                "by weight_rounding(X)."
            )
        if told is not None:
            with np.errstate(over="ignore"):
                distance = row_norms(alone - beside)
            for promised, seen in zip(told, distance, strict=True):
                if seen > SAFETY * promised:
                    raise ValueError(
                        f"{self._name('weight_rounding')} told {promised:.3g} for a row whose weights moved by "
                        f"{seen:.3g} when it was asked for without the others; tell more, or weigh each row by itself."
                    )
        if self.comes_in_tiles and relative_difference(self._kept(self._numbers(few)), together) > beyond_rounding:
            raise ValueError(f"{self._name('weight_tile')} gives other weights than its method weights.")
        self._relative_error = max(self._relative_error, moved)

    def formed_rows(self, X: NDArray[Any]) -> NDArray[Any]:
        """Weights of a few rows."""
        self.form(X, weights := np.empty((X.shape[0], self.n_samples), self.dtype))
        return weights

    def _told_rounding(self, X: NDArray[Any]) -> NDArray[np.float64] | None:
        """What the smoother tells of its rounding, one number a row."""
        told = self._smoother.weight_rounding(read_only(X))
        if told is None:
            return None
        numbers = np.asarray(told)
        name = self._name("weight_rounding")
        if numbers.dtype.kind not in "fiub" or numbers.shape != X.shape[:1]:
            raise ValueError(
                f"{name} must be one real number for each of {X.shape[0]} rows, or None; got an array of shape "
                f"{numbers.shape} and type {numbers.dtype}."
            )
        if not np.all(numbers >= 0):
            raise ValueError(f"{name} must not be negative; got {numbers[~(numbers >= 0)][0]}.")
        return numbers.astype(np.float64)

    def _largest(self, X: NDArray[Any]) -> NDArray[Any]:
        """Size of the largest weight of each row, where they are not held."""
        parts = (self._kept(self._numbers(X, samples)) for samples in self._grid)
        return np.max([np.abs(part).max(axis=1) for part in parts], axis=0)

    @property
    def _grid(self) -> list[slice] | list[None]:
        """What is asked for at a time: all training rows, or a tile of them."""
        return tiles(self.n_samples) if self.comes_in_tiles else [None]

    def _numbers(self, X: NDArray[Any], samples: slice | None = None) -> NDArray[Any]:
        """Weights of all training rows, or of a tile of them, as they come; ValueError for what are none."""
        inputs, own = read_only(X), self._smoother
        if samples is None:
            name, n_columns, values = self._name("weights"), self.n_samples, own.weights(inputs)
        else:
            name, n_columns = self._name("weight_tile"), samples.stop - samples.start
            values = own.weight_tile(inputs, samples.start, samples.stop)
        numbers = np.asarray(values.toarray() if issparse(values) else values)
        if numbers.dtype.kind not in "fiub":
            raise ValueError(f"{name} must be real numbers; got an array of type {numbers.dtype}.")
        if numbers.shape != (X.shape[0], n_columns):
            raise ValueError(
                f"{name} must have one row for each row of X and one column for each training row, shape "
                f"{(X.shape[0], n_columns)}; got shape {numbers.shape}."
            )
        if not np.all(np.isfinite(numbers)):
            raise ValueError(f"{name} must be finite; got {numbers[~np.isfinite(numbers)][0]}.")
        return numbers

    def _kept(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Weights in the precision of the inputs; ValueError for what is too large for that."""
        with np.errstate(over="ignore", under="ignore"):
            kept = numbers.astype(self.dtype, copy=False)
        if kept is not numbers and not np.all(np.isfinite(kept)):
            raise ValueError(
                f"{self._name('weights')} are kept in the precision of the inputs, and {np.abs(numbers).max():.3g} is "
                f"too large for {self.dtype}; rescale them{self._or_more_bits}."
            )
        return kept

    @property
    def _or_more_bits(self) -> str:
        return ", or pass inputs of type float64" if self.dtype != np.float64 else ""

    def _name(self, method: str) -> str:
        return f"{method} of {type(self._smoother).__name__}"


def read_only(X: NDArray[Any]) -> NDArray[Any]:
    """The same inputs, which nobody can write to: they may be the very array that a user passed."""
    view = X.view()
    view.flags.writeable = False
    return view


def relative_difference(one: NDArray[Any], other: NDArray[Any]) -> float:
    """Largest distance between rows of weights, as a part of the largest weight in the row.

    >>> relative_difference(np.array([[4.0, 2.0], [0.0, 0.0]]), np.array([[4.0, 3.0], [0.0, 0.0]]))
    0.25
    """
    largest = np.maximum(np.abs(one), np.abs(other)).max(axis=1, keepdims=True).astype(np.float64)
    unit = np.where(largest > 0, largest, 1.0)
    return float(row_norms(one / unit - other / unit).max())


def most_by_rounding(dtype: np.dtype[Any]) -> float:
    """Relative differences beyond half of all digits are not called rounding."""
    return float(np.sqrt(np.finfo(dtype).eps))

"""Features and labels of a training or a test set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Table:
    """One row a sample.

    Attributes
    ----------
    source : str
        What messages call it.
    X : ndarray of shape (n_samples, n_features)
        Features, or pixels.
    y : ndarray of shape (n_samples,)
        Labels.
    image_shape : tuple of int or None
        Shape of a row before it was flattened (channels, height, width), if it is known.
    """

    source: str
    X: NDArray[Any]
    y: NDArray[Any]
    image_shape: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.X.ndim != 2 or self.X.dtype.kind not in "fiu":
            raise ValueError(
                f"{self.source} has features of shape {self.X.shape} and type {self.X.dtype}; they must be a matrix of "
                "numbers, one row a sample."
            )
        if self.y.shape != self.X.shape[:1]:
            raise ValueError(f"{self.source} has {self.X.shape[0]} rows, but labels of shape {self.y.shape}.")
        if self.X.dtype.kind == "f" and not np.isfinite(self.X).all():
            row, column = np.argwhere(~np.isfinite(self.X))[0]
            raise ValueError(f"{self.source} has {self.X[row, column]} in row {row}; leave that row out.")


@dataclass(frozen=True, eq=False)
class Dataset:
    """A training set and a test set.

    Attributes
    ----------
    name : str
        What it was loaded by.
    train, test : Table
        Features ``X``, labels ``y``.
    """

    name: str
    train: Table
    test: Table

    def __post_init__(self) -> None:
        train, test = self.train, self.test
        if train.X.shape[1] != test.X.shape[1]:
            raise ValueError(
                f"{test.source} has {test.X.shape[1]} features, but {train.source} has {train.X.shape[1]}."
            )

    @property
    def image_shape(self) -> tuple[int, ...] | None:
        """Shape of a row before it was flattened (channels, height, width), if it is known."""
        return self.train.image_shape

"""Test points of a label-linear model that one attack is to change: their weights, scores and predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from flipcert.collective._jit.pairs import pair_costs
from flipcert.engine.blocks import map_threads, memory_budget
from flipcert.flips.costs import score_block
from flipcert.labels.labels import Labels
from flipcert.linear.model import LabelLinearModel

# Blocks whose results wait to be added up.
_TOGETHER = 8


class Block(NamedTuple):
    """Some points: weights of all training samples, and what no label has a part in."""

    weights: NDArray[Any]
    offset: NDArray[np.float64]


class LinearPoints:
    """Rows of inputs under a label-linear model, met in passes; weights are kept where there is room for them.

    They are the very weights that a job on all inputs uses, so that what is proven is about the same numbers.

    Parameters
    ----------
    model : LabelLinearModel
        The model.
    X : ndarray
        All inputs.
    rows : ndarray of int64
        The points: some of them, in ascending order.

    Attributes
    ----------
    labels : Labels
        Training labels.
    prediction : ndarray of int64 of shape (n_points,)
        Class of each point, exactly.
    scores : ndarray of float64 of shape (n_points, n_classes)
        Scores, rounded.
    gaps : ndarray of float64 of shape (n_points, n_classes)
        By how much the prediction leads each class, rounded down; 0 if that may be a tie.
    costs : ndarray of int64 of shape (n_points, n_classes)
        Flips that lift each class above the prediction, at least.
    """

    def __init__(self, model: LabelLinearModel, X: NDArray[Any], rows: NDArray[np.int64]) -> None:
        self._model, self._X, self._rows = model, X, rows
        self.labels: Labels = model.labels
        self._held: dict[int, Block] | None = None
        self._starts = model.block_starts(X, rows)
        if rows.size * model.labels.n_labels * np.dtype(model.weights.dtype).itemsize <= memory_budget():
            self._held = dict(zip(self._starts[:-1], self._each(lambda _, block: block), strict=True))
        parts = list(self._each(lambda _, block: _scored(block, self.labels)))
        self.scores, self.prediction, self.gaps, self.costs = (
            np.concatenate([part[k] for part in parts]) for k in range(4)
        )

    @property
    def n_points(self) -> int:
        """Number of points."""
        return self._rows.size

    def each(self, function: Callable[[slice, NDArray[Any]], Any]) -> Iterator[Any]:
        """Call ``function(points, weights)`` on every block of points, on threads; results come in order."""
        return self._each(lambda points, block: function(points, block.weights))

    def each_with_offset(self, function: Callable[[slice, NDArray[Any], NDArray[np.float64]], Any]) -> Iterator[Any]:
        """The same with what no label has a part in."""
        return self._each(lambda points, block: function(points, block.weights, block.offset))

    def columns(self, samples: NDArray[np.int64]) -> NDArray[np.float64]:
        """Weights of some training samples, of shape (n_points, n_samples)."""
        out = np.empty((self.n_points, samples.size))

        def copied(points: slice, weights: NDArray[Any]) -> None:
            out[points] = weights[:, samples]

        for _ in self.each(copied):
            pass
        return out

    def pull(self, slopes: NDArray[np.float64]) -> NDArray[np.float64]:
        """What each sample would add to a weighted sum of scores with each label: weights, transposed, times slopes.

        Slopes are of shape (n_points, n_classes), what comes back of shape (n_labels, n_classes).
        """
        total = np.zeros((self.labels.n_labels, self.labels.n_classes))
        for own in self.each(lambda points, weights: weights.T @ slopes[points].astype(weights.dtype)):
            total += own
        return total

    def _each(self, function: Callable[[slice, Block], Any]) -> Iterator[Any]:
        ranges = list(pairwise(self._starts))
        for place in range(0, len(ranges), _TOGETHER):
            yield from map_threads(
                lambda own: function(slice(*own), self._block(*own)),
                ranges[place : place + _TOGETHER],
                self._model.n_jobs,
            )

    def _block(self, start: int, stop: int) -> Block:
        if self._held is not None:
            return self._held[start]
        rows = self._rows[start:stop]
        return Block(self._model.formed(self._X, rows), self._model.formed_offset(self._X, rows))


def _scored(block: Block, labels: Labels) -> tuple[NDArray[Any], ...]:
    """Scores and predictions of a block, and gaps and costs of pairs of classes, at least."""
    scores, prediction = score_block(block.weights, labels, block.offset)
    gaps, costs = np.zeros(scores.shape), np.zeros(scores.shape, np.int64)
    pair_costs(
        block.weights, labels.coded, block.offset, scores, prediction, labels.unreachable, gaps, costs
    )  # fmt: skip
    return scores, prediction, gaps, costs

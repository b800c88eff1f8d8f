"""Weights of a block of rows that come tile by tile: on threads, or on the workers of a cluster.

What is collected of a tile is small, so tiles are tasks like any other: a training set larger than the memory of one
machine is met by all of them, and few test points keep all of them busy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.blocks import map_tasks, map_threads, memory_budget
from flipcert.engine.buffers import Buffers
from flipcert.engine.cluster.engines import SentOnce, cluster_cores
from flipcert.engine.tiles import tiles
from flipcert.labels.labels import Coded

Answer = TypeVar("Answer")
Writer = Callable[[slice, NDArray[Any]], None]

# Tiles whose results are held at the same time, to be put together in order: on this machine, and at most on a cluster.
_HELD, _HELD_OF_CLUSTER = 16, 64
# Tiles of a task that goes to a cluster, at most, and tasks for each of its cores: fewer are not worth the way.
_TOGETHER, _TURNS = 8, 2
# Rows of more bytes, such as those of a kernel matrix, are too large to go with every task.
_LARGEST_ROWS = 2**24


class Tile(NamedTuple):
    """Weights of some rows for a range of training samples, the labels of these, and the number of the first."""

    weights: NDArray[Any]
    labels: Coded
    start: int

    @property
    def stop(self) -> int:
        """The number after that of the last one."""
        return self.start + self.weights.shape[1]


class _Task(NamedTuple):
    """A function of tiles; the rows that are written and how many, the first ones, are meant; and which tiles.

    Where a number for each training sample comes along, the function is also given those of its tile.
    """

    function: Callable[..., Any]
    features: NDArray[Any]
    n_rows: int
    ranges: list[slice]
    along: list[NDArray[Any]] | None


class _OnTiles:
    """Writes tiles and calls functions on them; all that is large is here, and goes to workers once."""

    def __init__(self, tile_writer: Callable[[NDArray[Any]], Writer], labels: Coded, dtype: np.dtype[Any]) -> None:
        self._tile_writer = tile_writer
        self._labels = labels
        self._dtype = dtype
        self._buffers = Buffers()

    def __call__(self, task: _Task) -> list[Any]:
        write = self._tile_writer(task.features)
        codes, movable, any_fixed = self._labels
        results = []
        for number, samples in enumerate(task.ranges):
            with self._buffers.borrow((len(task.features), samples.stop - samples.start), self._dtype) as weights:
                write(samples, weights)
                labels = Coded(codes[samples], movable[samples], any_fixed)
                tile = Tile(weights[: task.n_rows], labels, samples.start)
                results.append(task.function(tile, *(() if task.along is None else (task.along[number],))))
        return results


class TileSource:
    """Where tiles of weights come from: the model of a job, for all of its blocks of rows.

    Parameters
    ----------
    tile_writer : callable
        ``tile_writer(features)(samples, out)`` writes the weights of a range of training samples for each row.
    labels : Coded
        Training labels.
    dtype : dtype
        Type of the weights.
    n_jobs : int or None
        Threads; 1 keeps tiles on this machine.
    """

    def __init__(
        self,
        tile_writer: Callable[[NDArray[Any]], Writer],
        labels: Coded,
        dtype: np.dtype[Any],
        n_jobs: int | None = None,
    ) -> None:
        self.n_samples, self.dtype, self.n_jobs = labels.codes.size, dtype, n_jobs
        self._arguments = tile_writer, labels, dtype

    @cached_property
    def on_tiles(self) -> SentOnce:
        """What tasks are given to."""
        return SentOnce(_OnTiles(*self._arguments))

    @property
    def cores(self) -> int:
        """Cores of a cluster that tiles go to; 0 if they stay here."""
        return 0 if self.n_jobs == 1 else cluster_cores()

    @property
    def held(self) -> int:
        """Tiles whose results are held at the same time."""
        return min(_HELD_OF_CLUSTER, _HELD * max(1, self.cores))


@dataclass(frozen=True)
class Tiles:
    """Weights of a block of rows, tile by tile.

    Attributes
    ----------
    source : TileSource
        Where they come from.
    features : ndarray of shape (height, ...)
        Rows that are written.
    n_rows : int
        How many of them, the first ones, are meant.
    """

    source: TileSource
    features: NDArray[Any]
    n_rows: int

    def map(self, function: Callable[..., Answer], along: NDArray[Any] | None = None) -> Iterator[Answer]:
        """Results of ``function(tile)`` for all tiles, in order, wherever they are computed.

        It is sent with every task, so what is as long as the training set comes ``along`` instead:
        ``function(tile, part)`` is given the part of its tile.
        """
        source, grid = self.source, tiles(self.source.n_samples)
        at_once = max(1, memory_budget() // (len(self.features) * grid[0].stop * source.dtype.itemsize))
        cores, held = source.cores if self.features.nbytes <= _LARGEST_ROWS else 0, source.held
        size = max(1, min(_TOGETHER, len(grid) // (_TURNS * cores), held // cores)) if cores else 1
        run = map_tasks if cores else map_threads
        tasks = [
            _Task(function, self.features, self.n_rows, own, None if along is None else [along[part] for part in own])
            for own in (grid[begin : begin + size] for begin in range(0, len(grid), size))
        ]
        for begin in range(0, len(tasks), held // size):
            for results in run(source.on_tiles, tasks[begin : begin + held // size], source.n_jobs, at_once):
                yield from results

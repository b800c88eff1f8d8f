"""Some test points of a label-linear model in pieces that fit into memory, with the very weights of a job on all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.blocks import map_threads, memory_budget
from flipcert.linear.model import LabelLinearModel

# Part of the memory budget that the weights of one piece may take, and pieces whose results wait for one another.
_PART, _TOGETHER = 4, 8


def each_piece(
    model: LabelLinearModel,
    X: NDArray[Any],
    rows: NDArray[np.int64],
    function: Callable[[NDArray[np.int64], NDArray[Any], NDArray[np.float64]], Any],
) -> Iterator[Any]:
    """Call ``function(rows, weights, offset)`` on pieces of some rows of X, in ascending order; results come in order.

    A product may round differently in another block, so pieces lie within blocks of the job, which are formed whole.
    """
    room = memory_budget() // _PART
    most = max(1, room // (model.labels.n_labels * np.dtype(model.weights.dtype).itemsize))
    bounds = [
        (begin, min(begin + most, end))
        for start, end in pairwise(model.block_starts(X, rows))
        for begin in range(start, end, most)
    ]

    def of_piece(own: tuple[int, int]) -> Any:
        asked = rows[slice(*own)]
        return function(asked, model.formed(X, asked), model.formed_offset(X, asked))

    for place in range(0, len(bounds), _TOGETHER):
        yield from map_threads(of_piece, bounds[place : place + _TOGETHER], model.n_jobs, at_once=_PART // 2)

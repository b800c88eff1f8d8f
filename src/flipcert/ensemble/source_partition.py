"""Partitions that keep all labels of a source together."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.labels.sources import Sources, check_sources


def partition_by_source(source: Any, n_rows: int, n_partitions: int) -> NDArray[np.int64]:
    """Partition of each row, the same for all rows of a source; sources are ids, or known ones.

    The largest source comes first, each goes to the partition with fewest labels so far; ties by the order of the ids,
    then to the smaller partition. How many labels a source gave matters, which ones does not.
    """
    sources = source if isinstance(source, Sources) else check_sources(source, n_rows)
    if sources is None:
        raise ValueError(
            'partition="source" needs to know who gave the labels; pass one id a label to fit(X, y, source=...), '
            "or to Annotations."
        )
    if n_partitions > len(sources):
        raise ValueError(
            f'n_partitions={n_partitions} is more than the {len(sources)} different sources, and partition="source" '
            "keeps all labels of a source together; use fewer partitions."
        )
    filled = [(0, number) for number in range(n_partitions)]
    numbers = np.empty(len(sources), np.int64)
    for place in np.lexsort((np.arange(len(sources)), -sources.sizes)).tolist():
        n_labels, number = filled[0]
        numbers[place] = number
        heapq.heapreplace(filled, (n_labels + int(sources.sizes[place]), number))
    return numbers[sources.codes]

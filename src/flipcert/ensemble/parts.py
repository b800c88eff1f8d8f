"""The one place that cuts a training set into what each base classifier is given."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.cluster.packing import SelectedRows
from flipcert.engine.mapped import is_large
from flipcert.ensemble.partition import RowsByPartition
from flipcert.labels.annotations import Annotations
from flipcert.labels.labels import Labels
from flipcert.labels.sources import Sources
from flipcert.labels.training_set import TrainingSet


@dataclass(frozen=True, eq=False)
class Part:
    """One partition, in the order of the training set; rows of memory-mapped arrays travel by their numbers.

    Attributes
    ----------
    number : int
        Of the partition.
    members : SelectedRows
        Its labels, as places in the whole training set.
    rows : SelectedRows
        The rows that they are about; the same places, unless rows have several labels.
    inputs, targets : SelectedRows
    trusted : SelectedRows or None
        Labels that an attacker cannot flip; None if nobody named any.
    sources : SelectedRows or None
        The source of each label, as its place among all sources; None if nobody said.
    annotations : Annotations or None
        The labels, where rows have several.
    """

    number: int
    members: SelectedRows
    rows: SelectedRows
    inputs: SelectedRows
    targets: SelectedRows
    trusted: SelectedRows | None
    sources: SelectedRows | None
    annotations: Annotations | None = None


def numbers_of_labels(training: TrainingSet, numbers: NDArray[np.int64], deals_labels: bool) -> NDArray[np.int64]:
    """Partition of each label, given that of each row, or of each label of a row."""
    annotations = training.annotations
    return numbers if annotations is None or deals_labels else numbers[annotations.row]


def cut(
    training: TrainingSet,
    numbers: NDArray[np.int64],
    users: NDArray[np.int64],
    pairwise: bool,
    deals_labels: bool = False,
    held: bool = False,
) -> Iterator[Part]:
    """All parts, given the bucket of each row, or of each label of a row; of a kernel matrix, columns are cut too.

    ``users`` are the parts that each bucket is in, one row a bucket: itself, unless parts share buckets. A row with
    labels in several partitions is in each of these. Inputs that are ``held`` by voters lie side by side, so
    that one product of all voters need not copy them.
    """
    inputs, sources, annotations = training.inputs, training.labels.sources, training.annotations
    n_partitions, apart = users.shape[0], users.shape[1] == 1
    by_row = not pairwise and apart and (annotations is None or not deals_labels)
    # Rows of a training set larger than memory are not gathered for each partition: they lie together in a file.
    together = RowsByPartition(inputs, numbers, n_partitions) if is_large(inputs) and by_row else None
    # Those that are held go to one array side by side, each to its place by whoever wants it first.
    in_memory = held and by_row and together is None and isinstance(inputs, np.ndarray)
    room = np.empty(inputs.shape, inputs.dtype) if in_memory else None
    begin = 0
    of_labels = numbers_of_labels(training, numbers, deals_labels)

    def selected(values: NDArray[Any] | None, members: NDArray[np.int64]) -> SelectedRows | None:
        return None if values is None else SelectedRows(values, members)

    order = np.argsort(of_labels, kind="stable")
    bounds = np.searchsorted(of_labels[order], np.arange(n_partitions + 1))
    buckets = _buckets_of_parts(users)
    for number in range(n_partitions):
        own_buckets = [order[bounds[bucket] : bounds[bucket + 1]] for bucket in buckets[number]]
        members = rows = own_buckets[0] if len(own_buckets) == 1 else np.sort(np.concatenate(own_buckets))
        labels = None
        if annotations is not None and members.size:
            labels, rows = annotations.some(members, number)
        if together is not None:
            own = together[number]
        elif room is not None:
            own = SelectedRows(inputs, rows, room[begin : begin + rows.size])
            begin += rows.size
        else:
            own = SelectedRows(inputs, np.ix_(rows, rows) if pairwise else rows)
        yield Part(
            number=number,
            members=SelectedRows(members, ...),
            rows=SelectedRows(rows, ...),
            inputs=own,
            targets=SelectedRows(training.targets, members),
            trusted=selected(training.trusted, members),
            sources=selected(None if sources is None else sources.codes, members),
            annotations=labels,
        )


def _buckets_of_parts(users: NDArray[np.int64]) -> list[list[int]]:
    """The buckets that are in each part."""
    buckets: list[list[int]] = [[] for _ in range(users.shape[0])]
    for bucket, parts in enumerate(users.tolist()):
        for part in set(parts):
            buckets[part].append(bucket)
    return buckets


def labels_of_part(labels: Labels, members: NDArray[np.int64]) -> Labels:
    """Labels of some samples, in the label space of all; the ids of their sources are places among all sources."""
    sources = None
    if labels.sources is not None:
        ids, codes = np.unique(labels.sources.codes[members], return_inverse=True)
        sources = Sources(ids, codes.astype(np.int64))
    return Labels.of(labels.codes[members], labels.n_classes, ~labels.coded.movable[members], sources=sources)

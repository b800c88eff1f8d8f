"""Costs of all classes in sources: bounds, and exact ones on demand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.blocks import memory_budget
from flipcert.exceptions import CertificateError
from flipcert.flips._jit.ladder import sums_are_exact
from flipcert.flips._jit.source_costs import source_cost_rows, source_costs
from flipcert.flips._jit.source_search import (
    N_RECORDS,
    N_TABLES,
    N_VECTORS,
    RIVAL,
    TAKEN,
)
from flipcert.flips._jit.sources import add_cells
from flipcert.flips.rows import IntegerRow, interpreted
from flipcert.flips.source_search import moves_of_source
from flipcert.flips.source_solver import cheapest_source_attack
from flipcert.labels.labels import Cells, Labels
from flipcert.labels.threats import SOURCES
from flipcert.results.flip_costs import FlipCosts
from flipcert.results.witness import Witness

# Part of the memory budget for sums of cells.
_PART = 16


def costs_in_sources(costs: FlipCosts, labels: Labels) -> FlipCosts:
    """Costs in sources of a model that tells costs in flips only.

    As many flips take at least the fewest sources that hold so many labels together; and an attack that is known takes
    the sources of the labels that it changes.
    """
    assert labels.sources is not None, "checked before"
    own = np.bincount(labels.sources.codes[labels.coded.movable], minlength=len(labels.sources))
    held = np.cumsum(np.sort(own[own > 0])[::-1])
    fewest = np.searchsorted(held, costs.lower) + 1
    most = SOURCES.unreachable(labels)
    lower = np.where(costs.lower > labels.n_movable, most, np.minimum(fewest, most))
    np.put_along_axis(lower, costs.prediction[:, None], 0, axis=1)

    def attack(row: int, target: int) -> Witness:
        flips = costs.attack(row, target)
        sources = labels.sources.codes[flips.indices]  # type: ignore[union-attr]
        _, first = np.unique(sources, return_index=True)
        return replace(flips, sources=sources[np.sort(first)], threat=SOURCES.name)

    upper = np.full(costs.upper.shape, most)
    for t, c in np.argwhere((costs.upper > 0) & (costs.upper <= labels.n_labels)).tolist():
        upper[t, c] = len(attack(t, c))
    np.put_along_axis(upper, costs.prediction[:, None], 0, axis=1)
    return replace(costs, lower=lower, upper=upper, attack=attack)


@dataclass(frozen=True)
class _Room:
    """What compiled code works in, for rows of doubles or of whole numbers."""

    tables: NDArray[Any]
    gains: NDArray[Any]
    used: NDArray[np.int64]
    record: NDArray[np.int64]
    vectors: NDArray[Any]

    @classmethod
    def of(cls, cells: Cells, n_classes: int, numbers: Any = np.float64) -> _Room:
        return cls(
            tables=np.zeros((N_TABLES, cells.n_sources + 1, n_classes), numbers),
            gains=np.zeros(cells.n_sources, numbers),
            used=np.zeros(cells.n_sources + 1, np.int64)[: cells.n_sources],
            record=np.zeros((N_RECORDS, n_classes + 1, cells.n_sources), np.int64),
            vectors=np.zeros((N_VECTORS, n_classes), numbers),
        )

    def __iter__(self) -> Any:
        return iter((self.tables, self.gains, self.used, self.record, self.vectors))

    def attack(self, row: IntegerRow, target: int, cost: int) -> Witness:
        """The attack that was recorded for a class."""
        taken, rivals = (self.record[own, target, :cost].tolist() for own in (TAKEN, RIVAL))
        flips = [
            flip for j, rival in zip(taken, rivals, strict=True) for flip in moves_of_source(row, j, target, rival)
        ]
        return Witness.of(flips, sources=np.array(taken, np.int64), threat=SOURCES.name)


def source_cost_block(
    weights: NDArray[Any],
    labels: Labels,
    offset: NDArray[np.float64],
    tolerance: NDArray[np.float64] | None = None,
    time_limit: float | None = None,
) -> FlipCosts:
    """Costs of one block of rows to every class, in sources and in a fixed label space.

    Arguments as in ``cost_block``; with a time limit, bounds that differ are closed by integer programs.
    """
    n_rows, shape = weights.shape[0], (weights.shape[0], labels.n_classes)
    prediction, lower, upper = (np.zeros(size, np.int64) for size in (n_rows, shape, shape))
    lead, margin, decided = np.zeros(n_rows), np.zeros(shape), np.zeros(n_rows, np.bool_)
    found = (prediction, lower, upper, lead, margin, decided)
    together = max(1, memory_budget() // _PART // (16 * (labels.cells.source.size + labels.n_classes)))
    for begin in range(0, n_rows, together):
        rows = slice(begin, begin + together)
        _cost_rows(weights[rows], labels, offset[rows], False, *(part[rows] for part in found))
    for t in np.flatnonzero(~decided).tolist():
        own = slice(t, t + 1)
        if sums_are_exact(weights[t], offset[t], total_of(weights[t], offset[t])):
            _cost_rows(weights[own], labels, offset[own], True, *(part[own] for part in found))
        else:
            row = IntegerRow(weights[t], labels, offset[t])
            prediction[t], lead[t] = row.prediction, row.lead
            lower[t], upper[t], margin[t] = _integer_costs(row)[0]
    sensitive = np.zeros(n_rows, np.bool_)
    if tolerance is not None:
        sensitive = (tolerance > 0) & (np.minimum(lead, margin.min(axis=1)) <= tolerance)
    if time_limit is not None:
        _close_gaps(weights, labels, offset, lower, upper, time_limit)
    return FlipCosts(prediction, lower, upper, sensitive)


def _close_gaps(
    weights: NDArray[Any],
    labels: Labels,
    offset: NDArray[np.float64],
    lower: NDArray[np.int64],
    upper: NDArray[np.int64],
    time_limit: float,
) -> None:
    """Replace bounds that differ by the exact cost."""
    for t in np.flatnonzero((lower < upper).any(axis=1)).tolist():
        row = IntegerRow(weights[t], labels, offset[t])
        for c in np.flatnonzero(lower[t] < upper[t]).tolist():
            attack = cheapest_source_attack(row, c, int(lower[t, c]), int(upper[t, c]), time_limit)
            lower[t, c] = upper[t, c] = upper[t, c] if attack is None else len(attack)


def total_of(weights: NDArray[Any], offset: NDArray[np.float64]) -> float:
    """Sum of all magnitudes of a row; infinity if it is too large."""
    with np.errstate(over="ignore"):
        return float(np.abs(weights).sum(dtype=np.float64) + np.abs(offset).sum())


def _cost_rows(
    weights: NDArray[Any], labels: Labels, offset: NDArray[np.float64], exactly: bool, *found: NDArray[Any]
) -> _Room:
    """Costs of rows in doubles, written to the arrays of what is found; attacks on the last row stay in the room."""
    cells = labels.cells
    plus, minus = (np.zeros((weights.shape[0], cells.source.size + labels.n_classes)) for _ in range(2))
    add_cells(weights, cells.of, plus, minus)
    room = _Room.of(cells, labels.n_classes)
    unreachable = SOURCES.unreachable(labels)
    source_cost_rows(plus, minus, cells, offset, labels.n_labels, unreachable, exactly, *room, *found)
    return room


def _integer_costs(row: IntegerRow) -> tuple[tuple[Any, Any, Any], _Room]:
    """Lower and upper costs and margins of a row in whole numbers, and the attacks behind them."""
    labels, cells = row.labels, row.labels.cells
    room = _Room.of(cells, labels.n_classes, object)
    plus, minus = (np.zeros(cells.source.size + labels.n_classes, object) for _ in range(2))
    for cell, weight in zip(cells.of.tolist(), row.weights, strict=True):
        (plus if weight >= 0 else minus)[cell] += abs(weight)
    # Python's numbers throughout: NumPy's would not go together with large ones.
    lower, upper, margin = (np.zeros(labels.n_classes, object) for _ in range(3))
    interpreted(source_costs)(
        plus, minus, cells, row.scores, row.prediction, 0, SOURCES.unreachable(labels), *room, lower, upper, margin
    )
    return (lower.astype(np.int64), upper.astype(np.int64), np.array([row.as_float(own) for own in margin])), room


def attack_by_sources(
    weights: NDArray[Any], labels: Labels, offset: NDArray[np.float64], target: int, cost: int, time_limit: float
) -> Witness:
    """The sources, and the labels that they change, behind an upper cost of a class."""
    row = IntegerRow(weights, labels, offset)
    upper, room = _known_attacks(row, weights, offset)
    witness: Witness | None = room.attack(row, target, int(upper[target])) if upper[target] <= cost else None
    if witness is None:
        witness = cheapest_source_attack(row, target, 1, cost + 1, time_limit)
    if witness is None or len(witness) > cost or row.winner_under(witness.apply(labels.codes)) != target:
        raise CertificateError("an attack by sources did not work when replayed; please report this row.")
    return witness


def _known_attacks(
    row: IntegerRow, weights: NDArray[Any], offset: NDArray[np.float64]
) -> tuple[NDArray[np.int64], _Room]:
    """Upper costs of a row and the attacks behind them, found as ``source_cost_block`` finds them."""
    labels = row.labels
    shape = (1, labels.n_classes)
    prediction, lower, upper = (np.zeros(size, np.int64) for size in (1, shape, shape))
    found = (prediction, lower, upper, np.zeros(1), np.zeros(shape), decided := np.zeros(1, np.bool_))
    for exactly in (False, True):
        if not exactly or sums_are_exact(weights, offset, total_of(weights, offset)):
            room = _cost_rows(weights[None], labels, offset[None], exactly, *found)
            if decided[0]:
                return upper[0], room
    (_, known, _), room = _integer_costs(row)
    return known, room

"""Plans for label-linear models: the label that brings most predictions closest to a proof is checked next."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from flipcert.audit._jit.heaviest import heaviest_labels, heaviest_sources
from flipcert.audit._jit.potential import choose
from flipcert.audit.checks import Units
from flipcert.audit.held_rows import each_piece
from flipcert.engine.blocks import memory_budget
from flipcert.engine.watch import current_watcher
from flipcert.flips.costs import score_block
from flipcert.labels.labels import Labels
from flipcert.labels.threats import FLIPS
from flipcert.linear.model import LabelLinearModel

# Bytes of an entry in a list of the units that weigh most: its number and its gain.
_ENTRY = 16


class Chosen(NamedTuple):
    """Units to check, best first, and how many unproven predictions each weighs on when it is chosen."""

    units: NDArray[np.int64]
    weighs_on: NDArray[np.int64]


class _Gaps(NamedTuple):
    """Gaps that a budget can close: their points, and the units that close most of each, largest first."""

    point: NDArray[np.int64]
    gap: NDArray[np.float64]
    units: NDArray[np.int64]
    gains: NDArray[np.float64]


def choose_by_potential(
    model: LabelLinearModel,
    X: NDArray[Any],
    n_units: int,
    units: Units,
    budget: int,
    radius: NDArray[np.int64],
    counted: NDArray[np.bool_],
) -> Chosen:
    """The potential greedy, for the points that count; ``radius`` is what they withstand before any check.

    Lists of the heaviest units are as long as memory allows; when they are used up, new ones are made. Once all points
    are safe at the budget, the plan goes on for twice that, and so on.
    """
    chosen, weighs_on = np.empty(n_units, np.int64), np.zeros(n_units, np.int64)
    done, taken = 0, np.zeros(units.count, np.bool_)
    watcher = current_watcher()
    watcher.begin(n_units, f"{units.threat.unit}s")
    left, goal = units.attackable, budget
    while done < n_units and budget <= left.size:
        labels = units.after(chosen[:done])
        open_points = np.flatnonzero(counted & (radius < budget))
        depth = _depth(open_points.size * labels.n_classes, budget, n_units - done)
        # Where not even the shortest lists of all points fit, those that lack least are planned for.
        fits = max(1, memory_budget() // (_ENTRY * depth * labels.n_classes))
        too_many = open_points.size > fits
        if too_many:
            nearest = np.argsort(-radius[open_points], kind="stable")[:fits]
            open_points = np.sort(open_points[nearest])
        gaps = _open_gaps(model, X, open_points, labels, units, budget, depth)
        batch = min(n_units - done, max(1, depth - budget - 1))
        step = slice(done, done + batch)
        weighed = np.zeros(batch, np.int64)
        found = choose(*gaps, budget, open_points.size, taken, chosen[step], weighed) if gaps.gap.size else 0
        if budget == goal:
            weighs_on[step] = weighed
        done += found
        watcher.advance(found)
        if found < batch and too_many:
            # These are safe: now for the others.
            radius = np.where(np.isin(np.arange(radius.size), open_points), np.maximum(radius, budget), radius)
        elif found < batch:
            # All that can be made safe is safe.
            budget *= 2
    # What no prediction hangs on comes last, in the order of the training set.
    rest = left[~taken[left]][: n_units - done]
    chosen[done:] = rest
    watcher.advance(rest.size)
    return Chosen(chosen, weighs_on)


def _depth(n_gaps: int, budget: int, n_units: int) -> int:
    """Length of the lists: the budget, the next one, and one for every unit that is taken until there are new ones."""
    room = memory_budget() // (_ENTRY * max(1, n_gaps)) - budget - 1
    return budget + 1 + max(min(n_units, room), min(n_units, 16))


def _open_gaps(
    model: LabelLinearModel,
    X: NDArray[Any],
    rows: NDArray[np.int64],
    labels: Labels,
    units: Units,
    budget: int,
    depth: int,
) -> _Gaps:
    """All gaps between predictions and other classes that a budget can close."""
    depth = min(depth, units.count)
    parts = []

    def of_piece(own: NDArray[np.int64], weights: NDArray[Any], offset: NDArray[np.float64]) -> Any:
        scores, prediction = score_block(weights, labels, offset)
        most = own.size * (labels.n_classes - 1)
        place, gap = np.empty(most, np.int64), np.empty(most)
        heaviest, gains = np.empty((most, depth), np.int64), np.empty((most, depth))
        room = (place, gap, heaviest, gains)
        if units.threat is FLIPS:
            count = heaviest_labels(weights, labels.coded, scores, prediction, budget, *room)
        else:
            count = heaviest_sources(weights, labels.cells, scores, prediction, budget, *room)
        point = np.searchsorted(rows, own)[place[:count]]
        return prediction, _Gaps(point, gap[:count].copy(), heaviest[:count].copy(), gains[:count].copy())

    predictions = []
    for prediction, part in each_piece(model, X, rows, of_piece):
        predictions.append(prediction)
        parts.append(part)
    if not parts:
        return _Gaps(np.empty(0, np.int64), np.empty(0), np.empty((0, depth), np.int64), np.empty((0, depth)))
    parts.append(_removals(np.concatenate(predictions), labels, units, budget, depth))
    joined: list[Any] = [np.concatenate(own) for own in zip(*parts, strict=True)]
    order = np.argsort(joined[0], kind="stable")
    return _Gaps(*(own[order] for own in joined))


def _removals(prediction: NDArray[np.int64], labels: Labels, units: Units, budget: int, depth: int) -> _Gaps:
    """The same for what removes the predicted class from a label space that is read from the labels: all who hold it.

    As gaps, each holder closes one of as many; one check of a label of the class closes them for good.
    """
    needed = units.threat.to_remove(labels)
    point = np.flatnonzero(needed[prediction] <= min(budget, depth))
    lists, gains = np.full((point.size, depth), -1), np.zeros((point.size, depth))
    for c in np.unique(prediction[point]).tolist():
        holders, own = np.unique(units.of_label[labels.codes == c]), prediction[point] == c
        lists[own, : holders.size] = holders
        gains[own, : holders.size] = 1.0
    return _Gaps(point, needed[prediction[point]].astype(np.float64), lists, gains)

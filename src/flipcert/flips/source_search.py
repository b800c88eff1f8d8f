"""The fewest sources that lead to a class, by trying them in whole numbers: for what floats cannot decide."""

from __future__ import annotations

import time
from itertools import combinations

import numpy as np

from flipcert.flips.rows import IntegerRow
from flipcert.flips.search import OutOfBudget
from flipcert.labels.threats import SOURCES
from flipcert.results.witness import Witness


def moves_of_source(row: IntegerRow, source: int, target: int, rival: int) -> list[tuple[int, int]]:
    """What a source does: labels that count for a class go to the target, those that count against it to a rival."""
    labels = row.labels
    assert labels.sources is not None
    flips = []
    for i in np.flatnonzero((labels.sources.codes == source) & labels.coded.movable).tolist():
        to = target if row.weights[i] > 0 else rival if row.weights[i] < 0 else int(labels.codes[i])
        if to != labels.codes[i]:
            flips.append((i, to))
    return flips


def find_source_attack(row: IntegerRow, target: int, lower: int, upper: int, deadline: float) -> Witness | None:
    """The smallest attack with at least ``lower`` and fewer than ``upper`` sources; None if there is none."""
    labels = row.labels
    assert labels.sources is not None
    held = np.unique(labels.sources.codes[labels.coded.movable]).tolist()
    for count in range(lower, upper):
        for chosen in combinations(held, count):
            if time.monotonic() > deadline:
                raise OutOfBudget
            flips = _joint_attack(row, target, chosen, deadline)
            if flips is not None:
                return Witness.of(flips, sources=np.array(chosen, np.int64), threat=SOURCES.name)
    return None


def _joint_attack(
    row: IntegerRow, target: int, chosen: tuple[int, ...], deadline: float
) -> list[tuple[int, int]] | None:
    """What some sources do together so that the target wins; None if they cannot.

    What counts for its class goes to the target. Every label that counts against its class is put to a rival, each of
    which has to be pushed down by so much.
    """
    labels = row.labels
    assert labels.sources is not None
    own = np.flatnonzero(np.isin(labels.sources.codes, chosen) & labels.coded.movable).tolist()
    scores = row.scores.tolist()
    codes = labels.codes.tolist()
    flips = []
    for i in own:
        if row.weights[i] > 0 and codes[i] != target:
            scores[codes[i]] -= row.weights[i]
            scores[target] += row.weights[i]
            flips.append((i, target))
        elif row.weights[i] < 0:
            scores[codes[i]] -= row.weights[i]
    items = sorted((i for i in own if row.weights[i] < 0), key=lambda i: row.weights[i])
    # In whole numbers, a tie that is not enough takes one more.
    needs = [score - scores[target] + (q < target) for q, score in enumerate(scores)]
    needs[target] = 0
    places = _cover([-row.weights[i] for i in items], needs, target, deadline)
    if places is None:
        return None
    return flips + [(i, q) for i, q in zip(items, places, strict=True) if q != codes[i]]


def _cover(sizes: list[int], needs: list[int], target: int, deadline: float) -> list[int] | None:
    """Rivals to put labels to, largest first, so that each gets as much as it needs; None if there is no way."""
    left = [0] * (len(sizes) + 1)
    for place in range(len(sizes) - 1, -1, -1):
        left[place] = left[place + 1] + sizes[place]
    rival = 1 if target == 0 else 0
    places: list[int] = []

    def fill(needs: list[int]) -> bool:
        place = len(places)
        if sum(need for need in needs if need > 0) > left[place]:
            return False
        if max(needs) <= 0:
            places.extend([rival] * (len(sizes) - place))
            return True
        if time.monotonic() > deadline:
            raise OutOfBudget
        tried = set()
        for q, need in enumerate(needs):
            # Rivals that need as much are alike.
            if need > 0 and need not in tried:
                tried.add(need)
                places.append(q)
                if fill([own - sizes[place] * (r == q) for r, own in enumerate(needs)]):
                    return True
                places.pop()
        return False

    return places if fill(needs) else None

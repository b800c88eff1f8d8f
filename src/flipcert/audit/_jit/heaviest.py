"""The units that weigh most against predictions which so many of them can change. Compiled.

Doubles without an error bound: what is planned with these numbers is certified afterwards.
"""

from __future__ import annotations

import numpy as np

from flipcert.engine.jit import compiled
from flipcert.flips._jit.fewest import sum_of_largest
from flipcert.flips._jit.label_gains import label_gains
from flipcert.flips._jit.sources import add_base, add_cells, gains_of


@compiled
def heaviest_labels(weights, labels, scores, prediction, budget, row, gaps, units, gains):
    """Labels that close most of each gap which ``budget`` of them can close; returns the number of such gaps.

    Of each, ``row`` gets the row, ``gaps`` the gap, ``units`` and ``gains`` the labels, largest gain first, as many as
    there is room for; beyond the last one that closes anything, units are -1.
    """
    found = 0
    own, spare = np.empty(weights.shape[1]), np.empty(weights.shape[1])
    for t in range(weights.shape[0]):
        first = prediction[t]
        for c in range(scores.shape[1]):
            if c == first:
                continue
            label_gains(weights[t], labels, first, c, own)
            found += _listed(own, spare, scores[t, first] - scores[t, c], budget, t, found, row, gaps, units, gains)
    return found


@compiled
def heaviest_sources(weights, cells, scores, prediction, budget, row, gaps, units, gains):
    """The same for sources: what all labels of each close together."""
    n_classes = scores.shape[1]
    found = 0
    plus, minus = (np.zeros((1, cells.source.size + n_classes)), np.zeros((1, cells.source.size + n_classes)))
    base, own, spare = np.empty(cells.n_sources), np.empty(cells.n_sources), np.empty(cells.n_sources)
    for t in range(weights.shape[0]):
        plus[:] = 0.0
        minus[:] = 0.0
        add_cells(weights[t : t + 1], cells.of, plus, minus)
        first = prediction[t]
        add_base(plus[0], minus[0], cells, first, base)
        for c in range(n_classes):
            if c != first:
                gains_of(plus[0], minus[0], cells, base, c, own)
                gap = scores[t, first] - scores[t, c]
                found += _listed(own, spare, gap, budget, t, found, row, gaps, units, gains)
    return found


@compiled
def _listed(own, spare, gap, budget, t, place, row, gaps, units, gains):
    """Write the largest gains of one gap to its place, if so many of them close it; 1 if they do."""
    for i in range(own.size):
        spare[i] = own[i]
    if sum_of_largest(spare, budget) < gap:
        return 0
    depth = min(units.shape[1], own.size)
    for i in range(own.size):
        spare[i] = own[i]
    floor = np.partition(spare, own.size - depth)[own.size - depth]
    picked = np.empty(depth, np.int64)
    count = 0
    for above in (True, False):
        for i in range(own.size):
            if count < depth and own[i] > 0.0 and (own[i] > floor if above else own[i] == floor):
                picked[count] = i
                count += 1
    keys = np.empty(count)
    for k in range(count):
        keys[k] = -own[picked[k]]
    order = np.argsort(keys, kind="mergesort")
    for k in range(units.shape[1]):
        units[place, k] = picked[order[k]] if k < count else -1
        gains[place, k] = own[picked[order[k]]] if k < count else 0.0
    row[place] = t
    gaps[place] = max(gap, 0.0)
    return 1

"""The potential greedy: which unit to check next, so that as many predictions as possible become proven. Compiled."""

from __future__ import annotations

import numpy as np

from flipcert.engine.jit import compiled

# What keeps the value of a prediction that is nearly proven finite.
_NEAR = 0.1
# Where all gains around a window are equal, none of them is above the next one; then gains themselves decide.
_TIE = 1e-6


@compiled
def choose(point, gaps, units, gains, budget, n_points, taken, chosen, weighs_on):
    """Choose units one after the other, the best by potential first; returns how many, fewer if all gaps are safe.

    A gap is open as long as the ``budget`` largest gains of units that are not taken close it. Its *window* are these
    and the next one. The value of a unit adds up, over open gaps, by how much checking it would lower the sum, beside
    the gap, and more so where little is missing at that point: square of the relative excess of all its open gaps.
    ``units`` and ``gains`` are changed, ``taken`` and ``chosen`` written; ``weighs_on`` is the number of points with an
    open gap that has the unit in its window.
    """
    n_pairs, depth = units.shape
    width = min(budget, depth)
    after = np.full(n_pairs, min(budget + 1, depth))
    is_open = np.ones(n_pairs, np.bool_)
    excess = np.empty(n_points)
    value = np.empty(taken.size)
    for step in range(chosen.size):
        excess[:] = 0.0
        value[:] = 0.0
        any_open = False
        for p in range(n_pairs):
            if not is_open[p]:
                continue
            total = 0.0
            for q in range(width):
                total += gains[p, q]
            if total < gaps[p] or total == 0.0:
                is_open[p] = False
                continue
            any_open = True
            excess[point[p]] += (total - gaps[p]) / max(gaps[p], 1e-9 * total)
        if not any_open:
            return step
        best = -1
        for p in range(n_pairs):
            if not is_open[p]:
                continue
            following = gains[p, width] if width < depth else 0.0
            size = max(gaps[p], 1e-9 * gains[p, 0]) * (excess[point[p]] + _NEAR) ** 2
            for q in range(width):
                i = units[p, q]
                if i >= 0:
                    value[i] += (gains[p, q] - following + _TIE * gains[p, q]) / size
                    if best < 0 or value[i] > value[best] or (value[i] == value[best] and i < best):
                        best = i
        if best < 0:
            return step
        chosen[step] = best
        taken[best] = True
        last = -1
        for p in range(n_pairs):
            if not is_open[p]:
                continue
            for q in range(min(width + 1, depth)):
                if units[p, q] == best:
                    if q < width and point[p] != last:
                        weighs_on[step] += 1
                        last = point[p]
                    _remove(units[p], gains[p], q, min(width + 1, depth), after, p, taken)
                    break
    return chosen.size


@compiled
def _remove(units, gains, place, width, after, p, taken):
    """Take one entry out of a window, and let the next that is not taken in at its end."""
    for q in range(place, width - 1):
        units[q] = units[q + 1]
        gains[q] = gains[q + 1]
    while after[p] < units.size and units[after[p]] >= 0 and taken[units[after[p]]]:
        after[p] += 1
    if after[p] < units.size:
        units[width - 1] = units[after[p]]
        gains[width - 1] = gains[after[p]]
        after[p] += 1
    else:
        units[width - 1] = -1
        gains[width - 1] = 0.0

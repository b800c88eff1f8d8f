"""What sources of labels close of the gaps of many points. Compiled."""

from __future__ import annotations

import numpy as np

from flipcert.engine.jit import compiled
from flipcert.flips._jit.fewest import fewest
from flipcert.flips._jit.ladder import rounding_slack
from flipcert.flips._jit.sources import add_base, add_cells, gains_of, scores_of_cells


@compiled
def source_gains(weights, cells, offset, prediction, unreachable, gains, costs):
    """For each row, source and class, the most that the source closes of the gap to the prediction, rounded up.

    ``gains`` are of shape (n_rows, n_sources, n_classes). ``costs`` are the sources that lift each class above the
    prediction, at least.
    """
    n_classes = offset.shape[1]
    n_cells = cells.source.size + n_classes
    plus, minus = np.zeros((1, n_cells)), np.zeros((1, n_cells))
    scores = np.empty(n_classes)
    base, own = np.empty(cells.n_sources), np.empty(cells.n_sources)
    for t in range(weights.shape[0]):
        plus[:] = 0.0
        minus[:] = 0.0
        add_cells(weights[t : t + 1], cells.of, plus, minus)
        total = scores_of_cells(plus[0], minus[0], cells, offset[t], scores)
        slack = rounding_slack(total, 4 * weights.shape[1] + n_classes + 8)
        first = prediction[t]
        add_base(plus[0], minus[0], cells, first, base)
        for c in range(n_classes):
            costs[t, c] = unreachable
            if c == first:
                gains[t, :, c] = 0.0
                continue
            gains_of(plus[0], minus[0], cells, base, c, own)
            for j in range(cells.n_sources):
                # Sources whose labels weigh nothing close nothing.
                own[j] = max(own[j], 0.0) + slack if base[j] > 0.0 or own[j] > 0.0 else 0.0
                gains[t, j, c] = own[j]
            gap = scores[first] - scores[c] - slack
            costs[t, c] = 1 if not gap > 0.0 else max(1, fewest(own, gap - slack, True, 0.0, unreachable)[0])


@compiled
def add_source_prices(gains, first_cut, cuts, shares, prices):
    """Add up coefficients times shares of the cuts of some points, for every source."""
    for t in range(gains.shape[0]):
        for j in range(first_cut[t], first_cut[t + 1]):
            if shares[j] > 0.0:
                at, end = cuts.first_left_out[j], cuts.first_left_out[j + 1]
                for unit in range(gains.shape[1]):
                    if at < end and cuts.left_out[at] == unit:
                        at += 1
                    else:
                        prices[unit] += shares[j] * largest_part(gains[t, unit], cuts.floor[j], cuts.inverse[j])


@compiled
def source_coefficients(gains, unit, point, cuts, out):
    """Write the coefficients of sources in all cuts; what a cut leaves out is told by places among these sources."""
    for j in range(point.size):
        at, end = cuts.first_left_out[j], cuts.first_left_out[j + 1]
        for k in range(unit.size):
            while at < end and cuts.left_out[at] < unit[k]:
                at += 1
            out[j, k] = 0.0
            if not (at < end and cuts.left_out[at] == unit[k]):
                out[j, k] = largest_part(gains[point[j], unit[k]], cuts.floor[j], cuts.inverse[j])


@compiled
def largest_part(gains, floor, inverse):
    """The coefficient: the largest over rivals of what is closed above the floor, as a share of what has to be."""
    most = 0.0
    for c in range(gains.size):
        above = gains[c] - floor[c]
        if above > 0.0 and inverse[c] > 0.0:
            most = max(most, above * inverse[c])
    return min(most, 1.0)

"""What relabellings are worth against the votes of label-linear voters on many points, by cuts. Compiled.

A flip that closes a share b of the gap between a voter's class and another, q, moves that share of the vote. If the
voter votes for the winner, this closes ``2 b`` of the gap to the rival q and ``b`` of that to all others; a voter for
none of both closes ``b`` of the gap to the rival q. So for every voter, point and cut there is one line for each q:
how the coefficient of a flip grows with what the flip closes of the voter's own gap, above a floor and up to a cap.
"""

from __future__ import annotations

import numpy as np

from flipcert.collective._jit.prices import relabelling
from flipcert.engine.jit import compiled


@compiled
def voter_lines(gaps, vote, winner, floor, inverse, line_floor, line_inverse, cap):
    """Write floor, inverse and cap of each class that a voter could be turned to; return the lowest floor that counts.

    Of a coefficient that is the largest of several lines, the chord above all of them is taken. Everything is rounded
    so that coefficients come out too large, if anything.
    """
    n_classes = gaps.size
    lowest = np.inf
    for q in range(n_classes + 1):
        line_floor[q], line_inverse[q], cap[q] = 0.0, 0.0, 0.0
    for q in range(n_classes):
        if q == vote:
            continue
        begin, end, height = np.inf, 1.0, 0.0
        for c in range(n_classes):
            if c == winner or c == vote or not inverse[c] > 0.0 or (c != q and vote != winner):
                continue
            gain = 2.0 if c == q and vote == winner else 1.0
            if gain <= floor[c]:
                continue
            begin = min(begin, floor[c] / gain)
            end = min(end, (1.0 / inverse[c] + floor[c]) / gain)
            height = max(height, min(1.0, (gain - floor[c]) * inverse[c] * (1.0 + 2.0**-50)))
        if height == 0.0:
            continue
        if end < 1.0:
            height = 1.0
        cap[q] = height
        width = end - begin
        if gaps[q] > 0.0 and width > 1e-3 * end:
            line_floor[q] = begin * gaps[q] * (1.0 - 2.0**-50)
            line_inverse[q] = height / (width * gaps[q]) * (1.0 + 2.0**-40)
        else:
            line_floor[q] = begin * gaps[q] * (1.0 - 2.0**-50)
            line_inverse[q] = np.inf
        lowest = min(lowest, line_floor[q])
    return lowest


@compiled
def add_ballot_prices(weights, labels, bounds, votes, gaps, winner, first_cut, cuts, shares, prices, common):
    """Add up coefficients times shares of the cuts of some points, for every relabelling.

    ``prices`` are those of each class, ``common`` is what all classes of a label have on top. Cuts of point t are those
    from ``first_cut[t]`` on. Everything is at least zero, so that sums err by a share of themselves.
    """
    n_classes = prices.shape[1]
    worth = np.empty(n_classes)
    floor, inverse, cap = np.empty(n_classes + 1), np.empty(n_classes + 1), np.empty(n_classes + 1)
    for t in range(weights.shape[0]):
        for j in range(first_cut[t], first_cut[t + 1]):
            share = shares[j]
            if not share > 0.0:
                continue
            at, end = cuts.first_left_out[j], cuts.first_left_out[j + 1]
            for p in range(votes.shape[1]):
                lowest = voter_lines(
                    gaps[t, p], votes[t, p], winner[t], cuts.floor[j], cuts.inverse[j], floor, inverse, cap
                )
                if lowest == np.inf:
                    continue
                for i in range(bounds[p], bounds[p + 1]):
                    weight = np.float64(weights[t, i])
                    if not labels.movable[i] or 2.0 * abs(weight) <= lowest:
                        continue
                    while at < end and cuts.left_out[at] < i:
                        at += 1
                    if at < end and cuts.left_out[at] == i:
                        continue
                    common[i] += share * relabelling(weight, labels.codes[i], votes[t, p], floor, inverse, cap, worth)
                    for c in range(n_classes):
                        prices[i, c] += share * worth[c]


@compiled
def ballot_coefficients(weights, codes, voter, to, sample, votes, gaps, winner, point, cuts, out):
    """Write the coefficients of some relabellings in all cuts: of shape (n_cuts, n_relabellings).

    ``weights``, ``codes`` and ``voter`` are those of the samples that are relabelled, which ascend; ``sample`` tells
    which of them each relabelling is about. What a cut leaves out is told by places among these samples.
    """
    n_classes = gaps.shape[2]
    worth = np.empty(n_classes)
    floor, inverse, cap = np.empty(n_classes + 1), np.empty(n_classes + 1), np.empty(n_classes + 1)
    for j in range(point.size):
        t = point[j]
        at, end = cuts.first_left_out[j], cuts.first_left_out[j + 1]
        last = asked = -1
        more = 0.0
        for k in range(to.size):
            i = sample[k]
            if voter[i] != asked:
                asked = voter[i]
                voter_lines(
                    gaps[t, asked], votes[t, asked], winner[t], cuts.floor[j], cuts.inverse[j], floor, inverse, cap
                )
            if i != last:
                last = i
                while at < end and cuts.left_out[at] < i:
                    at += 1
                if at < end and cuts.left_out[at] == i:
                    worth[:] = 0.0
                    more = 0.0
                else:
                    more = relabelling(weights[t, i], codes[i], votes[t, asked], floor, inverse, cap, worth)
            out[j, k] = more + worth[to[k]]

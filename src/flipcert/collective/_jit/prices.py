"""What a relabelling is worth against many points at once, by cuts. Compiled.

A cut of a point says: an attack that changes its prediction has relabellings whose *coefficients* add up to one. The
coefficient of making label i a label l is the largest over rivals c of ``min(1, (R - floor) * inverse)``, where R is
what that closes of the gap between c and the predicted class a. With w the weight of i and y its class:

- w > 0, y = a: ``2 w`` for c = l, and ``w`` for all others;
- w > 0, y another: ``w`` for c = l;
- w < 0, y not a: ``|w|`` for c = y, or ``2 |w|`` if l = a, when all others close ``|w|`` too.

The last rival is none of the classes: that all labels of a go, of which each closes 1.
"""

from __future__ import annotations

import numpy as np

from flipcert.engine.jit import compiled


@compiled
def _part(gain, floor, inverse, cap):
    """The coefficient of one rival; an infinite inverse makes any gain above the floor enough."""
    above = gain - floor
    share = above * inverse if above > 0.0 else 0.0
    return share if share < cap else cap


@compiled
def relabelling(weight, label, first, floor, inverse, cap, worth):
    """Write the coefficient of giving a label each class to ``worth``; return what is to be added to all of them.

    ``cap`` is the most that each rival counts for.
    """
    n_classes = worth.size
    if label == first:
        gone = _part(1.0, floor[n_classes], inverse[n_classes], cap[n_classes])
        if not weight > 0.0:
            for c in range(n_classes):
                worth[c] = 0.0
            return gone
        most = second = gone
        which = -1
        for c in range(n_classes):
            share = _part(weight, floor[c], inverse[c], cap[c])
            if share > most:
                most, second, which = share, most, c
            elif share > second:
                second = share
        for c in range(n_classes):
            worth[c] = max(second if c == which else most, _part(2.0 * weight, floor[c], inverse[c], cap[c]))
        return 0.0
    if weight > 0.0:
        for c in range(n_classes):
            worth[c] = _part(weight, floor[c], inverse[c], cap[c])
        return 0.0
    size = -weight
    own = _part(size, floor[label], inverse[label], cap[label])
    most = _part(2.0 * size, floor[label], inverse[label], cap[label])
    for c in range(n_classes):
        worth[c] = 0.0
        if c != label:
            most = max(most, _part(size, floor[c], inverse[c], cap[c]))
    worth[first] = most - own
    return own


@compiled
def add_prices(weights, labels, prediction, first_cut, cuts, shares, prices, common):
    """Add up coefficients times shares of the cuts of some points, for every relabelling.

    ``prices`` are those of each class, ``common`` is what all classes of a label have on top. Cuts of point t are those
    from ``first_cut[t]`` on. Everything is at least zero, so that sums err by a share of themselves.
    """
    n_classes = prices.shape[1]
    worth, cap = np.empty(n_classes), np.ones(n_classes + 1)
    for t in range(weights.shape[0]):
        for j in range(first_cut[t], first_cut[t + 1]):
            share = shares[j]
            if not share > 0.0:
                continue
            floor, inverse = cuts.floor[j], cuts.inverse[j]
            lowest = np.inf
            for c in range(n_classes):
                if inverse[c] > 0.0:
                    lowest = min(lowest, floor[c])
            gone = inverse[n_classes] > 0.0
            at, end = cuts.first_left_out[j], cuts.first_left_out[j + 1]
            for i in range(weights.shape[1]):
                if at < end and cuts.left_out[at] == i:
                    at += 1
                    continue
                weight = np.float64(weights[t, i])
                label = labels.codes[i]
                if not labels.movable[i] or (2.0 * abs(weight) <= lowest and not (gone and label == prediction[t])):
                    continue
                common[i] += share * relabelling(weight, label, prediction[t], floor, inverse, cap, worth)
                for c in range(n_classes):
                    prices[i, c] += share * worth[c]


@compiled
def coefficients(weights, codes, to, sample, prediction, point, cuts, out):
    """Write the coefficients of some relabellings in all cuts: of shape (n_cuts, n_relabellings).

    ``weights`` and ``codes`` are those of the samples that are relabelled, which ascend; ``sample`` tells which of them
    each relabelling is about. What a cut leaves out is told by places among these samples.
    """
    worth, cap = np.empty(cuts.floor.shape[1] - 1), np.ones(cuts.floor.shape[1])
    for j in range(point.size):
        t = point[j]
        at, end = cuts.first_left_out[j], cuts.first_left_out[j + 1]
        last = -1
        more = 0.0
        for k in range(to.size):
            i = sample[k]
            if i != last:
                last = i
                while at < end and cuts.left_out[at] < i:
                    at += 1
                if at < end and cuts.left_out[at] == i:
                    worth[:] = 0.0
                    more = 0.0
                else:
                    floor, inverse = cuts.floor[j], cuts.inverse[j]
                    more = relabelling(weights[t, i], codes[i], prediction[t], floor, inverse, cap, worth)
            out[j, k] = more + worth[to[k]]

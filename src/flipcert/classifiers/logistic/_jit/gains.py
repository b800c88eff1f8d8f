"""What one flip gains at most, and the largest of these: the innermost loops of the bound. Compiled.

Tables have a row for each class and a column for each sample.
"""

from __future__ import annotations

import numpy as np

from flipcert.engine.jit import compiled


@compiled
def centre(scores, P, slack, out):
    """Scores, centred sample by sample with probabilities P, plus what they may be off."""
    K, n = P.shape
    mean = np.zeros(n)
    for k in range(K):
        for i in range(n):
            mean[i] += P[k, i] * scores[k, i]
    for k in range(K):
        for i in range(n):
            out[k, i] = scores[k, i] - mean[i] + slack[i]


@compiled
def flips(scores, codes, slack, out):
    """What flipping each sample to each class takes from a difference of scores to first order, at most.

    Minus infinity for the class that it has.
    """
    K, n = out.shape
    own = np.empty(n)
    for i in range(n):
        own[i] = scores[codes[i], i] + slack[i]
    for k in range(K):
        for i in range(n):
            out[k, i] = own[i] - scores[k, i]
    for i in range(n):
        out[codes[i], i] = -np.inf


@compiled
def steepest(centred, lever, scale):
    """The smallest alpha with ``centred <= alpha (1 - scale lever)`` throughout; infinite where that is no ratio."""
    K, n = centred.shape
    most = 0.0
    for k in range(K):
        for i in range(n):
            room = 1.0 - scale * lever[k, i] - 1e-15  # what both operations may be off
            if room <= 0.0:
                return np.inf
            if centred[k, i] > most * room:
                most = centred[k, i] / room
    return most


@compiled
def excess(centred, lever, scale, caps, alpha):
    """What entries can contribute where ``centred <= alpha (1 - scale lever)`` does not hold."""
    K, n = centred.shape
    total = 0.0
    for k in range(K):
        for i in range(n):
            total += caps[k, i] * max(centred[k, i] - alpha * (1.0 - scale * lever[k, i] - 1e-15), 0.0)
    return total


@compiled
def largest_gains(first, alpha, one, weight_one, other, weight_other, movable, count):
    """Sum of the ``count`` largest positive gains of flips, each sample to its best class.

    A gain is its first order, plus alpha times a weighted sum of two tables of second order.
    """
    K, n = first.shape
    best = np.zeros(n)
    for k in range(K):
        for i in range(n):
            best[i] = max(best[i], first[k, i] + alpha * (weight_one * one[k, i] + weight_other * other[k, i]))
    kept = 0
    for i in range(n):
        if movable[i] and best[i] > 0.0:
            best[kept] = best[i]
            kept += 1
    gains = best[:kept]
    if kept > count:
        gains = np.partition(gains, kept - count)[kept - count :]
    total = 0.0
    for gain in gains:
        total += gain
    return total


@compiled
def largest_sums(values, out):
    """Running sums of the largest positive values, largest first; ``values`` are lost."""
    count = out.size
    if count == 0:
        return
    kept = 0
    for i in range(values.size):
        if values[i] > 0.0:
            values[kept] = values[i]
            kept += 1
    some = values[:kept]
    if kept > count:
        some = np.partition(some, kept - count)[kept - count :]
    some = np.sort(some)
    total = 0.0
    for r in range(count):
        if r < some.size:
            total += some[some.size - 1 - r]
        out[r] = total


@compiled
def flip_sums(table, P, codes, movable, norms, off, pushes, pulls):
    """For one sample i: how far r flips can push and pull each of its centred scores at most.

    ``table[k, l, j]`` is the form at sample i and class k, sample j and class l; entries may be off by
    ``off * norms[j]``, all that follows from that included. Running sums go to ``pushes[r, k]`` and ``pulls[r, k]``.
    """
    K, n = P.size, codes.size
    mean = np.zeros((K, n))
    for k in range(K):
        for to in range(K):
            for j in range(n):
                mean[to, j] += P[k] * table[k, to, j]
    up, down, own = np.empty(n), np.empty(n), np.empty(n)
    for k in range(K):
        for j in range(n):
            own[j] = table[k, codes[j], j] - mean[codes[j], j]
            up[j] = 0.0
            down[j] = 0.0
        for to in range(K):
            for j in range(n):
                if codes[j] != to:
                    change = table[k, to, j] - mean[to, j] - own[j]
                    up[j] = max(up[j], change)
                    down[j] = max(down[j], -change)
        for j in range(n):
            if movable[j]:
                up[j] += off * norms[j]
                down[j] += off * norms[j]
            else:
                up[j] = 0.0
                down[j] = 0.0
        largest_sums(up, pushes[:, k])
        largest_sums(down, pulls[:, k])


@compiled
def cross_sums(table, own, itself, codes, movable, norms, off, out):
    """For one sample j, flipped from class ``own`` to each other: its form with the r - 1 flips that go best with it.

    ``table`` as in ``flip_sums``; ``itself`` is the sample's number, which is counted once. Sums go to ``out[r, to]``.
    """
    K, n = out.shape[1], codes.size
    best, base = np.empty(n), np.empty(n)
    for to in range(K):
        if to == own:
            out[:, to] = 0.0
            continue
        for j in range(n):
            base[j] = table[to, codes[j], j] - table[own, codes[j], j]
            best[j] = 0.0
        for k in range(K):
            for j in range(n):
                if codes[j] != k:
                    best[j] = max(best[j], table[to, k, j] - table[own, k, j] - base[j])
        for j in range(n):
            best[j] = best[j] + off * norms[j] if movable[j] else 0.0
        best[itself] = 0.0
        alone = (table[to, to, itself] - table[to, own, itself]) - (table[own, to, itself] - table[own, own, itself])
        alone += off * norms[itself]
        out[0, to] = 0.0
        largest_sums(best, out[1:, to])
        for r in range(out.shape[0]):
            out[r, to] += alone

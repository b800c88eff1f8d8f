"""Attacks of sources that have labels in many partitions: found in doubles, whoever uses them checks them. Compiled."""

from __future__ import annotations

import numpy as np

from flipcert.engine.jit import compiled


@compiled
def scores_of_voters(row, part, codes, scores, sizes):
    """Scores of each class, voter by voter, and the sum of all magnitudes of a voter."""
    for i in range(scores.shape[0]):
        sizes[i] = 0.0
        for c in range(scores.shape[1]):
            scores[i, c] = 0.0
    for k in range(row.size):
        weight = np.float64(row[k])
        scores[part[k], codes[k]] += weight
        sizes[part[k]] += abs(weight)


@compiled
def strengths(row, part, codes, starts, columns, scores, votes, first, target, strength):
    """How much each source could do for a class: in each voter a share of the gap, counted as the votes it closes."""
    for j in range(starts.size - 1):
        strength[j] = 0.0
        k = starts[j]
        while k < starts[j + 1]:
            i = part[columns[k]]
            vote = votes[i]
            gain = 0.0
            while k < starts[j + 1] and part[columns[k]] == i:
                weight = np.float64(row[columns[k]])
                code = codes[columns[k]]
                if weight > 0.0 and code != target:
                    gain += 2.0 * weight if code == vote else weight
                elif weight < 0.0 and code == target:
                    gain -= 2.0 * weight
                k += 1
            gap = scores[i, vote] - scores[i, target]
            if vote != target and gain > 0.0:
                strength[j] += (2.0 if vote == first else 1.0) * (1.0 if gain >= gap else gain / gap)


@compiled
def collude(row, part, codes, starts, columns, order, without, start, first, target, most, scores, after, taken):
    """Have sources, in this order, work for a class until another class than the first wins: how many, or -1.

    The labels that they leave go to ``after``, and who has changed one to ``taken``; ``without`` is left out. More than
    ``most`` are not tried.
    """
    n_voters, n_classes = scores.shape
    for i in range(n_voters):
        for c in range(n_classes):
            scores[i, c] = start[i, c]
    for k in range(codes.size):
        after[k] = codes[k]
    count = 0
    for position in range(order.size):
        j = order[position]
        if j == without:
            continue
        changed = False
        for k in range(starts[j], starts[j + 1]):
            column = columns[k]
            weight, i, old = np.float64(row[column]), part[column], after[column]
            new = old
            if weight > 0.0:
                new = target
            elif weight < 0.0 and old == target:
                new = -1
                for c in range(n_classes):
                    if c != target and (new < 0 or scores[i, c] > scores[i, new]):
                        new = c
            if new != old:
                scores[i, old] -= weight
                scores[i, new] += weight
                after[column] = new
                changed = True
        if not changed:
            continue
        if count == most:
            return -1
        taken[count] = j
        count += 1
        if _winner(scores) != first:
            return count
    return -1


@compiled
def _winner(scores):
    """Class with most votes, ties to the smaller class."""
    counts = np.zeros(scores.shape[1], np.int64)
    for i in range(scores.shape[0]):
        counts[np.argmax(scores[i])] += 1
    return np.argmax(counts)

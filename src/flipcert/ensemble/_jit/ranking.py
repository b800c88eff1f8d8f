"""Rankings of label-linear voters: all classes in the order of their exact scores. Compiled."""

from __future__ import annotations

import numpy as np

from flipcert.engine.jit import compiled
from flipcert.flips._jit.ladder import UNDECIDED, rounding_slack, sums_are_exact
from flipcert.flips._jit.rival import rival_cost
from flipcert.flips._jit.select import build, score_row


@compiled
def rank_rows(weights, labels, offset, ladder, rankings, closest, decided):
    """Classes of each row, highest score first, ties to the smaller index, and how close two of them come."""
    n_classes = offset.size
    scores = np.empty(n_classes)
    for t in range(weights.shape[0]):
        total, _, _ = score_row(weights[t], labels, offset, scores, ladder)
        closest[t] = sort_classes(scores, rankings[t])
        slack = rounding_slack(total, weights.shape[1] + n_classes + 8)
        decided[t] = closest[t] > slack or sums_are_exact(weights[t], offset, total)


@compiled
def sort_classes(scores, order):
    """Write class indices by descending score, ties to the smaller one; return the smallest difference of two."""
    for c in range(scores.size):
        k = c
        while k > 0 and scores[order[k - 1]] < scores[c]:
            order[k] = order[k - 1]
            k -= 1
        order[k] = c
    closest = np.inf
    for k in range(1, scores.size):
        closest = min(closest, scores[order[k - 1]] - scores[order[k]])
    return closest


@compiled
def reversing_rows(weights, labels, offset, ladder, rivals, unreachable, costs, margin, decided):
    """Fewest flips that have a voter prefer each class to ``rivals[t]``: exact, however many classes there are."""
    n_classes = offset.size
    scores = np.empty(n_classes)
    for t in range(weights.shape[0]):
        row, rival = weights[t], rivals[t]
        total, _, _ = score_row(row, labels, offset, scores, ladder)
        slack = rounding_slack(total, row.size + n_classes + 8)
        if slack < np.inf:
            build(ladder, row, labels, rival, np.inf, np.inf, n_classes)
            if sums_are_exact(row, offset, total):
                slack = 0.0
        decided[t] = reverse(ladder, scores, rival, slack, unreachable, costs[t], margin[t])


@compiled
def reverse(ladder, scores, rival, slack, unreachable, costs, margin):
    """``reversing_rows`` for a row on a whole ladder; whether all of it was decided."""
    if not slack < np.inf:
        return False
    for c in range(scores.size):
        costs[c] = 0
        margin[c] = np.inf
        if c == rival:
            continue
        gap = scores[rival] - scores[c]
        costs[c], margin[c] = rival_cost(ladder, c, rival, gap, slack, unreachable, 0, unreachable, False)
        if costs[c] == UNDECIDED:
            return False
    return True

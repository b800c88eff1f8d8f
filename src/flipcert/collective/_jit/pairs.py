"""How many flips lift each class above the predicted one, at least. Compiled."""

from __future__ import annotations

import numpy as np

from flipcert.engine.jit import compiled
from flipcert.flips._jit.fewest import fewest
from flipcert.flips._jit.label_gains import label_gains
from flipcert.flips._jit.ladder import rounding_slack


@compiled
def pair_costs(weights, labels, offset, scores, prediction, unreachable, gaps, costs):
    """For each row and class, a lower bound on its gap to the prediction, and on the flips that close it.

    Rounding may make either a little smaller than it is, never larger. The gap is never negative.
    """
    n_classes = scores.shape[1]
    gains = np.empty(weights.shape[1])
    for t in range(weights.shape[0]):
        first = prediction[t]
        total = 0.0
        for c in range(n_classes):
            total += abs(offset[t, c])
        for i in range(weights.shape[1]):
            total += abs(np.float64(weights[t, i]))
        slack = rounding_slack(total, weights.shape[1] + n_classes + 8)
        for c in range(n_classes):
            gaps[t, c] = 0.0
            costs[t, c] = unreachable
            if c == first:
                continue
            if slack == np.inf:
                costs[t, c] = 1
                continue
            gap = scores[t, first] - scores[t, c] - slack
            if not gap > 0.0:
                costs[t, c] = 1
                continue
            gaps[t, c] = gap
            label_gains(weights[t], labels, first, c, gains)
            costs[t, c], _ = fewest(gains, gap - slack, True, 0.0, unreachable)
            costs[t, c] = max(1, costs[t, c])

"""What flipping each label closes at most of the gap between two classes, in doubles. Compiled."""

from __future__ import annotations

import numpy as np

from flipcert.engine.jit import compiled


@compiled
def label_gains(weights, labels, first, rival, gains):
    """Write to ``gains`` what each label closes of the gap from ``first`` down to ``rival``, if it is flipped well."""
    for i in range(gains.size):
        weight = np.float64(weights[i])
        if not labels.movable[i]:
            gains[i] = 0.0
        elif labels.codes[i] == first:
            gains[i] = 2.0 * weight
        elif labels.codes[i] == rival:
            gains[i] = -2.0 * weight
        else:
            gains[i] = abs(weight)

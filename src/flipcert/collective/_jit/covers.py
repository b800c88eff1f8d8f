"""Units to leave out of a cut. Compiled."""

from __future__ import annotations

import numpy as np

from flipcert.engine.jit import compiled


@compiled
def leave_out(gains, floor, room, left_out, closed):
    """Leave out units in their order, but those after which some gap would be closed beyond its room.

    ``gains`` are of shape (n_units, n_rivals); what the units left out close above the floor is written to ``closed``.
    """
    closed[:] = 0.0
    for k in range(gains.shape[0]):
        fits = True
        for c in range(floor.size):
            fits &= closed[c] + max(gains[k, c] - floor[c], 0.0) <= room[c]
        left_out[k] = fits
        if fits:
            for c in range(floor.size):
                closed[c] += max(gains[k, c] - floor[c], 0.0)
    return np.count_nonzero(left_out[: gains.shape[0]])

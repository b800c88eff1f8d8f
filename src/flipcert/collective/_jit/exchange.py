"""What single flips do to many points at once. Compiled.

Scores have shape (n_classes, n_points): all points of a class lie side by side. Ties are broken in them already.
"""

from __future__ import annotations

import numpy as np

from flipcert.engine.jit import compiled, compiled_in_any_order


@compiled
def slopes(scores, own, scale, weight, heat, out):
    """How a smooth count of changed points grows with each score.

    A point counts as a sigmoid of its lead, in units of heat times scale; its rivals share the slope by their nearness.
    """
    n_classes = scores.shape[0]
    for t in range(scores.shape[1]):
        a = own[t]
        best = -np.inf
        for c in range(n_classes):
            out[c, t] = 0.0
            if c != a and scores[c, t] > best:
                best = scores[c, t]
        width = heat * scale[t]
        z = (scores[a, t] - best) / width
        # Scores that overflowed have no lead.
        if not abs(z) <= 30.0:
            continue
        sigmoid = 1.0 / (1.0 + np.exp(z))
        slope = weight[t] * sigmoid * (1.0 - sigmoid) / width
        total = 0.0
        for c in range(n_classes):
            if c != a:
                near = (scores[c, t] - best) / width
                if near > -12.0:
                    out[c, t] = np.exp(near)
                    total += out[c, t]
        if total > 0.0:
            for c in range(n_classes):
                out[c, t] *= slope / total
            out[a, t] = -slope


@compiled_in_any_order
def trials(rows, which, old, new, scores, own, unit, weight, nearly, out):
    """What an attack is worth after each of some flips: rows ``which`` from class ``old`` to ``new``.

    A changed point counts for its weight, another for ``nearly`` of that at a lead of 0, and for nothing from 8 units
    on: (1 - lead / (8 units)) ** 8, which is close to an exponential and quicker. Flips between the same two classes
    should stand together.
    """
    n_classes, n_points = scores.shape
    rival = scores.copy()
    mine = np.empty(n_points)
    for t in range(n_points):
        mine[t] = scores[own[t], t]
        rival[own[t], t] = -np.inf
    steep = 0.125 / unit
    rest, side = np.empty(n_points), np.empty(n_points)
    for k in range(which.size):
        y, to = old[k], new[k]
        if k == 0 or y != old[k - 1] or to != new[k - 1]:
            rest[:] = -np.inf
            for c in range(n_classes):
                if c != y and c != to:
                    for t in range(n_points):
                        rest[t] = max(rest[t], rival[c, t])
            for t in range(n_points):
                side[t] = -1.0 if own[t] == y else 1.0 if own[t] == to else 0.0
        row, lost, won = rows[which[k]], rival[y], rival[to]
        total = 0.0
        for t in range(n_points):
            w = row[t]
            lead = mine[t] + w * side[t] - max(rest[t], max(lost[t] - w, won[t] + w))
            near = max(0.0, 1.0 - steep[t] * lead)
            near *= near
            near *= near
            total += weight[t] * (1.0 if lead < 0.0 else nearly * near * near)
        out[k] = total

"""How samples and classes act on each other, the strongest of these actions, and what they amount to. Compiled."""

from __future__ import annotations

import numpy as np

from flipcert.engine.jit import compiled


@compiled
def strongest(table, p, P, values, places, rest):
    """For one sample i and each class k: the forms of its centred score with those of all (class, sample) entries.

    ``table[k, l, j]`` is the form at sample i and class k, sample j and class l; ``p`` are the probabilities of sample
    i, ``P[l, j]`` those of all. The largest forms by size go to ``values[k]`` with their places in ``P.ravel()``, 0
    where there are fewer; no other is larger than ``rest[k]``.
    """
    K, n = P.shape
    keep = values.shape[1]
    mean = np.zeros((K, n))
    for k in range(K):
        for to in range(K):
            for j in range(n):
                mean[to, j] += p[k] * table[k, to, j]
    form, sizes, centre = np.empty((K, n)), np.empty(K * n), np.empty(n)
    for k in range(K):
        centre[:] = 0.0
        for to in range(K):
            for j in range(n):
                form[to, j] = table[k, to, j] - mean[to, j]
                centre[j] += P[to, j] * form[to, j]
        for to in range(K):
            for j in range(n):
                form[to, j] -= centre[j]
                sizes[to * n + j] = abs(form[to, j])
        rest[k] = np.partition(sizes, K * n - 1 - keep)[K * n - 1 - keep] if K * n > keep else 0.0
        kept = 0
        for place in range(K * n):
            if sizes[place] > rest[k]:
                values[k, kept] = form[place // n, place % n]
                places[k, kept] = place
                kept += 1
        values[k, kept:] = 0.0
        places[k, kept:] = 0


@compiled
def remainders(values, places, rest, error, room, caps, second, over, shares, up, down):
    """No remainder of an entry (rows) is above ``up`` or below minus ``down``: the theorem, for some alphas.

    ``room`` is 1 - b of each entry (its smallest value first decides which alpha leaves all but the kept forms aside),
    ``caps`` what each can contribute, ``second`` what is multiplied by alpha, ``over`` what is divided by it. Tried are
    the smallest such alpha, and ``shares`` of what the largest form would need more.
    """
    least = room.min()
    for row in range(rest.size):
        off = error[row]
        largest = 0.0
        for value in values[row]:
            largest = max(largest, abs(value))
        up[row] = np.inf
        down[row] = np.inf
        for share in shares:
            alpha = (rest[row] + share * max(largest - rest[row], 0.0) + off) / least * (1.0 + 1e-14) + 1e-200
            above, below = 0.0, 0.0
            for entry in range(values.shape[1]):
                place = places[row, entry]
                free = alpha * room[place] - off
                above += caps[place] * max(values[row, entry] - free, 0.0)
                below += caps[place] * max(-values[row, entry] - free, 0.0)
            paid = alpha * second + over[row] / alpha
            up[row] = min(up[row], above + paid)
            down[row] = min(down[row], below + paid)

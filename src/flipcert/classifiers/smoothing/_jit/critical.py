"""How improbable an event must be so that r flips leave it below one half (Neyman and Pearson). Compiled."""

from __future__ import annotations

import numpy as np

from flipcert.engine.jit import compiled

_UNIT = 2.0**-53


@compiled
def critical_table(flip_probability, n_classes, lowest, most):
    """Logarithms of the critical probabilities of 1, 2, ... flips, until one is below ``lowest`` or for ``most`` flips.

    A flip from y to y' changes the law of one noisy label: the likelihood ratio is ``ratio ** s`` with s = 1 if the
    noise draws y', -1 if it draws y, else 0. After r flips, the event of a given probability under the clean law that
    is most probable under the attacked one collects the largest sums s first. The critical probability is that of the
    event with probability one half under the attacked law. Everything is rounded down.
    """
    move = flip_probability / (n_classes - 1.0)
    keep = 1.0 - flip_probability
    stay = flip_probability * (n_classes - 2.0) / (n_classes - 1.0)
    log_ratio = np.log(keep / move)
    table = np.empty(64)
    # attacked[j]: probability that s = r - j under the attacked law
    attacked = np.ones(1)
    r = 0
    while r < most and (r == 0 or table[r - 1] >= lowest):
        r += 1
        longer = np.zeros(2 * r + 1)
        for j in range(attacked.size):
            longer[j] += keep * attacked[j]
            longer[j + 1] += stay * attacked[j]
            longer[j + 2] += move * attacked[j]
        attacked = longer
        if r > table.size:
            larger = np.empty(2 * table.size)
            larger[: table.size] = table
            table = larger
        # Three products and sums a step, each off by a unit at most; masses that underflow are smaller than that.
        rounding = (8.0 * r + 32.0) * _UNIT
        missing = 0.5 * (1.0 - 2.0 * rounding)
        j = 0
        while attacked[j] < missing:
            missing -= attacked[j]
            j += 1
        clean = missing
        factor = 1.0
        for k in range(j - 1, -1, -1):
            factor *= move / keep
            clean += attacked[k] * factor
        value = np.log(clean) - log_ratio * (r - j)
        table[r - 1] = value - 2.0 * rounding * (1.0 + abs(log_ratio) * r)
    return table[:r]

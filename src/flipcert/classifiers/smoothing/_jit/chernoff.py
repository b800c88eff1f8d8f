"""Chernoff bounds on noisy margins, sample by sample. Compiled.

With labels Y under noise, class a is not ahead of class c if ``m = sum_i w_i ([Y_i = a] - [Y_i = c]) <= 0``, which has
probability at most ``exp(Psi(t))`` for every ``t >= 0``, ``Psi(t) = sum_i log E exp(-t w_i ([Y_i = a] - [Y_i = c]))``.
A term depends on the label of sample i only by whether it is a, c or another class. ``_jit/binned.py``
finds t, and bounds that mostly are sharp enough; here are the bounds at a given t.
"""

from __future__ import annotations

import numpy as np

from flipcert.classifiers.smoothing._jit.binned import rounding
from flipcert.engine.jit import compiled


@compiled
def terms(size, law):
    """Moments of one sample, ``exp(size)`` taken out, size = t |w|: speaking for the pair, against it, or of neither.

    A law has the probability of a label itself, of each other one, and of all but two others.
    """
    keep, move, stay = law
    e = np.exp(-size)
    square = e * e
    return (
        move + keep * square + stay * e,
        keep + move * square + stay * e,
        move + move * square + (1.0 - 2.0 * move) * e,
    )


@compiled
def exponent(weights, codes, first, c, t, law):
    """Exponent of the pair of c and the predicted class at one t, its first and second derivative, and its rounding."""
    keep, move, stay = law
    value = slope = bend = distance = 0.0
    product = 1.0
    for i in range(weights.size):
        size = abs(np.float64(weights[i]))
        near, far, rest = move, move, 1.0 - 2.0 * move
        if codes[i] == first or codes[i] == c:
            rest = stay
            if (weights[i] > 0.0) == (codes[i] == first):
                far = keep
            else:
                near = keep
        e = np.exp(-t * size)
        square = e * e
        total = near + far * square + rest * e
        tilt = (near - far * square) / total
        distance += t * size
        slope += size * tilt
        bend += size * size * ((near + far * square) / total - tilt * tilt)
        # A product instead of a sum of logarithms, as long as nothing underflows.
        product *= total
        if product < 1e-150:
            value += np.log(product)
            product = 1.0
    return value + np.log(product) + distance, slope, bend, rounding(weights.size, distance, move)


@compiled
def sharpen_rows(weights, codes, first, law, wanted, times, log_p):
    """Newton's method for the wanted bounds of a block, from near the minimum; wherever it leads, values are bounds."""
    for i in range(weights.shape[0]):
        for c in range(log_p.shape[1]):
            t = times[i, c]
            steps = 0
            while wanted[i, c] and t > 0.0 and steps < 4:
                value, slope, bend, slack = exponent(weights[i], codes, first[i], c, t, law)
                log_p[i, c] = min(log_p[i, c], value + slack)
                # What is left to win, by the parabola, is next to nothing.
                steps = 4 if slope * slope <= -1e-9 * value * bend else steps + 1
                t = t - slope / bend if bend > 0.0 else 0.0

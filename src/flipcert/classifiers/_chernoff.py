"""Chernoff bounds on noisy margins, and the flips that could undo them. Compiled.

With labels Y under noise, class a is not ahead of class c if ``m = sum_i w_i ([Y_i = a] - [Y_i = c]) <= 0``, which has
probability at most ``exp(Psi(t))`` for every ``t >= 0``, ``Psi(t) = sum_i log E exp(-t w_i ([Y_i = a] - [Y_i = c]))``.
A term depends on the label of sample i only by whether it is a, c or another class. So one pass over the samples
serves all pairs of classes at the same t, and since any t is valid, pairs share a grid of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from flipcert.engine.jit import compiled

# Neighbouring values of t on the shared grid. The exponent is flat near its minimum: half a step loses 0.2 % of it.
_STEP = 1.1
_LOG_HALF = np.log(0.5)
_UNIT = 2.0**-53


class Packed(NamedTuple):
    """A row of weights as the exponents need it.

    ``sizes[bounds[2 c] : bounds[2 c + 1]]`` are the sizes of the weights of class c that speak for the pair: of the
    predicted class and positive, or of another and negative. Those up to ``bounds[2 c + 2]`` speak against it.
    """

    sizes: Any
    bounds: Any
    first: Any


@compiled
def pack(weights, codes, first, n_classes):
    """Group the weights of a row; zeros do not matter."""
    counts = np.zeros(2 * n_classes + 1, np.int64)
    for i in range(weights.size):
        if weights[i] != 0.0:
            counts[2 * codes[i] + ((weights[i] > 0.0) != (codes[i] == first)) + 1] += 1
    bounds = np.cumsum(counts)
    places = bounds.copy()
    sizes = np.empty(bounds[2 * n_classes])
    for i in range(weights.size):
        if weights[i] != 0.0:
            group = 2 * codes[i] + ((weights[i] > 0.0) != (codes[i] == first))
            sizes[places[group]] = abs(np.float64(weights[i]))
            places[group] += 1
    return Packed(sizes, bounds, first)


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
def gather(packed, t, law, sums):
    """Add up exponents by class at one t.

    ``sums[0, c]``: samples of class c as such, in the pair of c and the predicted class; ``sums[1, c]``: as of neither.
    Returns a bound on what rounding may have done to any of the sums.
    """
    keep, move, stay = law
    distance = 0.0
    for c in range(sums.shape[1]):
        own = neither = size = 0.0
        for group in range(2):
            begin, end = packed.bounds[2 * c + group], packed.bounds[2 * c + group + 1]
            near, far = (move, keep) if group == 0 else (keep, move)
            logs = _logarithms(packed.sizes[begin:end], t, near, far, stay, move)
            size += logs[0]
            own += logs[1]
            neither += logs[2]
        sums[0, c] = own + size
        sums[1, c] = neither + size
        distance += size
    return _rounding(packed, distance, move)


@compiled
def _logarithms(sizes, t, near, far, stay, move):
    """Sums of the sizes and of the logarithms of two kinds of terms."""
    total = own = neither = 0.0
    own_product = neither_product = 1.0
    middle = 1.0 - 2.0 * move
    for size in sizes:
        distance = t * size
        e = np.exp(-distance)
        square = e * e
        total += distance
        # Products instead of sums of logarithms, as long as nothing underflows.
        own_product *= near + far * square + stay * e
        neither_product *= move + move * square + middle * e
        if own_product < 1e-150:
            own += np.log(own_product)
            own_product = 1.0
        if neither_product < 1e-150:
            neither += np.log(neither_product)
            neither_product = 1.0
    return total, own + np.log(own_product), neither + np.log(neither_product)


@compiled
def _rounding(packed, distance, move):
    """What rounding does at most to a sum of exponents.

    Each term errs by a few units in the last place of its size and of one; sums of n terms by n units of all.
    """
    n = packed.sizes.size
    return 4.0 * _UNIT * (n + 16.0) * (2.0 * distance + n * (1.0 - np.log(move)))


@compiled
def pair_exponent(sums, first, c):
    """Exponent of the pair (first, c)."""
    total = sums[0, first] + sums[0, c]
    for k in range(sums.shape[1]):
        if k != first and k != c:
            total += sums[1, k]
    return total


@compiled
def exponent(packed, c, t, law):
    """Exponent of the pair of c and the predicted class at one t, its first and second derivative, and its rounding."""
    keep, move, stay = law
    value = slope = bend = distance = 0.0
    for group in range(packed.bounds.size - 1):
        if group >> 1 == c or group >> 1 == packed.first:
            near, far, middle = (move, keep, stay) if group & 1 == 0 else (keep, move, stay)
        else:
            near, far, middle = move, move, 1.0 - 2.0 * move
        for size in packed.sizes[packed.bounds[group] : packed.bounds[group + 1]]:
            e = np.exp(-t * size)
            square = e * e
            total = near + far * square + middle * e
            tilt = (near - far * square) / total
            value += t * size + np.log(total)
            distance += t * size
            slope += size * tilt
            bend += size * size * ((near + far * square) / total - tilt * tilt)
    return value, slope, bend, _rounding(packed, distance, move)


@compiled
def chernoff_rows(weights, codes, first, law, log_p):
    """Chernoff bounds of a block of rows."""
    for t in range(weights.shape[0]):
        chernoff_row(weights[t], codes, first[t], log_p.shape[1], law, log_p[t])


@compiled
def withstand_rows(weights, coded, first, law, unreachable, costs):
    """White-box costs of a block of rows."""
    for t in range(weights.shape[0]):
        withstand_row(weights[t], coded.codes, coded.movable, first[t], costs.shape[1], law, unreachable, costs[t])


@compiled
def chernoff_row(weights, codes, first, n_classes, law, log_p):
    """Smallest exponent found for each class against ``first``, rounded up; 0 where that is all there is."""
    log_p[:] = 0.0
    packed = pack(weights, codes, first, n_classes)
    grid = search_grid(packed, n_classes, law)
    if grid.size == 0:
        return
    sums = np.empty((2, n_classes))
    best_t = np.zeros(n_classes)
    for t in grid:
        slack = gather(packed, t, law, sums)
        for c in range(n_classes):
            if c != first:
                value = pair_exponent(sums, first, c) + slack
                if value < log_p[c]:
                    log_p[c] = value
                    best_t[c] = t
    for c in range(n_classes):
        t = best_t[c]
        for _ in range(3):
            # Newton's method from a neighbour of the minimum; wherever it leads, the value is a bound.
            if t > 0.0:
                value, slope, bend, slack = exponent(packed, c, t, law)
                log_p[c] = min(log_p[c], value + slack)
                t = t - slope / bend if bend > 0.0 else 0.0


@compiled
def withstand_row(weights, codes, movable, first, n_classes, law, unreachable, costs):
    """For each class one flip more than leave the exponent of its pair with ``first`` below log 1/2 for certain.

    At one t, flipping sample i raises the exponent by at most a gain that depends on its weight alone and grows with
    its size: a larger one if its label is the class of the pair that it speaks for, a smaller one if it is neither. So
    the worst flips are the largest weights of these two lists, and what they add is a bound for all sets of flips.
    """
    for c in range(n_classes):
        costs[c] = 0 if c == first else 1
    packed = pack(weights, codes, first, n_classes)
    grid = search_grid(packed, n_classes, law)
    if grid.size == 0:
        return
    order = _largest_first(weights, movable)
    sums = np.empty((2, n_classes))
    gains = np.empty((2, order.size))
    for t in grid:
        slack = gather(packed, t, law, sums)
        known = 0
        for c in range(n_classes):
            if c == first or costs[c] == unreachable:
                continue
            budget = _LOG_HALF - pair_exponent(sums, first, c) - slack
            if budget > 0.0:
                flips, known = _affordable(weights, codes, order, first, c, t, law, budget, gains, known)
                costs[c] = unreachable if flips < 0 else max(costs[c], flips + 1)


@compiled
def _affordable(weights, codes, order, first, c, t, law, budget, gains, known):
    """Flips whose gains stay below ``budget`` whichever they are (-1: all flips there are), and the gains known now."""
    flips = 0
    once = twice = 0  # places on the two lists
    # What adding up gains may have lost, some units in the last place of each.
    budget *= 1.0 - 64.0 * _UNIT
    while True:
        while twice < order.size and _pair_gain(weights, codes, order[twice], first, c) != 2:
            twice += 1
        while once < order.size and _pair_gain(weights, codes, order[once], first, c) != 1:
            once += 1
        if once == order.size and twice == order.size:
            return -1, known
        while known < order.size and known <= max(once % order.size, twice % order.size):
            size = t * abs(np.float64(weights[order[known]]))
            speaks_for, against, neither = terms(size, law)
            gains[0, known] = np.log(against / neither)
            gains[1, known] = np.log(against / speaks_for)
            known += 1
        small = gains[0, once] if once < order.size else -1.0
        large = gains[1, twice] if twice < order.size else -1.0
        budget -= max(small, large) * (1.0 + 64.0 * _UNIT) + 64.0 * _UNIT
        if budget <= 0.0:
            return flips, known
        flips += 1
        if large >= small:
            twice += 1
        else:
            once += 1


@compiled
def _pair_gain(weights, codes, i, first, c):
    """0 if no flip of sample i raises the exponent of the pair, 2 if one moves its weight across, else 1."""
    if codes[i] != first and codes[i] != c:
        return 1
    return 2 if (weights[i] > 0.0) == (codes[i] == first) else 0


@compiled
def _largest_first(weights, movable):
    """Samples that can be flipped to some effect, largest weight first."""
    usable = np.empty(weights.size, np.int64)
    count = 0
    for i in range(weights.size):
        if movable[i] and weights[i] != 0.0:
            usable[count] = i
            count += 1
    usable = usable[:count]
    sizes = np.empty(count)
    for j in range(count):
        sizes[j] = -abs(np.float64(weights[usable[j]]))
    return usable[np.argsort(sizes, kind="mergesort")]


@compiled
def search_grid(packed, n_classes, law):
    """Values of t that matter: from where exponents can fall below log 1/2 to where the last one starts to rise."""
    first = packed.first
    total = packed.sizes.sum()
    # The exponent falls no faster than by the sum of all weights.
    lowest = -_LOG_HALF / total if total > 0.0 else np.inf
    if not lowest < 1e300 or lowest == 0.0:
        return np.empty(0)
    sums = np.empty((2, n_classes))
    previous = np.zeros(n_classes)
    t = lowest
    smallest, largest = np.inf, 0.0
    falling = True
    steps = 0
    while falling and steps < 1000:
        gather(packed, t, law, sums)
        falling = False
        for c in range(n_classes):
            if c != first:
                value = pair_exponent(sums, first, c)
                if value < previous[c]:
                    falling = True
                    # Even halfway between the steps it will not go down much further than this.
                    if value < 0.5 * _LOG_HALF:
                        smallest = min(smallest, t)
                        largest = t
                previous[c] = value
        t *= 2.0
        steps += 1
    if largest == 0.0:
        return np.empty(0)
    # `smallest` is where some exponent first gets near the limit: attacks are judged from there on.
    start = max(lowest, smallest * 0.5)
    count = int(np.ceil(np.log(2.0 * largest / start) / np.log(_STEP))) + 1
    grid = np.empty(count)
    for j in range(count):
        grid[j] = start * _STEP**j
    return grid

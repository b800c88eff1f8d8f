"""How many flips leave a Chernoff bound below one half, whichever they are. Compiled.

At one t, flipping sample i raises the exponent of a pair by at most a gain that depends on its weight alone and grows
with its size: a larger one if its label is the class of the pair that it speaks for, a smaller one if it is neither. So
the worst flips are the largest weights of these two lists, and what they add is a bound for all sets of flips.
"""

from __future__ import annotations

import numpy as np

from flipcert.classifiers.smoothing._jit.binned import (
    HOPE,
    LOG_HALF,
    N_BINS,
    N_TIMES,
    ONCE,
    PARTS,
    STEPS,
    TWICE,
    UNIT,
    evaluate,
    fill,
    loss_of,
    search,
    time_of,
)
from flipcert.classifiers.smoothing._jit.chernoff import exponent, terms
from flipcert.engine.jit import compiled

ALL = np.inf
TRUNCATED = -2.0
# Steps of the search over t: so far at first; with true gains from here on.
_COARSE, _EXACT = STEPS // 2, 4
# A part of a flip is never a whole one.
_PART = 1.0 - 2.0**-20


@compiled
def withstand_rows(weights, coded, first, law, curves, bins, unreachable, costs):
    """White-box costs of a block of rows."""
    for t in range(weights.shape[0]):
        _withstand_row(weights[t], coded.codes, coded.movable, first[t], law, curves, bins, unreachable, costs[t])


@compiled
def _withstand_row(weights, codes, movable, first, law, curves, bins, unreachable, costs):
    """For each class one flip more than leave the exponent of its pair with ``first`` below log 1/2 for certain."""
    costs[:] = 1
    costs[first] = 0
    scale, total = fill(bins, weights, codes, first)
    if total == 0.0:
        return
    best = np.empty(costs.size, np.int64)
    search(bins, curves, first, total, law[1], best)
    wanted = 64 + weights.size // 64
    order, complete = _largest_first(weights, movable, bins, wanted)
    for c in range(costs.size):
        # Whether the bound is below one half is as open as any number of flips.
        if c == first or best[c] < 0:
            continue
        while True:
            flips = _most_flips(weights, codes, order, complete, first, c, scale, total, law, curves, bins, best[c])
            if flips != TRUNCATED:
                break
            wanted *= 8
            order, complete = _largest_first(weights, movable, bins, wanted)
        costs[c] = unreachable if flips == ALL else int(flips) + 1


@compiled
def _most_flips(weights, codes, order, complete, first, c, scale, total, law, curves, bins, start):
    """Most flips that are harmless at some t: a search over t, from far with approximate gains, then a proof."""
    number = start
    reach = -np.inf
    step = _COARSE
    while step > 0:
        if step == _EXACT:
            reach = -np.inf
        at = number
        for near in (at, max(at - step, 0), min(at + step, N_TIMES - 1)):
            if near == at and reach > -np.inf:
                continue
            evaluate(bins, curves, first, total, law[1], near)
            if step > _EXACT:
                there = _near(weights, codes, order, complete, first, c, curves, bins, near)
            else:
                budget = LOG_HALF - bins.values[near, c] + loss_of(bins, curves, first, c, near)
                there = _affordable(weights, codes, order, complete, first, c, time_of(near) * scale, law, budget)
            if there == TRUNCATED:
                return TRUNCATED
            if there > reach:
                reach = there
                number = near
        if number == at or step < _COARSE:
            step //= 2
    t = time_of(number) * scale
    value, loss = bins.values[number, c], loss_of(bins, curves, first, c, number)
    flips = _affordable(weights, codes, order, complete, first, c, t, law, LOG_HALF - value)
    hope = _affordable(weights, codes, order, complete, first, c, t, law, LOG_HALF - value + HOPE * loss)
    if flips == TRUNCATED or hope == TRUNCATED:
        return TRUNCATED
    if np.floor(hope) > np.floor(flips):
        value, _, _, slack = exponent(weights, codes, first, c, t, law)
        flips = max(flips, _affordable(weights, codes, order, complete, first, c, t, law, LOG_HALF - value - slack))
    return flips


@compiled
def _near(weights, codes, order, complete, first, c, curves, bins, number):
    """About how many flips are harmless at the t of one number, with a part of the next (ALL: all there are)."""
    octave, step = number // STEPS, number % STEPS
    start = octave * PARTS - 1
    once_gains, twice_gains = curves.gains[step, ONCE], curves.gains[step, TWICE]
    budget = LOG_HALF - bins.values[number, c]
    if budget <= 0.0:
        return 0.0
    flips = 0
    once = twice = 0
    while True:
        once = _next(weights, codes, order, first, c, once, 1)
        twice = _next(weights, codes, order, first, c, twice, 2)
        if once == order.size or twice == order.size:
            if not complete:
                return TRUNCATED
            if once == twice:
                return ALL
        small = once_gains[start + max(bins.places[order[once]], 1)] if once < order.size else 0.0
        large = twice_gains[start + max(bins.places[order[twice]], 1)] if twice < order.size else 0.0
        gain = max(small, large)
        if gain >= budget:
            return flips + budget / gain
        budget -= gain
        flips += 1
        if large >= small and twice < order.size:
            twice += 1
        else:
            once += 1


@compiled
def _affordable(weights, codes, order, complete, first, c, t, law, budget):
    """Flips whose gains stay below ``budget`` whichever they are, with a part of the next (ALL: all there are)."""
    flips = 0
    once = twice = 0  # places on the two lists
    small = large = np.nan
    # What adding up gains may have lost, some units in the last place of each.
    budget *= 1.0 - 64.0 * UNIT
    if budget <= 0.0:
        return 0.0
    while True:
        if np.isnan(small):
            once = _next(weights, codes, order, first, c, once, 1)
            small = -1.0
            if once < order.size:
                _, against, neither = terms(t * abs(np.float64(weights[order[once]])), law)
                small = np.log(against / neither)
        if np.isnan(large):
            twice = _next(weights, codes, order, first, c, twice, 2)
            large = -1.0
            if twice < order.size:
                speaks_for, against, _ = terms(t * abs(np.float64(weights[order[twice]])), law)
                large = np.log(against / speaks_for)
        if once == order.size or twice == order.size:
            if not complete:
                return TRUNCATED
            if once == twice:
                return ALL
        gain = max(small, large) * (1.0 + 64.0 * UNIT) + 64.0 * UNIT
        if budget <= gain:
            return flips + min(budget / gain, _PART)
        budget -= gain
        flips += 1
        if large >= small:
            twice += 1
            large = np.nan
        else:
            once += 1
            small = np.nan


@compiled
def _next(weights, codes, order, first, c, place, kind):
    """The next place on one of the two lists: samples of neither class (1), or of one that they speak for (2)."""
    while place < order.size:
        i = order[place]
        own = 1
        if codes[i] == first or codes[i] == c:
            own = 2 if (weights[i] > 0.0) == (codes[i] == first) else 0
        if own == kind:
            break
        place += 1
    return place


@compiled
def _largest_first(weights, movable, bins, wanted):
    """Samples that can be flipped to some effect, largest weight first, and whether these are all.

    Whole bins from the top, until there are as many as wanted.
    """
    counts = np.zeros(N_BINS, np.int64)
    for c in range(bins.merged.shape[0]):
        for b in range(N_BINS):
            counts[b] += int(bins.merged[c, b])
    lowest, found = N_BINS, 0
    while lowest > 0 and found < wanted:
        lowest -= 1
        found += counts[lowest]
    usable = np.empty(found, np.int64)
    sizes = np.empty(found)
    count = 0
    for i in range(weights.size):
        if bins.places[i] >= lowest and movable[i] and weights[i] != 0.0:
            usable[count] = i
            sizes[count] = -bins.sizes[i]
            count += 1
    return usable[:count][np.argsort(sizes[:count], kind="mergesort")], lowest == 0

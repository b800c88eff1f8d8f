"""One row of weights, made ready for the compiled algorithms.

A *ladder* holds the weights that an attacker can move, largest magnitude first: ``value[i] = |w|``,
``group[i] = 2 * class + (w < 0)`` and ``index[i]``, the training sample. Every algorithm in this package walks a
ladder from the top, because the largest weights always go first.

The algorithms compare sums of weights. ``slack`` bounds the rounding error of every such sum rigorously, so a
comparison whose two sides differ by more than ``slack`` is proven; one that does not is ``UNDECIDED`` and left to
exact arithmetic. ``slack == 0`` says that all sums are exact as they stand, ties included.

The algorithms are written for any numbers: compiled, they run on doubles; ``flipcert.flips.rows`` interprets the
same source on Python integers. So they may only add, subtract, double and compare what comes from a row.
"""

from __future__ import annotations

import math

import numpy as np

from flipcert.engine.jit import compiled

UNDECIDED = -1
UNIT_ROUNDOFF = 2.0**-53
# A double holds every integer multiple of a power of two up to this many multiples.
EXACT_MULTIPLES = 2.0**53
# The largest total for which four times it still is a finite double.
LARGEST_TOTAL = 2.0**1020


@compiled
def fill_ladder(row, members, starts, value, group, index):
    """Write the non-zero movable weights of ``row`` to the ladder and return how many there are.

    ``members`` lists the movable samples class by class; class ``c`` owns ``members[starts[c]:starts[c + 1]]``.
    """
    size = 0
    for c in range(starts.size - 1):
        for position in range(starts[c], starts[c + 1]):
            weight = np.float64(row[members[position]])
            if weight != 0.0:
                value[size] = abs(weight)
                group[size] = 2 * c + (1 if weight < 0.0 else 0)
                index[size] = members[position]
                size += 1
    # Stable, so that equal weights keep the order of their classes and samples.
    order = np.argsort(-value[:size], kind="mergesort")
    value[:size] = value[:size][order]
    group[:size] = group[:size][order]
    index[:size] = index[:size][order]
    return size


@compiled
def sum_scores(row, labels, offset, scores):
    """Add up the class scores; return the sum of all magnitudes that went into them."""
    total = 0.0
    for c in range(scores.size):
        scores[c] = offset[c]
        total += abs(offset[c])
    for i in range(labels.size):
        weight = np.float64(row[i])
        scores[labels[i]] += weight
        total += abs(weight)
    return total


@compiled
def rounding_slack(total, n_terms):
    """Bound the error of every sum that an algorithm forms from a row.

    The two sides of a comparison together take at most ``6 * n_terms`` additions, every partial result stays below
    ``2 * total`` in magnitude, and an addition errs by at most a unit roundoff of its result: 12 would do; 16 also
    covers the rounding of ``total`` and of this bound itself. The last term covers underflow of the product.
    """
    if not total < LARGEST_TOTAL:
        return np.inf
    return 16.0 * n_terms * UNIT_ROUNDOFF * total + 5e-324


@compiled
def sums_are_exact(row, offset, total):
    """Tell whether every sum and difference of these numbers is a double, so that no addition rounds.

    True when all are multiples of one power of two that is not too small beside their total: integers, quantised
    features, equal votes. Such rows are the ones with real ties.
    """
    if not total < LARGEST_TOTAL:
        return False
    lowest = 2000
    for part in range(2):
        size = row.size if part == 0 else offset.size
        for i in range(size):
            number = np.float64(row[i]) if part == 0 else offset[i]
            if number != 0.0:
                mantissa, exponent = math.frexp(abs(number))
                bits = np.int64(mantissa * EXACT_MULTIPLES)
                bit = 0
                while bits & 1 == 0:
                    bits >>= 1
                    bit += 1
                lowest = min(lowest, exponent - 53 + bit)
    if lowest == 2000:
        return True
    # total / 2**lowest, in two steps that cannot overflow on the way
    scaled = math.ldexp(total, -(lowest // 2))
    return math.ldexp(scaled, -(lowest - lowest // 2)) * 4.0 < EXACT_MULTIPLES


@compiled
def beats(difference, wins_ties, slack):
    """1 if a lead of ``difference`` wins, 0 if it does not, UNDECIDED if rounding could change the answer."""
    if difference > slack:
        return 1
    if difference < -slack:
        return 0
    if slack == 0.0:
        return 1 if wins_ties else 0
    return UNDECIDED


@compiled
def leader(scores, slack):
    """Return the class with the highest score, ties to the smaller index, or UNDECIDED."""
    best = 0
    for c in range(1, scores.size):
        if scores[c] > scores[best]:
            best = c
    return best if is_ahead(scores, best, slack) == 1 else UNDECIDED


@compiled
def is_ahead(scores, c, slack):
    """1 if class ``c`` beats every other class, 0 if some class beats it, else UNDECIDED."""
    answer = 1
    for q in range(scores.size):
        if q != c:
            wins = beats(scores[c] - scores[q], c < q, slack)
            if wins == 0:
                return 0
            if wins == UNDECIDED:
                answer = UNDECIDED
    return answer


@compiled
def runner_up(scores, first):
    """Return the class with the second highest score; a tie here is never a claim, so rounding may decide it."""
    second = -1
    for c in range(scores.size):
        if c != first and (second < 0 or scores[c] > scores[second]):
            second = c
    return second

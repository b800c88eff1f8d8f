"""One row of weights, made ready for the compiled algorithms, and the comparisons they make.

A *ladder* holds weights that an attacker can move, largest magnitude first. Every algorithm in this package walks a
ladder from the top, because the largest weights always go first; few get far, so the ladder of a long row is cut off
(see ``select.py``). An algorithm that would have to look below the cut answers ``TRUNCATED`` and is run
again on a longer ladder.

The algorithms compare sums of weights. ``slack`` bounds the rounding error of every such sum rigorously, so a
comparison whose two sides differ by more than ``slack`` is proven; one that does not is ``UNDECIDED`` and left to
exact arithmetic. ``slack == 0`` says that all sums are exact as they stand, ties included.

The algorithms are written for any numbers: compiled, they run on doubles; ``flipcert.flips.rows`` interprets the
same source on Python integers. So they may only add, subtract, double and compare what comes from a row.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from flipcert.engine._jit.bits import lowest_bit
from flipcert.engine.jit import compiled

UNDECIDED = -1
TRUNCATED = -2
UNIT_ROUNDOFF = 2.0**-53
# A double holds every integer multiple of a power of two up to this many multiples.
EXACT_MULTIPLES = 2.0**53
# The largest total for which four times it still is a finite double.
LARGEST_TOTAL = 2.0**1020
MOST_BUCKETS = 8192
N_BINS = 256


# Rows of ``Ladder.rungs``: of each rung, of each group, of each class; the flips of an attack; working space.
GROUP, INDEX, PLACE, RANK, START, HEADS, TAKEN, KEPT, LEAST, MOST, CHOSEN, NEW_CLASS, BUCKETS, COUNT = range(14)
# Rows of ``Ladder.numbers``: of each rung, of each group; working space for classes and for whole rows.
VALUE, FLOOR, DEEPEST, CURRENT, GAINS, MIXTURE, BEST_MIXTURE, FACTORS, SPARE, TOPS, BINS = range(11)


class Ladder(NamedTuple):
    """Weights of a row in order, and room to work in: one table of whole numbers, one of the row's own numbers.

    Two tables rather than many arrays, because compiled code hands over every array of a call one by one.

    Rung i is a movable weight w of class c: ``numbers[VALUE, i] = |w|``, ``rungs[GROUP, i] = 2 * c + (w < 0)``, and
    ``rungs[INDEX, i]`` the training sample. There are ``rungs[COUNT, 0]`` of them. The rungs of group g, largest first,
    are ``rungs[PLACE, rungs[START, g]:rungs[START, g + 1]]``, and ``rungs[RANK, i]`` is a rung's place among them.
    Weights of group g that are not on the ladder are at most ``numbers[FLOOR, g]``, all of them at most
    ``numbers[DEEPEST, 0]``; zero says that none is missing.
    """

    rungs: Any
    numbers: Any


def new_ladder(size: int, n_classes: int, numbers: Any = np.float64) -> Ladder:
    """Room for a ladder of at most ``size`` rungs, and for twice as many gains as a short row has weights."""
    width = max(size, 2 * n_classes, N_BINS) + 1
    return Ladder(rungs=np.zeros((14, width), np.int64), numbers=np.zeros((11, width), numbers))


@compiled
def index_groups(ladder, size, n_groups):
    """Note how many rungs there are, and where those of each group stand."""
    rungs = ladder.rungs
    rungs[COUNT, 0] = size
    for g in range(n_groups + 1):
        rungs[START, g] = 0
    for position in range(size):
        g = rungs[GROUP, position]
        rungs[RANK, position] = rungs[START, g + 1]
        rungs[START, g + 1] += 1
    for g in range(n_groups):
        rungs[START, g + 1] += rungs[START, g]
    for position in range(size):
        rungs[PLACE, rungs[START, rungs[GROUP, position]] + rungs[RANK, position]] = position


@compiled
def rounding_slack(total, n_terms):
    """Bound the error of every sum that an algorithm forms from a row.

    An addition errs by at most a unit roundoff of its result. The two sides of a comparison together take at most
    ``8 * n_terms`` additions with results up to ``total`` (scores, and up to three changes for each flip), or half as
    many with results up to twice that (rival costs): 8 would do, and 16 also covers the rounding of ``total`` and of
    this bound itself. The last term covers underflow of the product.
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
    return multiples_are_exact(min(lowest_bit(row, 2000, -2000), lowest_bit(offset, 2000, -2000)), total)


@compiled
def multiples_are_exact(lowest, total):
    """Tell whether sums of multiples of 2**lowest (2000: zeros only) are exact, given the sum of magnitudes."""
    if not total < LARGEST_TOTAL:
        return False
    if lowest == 2000:
        return True
    # total / 2**lowest, in two steps: one could overflow where the result does not
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
def highest(scores):
    """The class with the highest score, or most votes, as they stand; ties to the smaller index."""
    best = 0
    for c in range(1, scores.size):
        if scores[c] > scores[best]:
            best = c
    return best


@compiled
def leader(scores, slack):
    """The class with the highest score, ties to the smaller index, or UNDECIDED."""
    best = highest(scores)
    return best if is_ahead(scores, best, slack) == 1 else UNDECIDED


@compiled
def runner_up(scores, first):
    """The class with the second highest score; a tie here is never a claim, so rounding may decide it."""
    second = -1
    for c in range(scores.size):
        if c != first and (second < 0 or scores[c] > scores[second]):
            second = c
    return second

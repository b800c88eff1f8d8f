"""All that sources can do, tried one after the other, in whole numbers: it shares nothing with the package."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product


def whole(numbers):
    """Doubles in units of the smallest one there is."""
    return [int(Fraction(float(number)) * 2**1074) for number in numbers]


def predicted(weights, codes, offset, space):
    """The class with the highest exact score, ties to the smaller; None if a fit would be refused."""
    if space is None:
        space = sorted(set(codes))
        if len(space) < 2:
            return None
    scores = {c: offset[c] for c in space}
    for weight, code in zip(weights, codes, strict=True):
        scores[code] += weight
    return max(space, key=lambda c: (scores[c], -c))


def fewest_sources(weights, codes, n_classes, sources, *, offset=None, trusted=None, fixed=True):
    """Prediction, and the fewest sources that lead to each other class, one more than there are if none do."""
    offset = whole([0.0] * n_classes if offset is None else offset)
    weights = whole(weights)
    trusted = [False] * len(codes) if trusted is None else trusted
    codes, sources = [int(c) for c in codes], list(sources)
    space = range(n_classes) if fixed else None
    first = predicted(weights, codes, offset, space)
    everyone = sorted(set(sources))
    costs = dict.fromkeys(range(n_classes), len(everyone) + 1) | {first: 0}
    for count in range(1, len(everyone) + 1):
        for corrupt in combinations(everyone, count):
            held = [i for i, own in enumerate(sources) if own in corrupt and not trusted[i]]
            for labels in product(range(n_classes), repeat=len(held)):
                after = list(codes)
                for i, label in zip(held, labels, strict=True):
                    after[i] = label
                winner = predicted(weights, after, offset, space)
                if winner is not None:
                    costs[winner] = min(costs[winner], count)
    return first, costs

"""Run-offs and votes of voters that share labels, counted by plain loops: what votes alone prove."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations

from flipcert.verify.opinion import Opinion


def ranked(weights: Sequence[float], y: Sequence[int], n_classes: int) -> list[int]:
    """Classes of one voter, highest sum of weights first, ties to the smaller one."""
    sums = [Fraction(0)] * n_classes
    for weight, c in zip(weights, y, strict=True):
        sums[c] += Fraction(weight)
    return sorted(range(n_classes), key=lambda c: (-sums[c], c))


def units_of(buckets: list[int], free: list[bool], members: list[list[int]]) -> list[list[int]]:
    """Voters that each bucket with a label that can be flipped goes to."""
    first = {bucket: i for i, (bucket, own) in enumerate(zip(buckets, free, strict=True)) if own}
    return [[j for j, own in enumerate(members) if i in own] for i in first.values()]


def opinion_on_election(
    rankings: list[list[int]], units: list[list[int]], by_run_off: bool, n_labels: int, removal: int
) -> Opinion:
    """Who wins, and how many units change that at least; each unit is the voters that it reaches.

    ``removal`` is how many flips remove a class of the label space, if that could change a vote of its own.
    """
    first = [own[0] for own in rankings]
    classes = range(len(rankings[0]))
    count = [first.count(c) for c in classes]
    one, other = sorted(classes, key=lambda c: (-count[c], c))[:2]

    def prefer(a: int, b: int) -> list[int]:
        """Voters that prefer a to b."""
        return [i for i, own in enumerate(rankings) if own.index(a) < own.index(b)]

    def fewest(gap: int, closed: Callable[[int], int]) -> int:
        """Units that close a gap, the strongest first; ``closed(i)`` is what one voter does at most."""
        powers = sorted(sum(map(closed, unit)) for unit in units)
        used = 0
        while gap > 0 and powers:
            gap, used = gap - powers.pop(), used + 1
        return used if gap <= 0 else n_labels + 1

    def overtake(a: int, b: int) -> int:
        """Units with which b gets ahead of a in votes."""
        return fewest(count[a] - count[b] + (b > a), lambda i: 1 + (first[i] == a) - (first[i] == b))

    winner = one
    if by_run_off:
        lead = len(prefer(one, other)) - len(prefer(other, one))
        winner = one if lead > 0 or (lead == 0 and one < other) else other
    rivals = [c for c in classes if c != winner]
    if by_run_off:
        loser = other if winner == one else one
        costs = []
        for b in rivals:
            loyal = set(prefer(winner, b))
            beaten = fewest(
                2 * len(loyal) - len(rankings) + (b > winner),
                lambda i, loyal=loyal: 2 * (i in loyal),  # type: ignore[misc]
            )
            costs.append(max(beaten, 0 if b == loser else overtake(loser, b)))
        for a, b in combinations(rivals, 2):
            gaps = 2 * count[winner] - count[a] - count[b] + (a > winner) + (b > winner)
            both = fewest(
                gaps,
                lambda i, pair=(a, b): 1 + 2 * (first[i] == winner) - (first[i] in pair),  # type: ignore[misc]
            )
            costs.append(max(both, overtake(winner, a), overtake(winner, b)))
    else:
        costs = [overtake(winner, c) for c in rivals]
    by_votes = min([*costs, removal, n_labels + 1]) - 1
    return Opinion(winner, by_votes, n_labels, by_votes=by_votes)

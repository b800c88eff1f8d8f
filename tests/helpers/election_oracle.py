"""Elections by plain loops, and every change that units can make to them."""

from __future__ import annotations

import itertools


def most_votes(rankings, n_classes):
    counts = [sum(own[0] == c for own in rankings) for c in range(n_classes)]
    return counts.index(max(counts))


def run_off(rankings, n_classes):
    counts = [sum(own[0] == c for own in rankings) for c in range(n_classes)]
    low, high = sorted(sorted(range(n_classes), key=lambda c: (-counts[c], c))[:2])
    for_low = sum(list(own).index(low) < list(own).index(high) for own in rankings)
    return low if 2 * for_low >= len(rankings) else high


def fewest_to_each_class(elect, rankings, n_classes, units, limit):
    """Fewest units with which each class wins, over all rankings of all voters that any of them reach."""
    orders = list(itertools.permutations(range(n_classes)))
    cheapest = {}
    for size in range(len(units) + 1):
        for chosen in itertools.combinations(units, size):
            cheapest.setdefault(frozenset().union(*chosen), size)
    best = [limit] * n_classes
    for reached, size in cheapest.items():
        for new in itertools.product(orders, repeat=len(reached)):
            changed = list(rankings)
            for i, order in zip(sorted(reached), new, strict=True):
                changed[i] = order
            winner = elect(changed, n_classes)
            best[winner] = min(best[winner], size)
    return best


def strongest(gap, powers, limit):
    """Fewest powers, largest first, that add up to a gap."""
    count, powers = 0, sorted(powers, reverse=True)
    while gap > 0:
        if not powers:
            return limit
        gap -= powers.pop(0)
        count += 1
    return count


def published_run_off(rankings, n_classes, units, limit):
    """Units that change the winner of a run-off at least, as it was published: every pair of classes by itself."""
    first = [own[0] for own in rankings]
    counts = [first.count(c) for c in range(n_classes)]
    place = [{c: k for k, c in enumerate(own)} for own in rankings]
    winner = run_off(rankings, n_classes)
    second = next(c for c in sorted(range(n_classes), key=lambda c: (-counts[c], c))[:2] if c != winner)

    def lead(a, b):
        return counts[a] - counts[b] + (b > a)

    def power(of_voter):
        return [sum(of_voter(i) for i in unit) for unit in units]

    def overtake(a, b):
        return strongest(lead(a, b), power(lambda i: 1 + (first[i] == a) - (first[i] == b)), limit)

    others = [c for c in range(n_classes) if c != winner]
    costs = [limit]
    for a, b in itertools.combinations(others, 2):
        both = power(lambda i, a=a, b=b: 1 + 2 * (first[i] == winner) - (first[i] == a) - (first[i] == b))
        sums = strongest(lead(winner, a) + lead(winner, b), both, limit)
        costs.append(max(overtake(winner, a), overtake(winner, b), sums))
    for b in others:
        prefers = [own[winner] < own[b] for own in place]
        gap = 2 * sum(prefers) - len(rankings) + (b > winner)
        beat = strongest(gap, power(lambda i, own=prefers: 2 * own[i]), limit)
        costs.append(max(0 if b == second else overtake(second, b), beat))
    return min(costs)

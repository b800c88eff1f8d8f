"""How many replaced rows make one given class win: at each level, an interval of rows of each class. Compiled."""

from __future__ import annotations

from flipcert.engine.jit import compiled
from flipcert.flips._jit.ladder import PLACE, START, VALUE


@compiled
def clears(difference, wins_ties, shift):
    """Whether a lead of ``difference`` wins, if it has to be more than the shift; less than nothing wins ties too."""
    return difference > shift or (difference == shift and (wins_ties or shift < 0))


@compiled
def replacement_cost(ladder, scores, target, new, movable, prefix, shift, unreachable):
    """Fewest replacements after which ``target`` wins.

    One more never does harm, as no row weighs more than a new one: so the number is doubled until it is enough, and
    then halved in. ``movable`` counts the rows of each class that can be replaced, ``prefix`` is room to work in.
    """
    total = add_up(ladder, scores.size, target, movable, prefix)
    enough = 1
    while enough < total and not can_replace(ladder, scores, target, new, movable, prefix, shift, enough):
        enough = min(2 * enough, total)
    if total == 0 or not can_replace(ladder, scores, target, new, movable, prefix, shift, enough):
        return unreachable
    too_few = enough // 2 if enough > 1 else 0
    while enough - too_few > 1:
        middle = (enough + too_few) // 2
        if can_replace(ladder, scores, target, new, movable, prefix, shift, middle):
            enough = middle
        else:
            too_few = middle
    return enough


@compiled
def add_up(ladder, n_classes, target, movable, prefix):
    """Sums of the k first rows of each class that are replaced, in the order they go; how many rows there are in all.

    Of the target the smallest weights go first, of others the largest. Those of class q begin at the rows of the
    classes before, and one more for each.
    """
    value, place, start = ladder.numbers[VALUE], ladder.rungs[PLACE], ladder.rungs[START]
    total = 0
    for q in range(n_classes):
        at = total + q
        prefix[at] = 0 * prefix[at]
        # First those that help, largest first, then those without weight, then those that harm, smallest first.
        help_group = 2 * q + 1 if q == target else 2 * q
        harm_group = 2 * q if q == target else 2 * q + 1
        sign = -1 if q == target else 1
        helping = start[help_group + 1] - start[help_group]
        harming = start[harm_group + 1] - start[harm_group]
        for k in range(helping):
            prefix[at + 1] = prefix[at] + sign * value[place[start[help_group] + k]]
            at += 1
        for _ in range(movable[q] - helping - harming):
            prefix[at + 1] = prefix[at]
            at += 1
        for k in range(harming):
            prefix[at + 1] = prefix[at] - sign * value[place[start[harm_group + 1] - 1 - k]]
            at += 1
        total += movable[q]
    return total


@compiled
def can_replace(ladder, scores, target, new, movable, prefix, shift, count):
    """Whether the target can win with so many replacements: some of its own rows, the others of other classes.

    At a given level, the numbers of rows of a class that may go are an interval: enough to bring it below, and not so
    many of negative weight that it rises again.
    """
    start = ladder.rungs[START]
    first_own = target
    for q in range(target):
        first_own += movable[q]
    for own in range(min(count, movable[target]) + 1):
        level = scores[target] + count * new - prefix[first_own + own]
        least = most = 0
        begin = 0
        for q in range(scores.size):
            if q != target:
                # To give up all positive weights brings a class down as far as it goes.
                turn = start[2 * q + 1] - start[2 * q]
                if not clears(level - scores[q] + prefix[begin + turn], target < q, shift):
                    least = count + 1
                    break
                low, high = -1, turn
                while high - low > 1:
                    middle = (low + high) // 2
                    if clears(level - scores[q] + prefix[begin + middle], target < q, shift):
                        high = middle
                    else:
                        low = middle
                least += high
                low, high = turn, movable[q] + 1
                while high - low > 1:
                    middle = (low + high) // 2
                    if clears(level - scores[q] + prefix[begin + middle], target < q, shift):
                        low = middle
                    else:
                        high = middle
                most += low
            begin += movable[q] + 1
        if least <= count - own <= most:
            return True
    return False

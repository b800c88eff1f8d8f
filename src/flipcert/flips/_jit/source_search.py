"""Which few sources lead to a class, one set after the other, where no label counts against its class. Compiled."""

from __future__ import annotations

from flipcert.engine.jit import compiled
from flipcert.flips._jit.ladder import UNDECIDED, beats

# Tables of sources and classes: weights for and against each class, what a source closes of the gap to each rival, the
# largest of these from a place on, and sums on the way down a search.
FOR, AGAINST, CLOSES, SUFFIX, SUMS, N_TABLES = range(6)
# Whole numbers of each class and step: which source an attack takes, the class that its positive labels go
# to, and the one that the others go to. Behind the classes there is room for an attack that is tried.
TAKEN, LIFTED, RIVAL, N_RECORDS = range(4)
# Vectors of classes.
CURRENT, AFTER, N_VECTORS = range(3)
# What a search finds, beside UNDECIDED: an attack, that there is none, or that it goes on for too long.
FOUND, NONE, OPEN = 1, 0, -3
_NODES = 2000


@compiled
def search(tables, scores, target, count, slack, used, record):
    """Whether so many sources can lift the target past all rivals, if no label counts against its class.

    Sources are tried in the order that they are in, and given up as soon as the best that is left cannot do it.
    """
    n_classes, n_sources = scores.size, used.size
    closes, suffix, sums = tables[CLOSES], tables[SUFFIX], tables[SUMS]
    zero = scores[0] - scores[0]
    for q in range(n_classes):
        suffix[n_sources, q] = zero
        sums[0, q] = zero
    for j in range(n_sources - 1, -1, -1):
        moved = zero
        for q in range(n_classes):
            if q != target:
                moved += tables[FOR, j, q]
        for q in range(n_classes):
            closes[j, q] = moved + tables[FOR, j, q]
            suffix[j, q] = max(suffix[j + 1, q], closes[j, q])
    depth = 0
    place = 0
    answer = NONE
    for _ in range(_NODES):
        # Whether the sources from this place on could still do it.
        possible = n_sources - place >= count - depth
        certain = True
        for q in range(n_classes):
            if possible and q != target:
                left = sums[depth, q] + (count - depth) * suffix[place, q] - (scores[q] - scores[target])
                wins = beats(left, target < q, slack)
                if wins == 0:
                    possible = False
                certain = certain and wins == 1
        if possible and depth == count:
            if certain:
                for step in range(count):
                    record[TAKEN, n_classes, step] = used[step]
                    record[LIFTED, n_classes, step] = target
                    record[RIVAL, n_classes, step] = 1 if target == 0 else 0
                return FOUND
            answer = UNDECIDED
            possible = False
        if possible:
            for q in range(n_classes):
                sums[depth + 1, q] = sums[depth, q] + closes[place, q]
            used[depth] = place
            depth += 1
            place += 1
        elif depth == 0:
            return answer
        else:
            depth -= 1
            place = used[depth] + 1
    return OPEN

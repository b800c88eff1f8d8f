"""Greedy attacks towards a class, for weights of any sign. Compiled.

Any attack that ends with the target in front is an upper bound on its flip cost, so nothing here needs to be right but
the last comparison. Each step looks only at the largest weight left in every (class, sign) queue: O(K) a step.
"""

from __future__ import annotations

import numpy as np

from flipcert.engine.jit import compiled
from flipcert.flips._ladder import UNDECIDED, is_ahead


@compiled
def greedy_cost(value, group, size, scores, target, published, slack, unreachable, chosen, new_class):
    """Flip whatever closes the gap between ``target`` and the current leader most, until ``target`` leads.

    ``published`` uses the damages of the paper's algorithm: flips against the leader count no more than up to the
    second class, and negative weights of third classes are not used. Otherwise every flip counts what it closes.
    Flips are recorded as ladder positions and new classes. Returns their number (``unreachable`` when stuck) and the
    first number at which it was too close to call whether ``target`` leads.
    """
    n_classes = scores.size
    current = scores.copy()
    place, start, head = _queues(group, size, n_classes)
    doubt = unreachable
    for step in range(size + 1):
        won = is_ahead(current, target, slack)
        if won == 1:
            return step, doubt
        if won == UNDECIDED:
            doubt = min(doubt, step)
        front = -1  # strongest other class
        for q in range(n_classes):
            if q != target and (front < 0 or current[q] > current[front]):
                front = q
        second = current[target]
        for q in range(n_classes):
            if q != front and current[q] > second:
                second = current[q]

        damage = 0 * current[front]
        choice = -1
        for queue in range(2 * n_classes):
            if head[queue] == start[queue + 1]:
                continue
            q = queue >> 1
            negative = queue & 1
            size_of_flip = value[place[head[queue]]]
            if (q == front and not negative) or (q == target and negative):
                closes = 2 * size_of_flip
                if published:
                    closes = min(closes, size_of_flip + current[front] - second)
            elif q != front and q != target and not (published and negative):
                closes = size_of_flip
            else:
                continue
            if closes > damage:
                damage = closes
                choice = queue
        if choice < 0:
            return unreachable, doubt

        position = place[head[choice]]
        head[choice] += 1
        weight = -value[position] if choice & 1 else value[position]
        to = front if choice & 1 else target
        current[choice >> 1] -= weight
        current[to] += weight
        chosen[step] = position
        new_class[step] = to
    return unreachable, doubt


@compiled
def drop_needless(value, group, scores, target, slack, count, chosen, new_class):
    """Take back recorded flips that the attack does not need, smallest first; return how many stay, and a doubt."""
    after = scores.copy()
    for step in range(count):
        _move(value, group, after, chosen[step], new_class[step], 1)
    order = np.argsort(value[chosen[:count]])
    keep = np.ones(count, np.bool_)
    doubts = 0
    for step in order:
        _move(value, group, after, chosen[step], new_class[step], -1)
        won = is_ahead(after, target, slack)
        if won == 1:
            keep[step] = False
        else:
            doubts += won == UNDECIDED
            _move(value, group, after, chosen[step], new_class[step], 1)
    left = 0
    for step in range(count):
        if keep[step]:
            chosen[left] = chosen[step]
            new_class[left] = new_class[step]
            left += 1
    return left, left - doubts


@compiled
def _move(value, group, scores, position, to, direction):
    weight = -value[position] if group[position] & 1 else value[position]
    scores[group[position] >> 1] -= direction * weight
    scores[to] += direction * weight


@compiled
def _queues(group, size, n_classes):
    """Ladder positions by (class, sign), each queue from the largest weight down, and the head of each queue."""
    start = np.zeros(2 * n_classes + 1, np.int64)
    for position in range(size):
        start[group[position] + 1] += 1
    for queue in range(2 * n_classes):
        start[queue + 1] += start[queue]
    head = start[: 2 * n_classes].copy()
    place = np.empty(size, np.int64)
    for position in range(size):
        place[head[group[position]]] = position
        head[group[position]] += 1
    return place, start, start[: 2 * n_classes].copy()

"""The paper's upper bound and dynamic program with every loop in Python, as its pseudo-code is written.

The paper computes lower bounds for many samples at once, and says that neither of these two can be: this is the version
its running times speak of, as far as they can be repeated without its code.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from benchmarks.published import Choices


def upper_cost(weights: NDArray[Any], labels: NDArray[Any], n_classes: int, target: int) -> int:
    """Algorithm 2, line by line."""
    numbers: list[float] = weights.tolist()
    current: list[int] = labels.tolist()
    scores = [0.0] * n_classes
    for weight, label in zip(numbers, current, strict=True):
        scores[label] += weight
    for flips in range(len(current) + 1):
        leader = scores.index(max(scores))
        if leader == target:
            return flips
        lead = scores[leader] - max(score for c, score in enumerate(scores) if c != leader)
        most, chosen = 0.0, -1
        for i, (weight, label) in enumerate(zip(numbers, current, strict=True)):
            if label == leader and weight > 0:
                damage = min(2 * weight, weight + lead)
            elif label == target and weight < 0:
                damage = min(-2 * weight, -weight + lead)
            elif label != leader and label != target and weight > 0:
                damage = weight
            else:
                damage = 0.0
            if damage > most:
                most, chosen = damage, i
        if chosen < 0:
            break
        old, new = current[chosen], leader if current[chosen] == target else target
        scores[old] -= numbers[chosen]
        scores[new] += numbers[chosen]
        current[chosen] = new
    return len(current) + 1


def knapsack(choices: Choices, need: int, dearest: int) -> int:
    """The dynamic program for P3: most flips saved by the voters so far, for each number of votes left."""
    capacity = 2 * len(choices) - need
    saved = [0.0] * (capacity + 1)
    for own in choices:
        before, saved = saved, [-float("inf")] * (capacity + 1)
        for closes, flips in own:
            left, saves = 2 - closes, dearest - flips
            for room in range(left, capacity + 1):
                if before[room - left] + saves > saved[room]:
                    saved[room] = before[room - left] + saves
    return len(choices) * dearest - int(saved[capacity])

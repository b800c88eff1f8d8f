"""The algorithms of the EnsembleCert paper as published, in plain NumPy: the baseline that flipcert is compared with.

One test point, one partition and one class at a time: a sort for each lower bound (its algorithm 1), a scan of all
samples for each flip of the upper bound (its algorithm 2), a dynamic program over all voters for each class. Two things
the paper leaves to the reader: ties go to the smaller class index, and a class that no labelling reaches costs one flip
more than there are labels.

NumPy does the innermost loops here, over samples and over the table of the dynamic program; ``published_loops`` has
them as the paper writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# What a voter can be made to do: votes closed between winner and target, and the flips that takes.
Choices = list[list[tuple[int, int]]]
UpperCost = Callable[[NDArray[Any], NDArray[Any], int, int], int]
Knapsack = Callable[[Choices, int, int], int]


class Certificate(NamedTuple):
    """Winner of a vote, the radius that is proven for it and the radius that an attack leaves."""

    prediction: int
    radius: int
    radius_upper: int


def class_scores(weights: NDArray[Any], labels: NDArray[Any], n_classes: int) -> NDArray[np.float64]:
    """Sum of the weights of each class."""
    return np.bincount(labels, weights, n_classes).astype(np.float64, copy=False)


def lower_cost(weights: NDArray[Any], labels: NDArray[Any], target: int, leader: int, gap: float) -> int:
    """Algorithm 1: fewest flips after which ``target``, now ``gap`` behind, beats ``leader``."""
    reductions = np.abs(weights)
    reductions = np.where((labels == leader) | (labels == target), 2 * reductions, reductions)
    useless = ((labels == leader) & (weights < 0)) | ((labels == target) & (weights > 0))
    reductions = np.sort(reductions[~useless])[::-1]
    reached = np.cumsum(reductions)
    enough = reached >= gap if target < leader else reached > gap
    return int(enough.argmax()) + 1 if enough.any() else labels.size + 1


def upper_cost(weights: NDArray[Any], labels: NDArray[Any], n_classes: int, target: int) -> int:
    """Algorithm 2: flips of a greedy attack after which ``target`` is predicted."""
    current = labels.copy()
    positive, negative = weights > 0, weights < 0
    sizes = np.abs(weights)
    for flips in range(labels.size + 1):
        scores = class_scores(weights, current, n_classes)
        leader = int(scores.argmax())
        if leader == target:
            return flips
        second = np.delete(scores, leader).max()
        of_leader, of_target = current == leader, current == target
        against_leader = (of_leader & positive) | (of_target & negative)
        neutral = ~of_leader & ~of_target & positive
        damage = np.where(against_leader, np.minimum(2 * sizes, sizes + scores[leader] - second), neutral * sizes)
        chosen = int(damage.argmax())
        if damage[chosen] <= 0:
            break
        current[chosen] = leader if of_target[chosen] else target
    return labels.size + 1


def lower_costs(weights: NDArray[Any], labels: NDArray[Any], n_classes: int) -> NDArray[np.int64]:
    """Lower bound on the flips that lead to each class: those that lift it above the predicted one."""
    scores = class_scores(weights, labels, n_classes)
    leader = int(scores.argmax())
    costs = np.zeros(n_classes, np.int64)
    for c in range(n_classes):
        if c != leader:
            costs[c] = lower_cost(weights, labels, c, leader, scores[leader] - scores[c])
    return costs


def stand_alone(weights: NDArray[Any], labels: NDArray[Any], n_classes: int) -> Certificate:
    """Prediction of one classifier and its exact radius: the cheapest lower bound is reached."""
    leader = int(class_scores(weights, labels, n_classes).argmax())
    radius = int(np.delete(lower_costs(weights, labels, n_classes), leader).min()) - 1
    return Certificate(leader, radius, radius)


def knapsack(choices: Choices, need: int, dearest: int) -> int:
    """Fewest flips that close ``need`` votes, by the paper's P3: most flips saved, under a capacity of votes left."""
    capacity = 2 * len(choices) - need
    saved = np.zeros(capacity + 1, np.int64)  # most that the voters so far save, leaving at most this many votes
    for own in choices:
        before, saved = saved, np.full(capacity + 1, -(2**62))
        for closes, flips in own:
            left = 2 - closes
            np.maximum(saved[left:], before[: capacity + 1 - left] + (dearest - flips), out=saved[left:])
    return len(choices) * dearest - int(saved[capacity])


def vote_radius(votes: NDArray[Any], costs: NDArray[Any], n_labels: int, solve: Knapsack = knapsack) -> int:
    """Largest number of flips that cannot change the winner of a vote: a multiple-choice knapsack for each class."""
    n_classes = costs.shape[1]
    counts = np.bincount(votes, minlength=n_classes)
    winner = int(counts.argmax())
    elsewhere = np.delete(costs, winner, axis=1).min(axis=1)
    cheapest = n_labels + 1
    for target in range(n_classes):
        if target != winner:
            need = int(counts[winner] - counts[target]) + (winner < target)
            choices = _choices(votes, costs[:, target], elsewhere, winner, target)
            cheapest = min(cheapest, solve(choices, need, int(costs.max())))
    return cheapest - 1


def _choices(
    votes: NDArray[Any], to_target: NDArray[Any], elsewhere: NDArray[Any], winner: int, target: int
) -> Choices:
    choices = []
    for vote, turn, away in zip(votes.tolist(), to_target.tolist(), elsewhere.tolist(), strict=True):
        own = [(0, 0)]
        if vote == winner:
            own += [(1, away), (2, turn)]
        elif vote != target:
            own += [(1, turn)]
        choices.append(own)
    return choices


def certify_sample(
    weights: Sequence[NDArray[Any]],
    labels: Sequence[NDArray[Any]],
    n_classes: int,
    n_labels: int,
    attack: UpperCost = upper_cost,
    solve: Knapsack = knapsack,
) -> Certificate:
    """Certificate of a vote over partitions, given the weights and labels of each."""
    parts = [(np.asarray(w, np.float64), y) for w, y in zip(weights, labels, strict=True)]
    votes = np.array([class_scores(w, y, n_classes).argmax() for w, y in parts])
    sizes = np.array([[y.size] for _, y in parts])
    lower = np.array([lower_costs(w, y, n_classes) for w, y in parts])
    upper = np.array([[attack(w, y, n_classes, c) for c in range(n_classes)] for w, y in parts])
    # What a partition cannot reach, all labels together cannot pay for.
    lower, upper = (np.where(costs > sizes, n_labels + 1, costs) for costs in (lower, upper))
    winner = int(np.bincount(votes, minlength=n_classes).argmax())
    return Certificate(winner, vote_radius(votes, lower, n_labels, solve), vote_radius(votes, upper, n_labels, solve))

"""A second opinion on one prediction: what it is, and what its radius is, or between which bounds it lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flipcert.verify.exact import NEVER, Voter

# Classes of some labels, and which of these labels can be flipped.
Labels = tuple[list[int], list[bool]]


@dataclass(frozen=True)
class Opinion:
    """The predicted class, bounds on what can be proven, whether they are the radius, and what votes alone prove."""

    prediction: int
    at_least: int
    at_most: int
    known: bool = False
    by_votes: int | None = None


def opinion_on_model(voters: list[Voter], open_space: bool) -> Opinion:
    """One label-linear model, the only voter: its radius is known."""
    (voter,) = voters
    radius = min(voter.change_cost(open_space), len(voter.y) + 1) - 1
    return Opinion(voter.vote, radius, radius, known=True)


def opinion_on_votes(votes: list[int], labels: list[Labels], n_classes: int, open_space: bool) -> Opinion:
    """Voters of whom only votes and labels are known: one flip may turn each to any class, if it has one to flip."""
    winner, cost = election(votes, [[1 if any(free) else NEVER] * n_classes for _, free in labels], n_classes)
    removal = removal_cost(labels, n_classes) if open_space and n_classes > 2 else NEVER
    most = min(sum(len(y) for y, _ in labels), removal - 1)
    return Opinion(winner, min(cost - 1, most), most, by_votes=min(cost - 1, most))


def opinion_on_ensemble(voters: list[Voter], open_space: bool) -> Opinion:
    """Label-linear voters: the radius is known if all their costs are, unless so many flips could remove a class."""
    n_classes, labels, votes = voters[0].n_classes, [(v.y, v.free) for v in voters], [v.vote for v in voters]
    tables = zip(*(voter.class_costs() for voter in voters), strict=True)
    lower, upper = (election(votes, costs, n_classes)[1] for costs in tables)
    known = n_classes == 2 or not any(voter.has_negative for voter in voters)
    # To remove a class is of no use if nobody votes for one that he does not hold, or if only one class would be left.
    strays = not known or (n_classes > 2 and any(max(voter.w, default=0) == 0 for voter in voters))
    by_votes = opinion_on_votes(votes, labels, n_classes, open_space and strays)
    if open_space:
        sizes = [sum(y.count(c) for y, _ in labels) for c in range(n_classes)]
        known = known and not strays and upper < sum(sizes) - max(sizes)  # so that two classes are left
        upper = upper if known or strays else NEVER
    at_least, at_most = (min(cost - 1, by_votes.at_most) for cost in (lower, upper))
    return Opinion(by_votes.prediction, at_least, at_most, known, by_votes.at_least)


def election(votes: list[int], costs: Sequence[list[int]], n_classes: int) -> tuple[int, int]:
    """Who wins, and the fewest flips that change it, given the cost of each vote: dynamic programming over voters."""
    counts = [votes.count(c) for c in range(n_classes)]
    first, best = counts.index(max(counts)), NEVER
    for c in (c for c in range(n_classes) if c != first):
        gap = counts[first] - counts[c] + (first < c)
        less = [np.maximum(np.arange(gap + 1) - closed, 0) for closed in (0, 1, 2)]
        cheapest = np.array([0] + [NEVER] * gap)  # to close so many votes of the gap
        for vote, own in zip(votes, costs, strict=True):
            leave = min(own[:vote] + own[vote + 1 :])
            prices = (0, leave, own[c]) if vote == first else (0, own[c]) if vote != c else (0,)
            cheapest = np.min([cheapest[to] + price for to, price in zip(less, prices, strict=False)], axis=0)
        best = min(best, int(cheapest[gap]))
    return first, best


def removal_cost(labels: list[Labels], n_classes: int) -> int:
    """Fewest flips that remove a class: all of its labels, if none of them is trusted."""
    pairs = [pair for y, free in labels for pair in zip(y, free, strict=True)]
    held = [[free for label, free in pairs if label == c] for c in range(n_classes)]
    return min((len(own) for own in held if own and all(own)), default=NEVER)

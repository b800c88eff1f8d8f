"""Slow, obvious answers that share no code with the package."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp


def exact_scores(weights, codes, n_classes, offset=None):
    scores = [Fraction(0)] * n_classes if offset is None else [Fraction(float(b)) for b in offset]
    for weight, c in zip(weights, codes, strict=True):
        scores[c] += Fraction(float(weight))
    return scores


def exact_winner(weights, codes, n_classes, offset=None):
    scores = exact_scores(weights, codes, n_classes, offset)
    return scores.index(max(scores))


def brute_force_costs(weights, codes, n_classes, offset=None, trusted=None):
    """Fewest flips to each class, over all labellings, in exact fractions."""
    n = len(weights)
    numbers = [Fraction(float(w)) for w in weights]
    start = [Fraction(0)] * n_classes if offset is None else [Fraction(float(b)) for b in offset]
    best = [n + 1] * n_classes
    options = [[codes[i]] if trusted is not None and trusted[i] else range(n_classes) for i in range(n)]
    for labelling in itertools.product(*options):
        scores = list(start)
        flips = 0
        for number, new, old in zip(numbers, labelling, codes, strict=True):
            scores[new] += number
            flips += new != old
        winner = scores.index(max(scores))
        best[winner] = min(best[winner], flips)
    return np.array(best)


def labellings(codes, n_classes, flips):
    """All labellings with exactly so many flips."""
    for indices in itertools.combinations(range(len(codes)), flips):
        for steps in itertools.product(range(1, n_classes), repeat=flips):
            flipped = codes.copy()
            for i, step in zip(indices, steps, strict=True):
                flipped[i] = (flipped[i] + step) % n_classes
            yield flipped


def vote_winner(votes, n_classes):
    counts = [list(votes).count(c) for c in range(n_classes)]
    return counts.index(max(counts))


def brute_force_reach(votes, costs, n_classes):
    """Fewest flips with which each class wins the vote, over all vote configurations."""
    best = [np.inf] * n_classes
    for new in itertools.product(range(n_classes), repeat=len(votes)):
        winner = vote_winner(new, n_classes)
        cost = sum(int(costs[i][c]) for i, c in enumerate(new) if c != votes[i])
        best[winner] = min(best[winner], cost)
    return best


def dynamic_program_radius(votes, costs, n_classes):
    """The paper's O(N^2) multiple-choice knapsack: least cost for each number of votes closed."""
    winner = vote_winner(votes, n_classes)
    best = np.inf
    for target in range(n_classes):
        if target == winner:
            continue
        need = list(votes).count(winner) - list(votes).count(target) + (winner < target)
        table = [0.0] + [np.inf] * need  # at least j votes closed
        for i, vote in enumerate(votes):
            if vote == target:
                continue
            options = [(1, costs[i][target])]
            if vote == winner:
                options = [(2, costs[i][target]), (1, min(costs[i][q] for q in range(n_classes) if q != winner))]
            table = [
                min([table[j]] + [table[max(j - gain, 0)] + cost for gain, cost in options]) for j in range(need + 1)
            ]
        best = min(best, table[need])
    return int(best) - 1


def integer_program_radius(votes, costs, n_classes):
    """P1 of the paper for every class, by HiGHS."""
    n_voters = len(votes)
    winner = vote_winner(votes, n_classes)
    prices = np.array(costs, float)
    prices[np.arange(n_voters), votes] = 0.0
    best = np.inf
    for target in range(n_classes):
        if target == winner:
            continue
        rows, lower, upper = [], [], []
        for i in range(n_voters):
            row = np.zeros((n_voters, n_classes))
            row[i] = 1
            rows.append(row.ravel())
            lower.append(1)
            upper.append(1)
        for q in range(n_classes):
            if q != target:
                row = np.zeros((n_voters, n_classes))
                row[:, target] = 1
                row[:, q] = -1
                rows.append(row.ravel())
                lower.append(1 if q < target else 0)
                upper.append(np.inf)
        result = milp(
            prices.ravel(), integrality=np.ones(prices.size), bounds=Bounds(0, 1),
            constraints=LinearConstraint(np.array(rows), lower, upper), options={"mip_rel_gap": 0},
        )  # fmt: skip
        assert result.status == 0
        best = min(best, round(result.fun))
    return int(best) - 1

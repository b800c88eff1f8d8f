"""Duals of support vector machines without bias, by coordinate descent. Compiled."""

from __future__ import annotations

import numpy as np

from flipcert.engine.jit import compiled


@compiled
def descend(kernel, signs, duals, scores, sweeps):
    """Minimise ``a H a / 2 - sum a`` over 0 <= a <= 1, H = y y' times the kernel, one dual after the other.

    ``scores`` are the decision values of the training points, kept up to date. Stops early when nothing moves.
    """
    n = signs.size
    for _ in range(sweeps):
        largest = 0.0
        for i in range(n):
            slope = signs[i] * scores[i] - 1.0
            if kernel[i, i] > 0.0:
                fresh = min(max(duals[i] - slope / kernel[i, i], 0.0), 1.0)
            else:
                fresh = 1.0
            step = fresh - duals[i]
            if step != 0.0:
                duals[i] = fresh
                for j in range(n):
                    scores[j] += step * signs[i] * kernel[i, j]
                largest = max(largest, abs(step))
        if largest < 1e-15:
            return


@compiled
def largest_sum(values, count):
    """Sum of the largest ``count`` positive numbers."""
    order = np.sort(values)
    total = 0.0
    for k in range(min(count, values.size)):
        value = order[values.size - 1 - k]
        if value <= 0.0:
            break
        total += value
    return total


@compiled
def score_ranges(kernel, signs, duals, active, scores, movable, budget, low, high):
    """Range of each training point's decision value under at most ``budget`` flips of the signs.

    Two bounds, of which the tighter counts. The first takes nothing but 0 <= a <= 1 and the signs. The second is
    strong convexity: with e the sum of ``(a_j + active_j) y_j phi_j`` over the flipped points, the primal solution
    moves by some d with ``|d|^2 <= -<d, e>``.
    """
    n = signs.size
    up, down = np.zeros(n), np.zeros(n)
    for i in range(n):
        most = least = 0.0
        for j in range(n):
            pull = signs[j] * kernel[i, j]
            most += max(pull, 0.0)
            least += min(pull, 0.0)
            up[j] = max(-pull, 0.0) if movable[j] else 0.0
            down[j] = max(pull, 0.0) if movable[j] else 0.0
        most += largest_sum(up, budget)
        least -= largest_sum(down, budget)
        for j in range(n):
            pull = signs[j] * kernel[i, j]
            reach = np.sqrt(max(kernel[i, i], 0.0) * max(kernel[j, j], 0.0))
            weight = 0.5 * (duals[j] + active[j]) if movable[j] else 0.0
            up[j] = weight * (reach - pull)
            down[j] = weight * (reach + pull)
        low[i] = max(least, scores[i] - largest_sum(down, budget))
        high[i] = min(most, scores[i] + largest_sum(up, budget))

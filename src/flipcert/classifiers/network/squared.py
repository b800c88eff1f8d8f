"""A linear model under squared loss: every step is linear in the labels, so that flip costs are exact."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.classifiers.appraisal import Appraisal
from flipcert.classifiers.network.plan import Plan, initial_parameters
from flipcert.engine.blocks import block_rows, filled, join, map_blocks
from flipcert.engine.rounding import SAFETY
from flipcert.flips._jit.reach import BEST
from flipcert.flips.attack import attack_of_cost
from flipcert.flips.costs import Costs, close_gaps, cost_block, score_block
from flipcert.labels.labels import Labels
from flipcert.linear.product import Product
from flipcert.results.witness import Witness


class LabelLinearRun:
    r"""Training as weights of labels: scores :math:`s_c(t) = b_c(t) + \sum_i w_i(t) [y_i = c]`.

    With inputs :math:`\phi = (x, 1)`, a step multiplies what was there before by
    :math:`M = (1 - \eta\mu) I - (2 \eta / B) \Phi_B^\top \Phi_B` and adds :math:`(2 \eta / B) \phi_i` to the class
    of each sample of the batch. Going backwards from the last step, the product of all later M is known when a batch
    is met.
    """

    def __init__(self, plan: Plan, X: NDArray[np.float64], labels: Labels, n_jobs: int | None) -> None:
        self._labels = labels
        self._n_jobs = n_jobs
        phi = with_ones(X)
        right = np.zeros_like(phi)
        later = np.eye(phi.shape[1])
        for step in reversed(plan.steps):
            batch, rate = phi[step.rows], 2.0 * step.rate / step.size
            right[step.rows] += rate * (batch @ later.T)
            later = later * plan.keeps(step) - rate * ((later @ batch.T) @ batch)
        self._start = initial_parameters(plan)[0] @ later.T
        self._product = Product.of(right, error=float(np.finfo(np.float64).eps) * len(plan.steps))
        self._bytes_per_row = 8 * labels.n_labels

    def scores(self, X: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Scores (rounded) and predictions (exact)."""

        def block(rows: NDArray[Any], n_rows: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
            weights, offset = self._form(rows)
            return score_block(weights[:n_rows], self._labels, offset[:n_rows])

        parts = map_blocks(block, X, self._bytes_per_row, self._n_jobs)
        return np.concatenate([scores for scores, _ in parts]), np.concatenate([winners for _, winners in parts])

    def appraise(self, X: NDArray[np.float64], exact: bool, time_limit: float = 60.0) -> Appraisal:
        """Flip costs, and the attacks behind them."""

        def block(rows: NDArray[Any], n_rows: int) -> tuple[Costs, NDArray[np.float64]]:
            weights, offset = (part[:n_rows] for part in self._form(rows))
            costs = cost_block(weights, self._labels, offset, BEST)
            if exact:
                close_gaps(costs, weights, self._labels, offset, time_limit)
            return costs, SAFETY * self._product.rounding(with_ones(rows[:n_rows]))[:, 0]

        parts = map_blocks(block, X, self._bytes_per_row, self._n_jobs)
        costs: Costs = join([costs for costs, _ in parts])
        tolerance = np.concatenate([tolerance for _, tolerance in parts])
        np.put_along_axis(costs.margin, costs.prediction[:, None], costs.lead[:, None], axis=1)
        sensitive = (tolerance > 0) & (costs.margin.min(axis=1) <= tolerance)
        formed = lru_cache(maxsize=1)(lambda start, size: self._form(filled(X[start : start + size], size)))

        def attack(row: int, target: int) -> Witness:
            # Weights of the whole block that the row was in: the same to the bit.
            size = block_rows(X.shape[0], self._bytes_per_row)
            weights, offset = (part[row % size] for part in formed(row - row % size, size))
            return attack_of_cost(weights, self._labels, offset, target, int(costs.upper[row, target]), time_limit)

        return Appraisal(costs.prediction, costs.lower, costs.upper, sensitive, attack)

    def _form(self, rows: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Weights and offsets of a block of rows."""
        phi = with_ones(rows)
        return self._product.weights(phi, np.empty((rows.shape[0], self._labels.n_labels))), phi @ self._start.T


def with_ones(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Inputs and a column of ones, for the biases."""
    return np.concatenate([X, np.ones((X.shape[0], 1))], axis=1)

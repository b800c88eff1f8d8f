"""A linear model under squared loss: every step is linear in the labels, so that flip costs are exact."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.classifiers.network.plan import Plan, initial_parameters
from flipcert.linear.product import Product
from flipcert.linear.weights import Weights


class TrainedWeights(Weights):
    r"""Training as weights of labels: scores :math:`s_c(t) = b_c(t) + \sum_i w_i(t) [y_i = c]`.

    With inputs :math:`\phi = (x, 1)`, a step multiplies what was there before by
    :math:`M = (1 - \eta\mu) I - (2 \eta / B) \Phi_B^\top \Phi_B` and adds :math:`(2 \eta / B) \phi_i` to the class
    of each sample of the batch. Going backwards from the last step, the product of all later M is known when a batch
    is met. The initial parameters are what is left: the offsets.
    """

    def __init__(self, plan: Plan, X: NDArray[np.float64]) -> None:
        self.n_samples, self.dtype = X.shape[0], X.dtype
        phi = with_ones(X)
        right = np.zeros_like(phi)
        later = np.eye(phi.shape[1])
        for step in reversed(plan.steps):
            batch, rate = phi[step.rows], 2.0 * step.rate / step.size
            right[step.rows] += rate * (batch @ later.T)
            later = later * plan.keeps(step) - rate * ((later @ batch.T) @ batch)
        self._start = initial_parameters(plan)[0] @ later.T
        self._of_inputs_and_ones = Product.of(right, error=float(np.finfo(np.float64).eps) * len(plan.steps))

    def features(self, X: NDArray[Any]) -> NDArray[Any]:
        """Inputs and a column of ones, for the biases."""
        return with_ones(X)

    def form(self, X: NDArray[Any], out: NDArray[Any]) -> None:
        """Write the weights of all training samples for each row of X to ``out``."""
        self._of_inputs_and_ones.weights(X, out)

    def rounding(self, X: NDArray[Any], formed: NDArray[Any] | None) -> NDArray[np.float64]:
        """By how much rounding could move each row of weights."""
        return self._of_inputs_and_ones.rounding(X)[:, 0]

    def offset(self, X: NDArray[Any], n_classes: int) -> NDArray[np.float64]:
        """What the initial parameters, which no label has a part in, contribute to the scores."""
        return X @ self._start.T


def with_ones(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Inputs and a column of ones, for the biases."""
    return np.concatenate([X, np.ones((X.shape[0], 1))], axis=1)

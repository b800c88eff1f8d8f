"""Full-batch training of finite networks on the two losses whose wide limit is a kernel machine.

Outputs count from the network's initial ones, and the penalty is on the *change* of the parameters: with a penalty on
the parameters themselves, or with the initial outputs in, the limit would not be kernel ridge regression or an SVM.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from paper.evidence.networks import require_torch

_PATIENCE = 10


class Network(Protocol):
    """What is trained: parameters to begin with, and outputs that follow from parameters and inputs."""

    parameters: list[Any]
    rows_at_once: int

    def tensor(self, values: NDArray[Any]) -> Any:
        """Numbers as the network takes them."""

    def outputs(self, parameters: list[Any], X: Any) -> Any:
        """Outputs for each row of inputs."""


@dataclass(frozen=True)
class SquaredLoss:
    r"""``sum (f - y)^2 + reg ||theta - theta_0||^2``: kernel ridge regression in the limit."""

    reg: float

    name = "squared"

    def targets(self, codes: NDArray[np.int64], n_classes: int) -> NDArray[np.float64]:
        """Minus and plus one for two classes, one-hot for more."""
        return _signs(codes, 2) if n_classes == 2 else np.eye(n_classes)[codes]

    def value(self, outputs: Any, targets: Any) -> Any:
        """What the outputs cost, beside the penalty ``||theta - theta_0||^2 / 2``."""
        return ((outputs - targets) ** 2).sum() / (2 * self.reg)

    def largest_curvature(self, largest_eigenvalue: float) -> float:
        """Of that loss and the penalty, for a network linear in its parameters."""
        return 1.0 + largest_eigenvalue / self.reg

    def limit(self, rows: NDArray[Any], train: NDArray[Any], targets: NDArray[np.float64]) -> NDArray[np.float64]:
        """Outputs of the infinitely wide network, from the kernel of test rows and of the training set."""
        return rows @ np.linalg.solve(train + self.reg * np.eye(len(train)), targets)


@dataclass(frozen=True)
class HingeLoss:
    r"""``||theta - theta_0||^2 / 2 + C sum max(0, 1 - y f)``: an SVM in the limit, with small C if C is below C_max."""

    C: float

    name = "hinge"

    def targets(self, codes: NDArray[np.int64], n_classes: int) -> NDArray[np.float64]:
        """Minus and plus one: each class against the rest."""
        return _signs(codes, n_classes)

    def value(self, outputs: Any, targets: Any) -> Any:
        """What the outputs cost, beside the penalty ``||theta - theta_0||^2 / 2``."""
        return self.C * (1 - outputs * targets).clamp(min=0).sum()

    def largest_curvature(self, largest_eigenvalue: float) -> float:
        """The loss is straight wherever a margin is open, so only the penalty bends."""
        return 1.0

    def limit(self, rows: NDArray[Any], train: NDArray[Any], targets: NDArray[np.float64]) -> NDArray[np.float64]:
        """Outputs of the infinitely wide network, where every dual variable is C."""
        return self.C * rows @ targets


@dataclass(frozen=True)
class Trained:
    """Outputs of a trained network for test inputs, and how its training ended."""

    outputs: NDArray[np.float64]
    steps: int
    residual: float  # norm of the last gradient over that of the first
    settled: bool  # whether the end was reached before the last step allowed


def train(
    network: Network,
    loss: SquaredLoss | HingeLoss,
    X: NDArray[Any],
    targets: NDArray[np.float64],
    X_test: NDArray[Any],
    largest_eigenvalue: float,
    tolerance: float = 1e-3,
    max_steps: int = 500,
) -> Trained:
    """Gradient descent with Nesterov's momentum from the initial parameters, until nothing more is gained.

    The end is where the gradient is below ``tolerance`` of the first one, or ten steps gain less than a hundredth of
    ``tolerance`` of all that was gained (with kinks, as those of ReLU, gradients need not vanish).
    ``largest_eigenvalue`` is that of the kernel of the training set; it sets the step.
    """
    torch = require_torch()
    start, inputs, wanted = network.parameters, network.tensor(X), network.tensor(targets)
    # Room for a kernel at finite width that is larger than its limit.
    curvature = 1.5 * loss.largest_curvature(largest_eigenvalue)
    momentum = (np.sqrt(curvature) - 1) / (np.sqrt(curvature) + 1)
    initial, initial_test = (_outputs(network, start, rows) for rows in (inputs, network.tensor(X_test)))
    change = [torch.zeros_like(part) for part in start]
    ahead = [torch.zeros_like(part) for part in start]
    costs: list[float] = []
    first, settled = 0.0, False
    for step in range(max_steps):
        there = [(part + moved).requires_grad_() for part, moved in zip(start, ahead, strict=True)]
        gradients = [moved.clone() for moved in ahead]
        cost = 0.5 * _squared_norm(ahead)
        for rows in _batches(network, inputs):
            part_cost = loss.value(network.outputs(there, inputs[rows]) - initial[rows], wanted[rows])
            for own, more in zip(gradients, torch.autograd.grad(part_cost, there), strict=True):
                own += more
            cost += float(part_cost.detach())
        with torch.no_grad():
            costs.append(cost)
            residual = _squared_norm(gradients) ** 0.5
            first = first or residual
            gained = costs[max(0, step - _PATIENCE)] - costs[-1]
            idle = step >= _PATIENCE and gained <= 0.01 * tolerance * (costs[0] - costs[-1])
            settled = residual <= tolerance * first or idle
            if settled:
                break
            before, change = change, [m - own / curvature for m, own in zip(ahead, gradients, strict=True)]
            ahead = [new + momentum * (new - old) for new, old in zip(change, before, strict=True)]
    there = [part + moved for part, moved in zip(start, ahead, strict=True)]
    outputs = _outputs(network, there, network.tensor(X_test)) - initial_test
    return Trained(outputs.double().numpy(), step, residual / first, settled)


def _outputs(network: Network, parameters: list[Any], inputs: Any) -> Any:
    """Outputs without gradients, some rows at a time."""
    torch = require_torch()
    with torch.no_grad():
        return torch.cat([network.outputs(parameters, inputs[rows]) for rows in _batches(network, inputs)])


def _batches(network: Network, inputs: Any) -> Iterator[slice]:
    """Parts of the rows, whose gradients add up to that of the full batch."""
    for start in range(0, len(inputs), network.rows_at_once):
        yield slice(start, start + network.rows_at_once)


def classes_of(outputs: NDArray[np.float64]) -> NDArray[np.int64]:
    """Class index that outputs stand for: the sign of one, else the largest; ties to the first."""
    return (outputs[:, 0] > 0).astype(np.int64) if outputs.shape[1] == 1 else outputs.argmax(axis=1)


def _squared_norm(parts: list[Any]) -> float:
    return float(sum((part**2).sum() for part in parts))


def _signs(codes: NDArray[np.int64], n_classes: int) -> NDArray[np.float64]:
    ones = codes[:, None] if n_classes == 2 else np.eye(n_classes)[codes]
    return (2.0 * ones - 1.0).astype(np.float64)

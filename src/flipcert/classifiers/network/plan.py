"""How a network is trained: everything that is fixed before a label is seen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.engine import extras


@dataclass(frozen=True)
class Step:
    """One step of gradient descent: which samples, and how far."""

    rows: slice | NDArray[np.int64]
    size: int
    rate: float


@dataclass(frozen=True)
class Plan:
    """A training run without its labels.

    Attributes
    ----------
    widths : tuple of int
        Units of each layer, from the inputs to the classes.
    loss : {"cross-entropy", "squared"}
    steps : tuple of Step
    l2 : float
        Factor of the parameters in every gradient.
    clip : float or None
        Largest magnitude of a coordinate of one sample's gradient.
    seed : int
        Of the initial parameters.
    """

    widths: tuple[int, ...]
    loss: str
    steps: tuple[Step, ...]
    l2: float
    clip: float | None
    seed: int

    @property
    def linear(self) -> bool:
        """Whether there is no hidden layer."""
        return len(self.widths) == 2

    @property
    def full_batches(self) -> bool:
        """Whether every step sees all samples, in their order."""
        return all(isinstance(step.rows, slice) for step in self.steps)

    def keeps(self, step: Step) -> float:
        """The factor of the parameters in a step."""
        return 1.0 - step.rate * self.l2


def schedule(
    n_samples: int, epochs: int, batch_size: int | None, rate: float, decay: float, least: float, seed: int
) -> tuple[Step, ...]:
    """Batches in an order that depends on the seed only; the last ones of an epoch are left out if they are too few.

    >>> [step.rate for step in schedule(10, 3, None, 5.0, 1.0, 2.0, 0)]
    [5.0, 2.5, 2.0]
    >>> [step.rows.tolist() for step in schedule(5, 1, 2, 5.0, 1.0, 2.0, 0)]
    [[2, 0], [1, 3]]
    """
    batches: list[slice | NDArray[np.int64]] = []
    if batch_size is None or batch_size == n_samples:
        batches, size = [slice(0, n_samples)] * epochs, n_samples
    else:
        size = batch_size
        random = np.random.RandomState(seed)
        for _ in range(epochs):
            order = random.permutation(n_samples)
            batches += [order[start : start + size] for start in range(0, n_samples - size + 1, size)]
    return tuple(Step(rows, size, max(rate / (1.0 + decay * s), least)) for s, rows in enumerate(batches))


def layer_shapes(widths: tuple[int, ...]) -> list[tuple[int, int]]:
    """Units and inputs of each layer."""
    return [(units, inputs) for inputs, units in pairwise(widths)]


def initial_parameters(plan: Plan) -> list[NDArray[np.float64]]:
    """What ``torch.nn.Linear`` draws after ``torch.manual_seed``, layer by layer: a matrix each, biases last.

    A generator of its own: a global one could not be shared by models that are fitted at the same time.
    """
    torch = load_torch()
    generator = torch.Generator().manual_seed(plan.seed)
    layers = []
    for units, inputs in layer_shapes(plan.widths):
        bounds = (math.sqrt(3.0) * (math.sqrt(2.0 / 6.0) / math.sqrt(inputs)), 1.0 / math.sqrt(inputs))
        weights, biases = (
            torch.empty(shape, dtype=torch.float32).uniform_(-bound, bound, generator=generator)
            for shape, bound in zip(((units, inputs), (units, 1)), bounds, strict=True)
        )
        layers.append(torch.cat([weights, biases], dim=1).double().numpy())
    return layers


def load_torch() -> Any:
    """PyTorch, which is not needed for anything else."""
    return extras.load_torch("BoundedNetwork needs")

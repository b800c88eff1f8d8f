"""Training of the network itself, in double precision."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from flipcert.classifiers.network.plan import Plan, Step, initial_parameters, load_torch
from flipcert.engine.blocks import memory_budget

if TYPE_CHECKING:
    from torch import Tensor

# Part of the memory budget that the gradients of one piece of a layer may take.
_PART = 16


@dataclass(frozen=True)
class Samples:
    """Training inputs and labels; ``movable`` says which labels an attacker can flip."""

    inputs: Tensor
    codes: Tensor
    movable: Tensor

    @classmethod
    def of(cls, X: NDArray[np.float64], codes: NDArray[np.int64], movable: NDArray[np.bool_]) -> Samples:
        """Hand arrays to torch; those that are read-only are copied."""
        torch = load_torch()
        arrays = (np.require(array, requirements=["C", "W"]) for array in (X, codes, movable))
        return cls(*(torch.from_numpy(array) for array in arrays))

    def at(self, step: Step) -> Samples:
        """The samples of a step."""
        return Samples(self.inputs[step.rows], self.codes[step.rows], self.movable[step.rows])


def train(plan: Plan, samples: Samples) -> Iterator[list[Tensor]]:
    """Parameters at the start and after every step.

    Each layer is one matrix, its last column the biases. Whatever is computed here, `boxes` computes for intervals:
    a change of the one is a change of the other.
    """
    torch = load_torch()
    layers = [torch.from_numpy(layer) for layer in initial_parameters(plan)]
    yield layers
    for number, step in enumerate(plan.steps):
        layers = take_step(plan, step, layers, samples.at(step))
        if not all(bool(torch.isfinite(layer).all()) for layer in layers):
            raise ValueError(
                f"training diverged: the loss is not finite after step {number + 1} of {len(plan.steps)}; lower "
                "learning_rate, rescale the features, or bound gradients with clip."
            )
        yield layers


def take_step(plan: Plan, step: Step, layers: list[Tensor], batch: Samples) -> list[Tensor]:
    """One step of gradient descent."""
    torch = load_torch()
    outputs = [batch.inputs]
    for layer in layers[:-1]:
        outputs.append(affine(outputs[-1], layer).clamp_(min=0))
    back = loss_gradient(affine(outputs[-1], layers[-1]), batch.codes, plan.loss)
    updated = []
    for layer, inputs in zip(reversed(layers), reversed(outputs), strict=True):
        total = _sum_of_gradients(back, inputs, plan.clip)
        updated.append(layer * plan.keeps(step) - total * (step.rate / step.size))
        if inputs is not batch.inputs:
            back = torch.where(inputs > 0, back @ layer[:, :-1], 0.0)
    return updated[::-1]


def affine(inputs: Tensor, layer: Tensor) -> Tensor:
    """Outputs of a layer before its activation."""
    outputs: Tensor = inputs @ layer[:, :-1].T + layer[:, -1]
    return outputs


def forward(layers: list[Tensor], inputs: Tensor) -> Tensor:
    """Class scores of the network."""
    for layer in layers[:-1]:
        inputs = affine(inputs, layer).clamp_(min=0)
    return affine(inputs, layers[-1])


def loss_gradient(scores: Tensor, codes: Tensor, loss: str) -> Tensor:
    """Gradient of every sample's loss with respect to its scores."""
    torch = load_torch()
    hits = torch.nn.functional.one_hot(codes, scores.shape[1]).double()
    return torch.softmax(scores, dim=1) - hits if loss == "cross-entropy" else 2.0 * (scores - hits)


def with_ones(inputs: Tensor) -> Tensor:
    """Inputs of a layer and a column of ones: what the biases see."""
    torch = load_torch()
    return torch.cat([inputs, inputs.new_ones(inputs.shape[0], 1)], dim=1)


def pieces(units: int, inputs: int, n_samples: int) -> Iterator[tuple[slice, slice]]:
    """Pieces of a layer, few enough parameters each that the gradients of all samples for them fit the memory."""
    room = max(1, memory_budget() // _PART // (8 * n_samples))
    width = min(inputs, room)
    height = max(1, room // width)
    for top in range(0, units, height):
        for left in range(0, inputs, width):
            yield slice(top, min(top + height, units)), slice(left, min(left + width, inputs))


def _sum_of_gradients(back: Tensor, inputs: Tensor, clip: float | None) -> Tensor:
    """Sum of the samples' gradients, each clipped by itself."""
    inputs = with_ones(inputs)
    if clip is None:
        return back.T @ inputs
    total = inputs.new_empty(back.shape[1], inputs.shape[1])
    for units, columns in pieces(back.shape[1], inputs.shape[1], inputs.shape[0]):
        single = back.T[units, None] * inputs.T[None, columns]
        total[units, columns] = single.clamp_(-clip, clip).sum(dim=2)
    return total

"""Networks to fine-tune: how they are made, learned without labels, and copied for each class."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn
from torch.func import functional_call, vmap

from flipcert.kernels import NTK
from paper.evidence.networks import require_torch

# What the network becomes as its layers grow infinitely wide, if its weights are drawn at random.
_WEIGHT_STD, _BIAS_STD = math.sqrt(2.0), 0.1
LIMIT = NTK(depth=2, activation="relu", weight_std=_WEIGHT_STD, bias_std=_BIAS_STD)
# Numbers in one array of hidden units.
_NUMBERS = 2**20
_SIDE = 8


class Layers(nn.Module):  # type: ignore[misc]
    """Two hidden layers of ReLUs and one output, in the NTK parametrisation, of standard normal weights.

    Parameters
    ----------
    n_inputs, width : int
        Width of the inputs and of the hidden layers.
    seed : int
        Of the weights.
    """

    def __init__(self, n_inputs: int, width: int, seed: int) -> None:
        super().__init__()
        torch = require_torch()
        generator = torch.Generator().manual_seed(seed)
        sizes = (n_inputs, width, width, 1)
        shapes = [shape for a, b in pairwise(sizes) for shape in ((b, a), (b,))]
        self.layers = nn.ParameterList([torch.randn(shape, generator=generator) for shape in shapes])

    def hidden(self, x: Any) -> Any:
        """Units of the last hidden layer."""
        for layer in (0, 2):
            x = _layer(x, self.layers[layer], self.layers[layer + 1]).relu()
        return x

    def forward(self, x: Any) -> Any:
        """One output for each input."""
        return _layer(self.hidden(x), self.layers[4], self.layers[5])


def _layer(x: Any, weights: Any, bias: Any) -> Any:
    return x @ weights.T * (_WEIGHT_STD / math.sqrt(weights.shape[1])) + _BIAS_STD * bias


def learn_rotations(network: Layers, images: NDArray[Any], seed: int, steps: int) -> float:
    """Have the hidden layers learn by how many quarters an image was turned; return the share that they get right.

    No label of an image enters: what is to be learned is made from the images themselves. The read-out of the turns is
    thrown away, and that of the network stays as it was drawn.
    """
    torch = require_torch()
    turned = [np.rot90(images.reshape(-1, _SIDE, _SIDE), k, axes=(1, 2)).reshape(images.shape) for k in range(4)]
    inputs = torch.as_tensor(np.concatenate(turned), dtype=torch.float32)
    quarters = torch.arange(4).repeat_interleave(len(images))
    width = network.layers[4].shape[1]
    generator = torch.Generator().manual_seed(1000 + seed)
    head = torch.randn((4, width), generator=generator).requires_grad_()
    zero = torch.zeros(4)
    optimiser = torch.optim.Adam([*list(network.layers)[:4], head], lr=0.05)
    for _ in range(steps):
        batch = torch.randint(len(inputs), (256,), generator=generator)
        loss = nn.functional.cross_entropy(_layer(network.hidden(inputs[batch]), head, zero), quarters[batch])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        right = _layer(network.hidden(inputs), head, zero).argmax(dim=1) == quarters
    return float(right.double().mean())


class Copies:
    """One copy of a network for each class, all from the same weights: what is trained (``paper.evidence.training``).

    Parameters
    ----------
    network : Layers
        The network.
    n_copies : int
        One for two classes, else as many as there are classes.
    """

    def __init__(self, network: Layers, n_copies: int) -> None:
        self._network = network
        self._names = [name for name, _ in network.named_parameters()]
        self.rows_at_once = max(1, _NUMBERS // (network.layers[4].shape[1] * n_copies))
        self.parameters = [
            own.detach().expand(n_copies, *own.shape).clone() for _, own in network.named_parameters()
        ]  # fmt: skip

    def tensor(self, values: NDArray[Any]) -> Any:
        """Numbers as the network takes them."""
        torch = require_torch()
        return torch.as_tensor(np.ascontiguousarray(values), dtype=torch.float32)

    def outputs(self, parameters: list[Any], X: Any) -> Any:
        """Outputs for each row of inputs, one column a copy."""

        def one(*own: Any) -> Any:
            return functional_call(self._network, dict(zip(self._names, own, strict=True)), (X,))[:, 0]

        return vmap(one)(*parameters).T

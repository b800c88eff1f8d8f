"""Small networks of users, with weights that are settled by a seed."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn


def settled(module, seed=0):
    """The network with weights drawn from a generator of its own, in single precision as networks mostly are."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / max(1, parameter[0].numel()) ** 0.5)
        for name, buffer in module.named_buffers():
            if "running" in name:
                buffer.copy_(torch.rand(buffer.shape, generator=generator) + 0.5)
    return module


def dense(n_inputs, width=4, n_outputs=1, activation=nn.Tanh, seed=0):
    """One hidden layer."""
    return settled(nn.Sequential(nn.Linear(n_inputs, width), activation(), nn.Linear(width, n_outputs)), seed)


def image_network(seed=0):
    """Convolution, batch norm and dropout on images of one channel, 4 x 4; in training mode, as networks are made."""
    layers = (nn.Conv2d(1, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU(), nn.Dropout(0.5), nn.Flatten())
    return settled(nn.Sequential(*layers, nn.Linear(48, 2)), seed)


class Wide(nn.Module):
    """Hidden layers of ReLUs in the NTK parametrisation: the kernel of an infinitely wide network at some width."""

    def __init__(self, n_inputs, width, depth, weight_std, bias_std, seed):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        sizes = [n_inputs, *[width] * depth, 1]
        draw = [torch.randn(shape, generator=generator) for a, b in pairwise(sizes)
                for shape in ((b, a), (b,))]  # fmt: skip
        self.layers = nn.ParameterList(draw)
        self.weight_std, self.bias_std = weight_std, bias_std

    def forward(self, x):
        for i in range(0, len(self.layers), 2):
            weight, bias = self.layers[i], self.layers[i + 1]
            x = x @ weight.T * (self.weight_std / weight.shape[1] ** 0.5) + self.bias_std * bias
            x = torch.relu(x) if i + 2 < len(self.layers) else x
        return x


class Copies(nn.Module):
    """The sum of all outputs over the root of their number, each from a copy of the network of its own."""

    def __init__(self, networks):
        super().__init__()
        self.networks = nn.ModuleList(networks)

    def forward(self, x):
        return sum(own(x)[:, j] for j, own in enumerate(self.networks)) / len(self.networks) ** 0.5


class Tied(nn.Module):
    """A layer that is used twice, and one output without a dimension of its own."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.second = nn.Linear(3, 3)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(torch.tanh(self.first(x))).sum(dim=1)


class AnyWidth(nn.Module):
    """Takes inputs of any width: a network on the first and the last number."""

    def __init__(self):
        super().__init__()
        self.layers = dense(2, 20)

    def forward(self, x):
        return self.layers(x[:, [0, -1]])


def centred(n_outputs=1):
    """A layer on inputs without what they have in common: gradients of both signs where inputs have one."""
    return settled(nn.Sequential(nn.BatchNorm1d(2, affine=False), nn.Linear(2, n_outputs, bias=False)))


class Odd(nn.Module):
    """A network whose outputs are what it is told."""

    def __init__(self, function):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.function = function

    def forward(self, x):
        return self.function(x * self.weight)

"""Finite networks in the NTK parametrisation: what a kernel of an infinitely wide network looks like at some width."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.kernels import NTK, ConvNTK
from paper.extras import load_torch

# Numbers in one array of hidden units: larger ones do not fit a cache, and are fetched from the system every time.
_NUMBERS = 2**20


def require_torch() -> Any:
    """Import torch, which is an extra."""
    return load_torch("Finite networks need")


class FiniteNetwork:
    """The network behind a kernel, with a finite number of units (channels) in each hidden layer.

    Parameters
    ----------
    kernel : NTK or ConvNTK
        Whose layers, activation and scales to take.
    n_inputs : int
        Width of the inputs.
    width : int
        Units, or channels, of each hidden layer.
    n_outputs : int, default=1
        Outputs of the read-out.
    seed : int, default=0
        Of the initial weights and biases, which are standard normal.
    dtype : {"float32", "float64"}, default="float32"
        Precision.
    """

    def __init__(
        self,
        kernel: NTK | ConvNTK,
        n_inputs: int,
        width: int,
        n_outputs: int = 1,
        seed: int = 0,
        dtype: str = "float32",
    ) -> None:
        kernel.validate()
        self.kernel = kernel
        self._torch = require_torch()
        self._dtype = getattr(self._torch, dtype)
        generator = self._torch.Generator().manual_seed(seed)
        positions = int(np.prod(kernel.image_shape[1:])) if isinstance(kernel, ConvNTK) else 1
        self.rows_at_once = max(1, _NUMBERS // (width * positions))
        self.parameters = [
            self._torch.randn(shape, generator=generator, dtype=self._dtype)
            for shape in _shapes(kernel, n_inputs, width, n_outputs)
        ]

    def tensor(self, values: NDArray[Any]) -> Any:
        """Numbers as the network takes them."""
        return self._torch.as_tensor(np.ascontiguousarray(values), dtype=self._dtype)

    def outputs(self, parameters: list[Any], X: Any) -> Any:
        """Outputs for each row of inputs: shape (n, n_outputs)."""
        kernel, functional = self.kernel, self._torch.nn.functional
        weight_std, bias_std = (np.broadcast_to(std, kernel.depth + 1) for std in (kernel.weight_std, kernel.bias_std))
        convolve = isinstance(kernel, ConvNTK)
        values = X.reshape(-1, *kernel.image_shape) if convolve else X
        for layer in range(kernel.depth):
            weights, bias = parameters[2 * layer : 2 * layer + 2]
            scaled = weights * (float(weight_std[layer]) / math.sqrt(math.prod(weights.shape[1:])))
            shift = float(bias_std[layer]) * bias
            if convolve and layer == 0:
                values = self._first_convolution(values, scaled, shift)
            elif convolve:
                values = functional.conv2d(values, scaled, shift, padding=int(kernel.filter_size) // 2)
            else:
                values = functional.linear(values, scaled, shift)
            values = self._activate(values)
        if convolve:
            # Channels last, as the products leave them: no copy.
            values = values.permute(0, 2, 3, 1).flatten(1) if kernel.pooling is None else values.mean((2, 3))
        weights, bias = parameters[-2:]
        scaled = weights * (float(weight_std[-1]) / math.sqrt(weights.shape[1]))
        return functional.linear(values, scaled, float(bias_std[-1]) * bias)

    def tangent_kernel(self, X: NDArray[Any], Z: NDArray[Any]) -> NDArray[np.float64]:
        """Inner products of the gradients of the first output at initialisation: the NTK at this width."""
        func = self._torch.func

        def first_output(parameters: list[Any], row: Any) -> Any:
            return self.outputs(parameters, row[None])[0, 0]

        gradients = func.vmap(func.grad(first_output), in_dims=(None, 0))
        left, right = (gradients(self.parameters, self.tensor(rows)) for rows in (X, Z))
        total = sum(a.flatten(1) @ b.flatten(1).T for a, b in zip(left, right, strict=True))
        return total.double().numpy()

    def _first_convolution(self, images: Any, weights: Any, bias: Any) -> Any:
        """One product with all patches: much faster than a convolution from few channels to many."""
        size = int(self.kernel.filter_size)
        patches = self._torch.nn.functional.unfold(images, size, padding=size // 2).transpose(1, 2)
        values = self._torch.nn.functional.linear(patches, weights.flatten(1), bias)
        return values.transpose(1, 2).unflatten(2, images.shape[2:])

    def _activate(self, values: Any) -> Any:
        functional = self._torch.nn.functional
        activations = {
            "linear": lambda v: v,
            "relu": functional.relu,
            "leaky_relu": lambda v: functional.leaky_relu(v, float(self.kernel.negative_slope)),
            "erf": self._torch.erf,
            "gelu": functional.gelu,
        }
        return activations[self.kernel.activation](values)


def _shapes(kernel: NTK | ConvNTK, n_inputs: int, width: int, n_outputs: int) -> list[tuple[int, ...]]:
    """Shapes of weights and biases, layer by layer."""
    shapes: list[tuple[int, ...]] = []
    if isinstance(kernel, ConvNTK):
        channels, height, columns = (int(size) for size in kernel.image_shape)
        filters = (int(kernel.filter_size),) * 2
        for layer in range(kernel.depth):
            shapes += [(width, width if layer else channels, *filters), (width,)]
        last = width if kernel.pooling else width * height * columns
    else:
        for layer in range(kernel.depth):
            shapes += [(width, width if layer else n_inputs), (width,)]
        last = width if kernel.depth else n_inputs
    return [*shapes, (n_outputs, last), (n_outputs,)]

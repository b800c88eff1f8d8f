"""A network of the user's own: how its outputs change with its parameters, for one input at a time."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.blocks import filled
from flipcert.engine.extras import load_torch, one_torch_thread
from flipcert.labels.validation import check_integers

# Inputs whose gradients are taken together: always as many, so that bits do not depend on how many there are.
_MOST_TOGETHER = 64
# Numbers in such gradients: beyond it, fewer outputs at a time, then fewer inputs.
_NUMBERS = 2**22


class Gradients:
    """A copy of a network at its present weights, in evaluation mode and double precision, and its gradients.

    Parameters
    ----------
    module : torch.nn.Module
        The network. Parameters that require no gradient are constants.
    n_inputs : int
        Width of the inputs.
    input_shape : sequence of int or None
        Shape of one input, as the network takes it; None if it takes rows as they are.

    Attributes
    ----------
    n_parameters, n_outputs : int
    together : int
        Inputs whose gradients are taken at a time.
    outputs : list of range
        All outputs, as many at a time as their gradients are taken.
    """

    def __init__(self, module: Any, n_inputs: int, input_shape: Sequence[int] | None) -> None:
        torch = self._torch = load_torch("Tangent needs")
        self._name = type(module).__name__
        self._shape = _shape_of_input(n_inputs, input_shape)
        if any(torch.nn.parameter.is_lazy(own) for own in (*module.parameters(), *module.buffers())):
            raise ValueError(
                f"module {self._name} has parameters without values yet; call it on a batch of inputs first."
            )
        if any(own.is_complex() for own in (*module.parameters(), *module.buffers())):
            raise ValueError(f"module {self._name} has complex numbers among its parameters; they have to be real.")
        with told(self._name, "copied in double precision"):
            self._module = copy.deepcopy(module).to(device="cpu", dtype=torch.float64).eval()
            named = {name: own.detach() for name, own in self._module.named_parameters()}
        trained = {name for name, own in self._module.named_parameters() if own.requires_grad}
        if not trained:
            raise ValueError(
                f"module must have a parameter that requires a gradient; {self._name} has {len(named)} parameters, and "
                "all of them are frozen."
            )
        self._trained = {name: own for name, own in named.items() if name in trained}
        self._frozen = {name: own for name, own in named.items() if name not in trained}
        self.n_parameters = sum(own.numel() for own in self._trained.values())
        self.n_outputs = self._outputs_together(np.zeros((1, n_inputs))).shape[1]
        self.together = max(1, min(_MOST_TOGETHER, _NUMBERS // self.n_parameters))
        step = max(1, _NUMBERS // (self.together * self.n_parameters))
        self.outputs = [range(first, min(first + step, self.n_outputs)) for first in range(0, self.n_outputs, step)]

    def check(self, X: NDArray[Any]) -> None:
        """Raise ValueError if the outputs for some rows depend on which other rows are asked about with them."""
        together = self._outputs_together(X[:2])
        with told(self._name, "evaluated for one input at a time"):
            rows = self._tensor(X[:2])
            alone = self._torch.func.vmap(lambda row: self._outputs(self._module, self._trained, row))(rows)
        size = float(together.abs().max())
        if np.isfinite(size) and not self._torch.allclose(together, alone, rtol=1e-6, atol=1e-9 * size):
            raise ValueError(
                f"module must treat each input by itself, but the outputs of {self._name} for one input depend on the "
                "others in its batch, or on chance."
            )

    def of(self, X: NDArray[Any], outputs: range) -> NDArray[np.float64]:
        """Gradients of some outputs in all parameters, one after the other: a row for each row of X."""
        func = self._torch.func
        # Parameters are put into the network while it is called, and other threads call it too.
        own = copy.deepcopy(self._module)

        def value(trained: dict[str, Any], row: Any) -> Any:
            return self._outputs(own, trained, row)[outputs.start : outputs.stop]

        with told(self._name, "differentiated for one input at a time"):
            rows = self._tensor(filled(X, self.together))
            parts = func.vmap(func.jacrev(value), in_dims=(None, 0))(self._trained, rows)
            joined = self._torch.cat(
                [part.flatten(2) if part.ndim > 2 else part[..., None] for part in parts.values()], 2
            )
        gradients: NDArray[np.float64] = joined.detach().flatten(1).numpy()[: X.shape[0]]
        if not np.isfinite(gradients).all():
            raise ValueError(
                f"gradients of {self._name} must be finite; got {gradients[~np.isfinite(gradients)][0]} for an input. "
                "Rescale the features, or look for a division by zero or a root of zero in the network."
            )
        return gradients

    def _outputs(self, module: Any, trained: dict[str, Any], row: Any) -> Any:
        """All outputs for one input."""
        result = self._torch.func.functional_call(module, trained | self._frozen, (row.reshape(1, *self._shape),))
        return result.reshape(-1)

    def _outputs_together(self, X: NDArray[Any]) -> Any:
        """All outputs for a batch of inputs, as anybody would ask for them."""
        with told(self._name, "evaluated in double precision"), self._torch.no_grad():
            result = self._module(self._tensor(X).reshape(len(X), *self._shape))
        return self._checked(result, len(X)).reshape(len(X), -1)

    def _checked(self, result: Any, n_rows: int) -> Any:
        if not isinstance(result, self._torch.Tensor) or not result.is_floating_point():
            kind = str(result.dtype) if isinstance(result, self._torch.Tensor) else type(result).__name__
            raise ValueError(f"module must return a tensor of real numbers; {self._name} returned {kind}.")
        if result.ndim == 0 or result.shape[0] != n_rows or result.numel() == 0:
            raise ValueError(
                f"module must return outputs of shape (n, ...) for n inputs; {self._name} returned "
                f"{tuple(result.shape)} for {n_rows}."
            )
        return result

    def _tensor(self, X: NDArray[Any]) -> Any:
        return self._torch.from_numpy(X.astype(np.float64))


@contextmanager
def told(name: str, what: str) -> Iterator[None]:
    """On one thread, whatever mode the caller is in; what the network or torch says of it becomes one sentence."""
    torch = load_torch("Tangent needs")
    try:
        with one_torch_thread, torch.inference_mode(False), torch.enable_grad():
            yield
    except Exception as error:  # networks fail in their own ways
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__).rstrip(".")
        raise ValueError(f"module {name} cannot be {what}: {reason}.") from error


def digest(module: Any) -> str:
    """A short name for the numbers in a network: the same parameters and buffers, the same name."""
    found = hashlib.sha256()
    for name, values in module.state_dict().items():
        found.update(f"{name} {values.dtype} {tuple(values.shape)} ".encode())
        found.update(values.detach().cpu().contiguous().flatten().view(load_torch("Tangent needs").uint8).numpy().data)
    return found.hexdigest()[:12]


def _shape_of_input(n_inputs: int, input_shape: Sequence[int] | None) -> tuple[int, ...]:
    if input_shape is None:
        return (n_inputs,)
    shape = tuple(check_integers(input_shape, "input_shape", minimum=1, ndim=1).tolist())
    if int(np.prod(shape)) != n_inputs:
        product = " x ".join(str(size) for size in shape)
        raise ValueError(f"X has rows of {n_inputs} numbers, but input_shape={shape} needs {product}.")
    return shape

"""What the kernels of infinitely wide networks share: layers, scales, activations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, issparse

from flipcert.engine.blocks import block_rows, in_job, map_threads
from flipcert.engine.magnitude import BY_FEATURES
from flipcert.engine.rounding import Factor, norms_vanish, row_norms, squares_are_exact
from flipcert.engine.sparse import SparseRows, dense, training_rows
from flipcert.kernels._jit.dual import ERF, GELU, RELU
from flipcert.kernels.base import Kernel
from flipcert.kernels.sparse import any_sparse, sparse_kernel
from flipcert.labels.validation import check_choice, check_inputs, check_number

_ACTIVATIONS = {"relu": RELU, "leaky_relu": RELU, "erf": ERF, "gelu": GELU}
# Beyond the product itself: the arc cosine near equal inputs loses digits, by about this factor.
_ANGLE_LOSS = 100.0
# Smaller ones would lose bits with inputs of ordinary size, or vanish.
_SMALLEST_SLOPE = 1e-200


class NetworkKernel(Kernel):
    """Neural tangent kernel (or covariance at initialisation) of an infinitely wide network."""

    depth: int
    activation: str
    weight_std: float | Sequence[float]
    bias_std: float | Sequence[float]
    kind: str
    negative_slope: float

    _smallest_depth = 0

    def __call__(self, X: NDArray[Any], Z: NDArray[Any] | None = None) -> NDArray[Any]:
        """Kernel matrix of X with Z; of X with itself, one half of it twice."""
        self.validate()
        if any_sparse(X, Z):
            return sparse_kernel(self, X, Z)
        X = np.ascontiguousarray(check_inputs(X))
        other = X if Z is None else np.ascontiguousarray(check_inputs(Z), X.dtype)
        values = np.empty((X.shape[0], other.shape[0]), X.dtype)
        rows = block_rows(X.shape[0], other.shape[0] * X.dtype.itemsize)

        def block(start: int) -> None:
            stop = min(start + rows, X.shape[0])
            if Z is not None:
                self.write(X[start:stop], other, values[start:stop])
                return
            part = np.empty((stop - start, stop), X.dtype)
            self.write(X[start:stop], X[:stop], part)
            corner = part[:, start:]
            corner[:] = np.tril(corner) + np.tril(corner, -1).T
            values[start:stop, :stop] = part
            values[:start, start:stop] = part[:, :start].T

        # Jobs keep all cores busy by themselves.
        map_threads(block, range(0, X.shape[0], rows), 1 if in_job() else None)
        return values

    def rounding(self, X: NDArray[Any], train: Factor) -> NDArray[np.float64]:
        """Rounding of the products, carried through the layers."""
        slope, constant = self._line(X.shape[1])
        if self.activation == "linear":
            return slope * train.product_error(X)
        errors = train.product_error(X)
        if constant and not squares_are_exact(train.largest_norm, train.quantum):
            # Even zeros, whose products are exact, have kernels that depend on how long others are.
            errors = np.where(errors == 0.0, train.square_error, errors)
        return slope * _ANGLE_LOSS * errors

    def lost(self, X: NDArray[Any], train: Factor, sizes: NDArray[Any]) -> NDArray[np.bool_]:
        """Rows whose squared norms underflow, or those of all training inputs; a bias is never lost."""
        if self._line(X.shape[1])[1] > 0:
            return np.zeros(X.shape[0], np.bool_)
        return norms_vanish(X, train, self._smallest_scale(X.shape[1]))

    def why(self, X: NDArray[Any], Z: NDArray[Any], small: bool) -> str:
        """The features, unless they would do without the scales of weights and biases."""
        too, other = ("small", "larger") if small else ("large", "smaller")
        if small:
            culprit = None if norms_vanish(X, Factor.of(Z)).any() else "weight_std"
        else:
            slope, constant = self._line(X.shape[1])
            most = float(np.finfo(X.dtype).max) / Z.shape[0]
            with np.errstate(over="ignore"):
                largest = row_norms(X).max() * row_norms(Z).max()
                culprit = None if not largest <= most else "weight_std" if not slope * largest <= most else "bias_std"
                culprit = culprit if culprit != "bias_std" or constant > 0 else None
        if culprit is None:
            return BY_FEATURES
        return (
            f"{culprit}={getattr(self, culprit)!r} makes the kernel of these inputs too {too} for its type; take a "
            f"{other} {culprit}, or rescale the features"
        )

    def product_scale(self, n_inputs: int) -> float | None:
        """A linear network without biases scales the inner product."""
        slope, constant = self._line(n_inputs)
        return slope if self.activation == "linear" and constant == 0.0 else None

    def validate(self) -> None:
        """Check the parameters that all networks have."""
        whole = isinstance(self.depth, (int, np.integer)) and not isinstance(self.depth, bool)
        if not whole or self.depth < self._smallest_depth:
            raise ValueError(
                f"depth must be a whole number of hidden layers, at least {self._smallest_depth}; got {self.depth!r}."
            )
        check_choice(self.activation, "activation", ("linear", *_ACTIVATIONS))
        check_choice(self.kind, "kind", ("ntk", "nngp"))
        if check_number(self.negative_slope, "negative_slope", zero=True) > 1:
            raise ValueError(f"negative_slope must be at most 1; got {self.negative_slope!r}.")
        slope, constant = self._line(1)
        if slope < _SMALLEST_SLOPE:
            raise ValueError(
                f"weight_std must not be so small that the kernel underflows; got {self.weight_std!r} in "
                f"{self.depth + 1} layers."
            )
        # Biases are passed on by the weights of later layers.
        for name, value, fits in (("weight_std", self.weight_std, slope), ("bias_std", self.bias_std, constant)):
            if not np.isfinite(fits):
                raise ValueError(
                    f"{name} must not be so large that the kernel overflows; got {value!r} in {self.depth + 1} layers."
                )

    def _variances(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Variance of weights and biases of each layer, the read-out among them."""
        weight = _each_layer(self.weight_std, "weight_std", self.depth + 1, zero=False)
        with np.errstate(over="ignore", under="ignore"):  # told by validate
            return weight**2, _each_layer(self.bias_std, "bias_std", self.depth + 1, zero=True) ** 2

    def _activation(self) -> tuple[int, float, bool]:
        """The activation as compiled code knows it, and whether the kernel is the tangent one."""
        leak = float(self.negative_slope) if self.activation == "leaky_relu" else 0.0
        return _ACTIVATIONS[self.activation], leak, self.kind == "ntk"

    def _line(self, n_inputs: int) -> tuple[float, float]:
        """Slope and constant of the linear network's kernel as a function of the inner product."""
        weight, bias = self._variances()
        last = self.depth
        # Each layer's own parameters add the layer's covariance once more, as later layers pass it on.
        times = last + 1 - np.arange(last + 1) if self.kind == "ntk" else np.ones(last + 1)
        kept = np.array([self._kept(max(0, last - 1 - layer)) for layer in range(last + 1)])
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):  # told by validate
            passed_on = np.append(np.cumprod(weight[:0:-1])[::-1], 1.0)
            constants = np.where(bias > 0, times * bias * passed_on * kept, 0.0)
            return float(times[0] * np.prod(weight)) / n_inputs, float(np.sum(constants))

    def _smallest_scale(self, n_inputs: int) -> float:
        """The least that inner products are multiplied by on their way through the layers."""
        weight, _ = self._variances()
        return float(np.cumprod(weight).min()) / n_inputs

    def _kept(self, n_layers: int) -> float:
        """Share of a constant that further layers leave, beside their weights."""
        return 1.0


def squares(X: NDArray[Any]) -> NDArray[np.float64]:
    """Squared norm of each row, refusing inputs that overflow."""
    rows = training_rows(X)
    with np.errstate(over="ignore"):
        norms = rows.squares if isinstance(rows, SparseRows) else np.einsum("ij,ij->i", X, X, dtype=np.float64)
    wrong = ~(norms <= np.finfo(X.dtype).max)
    if np.any(wrong):
        worst = dense(rows[int(wrong.argmax()) :][:1])[0]
        raise ValueError(
            f"X must hold finite numbers whose squares fit {X.dtype}; got {float(worst[np.argmax(np.abs(worst))])!r}. "
            "Rescale the features."
        )
    return norms


def with_constant(features: NDArray[Any], constant: float) -> NDArray[Any]:
    """Features and, unless it is zero, one more that adds a constant to all inner products."""
    if constant == 0.0:
        return features
    column = np.full((features.shape[0], 1), np.sqrt(constant), features.dtype)
    if issparse(features):
        return hstack([features, csr_array(column)], format="csr")
    return np.hstack([features, column])


def near_gap(dtype: np.dtype[Any]) -> float:
    """Gaps from products of this precision below which the angle should rather be measured on the inputs."""
    return 16.0 * float(np.sqrt(np.finfo(dtype).eps))


def _each_layer(value: Any, name: str, n_layers: int, *, zero: bool) -> NDArray[np.float64]:
    """One number for each layer, from one for all of them or from a sequence."""
    if isinstance(value, (str, bytes)) or not np.iterable(value):
        return np.full(n_layers, check_number(value, name, zero=zero))
    numbers = np.array([check_number(number, name, zero=zero) for number in value])
    if numbers.size != n_layers:
        raise ValueError(
            f"{name} must be one number, or one for each of the depth + 1 = {n_layers} layers (the read-out is the "
            f"last); got {numbers.size}."
        )
    return numbers

"""Neural tangent kernels of dense networks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.rounding import Factor
from flipcert.kernels._dense import ERF, RELU, dense_diagonal, dense_kernel
from flipcert.kernels.base import Kernel
from flipcert.validation import check_choice, check_inputs, check_number

_ACTIVATIONS = {"relu": RELU, "erf": ERF}
# Beyond the product itself: the arc cosine near equal inputs loses digits, by about this factor.
_ANGLE_LOSS = 100.0


class NTK(Kernel):
    r"""Neural tangent kernel of an infinitely wide fully-connected network.

    In the NTK parametrisation a layer computes :math:`\sigma_w W x / \sqrt{d} + \sigma_b b` with standard normal W, b.
    With :math:`\Sigma` the covariance of a layer's outputs and :math:`\dot T` that of the activation's derivative,

    .. math:: \Sigma_{l+1} = \sigma_w^2\, T(\Sigma_l) + \sigma_b^2, \qquad
              \Theta_{l+1} = \Sigma_{l+1} + \sigma_w^2\, \Theta_l\, \dot T(\Sigma_l).

    One hidden linear layer with ``weight_std=1, bias_std=0`` on d inputs is :math:`2 \langle x, z\rangle / d`.

    Parameters
    ----------
    depth : int, default=1
        Number of hidden layers; a linear read-out follows.
    activation : {"linear", "relu", "erf"}, default="linear"
        Activation of the hidden layers. "linear" has a finite feature map.
    weight_std, bias_std : float, default=1.0 and 0.0
        Scales of weights and biases.
    kind : {"ntk", "nngp"}, default="ntk"
        "nngp" is the covariance of the network's outputs at initialisation instead.

    Examples
    --------
    >>> import numpy as np
    >>> from flipcert.kernels import NTK
    >>> X = np.array([[1.0, 0.0], [1.0, 1.0]])
    >>> NTK()(X)
    array([[1., 1.],
           [1., 2.]])
    >>> NTK(depth=2, activation="relu")(X).round(4)
    array([[0.375 , 0.3156],
           [0.3156, 0.75  ]])
    """

    def __init__(
        self,
        depth: int = 1,
        activation: str = "linear",
        weight_std: float = 1.0,
        bias_std: float = 0.0,
        kind: str = "ntk",
    ) -> None:
        self.depth = depth
        self.activation = activation
        self.weight_std = weight_std
        self.bias_std = bias_std
        self.kind = kind

    def __call__(self, X: NDArray[Any], Z: NDArray[Any] | None = None) -> NDArray[Any]:
        """Kernel matrix of X with Z."""
        X = check_inputs(X)
        other = X if Z is None else check_inputs(Z)
        values = np.empty((X.shape[0], other.shape[0]), X.dtype)
        self.write(X, other, values)
        if Z is None and self.activation != "linear":
            # The angle between equal inputs is zero, not what rounding makes of it.
            np.fill_diagonal(values, self.diag(X))
        return values

    def write(self, X: NDArray[Any], Z: NDArray[Any], out: NDArray[Any]) -> None:
        """Write the kernel matrix of X with Z to ``out``."""
        self.validate()
        np.matmul(X, Z.T, out=out)
        if self.activation != "linear":
            dense_kernel(out, self._input_diagonal(X), self._input_diagonal(Z), *self._layers(X.shape[1]))
            return
        slope, constant = self._line(X.shape[1])
        out *= out.dtype.type(slope)
        if constant:
            out += out.dtype.type(constant)

    def diag(self, X: NDArray[Any]) -> NDArray[Any]:
        """Kernel of each row with itself."""
        self.validate()
        X = check_inputs(X)
        squares = self._input_diagonal(X)
        if self.activation == "linear":
            slope, constant = self._line(X.shape[1])
            return (slope * squares + constant).astype(X.dtype)
        return dense_diagonal(squares, *self._layers(X.shape[1])).astype(X.dtype)

    def n_features(self, n_inputs: int) -> int | None:
        """Inputs and, with biases, a constant, for the linear network; None for the others."""
        self.validate()
        return n_inputs + (self.bias_std > 0) if self.activation == "linear" else None

    def features(self, X: NDArray[Any]) -> NDArray[Any]:
        """Feature map of the linear network: scaled inputs and a constant."""
        X = check_inputs(X)
        if self.n_features(X.shape[1]) is None:
            return super().features(X)
        slope, constant = self._line(X.shape[1])
        scaled = X * X.dtype.type(np.sqrt(slope))
        if self.bias_std == 0:
            return scaled
        return np.hstack([scaled, np.full((X.shape[0], 1), np.sqrt(constant), X.dtype)])

    def rounding(self, X: NDArray[Any], train: Factor) -> NDArray[np.float64]:
        """Rounding of the product, carried through the layers."""
        self.validate()
        slope, _ = self._line(X.shape[1])
        loss = 1.0 if self.activation == "linear" else _ANGLE_LOSS
        return slope * loss * train.product_error(X)

    def product_scale(self, n_inputs: int) -> float | None:
        """A linear network without biases scales the inner product."""
        slope, constant = self._line(n_inputs)
        return slope if self.activation == "linear" and constant == 0.0 else None

    def validate(self) -> None:
        """Check all parameters."""
        if not isinstance(self.depth, (int, np.integer)) or isinstance(self.depth, bool) or self.depth < 0:
            raise ValueError(f"depth must be a whole number of hidden layers, at least 0; got {self.depth!r}.")
        check_choice(self.activation, "activation", ("linear", *_ACTIVATIONS))
        check_choice(self.kind, "kind", ("ntk", "nngp"))
        check_number(self.weight_std, "weight_std")
        check_number(self.bias_std, "bias_std", zero=True)

    def _line(self, n_inputs: int) -> tuple[float, float]:
        """Slope and constant of the linear network's kernel as a function of the inner product."""
        weight, bias = float(self.weight_std) ** 2, float(self.bias_std) ** 2
        covariance = (weight, bias)
        tangent = covariance
        for _ in range(self.depth):
            covariance = (weight * covariance[0], weight * covariance[1] + bias)
            tangent = (covariance[0] + weight * tangent[0], covariance[1] + weight * tangent[1])
        slope, constant = tangent if self.kind == "ntk" else covariance
        return slope / n_inputs, constant

    def _layers(self, n_inputs: int) -> tuple[float, float, float, int, int, bool]:
        weight, bias = float(self.weight_std) ** 2, float(self.bias_std) ** 2
        return weight / n_inputs, weight, bias, self.depth, _ACTIVATIONS[self.activation], self.kind == "ntk"

    @staticmethod
    def _input_diagonal(X: NDArray[Any]) -> NDArray[np.float64]:
        return np.einsum("ij,ij->i", X, X, dtype=np.float64)

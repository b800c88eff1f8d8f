"""Kernels of dense networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.rounding import row_norms
from flipcert.engine.sparse import SparseRows, write_product
from flipcert.kernels._jit.dense import dense_diagonal, dense_kernel
from flipcert.kernels.base import Bounded
from flipcert.kernels.network import NetworkKernel, near_gap, squares, with_constant
from flipcert.kernels.norms import norm_rounding, product_rounding, rounded_up
from flipcert.labels.validation import check_inputs


class NTK(NetworkKernel):
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
    activation : {"linear", "relu", "leaky_relu", "erf", "gelu"}, default="linear"
        Activation of the hidden layers. "linear" has a finite feature map.
    weight_std, bias_std : float or sequence of float, default=1.0 and 0.0
        Scales of weights and biases: of all layers, or of each of the ``depth + 1`` layers, the read-out last.
    kind : {"ntk", "nngp"}, default="ntk"
        "nngp" is the covariance of the network's outputs at initialisation instead.
    negative_slope : float, default=0.1
        Slope of "leaky_relu" for negative numbers, from 0 to 1.

    See Also
    --------
    ConvNTK : The same of a convolutional network.
    Tangent : Of a network that you have.

    References
    ----------
    Jacot, Gabriel and Hongler, *Neural Tangent Kernel: Convergence and Generalization in Neural Networks*,
    2018.

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

    takes_sparse = True

    def __init__(
        self,
        depth: int = 1,
        activation: str = "linear",
        weight_std: float | Sequence[float] = 1.0,
        bias_std: float | Sequence[float] = 0.0,
        kind: str = "ntk",
        negative_slope: float = 0.1,
    ) -> None:
        self.depth = depth
        self.activation = activation
        self.weight_std = weight_std
        self.bias_std = bias_std
        self.kind = kind
        self.negative_slope = negative_slope

    def write(self, X: NDArray[Any], Z: Any, out: NDArray[Any]) -> None:
        """Write the kernel matrix of X with Z to ``out``."""
        self.validate()
        if self.activation != "linear":
            x_square, z_square = squares(X), squares(Z)
            write_product(X, Z, out)
            others = Z.arrays if isinstance(Z, SparseRows) else Z
            dense_kernel(out, X, others, x_square, z_square, *self._layers(X.shape[1]), near_gap(X.dtype))
            return
        slope, constant = self._line(X.shape[1])
        with np.errstate(over="ignore", invalid="ignore"):  # whoever uses the kernel refuses what overflowed
            write_product(X, Z, out)
            out *= out.dtype.type(slope)
            if constant:
                out += out.dtype.type(constant)

    def diag(self, X: NDArray[Any]) -> NDArray[Any]:
        """Kernel of each row with itself."""
        self.validate()
        X = check_inputs(X, sparse=True)
        if self.activation == "linear":
            slope, constant = self._line(X.shape[1])
            return (slope * squares(X) + constant).astype(X.dtype)
        return dense_diagonal(squares(X), *self._layers(X.shape[1])).astype(X.dtype)

    def n_features(self, n_inputs: int) -> int | None:
        """Inputs and, with biases, a constant, for the linear network; None for the others."""
        self.validate()
        return n_inputs + bool(self._line(n_inputs)[1]) if self.activation == "linear" else None

    def features(self, X: NDArray[Any]) -> NDArray[Any]:
        """Feature map of the linear network: scaled inputs and a constant."""
        X = check_inputs(X, sparse=True)
        if self.n_features(X.shape[1]) is None:
            return super().features(X)
        slope, constant = self._line(X.shape[1])
        with np.errstate(over="ignore", invalid="ignore"):  # whoever uses the features refuses what overflowed
            return with_constant(X * X.dtype.type(np.sqrt(slope)), constant)

    @property
    def bounded_by(self) -> Bounded:
        """The norm, for activations that are linear on either side of zero: longer inputs are always more alike."""
        return Bounded.NORM if self.activation in ("linear", "relu", "leaky_relu") else Bounded.NOTHING

    def largest(self, X: NDArray[Any], max_norm: float | None) -> NDArray[np.float64]:
        """What a linear network reaches; for others Cauchy-Schwarz, which is reached where there are no biases."""
        assert max_norm is not None, "checked before"
        n_inputs = X.shape[1]
        with np.errstate(over="ignore", invalid="ignore"):
            if self.activation == "linear":
                slope, constant = self._line(n_inputs)
                return rounded_up(
                    slope * row_norms(X) * max_norm + constant,
                    X,
                    product_rounding(n_inputs + 8, X.dtype),
                    constant=constant > 0,
                )
            longest = np.full(1, (max_norm * (1.0 + norm_rounding(n_inputs, X.dtype))) ** 2)
            own, other = (dense_diagonal(square, *self._layers(n_inputs)) for square in (squares(X), longest))
        # Products, which are rounded most, enter each layer; angles near zero are measured on the inputs.
        errors = 4.0 * (self.depth + 1) * product_rounding(n_inputs + 16, X.dtype)
        return rounded_up(np.sqrt(own * other), X, errors, constant=bool(self._variances()[1].any()))

    def _layers(self, n_inputs: int) -> tuple[Any, ...]:
        weight, bias = self._variances()
        return float(weight[0]) / n_inputs, weight, bias, *self._activation()

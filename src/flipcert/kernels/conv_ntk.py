"""Kernels of convolutional networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.memory import available_memory
from flipcert.engine.room import room
from flipcert.kernels._jit.conv import N_SHEETS, conv_deviations, conv_pooled, conv_rows
from flipcert.kernels.network import NetworkKernel, near_gap, squares, with_constant
from flipcert.kernels.patches import factor, spread
from flipcert.labels.validation import check_inputs, check_integers

# Up to so many channels, compiled loops multiply pixels faster than many small products, and in double precision.
_FEW_CHANNELS = 8
# Numbers in one sheet of covariances, in the images of its columns, and in the products for a block of images.
_SHEET, _PIXELS, _PRODUCTS = 2**16, 2**21, 2**20
# Pairs of positions for which it pays to ask how much memory there is.
_LARGE = 2**22


class ConvNTK(NetworkKernel):
    r"""Neural tangent kernel of an infinitely wide convolutional network.

    Every convolution has stride 1 and zero padding that keeps the size of the image ("same"), and is followed by the
    activation; a dense read-out follows the last, from all positions or from their average. In the NTK
    parametrisation a convolution of c channels with filters of size f computes :math:`\sigma_w W * x / \sqrt{c f^2} +
    \sigma_b b` with standard normal W, b; so a pixel of the next covariance is an average over a patch.

    Rows are images, flattened channel by channel: ``images.reshape(n, channels * height * width)`` for an array of
    shape (n, channels, height, width).

    Without pooling, only covariances at equal positions matter, and time grows with the number of positions; with
    pooling it grows with its square. The linear network has finite features in both cases.

    Parameters
    ----------
    image_shape : tuple of int
        (channels, height, width).
    filter_size : int, default=3
        Height and width of the filters, odd.
    depth : int, default=1
        Number of convolutions.
    activation : {"linear", "relu", "leaky_relu", "erf", "gelu"}, default="relu"
        Activation after each convolution. "linear" has a finite feature map.
    pooling : {None, "average"}, default=None
        What the read-out sees: all positions, or their average.
    weight_std, bias_std : float or sequence of float, default=1.0 and 0.0
        Scales of weights and biases: of all layers, or of each of the ``depth + 1`` layers, the read-out last.
    kind : {"ntk", "nngp"}, default="ntk"
        "nngp" is the covariance of the network's outputs at initialisation instead.
    negative_slope : float, default=0.1
        Slope of "leaky_relu" for negative numbers, from 0 to 1.

    See Also
    --------
    NTK : The same of a dense network.

    References
    ----------
    Arora, Du, Hu, Li, Salakhutdinov and Wang, *On Exact Computation with an Infinitely Wide Neural Net*, 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from flipcert.kernels import ConvNTK
    >>> images = np.arange(18.0).reshape(2, 1, 3, 3)
    >>> kernel = ConvNTK(image_shape=(1, 3, 3))
    >>> kernel(images.reshape(2, 9)).round(3)
    array([[ 13.136,  33.316],
           [ 33.316, 105.691]])
    """

    _smallest_depth = 1

    def __init__(
        self,
        image_shape: tuple[int, int, int],
        filter_size: int = 3,
        depth: int = 1,
        activation: str = "relu",
        pooling: str | None = None,
        weight_std: float | Sequence[float] = 1.0,
        bias_std: float | Sequence[float] = 0.0,
        kind: str = "ntk",
        negative_slope: float = 0.1,
    ) -> None:
        self.image_shape = image_shape
        self.filter_size = filter_size
        self.depth = depth
        self.activation = activation
        self.pooling = pooling
        self.weight_std = weight_std
        self.bias_std = bias_std
        self.kind = kind
        self.negative_slope = negative_slope

    def write(self, X: NDArray[Any], Z: NDArray[Any], out: NDArray[Any]) -> None:
        """Write the kernel matrix of X with Z to ``out``."""
        self.validate()
        self._check_width(X.shape[1])
        self._check_width(Z.shape[1])
        if self.activation == "linear":
            with np.errstate(over="ignore", invalid="ignore"):  # whoever uses the kernel refuses what overflowed
                np.matmul(self._map(X), self._map(Z).T, out=out)
            return
        for inputs in (X, Z):
            squares(inputs)  # refuses what would overflow
        if self.pooling is None:
            self._write_flat(X, Z, out)
        else:
            self._write_pooled(X, Z, out)

    def diag(self, X: NDArray[Any]) -> NDArray[Any]:
        """Kernel of each row with itself."""
        self.validate()
        X = np.ascontiguousarray(check_inputs(X))
        self._check_width(X.shape[1])
        norms = squares(X)
        if self.activation == "linear":
            return np.einsum("ij,ij->i", self._map(X), self._map(X))
        if self.pooling is None:
            _, covariance, tangent = conv_deviations(self._images(X), *self._layers)
            return self._read_out(np.stack([covariance.mean(axis=0), tangent.mean(axis=0)])).astype(X.dtype)
        values = np.empty((norms.size, 1), X.dtype)
        for i in range(norms.size):
            self._write_pooled(X[i : i + 1], X[i : i + 1], values[i : i + 1])
        return values[:, 0]

    def n_features(self, n_inputs: int) -> int | None:
        """Pixels (with pooling, averages of them) and, with biases, a constant, for the linear network; else None."""
        self.validate()
        self._check_width(n_inputs)
        if self.activation != "linear":
            return None
        rows, columns = self._maps()
        pixels = rows.shape[0] * columns.shape[0] if self.pooling else self._n_positions
        return int(self.image_shape[0]) * pixels + bool(self._line(n_inputs)[1])

    def features(self, X: NDArray[Any]) -> NDArray[Any]:
        """Feature map of the linear network: weighted pixels or averages of pixels, and a constant."""
        X = check_inputs(X)
        if self.n_features(X.shape[1]) is None:
            return super().features(X)
        return self._map(X)

    def product_scale(self, n_inputs: int) -> float | None:
        """Filters of one pixel without pooling or biases only scale the inner product."""
        plain = self.pooling is None and self.filter_size == 1
        return super().product_scale(n_inputs) if plain else None

    def validate(self) -> None:
        """Check all parameters."""
        shape = check_integers(self.image_shape, "image_shape", minimum=1, ndim=1)
        if shape.size != 3:
            raise ValueError(f"image_shape must be (channels, height, width); got {self.image_shape!r}.")
        if not check_integers(self.filter_size, "filter_size", minimum=1, ndim=0) % 2:
            raise ValueError(
                f"filter_size must be odd, so that a filter has a centre; got {self.filter_size!r}. "
                f"Use {self.filter_size - 1} or {self.filter_size + 1}."
            )
        if self.pooling is not None and self.pooling != "average":
            raise ValueError(f'pooling must be None or "average"; got {self.pooling!r}.')
        super().validate()

    @property
    def _n_positions(self) -> int:
        return int(self.image_shape[1]) * int(self.image_shape[2])

    def _check_width(self, n_inputs: int) -> None:
        channels, height, width = (int(size) for size in self.image_shape)
        if n_inputs != channels * height * width:
            raise ValueError(
                f"X has rows of {n_inputs} numbers, but image_shape={(channels, height, width)} needs channels * "
                f"height * width = {channels * height * width}."
            )

    def _write_flat(self, X: NDArray[Any], Z: NDArray[Any], out: NDArray[Any]) -> None:
        """Kernel at equal positions: for some images of Z at a time, with a row of X after the other."""
        few = int(self.image_shape[0]) <= _FEW_CHANNELS
        images, positions = self._images(X), self._n_positions
        columns = max(1, min(Z.shape[0], _SHEET // positions, _PIXELS // X.shape[1]))
        rows = max(1, X.shape[0] if few else _PRODUCTS // (positions * columns))
        parts = [slice(start, start + rows) for start in range(0, X.shape[0], rows)]
        numbers = columns * (N_SHEETS * positions + 2 * X.shape[1]) + X.size + X.shape[0] * positions * self.depth
        with room.take(8 * (numbers + _PRODUCTS)):
            x_std = conv_deviations(images, *self._layers)[0]
            turned = [np.ascontiguousarray(images[part].transpose(2, 0, 1)) for part in parts if not few]
            products = np.empty((0, 0, 0), images.dtype)
            for start in range(0, Z.shape[0], columns):
                some = self._images(Z[start : start + columns])
                others = np.ascontiguousarray(some.transpose(2, 1, 0))
                z_std = conv_deviations(some, *self._layers)[0]
                for k, part in enumerate(parts):
                    if not few:
                        products = np.matmul(turned[k], others)
                    own = np.ascontiguousarray(x_std[:, :, part])
                    values = np.empty((2, own.shape[2], some.shape[0]))
                    conv_rows(products, images[part], others, own, z_std, *self._layers, near_gap(some.dtype), values)
                    out[part, start : start + columns] = self._read_out(values)

    def _write_pooled(self, X: NDArray[Any], Z: NDArray[Any], out: NDArray[Any]) -> None:
        """Kernel at all pairs of positions: for one image of X with some of Z at a time."""
        images, pairs = self._images(X), self._n_positions**2
        columns = max(1, min(Z.shape[0], _PRODUCTS // pairs))
        needed = 8 * ((N_SHEETS + columns) * pairs + (X.shape[0] + columns) * X.shape[1] * (self.depth + 1))
        if pairs > _LARGE and needed > available_memory():
            raise ValueError(
                f"average pooling over {self._n_positions} positions needs {needed / 1e9:.1f} GB of memory for a pair "
                f"of images, but {available_memory() / 1e9:.1f} GB are available; use smaller images or pooling=None."
            )
        with room.take(needed):
            x_std = conv_deviations(images, *self._layers)[0]
            values = np.empty((2, columns))
            for start in range(0, Z.shape[0], columns):
                others = self._images(Z[start : start + columns])
                z_std = conv_deviations(others, *self._layers)[0]
                for i, image in enumerate(images):
                    products = np.matmul(image.T, others)
                    own = np.ascontiguousarray(x_std[:, :, i])
                    conv_pooled(products, image, others, own, z_std, *self._layers, near_gap(image.dtype), values)
                    out[i, start : start + columns] = self._read_out(values[:, : others.shape[0]])

    def _images(self, X: NDArray[Any]) -> NDArray[Any]:
        """Rows as arrays (channels, positions); with few channels, whose products are cheap, in double precision."""
        channels = int(self.image_shape[0])
        dtype = np.float64 if channels <= _FEW_CHANNELS else X.dtype
        return X.reshape(-1, channels, self._n_positions).astype(dtype, copy=False)

    @property
    def _layers(self) -> tuple[Any, ...]:
        return self._shape, *self._variances(), *self._activation()[:2]

    @property
    def _shape(self) -> tuple[int, int, int, int]:
        """Height, width, reach of a filter to each side, channels."""
        channels, height, width = (int(size) for size in self.image_shape)
        return height, width, int(self.filter_size) // 2, channels

    def _read_out(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The dense layer at the end, from averages of covariances and of what is passed on of the tangent kernel."""
        weight, bias = self._variances()
        covariance = weight[-1] * values[0] + bias[-1]
        return covariance + weight[-1] * values[1] if self.kind == "ntk" else covariance

    def _map(self, X: NDArray[Any]) -> NDArray[Any]:
        """Feature map of the linear network."""
        slope, constant = self._line(X.shape[1])
        rows, columns = self._maps()
        images = X.reshape(-1, *(int(size) for size in self.image_shape))
        if self.pooling is None:
            mapped = images * np.sqrt(slope * np.outer(rows, columns)).astype(X.dtype)
        else:
            scale = np.sqrt(slope / self._n_positions)
            mapped = (scale * rows).astype(X.dtype) @ images @ columns.T.astype(X.dtype)
        return with_constant(mapped.reshape(X.shape[0], int(np.prod(mapped.shape[1:]))), constant)

    def _maps(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What all convolutions of a linear network do along rows and along columns of an image."""
        rows, columns = (
            factor(spread(int(length), int(self.filter_size), int(self.depth), self.pooling is not None))
            for length in self.image_shape[1:]
        )
        return rows, columns

    def _kept(self, n_layers: int) -> float:
        """Padding with zeros takes from a constant at the border."""
        height, width = (int(length) for length in self.image_shape[1:])
        pooled = self.pooling is not None
        return float(np.prod([spread(s, int(self.filter_size), n_layers, pooled).mean() for s in (height, width)]))

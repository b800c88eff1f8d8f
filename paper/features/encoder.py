"""A trained network that turns images into features."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paper.features.method import Method, load_torch

# Images that go through the network together.
_TOGETHER = 256


@dataclass(frozen=True)
class Pixels:
    """How pixels are handed to a network: as shares of white, centred and scaled by the images it was trained on.

    Attributes
    ----------
    white : float
        The largest pixel.
    mean, deviation : tuple of float
        Of the pixels of each channel, as shares of white.
    """

    white: float
    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    @classmethod
    def of(cls, images: NDArray[Any]) -> Pixels:
        """Those of a set of images."""
        white = float(images.max()) or 1.0
        sums, squares = np.zeros(images.shape[1]), np.zeros(images.shape[1])
        for start in range(0, len(images), 1024):
            shares = images[start : start + 1024].astype(np.float64) / white
            sums += shares.sum(axis=(0, 2, 3))
            squares += (shares**2).sum(axis=(0, 2, 3))
        count = images.size // images.shape[1]
        deviation = np.sqrt(np.maximum(squares / count - (sums / count) ** 2, 0))
        # A channel that never changes says nothing, at whatever scale.
        return cls(white, tuple((sums / count).tolist()), tuple(np.where(deviation > 1e-6, deviation, 1.0).tolist()))

    def shares(self, images: NDArray[Any]) -> Any:
        """Images as shares of white, in float32."""
        return load_torch().from_numpy(np.array(images, np.float32)) / self.white

    def prepare(self, shares: Any) -> Any:
        """Centred and scaled, in the memory layout in which convolutions are fastest."""
        torch = load_torch()
        mean, deviation = (torch.tensor(values).view(-1, 1, 1) for values in (self.mean, self.deviation))
        return ((shares - mean) / deviation).contiguous(memory_format=torch.channels_last)


class Encoder:
    """A network that was trained without labels, and makes features of images.

    What :func:`paper.features.train` and :func:`paper.features.load` return.

    Attributes
    ----------
    method : RotNet or SimCLR
        How it was trained.
    image_shape : tuple of int
        Channels, height and width of the images.
    feature_shape : tuple of int
        Shape of the features of an image; they are flattened in this order.
    losses : list of float
        Mean loss of each epoch.
    seconds : float
        Time that the training took.
    """

    def __init__(
        self,
        method: Method,
        image_shape: tuple[int, ...],
        pixels: Pixels,
        network: Any,
        losses: list[float],
        seconds: float,
    ) -> None:
        self.method = method
        self.image_shape = image_shape
        self.feature_shape = method.feature_shape(image_shape)
        self.losses = losses
        self.seconds = seconds
        self.pixels = pixels
        self.network = network

    def __repr__(self) -> str:
        return f"Encoder({self.method}, image_shape={self.image_shape})"

    def features(self, images: ArrayLike) -> NDArray[np.float32]:
        """Features of images.

        Parameters
        ----------
        images : array-like of shape (n, channels, height, width) or (n, channels * height * width)
            Images of the same kind as those of the training.

        Returns
        -------
        ndarray of shape (n, n_features), float32
            Maps are flattened, channels first. An image's features do not depend on its neighbours.
        """
        images = as_images(images, self.image_shape)
        found = np.empty((len(images), math.prod(self.feature_shape)), np.float32)
        for rows, outputs in self.outputs(images, "body"):
            found[rows] = outputs.flatten(1).numpy()
        return found

    def outputs(self, images: NDArray[Any], *parts: str) -> Iterator[tuple[slice, Any]]:
        """What leaves the network, for some images at a time.

        Parameters
        ----------
        images : ndarray of shape (n, channels, height, width)
        *parts : str
            Parts of the network that they go through, one after the other: ``"body"``, ``"head"``.

        Yields
        ------
        rows : slice
            Which images.
        outputs : tensor
        """
        torch = load_torch()
        with _evaluating(self.network):
            for start in range(0, len(images), _TOGETHER):
                rows = slice(start, min(start + _TOGETHER, len(images)))
                with torch.inference_mode():
                    values = self.pixels.prepare(self.pixels.shares(images[rows]))
                    for part in parts:
                        values = self.network[part](values)
                yield rows, values


def as_images(images: ArrayLike, image_shape: tuple[int, ...] | None = None) -> NDArray[Any]:
    """Images as an array of shape (n, channels, height, width), checked.

    Parameters
    ----------
    images : array-like
        Of that shape, or with flattened rows if the shape of an image is given.
    image_shape : tuple of int, optional
        Channels, height and width.
    """
    values = np.asarray(images)
    if values.dtype.kind not in "fiub":
        raise ValueError(f"images must be numbers; got values of type {values.dtype}.")
    if image_shape is not None and values.ndim == 2 and values.shape[1] == math.prod(image_shape):
        values = values.reshape(-1, *image_shape)
    if values.ndim != 4 or (image_shape is not None and values.shape[1:] != tuple(image_shape)):
        wanted = "(n, channels, height, width)" if image_shape is None else f"(n, {', '.join(map(str, image_shape))})"
        raise ValueError(f"images must have shape {wanted}; got {values.shape}.")
    if 0 in values.shape:
        raise ValueError(f"images must hold at least one pixel; got shape {values.shape}.")
    if values.dtype != np.uint8:
        values = values.astype(np.float32)
        if not np.isfinite(values).all() or values.min() < 0:
            raise ValueError("images must hold finite pixels that are not negative; scale them to between 0 and 1.")
    return values


@contextmanager
def _evaluating(network: Any) -> Iterator[None]:
    """Batch normalisation by what was seen in training, not by the batch, as long as the block lasts."""
    before = network.training
    network.eval()
    try:
        yield
    finally:
        network.train(before)

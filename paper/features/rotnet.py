"""RotNet: a network that learns by telling how an image was turned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from paper.features.encoder import Encoder, as_images
from paper.features.method import Method, load_torch


@dataclass(frozen=True)
class RotNet(Method):
    r"""Learn features by predicting by how many quarter turns an image was rotated.

    Every image enters a step four times, upright and turned by 90, 180 and 270 degrees; the network names the turn,
    and is trained on the cross-entropy of its answers. It is a network in network: blocks of one convolution and two
    of size 1 x 1, each followed by batch normalisation and ReLU, with pooling after the first two. The features are the
    map that leaves the second block: ``width`` channels of a quarter of the height and width.

    Parameters
    ----------
    width : int, default=64
        Channels of the blocks; the first has half as many.
    blocks : int, default=4
        How many there are, at least three.
    epochs : int, default=4
        Passes over the images.
    batch_size : int, default=32
        Images in a step; the network sees four turns of each.
    learning_rate : float, default=0.1
        Of stochastic gradient descent with momentum; it rises during the first steps and then falls to 0 as a cosine.
    weight_decay : float, default=0.0005
        Penalty of large weights.
    seed : int, default=0
        Of the initial weights and of the order of the images.

    References
    ----------
    Gidaris, Singh, Komodakis: Unsupervised representation learning by predicting image rotations. ICLR 2018.

    Examples
    --------
    >>> RotNet(width=64).feature_shape((1, 28, 28))
    (64, 7, 7)
    """

    width: int = 64
    blocks: int = 4
    epochs: int = 4
    batch_size: int = 32
    learning_rate: float = 0.1
    weight_decay: float = 5e-4
    seed: int = 0

    name: ClassVar[str] = "rotnet"
    at_least: ClassVar[dict[str, float]] = {"width": 2, "blocks": 3, "batch_size": 1}

    def feature_shape(self, image_shape: tuple[int, ...]) -> tuple[int, ...]:
        """Channels, height and width of the map of the second block."""
        _, height, width = image_shape
        return self.width, -(-height // 4), -(-width // 4)

    def network(self, image_shape: tuple[int, ...]) -> Any:
        """The layers: ``body`` ends with the features, ``head`` with four scores."""
        if image_shape[1] != image_shape[2]:
            raise ValueError(
                f"rotnet turns images, so they must be square; these are {image_shape[1]} x {image_shape[2]}."
            )
        nn = load_torch().nn
        width, first = self.width, self.width // 2
        # The first block works on the largest maps: half the width there halves the time of a step.
        body = nn.Sequential(
            _block(image_shape[0], (first, first, first), 5),
            nn.MaxPool2d(3, stride=2, padding=1),
            _block(first, (width, width, width), 5),
            nn.AvgPool2d(3, stride=2, padding=1, count_include_pad=False),
        )
        later = [_block(width, (width, width, width), 3) for _ in range(self.blocks - 2)]
        head = nn.Sequential(*later, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 4))
        return nn.ModuleDict({"body": body, "head": head})

    def loss(self, network: Any, images: Any, prepare: Any, generator: Any) -> Any:
        """Mean cross-entropy of the answers for all four turns of all images."""
        torch = load_torch()
        turned = turns(images)
        answers = torch.arange(4).repeat_interleave(len(images))
        scores = network["head"](network["body"](prepare(turned)))
        return torch.nn.functional.cross_entropy(scores, answers)

    def optimiser(self, parameters: Any) -> Any:
        """Stochastic gradient descent with Nesterov's momentum."""
        return load_torch().optim.SGD(
            parameters, lr=self.learning_rate, momentum=0.9, nesterov=True, weight_decay=self.weight_decay
        )


def turn_accuracy(encoder: Encoder, images: ArrayLike) -> float:
    """Share of the turned images whose turn a trained RotNet names.

    Parameters
    ----------
    encoder : Encoder
        A RotNet.
    images : array-like
        Upright images; each is turned in all four ways.
    """
    values = as_images(images, encoder.image_shape)
    right = 0
    for quarter in range(4):
        turned = np.rot90(values, quarter, (2, 3))
        right += sum(int((scores.argmax(1) == quarter).sum()) for _, scores in encoder.outputs(turned, "body", "head"))
    return right / (4 * len(values))


def turns(images: Any) -> Any:
    """All images as they are, then all turned counterclockwise by 90, by 180 and by 270 degrees."""
    torch = load_torch()
    return torch.cat([torch.rot90(images, quarter, (2, 3)) for quarter in range(4)])


def _block(channels: int, widths: tuple[int, ...], filter_size: int) -> Any:
    """A convolution, then others of size 1 x 1, each with batch normalisation and ReLU."""
    nn = load_torch().nn
    layers = []
    for place, width in enumerate(widths):
        size = 1 if place else filter_size
        layers += [
            nn.Conv2d(channels, width, size, padding=size // 2, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
        ]
        channels = width
    return nn.Sequential(*layers)

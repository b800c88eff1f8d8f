"""SimCLR: a network that learns by recognising an image in two random versions of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from paper.features.augment import augmented
from paper.features.method import Method, load_torch
from paper.features.resnet import resnet18


@dataclass(frozen=True)
class SimCLR(Method):
    r"""Learn features by telling which two of many random versions show the same image.

    Every image of a step is cropped, mirrored and recoloured twice at random. A ResNet-18 for small images turns each
    version into ``8 * width`` features, and a projection of one hidden layer turns these into a direction. The loss is
    NT-Xent: with cosine similarities s and temperature t,

    .. math:: -\log \frac{\exp(s_{ij} / t)}{\sum_{k \ne i} \exp(s_{ik} / t)}

    for the two versions i, j of an image, on average over all versions.

    Parameters
    ----------
    width : int, default=64
        Channels of the first stage; 64 is ResNet-18.
    projection : int, default=128
        Numbers that the projection ends with.
    temperature : float, default=0.5
        Of the loss.
    crop : float, default=0.2
        Smallest share of the area that a crop keeps.
    colour : float, default=0.5
        Strength of the change of colours; 0 keeps them.
    epochs : int, default=100
        Passes over the images.
    batch_size : int, default=256
        Images in a step, each in two versions; at least two.
    learning_rate : float, default=0.001
        Of Adam; it rises during the first steps and then falls to 0 as a cosine.
    weight_decay : float, default=0.000001
        Penalty of large weights.
    seed : int, default=0
        Of the initial weights, the order of the images and the random versions.

    References
    ----------
    Chen, Kornblith, Norouzi, Hinton: A simple framework for contrastive learning of visual representations. ICML 2020.

    Examples
    --------
    >>> SimCLR(width=16).feature_shape((3, 32, 32))
    (128,)
    """

    width: int = 64
    projection: int = 128
    temperature: float = 0.5
    crop: float = 0.2
    colour: float = 0.5
    epochs: int = 100
    batch_size: int = 256
    learning_rate: float = 1e-3
    weight_decay: float = 1e-6
    seed: int = 0

    name: ClassVar[str] = "simclr"
    at_least: ClassVar[dict[str, float]] = {"width": 1, "projection": 1, "batch_size": 2, "temperature": 1e-3}

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.crop <= 1:
            raise ValueError(f"crop must be above 0 and at most 1; got {self.crop}.")
        if self.colour > 1:
            raise ValueError(f"colour must be between 0 and 1; got {self.colour}.")

    def feature_shape(self, image_shape: tuple[int, ...]) -> tuple[int, ...]:
        """Number of features."""
        return (8 * self.width,)

    def network(self, image_shape: tuple[int, ...]) -> Any:
        """The layers: ``body`` ends with the features, ``head`` is the projection."""
        nn = load_torch().nn
        n_features = 8 * self.width
        # Normalised, directions are spread from the first step on; otherwise all of them begin nearly the same.
        head = nn.Sequential(
            nn.Linear(n_features, n_features, bias=False),
            nn.BatchNorm1d(n_features),
            nn.ReLU(inplace=True),
            nn.Linear(n_features, self.projection, bias=False),
            nn.BatchNorm1d(self.projection),
        )
        return nn.ModuleDict({"body": resnet18(image_shape[0], self.width), "head": head})

    def loss(self, network: Any, images: Any, prepare: Any, generator: Any) -> Any:
        """NT-Xent of two random versions of every image."""
        torch = load_torch()
        versions = torch.cat([augmented(images, generator, self.crop, self.colour) for _ in range(2)])
        return nt_xent(network["head"](network["body"](prepare(versions))), self.temperature)

    def optimiser(self, parameters: Any) -> Any:
        """Adam."""
        torch = load_torch()
        return torch.optim.AdamW(parameters, lr=self.learning_rate, weight_decay=self.weight_decay)


def nt_xent(projections: Any, temperature: float) -> Any:
    """The loss of 2 n projections; rows i and n + i belong together.

    Parameters
    ----------
    projections : tensor of shape (2 n, n_numbers)
        One row a version; only its direction counts.
    temperature : float
        Divisor of the cosine similarities.
    """
    torch = load_torch()
    directions = torch.nn.functional.normalize(projections, dim=1)
    similarities = directions @ directions.T / temperature
    n = len(projections) // 2
    # No version is compared with itself.
    similarities = similarities.masked_fill(torch.eye(2 * n, dtype=torch.bool), float("-inf"))
    partners = torch.arange(2 * n).roll(n)
    return torch.nn.functional.cross_entropy(similarities, partners)

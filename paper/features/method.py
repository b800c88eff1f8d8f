"""What the ways to learn features have in common: settings that say everything, and no labels anywhere."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from paper import extras


def load_torch() -> Any:
    """Import torch, which is an extra."""
    return extras.load_torch("Learning features needs")


@dataclass(frozen=True)
class Method(ABC):
    """A way to learn features from images alone.

    A subclass is a frozen dataclass of numbers; together with the images they decide every weight that is learned.
    """

    name: ClassVar[str]
    at_least: ClassVar[dict[str, float]] = {}

    epochs: int
    batch_size: int
    learning_rate: float
    seed: int

    def __post_init__(self) -> None:
        for field in fields(self):
            value: Any = getattr(self, field.name)
            whole = isinstance(field.default, int)
            if isinstance(value, bool) or not isinstance(value, numbers.Integral if whole else numbers.Real):
                raise TypeError(f"{field.name} must be {'a whole number' if whole else 'a number'}; got {value!r}.")
            least: Any = self.at_least.get(field.name, 1 if field.name == "epochs" else 0)
            if not value >= least or value == float("inf"):
                raise ValueError(f"{field.name} must be at least {least}; got {value}.")

    @abstractmethod
    def feature_shape(self, image_shape: tuple[int, ...]) -> tuple[int, ...]:
        """Shape of the features of one image."""

    @abstractmethod
    def network(self, image_shape: tuple[int, ...]) -> Any:
        """The layers, with fresh weights: ``body`` ends with the features, ``head`` is only needed to learn them."""

    @abstractmethod
    def loss(self, network: Any, images: Any, prepare: Any, generator: Any) -> Any:
        """What a batch costs.

        Parameters
        ----------
        network : torch.nn.ModuleDict
            What ``network`` returns.
        images : tensor of shape (n, channels, height, width)
            Pixels between 0 and 1.
        prepare : callable
            Centres and scales images as the network expects them.
        generator : torch.Generator
            The only source of chance.
        """

    @abstractmethod
    def optimiser(self, parameters: Any) -> Any:
        """What makes the steps."""

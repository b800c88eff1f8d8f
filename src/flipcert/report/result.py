"""One certified test set with all that a report tells about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.results.certificates import Certificates


@dataclass(frozen=True, eq=False)
class Attack:
    """The flips that change the prediction of one test point.

    Attributes
    ----------
    row : int
        Row of the test point.
    indices : ndarray of int64
        Training rows whose labels are flipped, most influential first.
    old, new : ndarray
        Their labels before and after.
    """

    row: int
    indices: NDArray[np.int64]
    old: NDArray[Any]
    new: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Result:
    """A certified test set: what was run, what was proven, what would break it.

    Attributes
    ----------
    name : str
        What to call it beside others, such as "ridge, 10 partitions".
    certificates : Certificates
        What was proven, one entry a test point.
    labels : ndarray or None
        True labels of the test points where they are known.
    attacks : tuple of Attack
        Known attacks on some test points.
    test_images, train_images : mapping of int to ndarray of uint8
        Pictures of some test and training rows, (height, width) or (height, width, 3), where the data are images.
    seconds : float or None
        How long fitting and certifying took.
    digests : mapping of str to str
        What the training and test data are known by ("train", "test"), where they are files.
    """

    name: str
    certificates: Certificates
    labels: NDArray[Any] | None = None
    attacks: tuple[Attack, ...] = ()
    test_images: Mapping[int, NDArray[np.uint8]] = field(default_factory=dict)
    train_images: Mapping[int, NDArray[np.uint8]] = field(default_factory=dict)
    seconds: float | None = None
    digests: Mapping[str, str] = field(default_factory=dict)

    @property
    def model(self) -> str:
        """Kind of model, such as "ridge"; empty where it is not known."""
        return str(self.certificates.model.get("model", ""))

    @property
    def n_partitions(self) -> int:
        """Number of partitions; 1 for one model trained on everything."""
        return int(self.certificates.model.get("partitions", 1))

    @property
    def settings(self) -> dict[str, Any]:
        """All else that is known of the model."""
        return {name: value for name, value in self.certificates.model.items() if name not in ("model", "partitions")}

"""What was found out about a block of test points, in class indices, before it becomes certificates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.labels.labels import Labels
from flipcert.results.certificates import Certificates


@dataclass(eq=False)
class Outcome:
    """One entry a row, as in :class:`flipcert.Certificates`; ``target`` is -1 where there is none."""

    prediction: NDArray[np.int64]
    radius: NDArray[np.int64]
    radius_upper: NDArray[np.int64]
    blackbox_radius: NDArray[np.int64] | None
    runner_up: NDArray[np.int64]
    target: NDArray[np.int64]
    rounding_sensitive: NDArray[np.bool_]

    def certificates(self, classes: NDArray[Any], labels: Labels, model: Mapping[str, Any]) -> Certificates:
        """The same in the labels of the user, with a description of the model."""

        def lifted(radius: NDArray[np.int64]) -> NDArray[np.int64]:
            """Radii; who withstands flips of all labels that can be flipped withstands any."""
            return np.where(radius >= labels.n_movable, labels.n_labels, radius)

        upper = lifted(self.radius_upper)
        return Certificates(
            prediction=classes[self.prediction],
            radius=lifted(self.radius),
            radius_upper=upper,
            blackbox_radius=None if self.blackbox_radius is None else lifted(self.blackbox_radius),
            runner_up=classes[self.runner_up],
            # What bounds alone call cheapest may be out of reach: a class is named only where an attack is known.
            target=np.ma.masked_array(
                classes[np.maximum(self.target, 0)], mask=(self.target < 0) | (upper == labels.n_labels)
            ),
            rounding_sensitive=self.rounding_sensitive,
            n_labels=labels.n_labels,
            n_attackable=labels.n_movable,
            model=model,
        )

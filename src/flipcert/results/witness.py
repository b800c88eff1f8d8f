"""A witness: the flips of an attack that works."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.labels.labels import Labels


@dataclass(frozen=True, eq=False)
class Witness:
    """Training labels to flip, most influential first; ``len(witness)`` is their number.

    Attributes
    ----------
    indices : ndarray of int64
        Training samples whose label changes.
    labels : ndarray
        The label to put there.
    """

    indices: NDArray[np.int64]
    labels: NDArray[Any]

    @classmethod
    def of(cls, flips: list[tuple[int, int]]) -> Witness:
        """Collect (index, class) pairs."""
        return cls(
            indices=np.array([index for index, _ in flips], dtype=np.int64),
            labels=np.array([to for _, to in flips], dtype=np.int64),
        )

    @classmethod
    def union(cls, parts: list[Witness]) -> Witness:
        """Join witnesses that flip different samples."""
        return cls(
            indices=np.concatenate([part.indices for part in parts]),
            labels=np.concatenate([part.labels for part in parts]),
        )

    def __len__(self) -> int:
        return self.indices.size

    def apply(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Return a copy of the training labels with the flips made."""
        before = np.asarray(labels)
        # A new label may be a longer string than any that is there.
        flipped = before.astype(np.result_type(before, self.labels) if len(self) else before.dtype)
        flipped[self.indices] = self.labels
        return flipped


def in_user_labels(witness: Witness | None, classes: NDArray[Any]) -> Witness | None:
    """Return the same witness with labels instead of class indices."""
    return None if witness is None else Witness(witness.indices, classes[witness.labels])


def classes_after(witness: Witness, labels: Labels) -> NDArray[np.bool_]:
    """Which classes have a label once the flips of a witness are made."""
    return np.bincount(witness.apply(labels.codes), minlength=labels.n_classes) > 0

"""Training labels as an attacker sees them: which samples can be flipped, class by class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flipcert.validation import check_integers


@dataclass(frozen=True)
class Labels:
    """Encoded training labels.

    Attributes
    ----------
    codes : ndarray of shape (n,)
        The class index of each training sample.
    members, starts : ndarray
        The samples whose label can be flipped, grouped by class: class ``c`` owns
        ``members[starts[c]:starts[c + 1]]``.
    n_labels : int
        Number of all training labels, also outside of this model; one more is the cost of what no labelling reaches.
    """

    codes: NDArray[np.int64]
    members: NDArray[np.int64]
    starts: NDArray[np.int64]
    n_labels: int

    @classmethod
    def of(
        cls,
        codes: NDArray[np.int64],
        n_classes: int,
        trusted: NDArray[np.bool_] | None = None,
        n_labels: int | None = None,
    ) -> Labels:
        """Group the labels that are not trusted by class."""
        movable = np.arange(codes.size) if trusted is None else np.flatnonzero(~trusted)
        members = movable[np.argsort(codes[movable], kind="stable")]
        starts = np.searchsorted(codes[members], np.arange(n_classes + 1))
        return cls(
            codes=np.ascontiguousarray(codes, np.int64),
            members=np.ascontiguousarray(members, np.int64),
            starts=np.ascontiguousarray(starts, np.int64),
            n_labels=codes.size if n_labels is None else n_labels,
        )

    @property
    def n_classes(self) -> int:
        """Size K of the label space."""
        return self.starts.size - 1

    @property
    def unreachable(self) -> int:
        """The cost that stands for 'no labelling does it'."""
        return self.n_labels + 1


def check_labels(labels: ArrayLike, n_classes: int) -> Labels:
    """Validate class indices given by a user."""
    n_classes = int(check_integers(n_classes, "n_classes", minimum=1, ndim=0))
    codes = check_integers(labels, "labels", minimum=0, maximum=n_classes - 1, ndim=1)
    if codes.size == 0:
        raise ValueError("labels is empty; give at least one training label.")
    return Labels.of(codes, n_classes)

"""Training labels as an attacker sees them: which samples can be flipped, class by class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flipcert.validation import check_integers


class Grouped(NamedTuple):
    """Samples grouped by class, for compiled code: class ``c`` owns ``members[starts[c]:starts[c + 1]]``.

    ``fixed`` are the samples whose label cannot be flipped, grouped in the same way.
    """

    members: NDArray[np.int64]
    starts: NDArray[np.int64]
    fixed: NDArray[np.int64]
    fixed_starts: NDArray[np.int64]


@dataclass(frozen=True)
class Labels:
    """Encoded training labels.

    Attributes
    ----------
    codes : ndarray of shape (n,)
        The class index of each training sample.
    grouped : Grouped
        The same, class by class, apart by whether the label can be flipped.
    """

    codes: NDArray[np.int64]
    grouped: Grouped

    @classmethod
    def of(
        cls,
        codes: NDArray[np.int64],
        n_classes: int,
        trusted: NDArray[np.bool_] | None = None,
    ) -> Labels:
        """Group the labels by class."""
        fixed = np.zeros(codes.size, np.bool_) if trusted is None else trusted
        codes = np.ascontiguousarray(codes, np.int64)
        return cls(
            codes=codes,
            grouped=Grouped(*_by_class(codes, ~fixed, n_classes), *_by_class(codes, fixed, n_classes)),
        )

    @property
    def n_classes(self) -> int:
        """Size K of the label space."""
        return self.grouped.starts.size - 1

    @property
    def n_labels(self) -> int:
        """Number of all training labels; one more is the cost of what no labelling reaches."""
        return self.codes.size

    @property
    def n_movable(self) -> int:
        """Number of labels that can be flipped."""
        return self.grouped.members.size

    @property
    def unreachable(self) -> int:
        """The cost that stands for 'no labelling does it'."""
        return self.n_labels + 1


def _by_class(
    codes: NDArray[np.int64], which: NDArray[np.bool_], n_classes: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The chosen samples in the order of their classes, and where each class starts."""
    samples = np.flatnonzero(which)
    samples = samples[np.argsort(codes[samples], kind="stable")]
    return samples, np.searchsorted(codes[samples], np.arange(n_classes + 1))


def check_labels(labels: ArrayLike, n_classes: int) -> Labels:
    """Validate class indices given by a user."""
    n_classes = int(check_integers(n_classes, "n_classes", minimum=1, ndim=0))
    codes = check_integers(labels, "labels", minimum=0, maximum=n_classes - 1, ndim=1)
    if codes.size == 0:
        raise ValueError("labels is empty; give at least one training label.")
    return Labels.of(codes, n_classes)

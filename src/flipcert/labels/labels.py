"""Training labels as an attacker sees them: which samples can be flipped, class by class."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flipcert.labels.validation import check_integers


class Coded(NamedTuple):
    """Labels for compiled code: the class index of each sample, whether its label can be flipped, and any cannot."""

    codes: NDArray[np.int32]
    movable: NDArray[np.bool_]
    any_fixed: bool


@dataclass(frozen=True)
class Labels:
    """Encoded training labels.

    Attributes
    ----------
    codes : ndarray of shape (n,)
        The class index of each training sample.
    coded : Coded
        The same for compiled code, with which of them can be flipped.
    n_classes : int
        Size K of the label space.
    space_is_fixed : bool
        Whether the label space was given. If not, it is read from the labels, and who flips away all labels of a class
        removes the class.
    """

    codes: NDArray[np.int64]
    coded: Coded
    n_classes: int
    space_is_fixed: bool = True

    @classmethod
    def of(
        cls,
        codes: NDArray[np.int64],
        n_classes: int,
        trusted: NDArray[np.bool_] | None = None,
        space_is_fixed: bool = True,
    ) -> Labels:
        """Prepare labels; those not ``trusted`` can be flipped."""
        movable = np.ones(codes.size, np.bool_) if trusted is None else ~trusted
        codes = np.ascontiguousarray(codes, np.int64)
        return cls(codes, Coded(codes.astype(np.int32), movable, not movable.all()), n_classes, space_is_fixed)

    @property
    def n_labels(self) -> int:
        """Number of all training labels; one more is the cost of what no labelling reaches."""
        return self.codes.size

    @property
    def n_movable(self) -> int:
        """Number of labels that can be flipped."""
        return int(np.count_nonzero(self.coded.movable))

    @property
    def unreachable(self) -> int:
        """The cost that stands for 'no labelling does it'."""
        return self.n_labels + 1

    @cached_property
    def flips_to_empty(self) -> NDArray[np.int64]:
        """Flips that leave no label of each class, where the label space depends on that; else unreachable."""
        if self.space_is_fixed:
            return np.full(self.n_classes, self.unreachable)
        sizes = np.bincount(self.codes, minlength=self.n_classes)
        movable = np.bincount(self.codes[self.coded.movable], minlength=self.n_classes)
        return np.where(movable == sizes, sizes, self.unreachable)

    @cached_property
    def flips_to_remove(self) -> NDArray[np.int64]:
        """Flips after which each class is no longer part of the label space; else unreachable.

        Of two classes none can go: labels of one class only are no training set.
        """
        return self.flips_to_empty if self.n_classes > 2 else np.full(self.n_classes, self.unreachable)

    @cached_property
    def flips_to_remove_another(self) -> NDArray[np.int64]:
        """For each class, flips that remove whichever *other* class is smallest: no costs beyond are proven."""
        others = np.tile(self.flips_to_remove, (self.n_classes, 1))
        np.fill_diagonal(others, self.unreachable)
        return others.min(axis=1, initial=self.unreachable)


def check_labels(labels: ArrayLike, n_classes: int) -> Labels:
    """Validate class indices given by a user."""
    n_classes = int(check_integers(n_classes, "n_classes", minimum=1, ndim=0))
    codes = check_integers(labels, "labels", minimum=0, maximum=n_classes - 1, ndim=1)
    if codes.size == 0:
        raise ValueError("labels is empty; give at least one training label.")
    return Labels.of(codes, n_classes)

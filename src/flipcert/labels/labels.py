"""Training labels as an attacker sees them: which samples can be flipped, class by class."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flipcert.labels.sources import Sources
from flipcert.labels.validation import check_integers


class Coded(NamedTuple):
    """Labels for compiled code: the class index of each sample, whether its label can be flipped, and any cannot."""

    codes: NDArray[np.int32]
    movable: NDArray[np.bool_]
    any_fixed: bool


class Cells(NamedTuple):
    """Labels of one class from one source, for compiled code: they are added up together.

    ``of`` is the cell of each label. Cells of class c are those from ``bounds[c]`` to ``bounds[c + 1]``, and
    ``source`` tells whose each is. Behind these there is one more cell for each class: its trusted labels.
    """

    of: NDArray[np.int64]
    source: NDArray[np.int64]
    bounds: NDArray[np.int64]
    n_sources: int


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
    sources : Sources or None
        Who gave each label, if that was said.
    """

    codes: NDArray[np.int64]
    coded: Coded
    n_classes: int
    space_is_fixed: bool = True
    sources: Sources | None = None

    @classmethod
    def of(
        cls,
        codes: NDArray[np.int64],
        n_classes: int,
        trusted: NDArray[np.bool_] | None = None,
        space_is_fixed: bool = True,
        sources: Sources | None = None,
    ) -> Labels:
        """Prepare labels; those not ``trusted`` can be flipped."""
        movable = np.ones(codes.size, np.bool_) if trusted is None else ~trusted
        codes = np.ascontiguousarray(codes, np.int64)
        coded = Coded(codes.astype(np.int32), movable, not movable.all())
        return cls(codes, coded, n_classes, space_is_fixed, sources)

    @property
    def n_labels(self) -> int:
        """Number of all training labels; one more is the cost of what no labelling reaches."""
        return self.codes.size

    @property
    def n_movable(self) -> int:
        """Number of labels that can be flipped."""
        return int(np.count_nonzero(self.coded.movable))

    @property
    def n_sources(self) -> int | None:
        """Number of all sources; None where nobody said who gave the labels."""
        return None if self.sources is None else len(self.sources)

    @property
    def unreachable(self) -> int:
        """The cost that stands for 'no labelling does it'."""
        return self.n_labels + 1

    @cached_property
    def cells(self) -> Cells:
        """Labels by class and source; trusted ones apart, as no source can change them."""
        assert self.sources is not None, "asked for with sources only"
        n_sources, movable = len(self.sources), self.coded.movable
        keys = self.codes * n_sources + self.sources.codes
        there, cell = np.unique(keys[movable], return_inverse=True)
        of = np.empty(self.n_labels, np.int64)
        of[movable] = cell
        of[~movable] = there.size + self.codes[~movable]
        bounds = np.searchsorted(there, np.arange(self.n_classes + 1) * n_sources)
        return Cells(of, there % n_sources, bounds, n_sources)

    @cached_property
    def flips_to_empty(self) -> NDArray[np.int64]:
        """Flips that leave no label of each class, where the label space depends on that; else unreachable."""
        if self.space_is_fixed:
            return np.full(self.n_classes, self.unreachable)
        sizes = np.bincount(self.codes, minlength=self.n_classes)
        movable = np.bincount(self.codes[self.coded.movable], minlength=self.n_classes)
        return np.where(movable == sizes, sizes, self.unreachable)


def check_labels(labels: ArrayLike, n_classes: int) -> Labels:
    """Validate class indices given by a user."""
    n_classes = int(check_integers(n_classes, "n_classes", minimum=1, ndim=0))
    codes = check_integers(labels, "labels", minimum=0, maximum=n_classes - 1, ndim=1)
    if codes.size == 0:
        raise ValueError("labels is empty; give at least one training label.")
    return Labels.of(codes, n_classes)

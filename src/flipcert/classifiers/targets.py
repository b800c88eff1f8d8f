"""The label space: a user's labels as class indices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets

from flipcert.flips.witness import Witness


def encode_labels(y: NDArray[Any], classes: ArrayLike | None) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Sorted classes and the class index of each label; ``classes`` may name classes that no sample has."""
    check_classification_targets(y)
    present = np.unique(y)
    if classes is None:
        if present.size < 2:
            raise ValueError(
                f"y has one class only ({present.tolist()[0]!r}); a prediction could not change. "
                "Name the whole label space with classes=[...]."
            )
        return present, np.searchsorted(present, y)
    named = np.asarray(sorted(classes) if isinstance(classes, (set, frozenset)) else classes)
    if named.ndim != 1 or (named.dtype == object and not all(isinstance(name, str) for name in named)):
        raise ValueError(f"classes must be a list of labels of one type; got {classes!r}.")
    space = np.unique(named)
    if space.size < 2:
        raise ValueError(f"classes must name at least two classes; got {named.tolist()!r}.")
    if space.dtype.kind == "f" and np.isnan(space).any():
        raise ValueError(f"classes must not hold NaN; got {named.tolist()!r}.")
    known = set(space.tolist())
    foreign = [label for label in present.tolist() if label not in known]
    if foreign:
        raise ValueError(f"y holds the label {foreign[0]!r}, which classes={space.tolist()!r} does not name.")
    return space, np.searchsorted(space, y.astype(space.dtype))


def in_user_labels(witness: Witness | None, classes: NDArray[Any]) -> Witness | None:
    """Return the same witness with labels instead of class indices."""
    return None if witness is None else Witness(witness.indices, classes[witness.labels])

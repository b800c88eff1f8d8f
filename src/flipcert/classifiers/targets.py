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
                f"y has one class only ({present[0]!r}); a prediction could not change. "
                "Name the whole label space with classes=[...]."
            )
        return present, np.searchsorted(present, y)
    space = np.unique(np.asarray(classes))
    if space.size < 2:
        raise ValueError(f"classes must name at least two classes; got {np.asarray(classes).tolist()!r}.")
    known = set(space.tolist())
    foreign = [label for label in present.tolist() if label not in known]
    if foreign:
        raise ValueError(f"y holds the label {foreign[0]!r}, which classes={space.tolist()!r} does not name.")
    return space, np.searchsorted(space, y.astype(space.dtype))


def in_user_labels(witness: Witness | None, classes: NDArray[Any]) -> Witness | None:
    """Return the same witness with labels instead of class indices."""
    return None if witness is None else Witness(witness.indices, classes[witness.labels])

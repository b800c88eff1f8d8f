"""An attack taken literally: its labels are put there, the model is fitted on them, and asked again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone


def replay(
    flips: list[tuple[int, Any, Any]], model: Any, X: NDArray[Any], y: NDArray[Any], trusted: NDArray[np.bool_] | None
) -> Any:
    """The model fitted anew after some flips (training row, label before, label after); ValueError if they are none."""
    if len({row for row, _, _ in flips}) < len(flips):
        raise ValueError("a label is flipped twice")
    labels = y.astype(np.result_type(y, model.classes_))
    for row, old, new in flips:
        if not 0 <= row < y.size:
            raise ValueError(f"there is no training row {row}")
        if y[row] != old:
            raise ValueError(f"training row {row} is labelled {y[row]}, not {old}")
        if new == old or new not in model.classes_.tolist():
            raise ValueError(f"training row {row} cannot be flipped to {new}")
        if trusted is not None and trusted[row]:
            raise ValueError(f"the label of training row {row} is trusted")
        labels[row] = new
    return clone(model).fit(X, labels, trusted=trusted)

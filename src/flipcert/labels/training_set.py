"""Training data as estimators take them: checked, and never copied if they are larger than memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import validate_data

from flipcert.engine.mapped import is_large, row_pieces


def check_training(estimator: Any, X: ArrayLike, y: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    """Inputs of single or double precision and their labels.

    A memory-mapped array of either precision, row after row, is looked at in pieces and stays where it is.
    """
    large = is_large(X)
    inputs, targets = validate_data(
        estimator, X, y, dtype=[np.float64, np.float32], order="C", ensure_all_finite=not large
    )
    if large:
        for _, rows in row_pieces(inputs):
            assert_all_finite(rows, input_name="X")
    return inputs, targets

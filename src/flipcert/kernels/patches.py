"""What convolutions with constant filters make of one axis of an image.

The kernel of a linear convolutional network is an inner product of pixels, weighted by position: with how much weight
is the same question for rows and columns of the image, so it is answered along one axis.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def spread(length: int, filter_size: int, times: int, pairs: bool) -> NDArray[np.float64]:
    """Average all ones over windows, ``times`` times, with zeros beyond the border.

    With ``pairs``, of all pairs of positions, whose windows move in step.

    >>> spread(4, 3, 1, pairs=False).round(2)
    array([0.67, 1.  , 1.  , 0.67])
    """
    weights = np.ones((length, length) if pairs else length)
    reach = filter_size // 2
    for _ in range(times):
        padded = np.pad(weights, reach)
        windows = [slice(start, start + length) for start in range(filter_size)]
        weights = (
            np.sum([padded[window, window] if pairs else padded[window] for window in windows], axis=0) / filter_size
        )
    return weights


def factor(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """F with ``F.T @ F`` equal to weights of pairs, and as few rows as it takes; weights of positions as they are."""
    if weights.ndim == 1:
        return weights
    values, vectors = np.linalg.eigh(weights)
    kept = values > values[-1] * weights.shape[0] * np.finfo(np.float64).eps
    return np.sqrt(values[kept])[:, None] * vectors[:, kept].T

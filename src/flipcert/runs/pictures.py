"""Small pictures of rows that are images."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.sparse import dense

# Pictures are thumbnails; larger images are thinned out.
_LARGEST = 64


def check_image_shape(shape: tuple[int, ...] | None, n_features: int) -> tuple[int, ...] | None:
    """Return the shape (channels, height, width) if rows can be images of it; None if they are none."""
    if shape is not None and int(np.prod(shape)) != n_features:
        raise ValueError(
            f"--image-shape {','.join(map(str, shape))} does not fit rows of {n_features} features; give height,width "
            "or channels,height,width."
        )
    return shape


def pictures_of(X: NDArray[Any], rows: NDArray[np.int64], shape: tuple[int, ...]) -> dict[int, NDArray[np.uint8]]:
    """Pictures of some rows, grey or in colour, on one scale of brightness; none with other numbers of channels."""
    if shape[0] not in (1, 3):
        return {}
    pixels = np.moveaxis(np.asarray(dense(X[rows]), np.float64).reshape(-1, *shape), 1, -1)
    pixels = pixels[..., 0] if shape[0] == 1 else pixels
    step = max(1, -(-max(pixels.shape[1:3]) // _LARGEST))
    pixels = pixels[:, ::step, ::step]
    low, high = float(pixels.min(initial=0)), float(pixels.max(initial=0))
    scaled = np.round((pixels - low) * (255.0 / (high - low) if high > low else 0.0)).astype(np.uint8)
    return dict(zip(rows.tolist(), scaled, strict=True))

"""Small pictures of rows that are images."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Pictures are thumbnails; larger images are thinned out.
_LARGEST = 64


def check_image_shape(shape: tuple[int, ...], n_features: int) -> tuple[int, ...]:
    """Return the shape if rows can be images of it: (height, width), (channels, height, width) or colours last."""
    sized = int(np.prod(shape)) == n_features
    if not sized or len(shape) not in (2, 3) or (len(shape) == 3 and not {shape[0], shape[2]} & {1, 3}):
        raise ValueError(
            f"--image-shape {','.join(map(str, shape))} does not fit rows of {n_features} features; give height,width "
            "or channels,height,width with 1 or 3 channels."
        )
    return shape


def pictures_of(X: NDArray[Any], rows: NDArray[np.int64], shape: tuple[int, ...]) -> dict[int, NDArray[np.uint8]]:
    """Pictures of some rows, grey or in colour, all on the same scale of brightness."""
    pixels = np.asarray(X[rows], np.float64).reshape(-1, *shape)
    if len(shape) == 3:
        pixels = np.moveaxis(pixels, 1, -1) if shape[0] in (1, 3) else pixels
        pixels = pixels[..., 0] if pixels.shape[-1] == 1 else pixels
    step = max(1, -(-max(pixels.shape[1:3]) // _LARGEST))
    pixels = pixels[:, ::step, ::step]
    low, high = float(pixels.min(initial=0)), float(pixels.max(initial=0))
    scaled = np.round((pixels - low) * (255.0 / (high - low) if high > low else 0.0)).astype(np.uint8)
    return dict(zip(rows.tolist(), scaled, strict=True))

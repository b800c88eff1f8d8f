"""Thumbnails: small PNG files inside the page, each stored once."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

_SIDE = 48


class Album:
    """Pictures of a page; what is shown again refers to the first, and there is a limit to their size in bytes."""

    def __init__(self, budget: int = 300_000) -> None:
        self._budget = budget
        self._names: dict[bytes, str] = {}
        self.definitions: list[Markup] = []
        self.left_out = 0

    def show(self, image: NDArray[np.uint8] | None, description: str) -> Markup:
        """Refer to a picture; nothing where there is none or no room is left."""
        if image is None:
            return Markup("")
        pixels = thumbnail(image)
        encoded = png(pixels)
        name = self._names.get(encoded)
        if name is None:
            data = base64.b64encode(encoded).decode()
            if len(data) > self._budget:
                self.left_out += 1
                return Markup("")
            self._budget -= len(data)
            name = self._names[encoded] = f"picture-{len(self._names)}"
            height, width = pixels.shape[:2]
            self.definitions.append(
                Markup(
                    '<symbol id="{}" viewBox="0 0 {w} {h}"><image width="{w}" height="{h}" '
                    'href="data:image/png;base64,{}"/></symbol>'
                ).format(name, data, w=width, h=height)
            )
        return Markup('<svg class="picture" role="img" aria-label="{}"><use href="#{}"/></svg>').format(
            description, name
        )


def thumbnail(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Picture of at most 48 pixels a side: means of equal blocks, as many as fit."""
    pixels = np.asarray(image)
    colours = pixels.ndim == 3 and pixels.shape[2] == 3
    if pixels.dtype != np.uint8 or not (pixels.ndim == 2 or colours) or 0 in pixels.shape:
        raise ValueError(
            "A picture must be an array of uint8 of shape (height, width) or (height, width, 3); "
            f"got shape {pixels.shape} of {pixels.dtype}."
        )
    block = -(-max(pixels.shape[:2]) // _SIDE)
    if block == 1:
        return pixels
    # Edges that do not fill a block are repeated, so that no row or column is lost.
    margins: Any = [(0, -size % block) for size in pixels.shape[:2]] + [(0, 0)] * (pixels.ndim - 2)
    padded = np.pad(pixels, margins, mode="edge")
    rows, columns = padded.shape[0] // block, padded.shape[1] // block
    blocks = padded.reshape(rows, block, columns, block, *padded.shape[2:])
    return np.rint(blocks.mean(axis=(1, 3))).astype(np.uint8)


def png(pixels: NDArray[np.uint8]) -> bytes:
    """Encode a grey or colour picture as PNG."""
    height, width = pixels.shape[:2]
    colour_type = 0 if pixels.ndim == 2 else 2
    # Each row begins with the number of its filter: 0, none.
    rows = np.hstack([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)])
    header = struct.pack(">IIBBBBB", width, height, 8, colour_type, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )

"""The file formats in which MNIST and CIFAR-10 were published: IDX, and CIFAR's binary batches; compressed or not."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from paper.files import whole_file

# A byte of label, and three planes of 32 x 32.
_CIFAR_ROW = 1 + 3 * 32 * 32
# What unpacks to more is none of these data sets: the largest file of them has 47 million bytes.
_LARGEST = 2**28


def read_idx(path: Path, n_axes: int) -> NDArray[np.uint8]:
    """Read bytes in the IDX format: two zeros, the type, the number of axes, their lengths, the numbers.

    Parameters
    ----------
    path : Path
        File, compressed if it ends in ``.gz``.
    n_axes : int
        Axes that it must have: 1 for labels, 3 for images.
    """
    content = _content(path)
    what = "labels" if n_axes == 1 else "images"
    begin = 4 + 4 * n_axes
    if content[:4] != bytes([0, 0, 8, n_axes]):
        raise ValueError(f"{path} is no IDX file of {what}: it begins with {content[:4].hex(' ') or 'nothing'}.")
    if len(content) < begin:
        raise ValueError(f"{path} ends after {len(content)} bytes, inside its header; get it again.")
    shape = struct.unpack(f">{n_axes}I", content[4:begin])
    if len(content) != begin + math.prod(shape):
        raise ValueError(
            f"{path} should hold {math.prod(shape):,} bytes of {what} after its header, but holds "
            f"{len(content) - begin:,}; get it again."
        )
    return np.frombuffer(content, np.uint8, offset=begin).reshape(shape)


def write_idx(path: Path, values: NDArray[np.uint8]) -> None:
    """Write bytes in the IDX format, compressed."""
    header = bytes([0, 0, 8, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape)
    with whole_file(path) as file:
        file.write(gzip.compress(header + values.tobytes(), 6, mtime=0))


def read_cifar(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Read a binary batch of CIFAR-10: for each image a byte of label, then its planes of red, green and blue.

    Returns
    -------
    images : ndarray of shape (n, 3072), uint8
    labels : ndarray of shape (n,), uint8
    """
    content = _content(path)
    if not content or len(content) % _CIFAR_ROW:
        raise ValueError(
            f"{path} holds {len(content):,} bytes, which is no whole number of images of {_CIFAR_ROW:,} bytes; "
            "get it again."
        )
    rows = np.frombuffer(content, np.uint8).reshape(-1, _CIFAR_ROW)
    if rows[:, 0].max() > 9:
        raise ValueError(f"{path} is no batch of CIFAR-10: it has a label {rows[:, 0].max()}, and labels are 0 to 9.")
    return np.ascontiguousarray(rows[:, 1:]), rows[:, 0].copy()


def write_cifar(path: Path, images: NDArray[np.uint8], labels: NDArray[np.uint8]) -> None:
    """Write a binary batch of CIFAR-10."""
    with whole_file(path) as file:
        file.write(np.column_stack([labels, images]).astype(np.uint8).tobytes())


def _content(path: Path) -> bytes:
    """All bytes of a file, decompressed if its name says that it is compressed."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
            content: bytes = file.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise ValueError(f"{path} unpacks to more than {_LARGEST:,} bytes; get it again.")
        return content
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} cannot be decompressed: {str(error).rstrip('.')}; get it again.") from error
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from error

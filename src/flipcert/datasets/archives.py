"""Arrays of an .npz archive: measured before they are unpacked, never more than was announced, nothing unpickled."""

from __future__ import annotations

import lzma
import math
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from flipcert.datasets.room import Unreadable, check_room
from flipcert.engine.files import refuse_odd_files

# What reading damaged bytes ends with: in the archive, in its compression, in the header of an array.
_DAMAGE = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, tokenize.TokenError, EOFError, OSError, ValueError,
    TypeError, OverflowError, SyntaxError, RuntimeError,
)  # fmt: skip


def names_in(path: str | os.PathLike[str]) -> list[str]:
    """Names of the arrays of an archive."""
    with _archive(path) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def read_arrays(path: str | os.PathLike[str], wanted: Iterable[str]) -> dict[str, NDArray[Any]]:
    """The wanted arrays of an archive, as far as it holds them."""
    with _archive(path) as archive:
        found = {name.removesuffix(".npy"): archive.getinfo(name) for name in archive.namelist()}
        members = {key: found[key] for key in wanted if key in found}
        # The directory of the archive tells how long its members are, and no more of them than that is ever unpacked.
        check_room(os.fspath(path), sum(member.file_size for member in members.values()))
        needed = 0
        for key, member in members.items():
            with _opened(archive, key, member) as file:
                shape, dtype = _header(file)
                n_bytes = math.prod(shape) * dtype.itemsize
                if not dtype.hasobject and file.tell() + n_bytes != member.file_size:
                    raise ValueError(f"it announces {file.tell() + n_bytes:,} bytes and has {member.file_size:,}")
            if dtype.hasobject:
                raise ValueError(
                    f"the array {key} of {os.fspath(path)} holds Python objects, which are not unpickled; save numbers "
                    "or strings."
                )
            # Other numbers are turned into doubles.
            needed += n_bytes + (0 if dtype in (np.float32, np.float64) else 8 * math.prod(shape))
        check_room(os.fspath(path), needed)
        arrays = {}
        for key, member in members.items():
            with _opened(archive, key, member) as file:
                arrays[key] = np.asarray(npy.read_array(file, allow_pickle=False))
        return arrays


@contextmanager
def _archive(path: str | os.PathLike[str]) -> Iterator[zipfile.ZipFile]:
    refuse_odd_files(path)
    try:
        archive = zipfile.ZipFile(path)
    except PermissionError:
        raise
    except _DAMAGE:
        raise Unreadable("it is no archive, or only a part of one") from None
    with archive:
        yield archive


@contextmanager
def _opened(archive: zipfile.ZipFile, key: str, member: zipfile.ZipInfo) -> Iterator[Any]:
    """One array of an archive, as a file; whatever is wrong with it is said with its name."""
    try:
        with archive.open(member) as file:
            yield file
    except _DAMAGE as error:
        raise Unreadable(f"its array {key} is damaged ({Unreadable(error)})") from error


def _header(file: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type of an array."""
    version = npy.read_magic(file)
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"version {version} of its format is not known")
    shape, _, dtype = readers[version](file)
    if min(shape, default=0) < 0:
        raise ValueError(f"its shape is {shape}")
    return shape, dtype

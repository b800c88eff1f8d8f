"""Arrays in memory that other processes of this machine can map instead of being sent a copy.

The memory has no name in any folder: processes find it through this one, and it goes when the last of them ends.
"""

from __future__ import annotations

import mmap
import os
import secrets
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Where arrays begin: nothing that computes with them can prefer another place. The first of these places is a password.
ALIGNMENT = 64


class Unreachable(Exception):
    """The memory is not where it should be: this is another machine, or another container."""


def can_be_shared() -> bool:
    """Whether this system has such memory."""
    return hasattr(os, "memfd_create")


class SharedArrays:
    """Copies of arrays of bytes, in memory that other processes can map.

    Once pickled and unpickled, which takes no time, it opens what the first one made.
    """

    def __init__(self, arrays: list[NDArray[np.uint8]]) -> None:
        ends = np.cumsum([ALIGNMENT, *(-(-array.size // ALIGNMENT) * ALIGNMENT for array in arrays)]).tolist()
        self._places = [(begin, array.size) for begin, array in zip(ends, arrays, strict=False)]
        self._password = secrets.token_bytes(ALIGNMENT)
        self._file = os.memfd_create("flipcert")  # type: ignore[attr-defined, unused-ignore]
        os.ftruncate(self._file, ends[-1])
        self._path = f"/proc/{os.getpid()}/fd/{self._file}"
        with mmap.mmap(self._file, ends[-1]) as memory:
            memory[:ALIGNMENT] = self._password
            for (begin, size), array in zip(self._places, arrays, strict=True):
                memory[begin : begin + size] = array.data

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_file"}

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            os.close(self._file)

    def open(self) -> list[NDArray[np.uint8]]:
        """The arrays. What is written to them is seen by nobody else."""
        try:
            with open(self._path, "rb") as file:
                memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        except (OSError, ValueError) as error:
            raise Unreachable(str(error)) from None
        if memory[:ALIGNMENT] != self._password:
            raise Unreachable(self._path)
        return [np.frombuffer(memory, np.uint8, size, begin) for begin, size in self._places]

"""Arrays larger than memory: mapped files whose pages are given back, and scratch files for what is made of them.

A memory-mapped array is read page by page, and pages stay in memory until the system wants them back. Passes over a
large file give them back themselves, piece by piece, so that the process stays small.
"""

from __future__ import annotations

import errno
import math
import mmap
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from flipcert.engine.blocks import memory_budget
from flipcert.engine.memory import gigabytes
from flipcert.engine.sparse import SparseRows, dense

# Bytes of a piece that is looked at together, and of files whose pages may all stay in memory.
_PIECE, _SMALL = 2**24, 2**28


def is_large(X: Any, dtype: DTypeLike | None = None) -> bool:
    """Whether X lies in a file and, as ``dtype``, is larger than the memory budget: too large to be held in memory."""
    if not isinstance(X, np.ndarray):
        return False
    size = X.nbytes if dtype is None else X.size * np.dtype(dtype).itemsize
    return size > memory_budget() and _mapping(X) is not None


def row_pieces(X: NDArray[Any], size: int = _PIECE) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Ranges of rows and the rows themselves, dense, so many bytes at a time; pages are given back after each."""
    rows = max(1, size // max(1, X.dtype.itemsize * int(np.prod(X.shape[1:]))))
    for start in range(0, X.shape[0], rows):
        place = slice(start, min(start + rows, X.shape[0]))
        yield place, dense(X[place])
        give_back(X[place])


def give_back(part: NDArray[Any]) -> None:
    """Drop the pages of some rows of a mapped file from memory; whoever reads them again gets them again."""
    mapping = _mapping(part)
    # Pages of a private mapping may hold what is in no file.
    if mapping is None or mapping.mode == "c" or mapping.nbytes <= _SMALL:
        return
    pages = _pages(mapping)
    if pages is not None and hasattr(pages, "madvise") and part.flags.c_contiguous:
        begin = _address(part) - _address(np.frombuffer(pages, np.uint8))
        start = begin - begin % mmap.PAGESIZE
        pages.madvise(mmap.MADV_DONTNEED, start, begin + part.nbytes - start)


def empty_like(X: NDArray[Any]) -> NDArray[Any]:
    """A new array of the same shape and type: in memory, or, if X is large, in a scratch file."""
    return scratch(X.shape, X.dtype) if is_large(X) else np.empty_like(X)


def scratch(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """A new array of zeros in a file without a name, which is gone when the array is (in ``TMPDIR``)."""
    with tempfile.TemporaryFile(prefix="flipcert-") as file:
        size = np.dtype(dtype).itemsize * math.prod(shape)
        reserve(file, size, tempfile.gettempdir(), "let TMPDIR name another folder")
        return np.memmap(file, dtype=np.dtype(dtype), mode="w+", shape=shape)


def reserve(file: IO[bytes], size: int, folder: str | os.PathLike[str], otherwise: str) -> None:
    """Make sure of the space for a file that is going to be mapped: running out of it later would kill the process."""
    free = shutil.disk_usage(folder).free
    refused = (
        f"{folder} has {gigabytes(free)} of free space, but {gigabytes(size)} are needed; make room there, or "
        f"{otherwise}."
    )
    if size > free:
        raise ValueError(refused)
    if size and hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file.fileno(), 0, size)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise ValueError(refused) from error
            # Not every file system can do it.


def room_for(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """A new array, in memory if it is within the memory budget, else in a scratch file."""
    large = np.dtype(dtype).itemsize * int(np.prod(shape)) > memory_budget()
    return scratch(shape, dtype) if large else np.zeros(shape, dtype)


def mapped_rows(
    function: Callable[[NDArray[Any]], NDArray[Any]], X: NDArray[Any], width: int, dtype: DTypeLike
) -> NDArray[Any]:
    """``function(X)`` for a function of single rows, piece by piece, in a scratch file."""
    result = scratch((X.shape[0], width), dtype)
    for place, rows in row_pieces(X):
        result[place] = function(rows)
        give_back(result[place])
    return result


def joined(parts: list[Any]) -> Any:
    """All rows one after the other; in a scratch file, if they lie in files and are together larger than the budget.

    Parts that are all of one array, side by side, are that array.
    """
    if any(isinstance(part, SparseRows) for part in parts):
        return SparseRows.join(parts)
    if (whole := _whole(parts)) is not None:
        return whole
    if sum(part.nbytes for part in parts) <= memory_budget() or any(_mapping(part) is None for part in parts):
        return np.concatenate(parts)
    result = scratch((sum(part.shape[0] for part in parts), *parts[0].shape[1:]), parts[0].dtype)
    begin = 0
    for part in parts:
        for place, rows in row_pieces(part):
            to = result[begin + place.start : begin + place.stop]
            to[:] = rows
            give_back(to)
        begin += part.shape[0]
    return result


def _whole(parts: list[NDArray[Any]]) -> NDArray[Any] | None:
    """The array that the parts are rows of, if these are all of its rows, one after the other."""
    whole: Any = parts[0].base
    if not isinstance(whole, np.ndarray) or not whole.flags.c_contiguous:
        return None
    begin = _address(whole)
    end = begin + whole.nbytes
    for part in parts:
        alike = part.dtype == whole.dtype and part.shape[1:] == whole.shape[1:] and part.flags.c_contiguous
        if part.base is not whole or not alike or _address(part) != begin:
            return None
        begin += part.nbytes
    return whole if begin == end else None


def _mapping(X: NDArray[Any]) -> np.memmap[Any, Any] | None:
    """The mapped array that X is a part of, if there is one."""
    array: Any = X
    found = None
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap) and _pages(array) is not None:
            found = array
        array = array.base
    return found


def _pages(array: np.memmap[Any, Any]) -> mmap.mmap | None:
    """The file as the system maps it; parts of a mapped array know it too, results of arithmetic do not."""
    pages = getattr(array, "_mmap", None)
    return pages if isinstance(pages, mmap.mmap) else None


def _address(array: NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])

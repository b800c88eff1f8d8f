"""Objects on their way to another process, without what need not travel.

Large arrays are laid beside the pickle, not into it. An array that is memory-mapped read-only goes by the name of its
file, and is opened where it arrives. Compiled functions go by name too, so that every process uses its own cache.
"""

from __future__ import annotations

import hashlib
import io
import mmap
import os
import pickle
import socket
import weakref
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import cloudpickle
import numpy as np
from numba.core.dispatcher import Dispatcher
from numpy.typing import NDArray
from scipy.sparse import issparse

from flipcert.engine.cluster.shared import ALIGNMENT, SharedArrays

# A file is known again by some of its bytes: so many at a time, at more places in larger ones.
_SAMPLE, _SAMPLE_EVERY, _FEWEST_SAMPLES, _MOST_SAMPLES = 4096, 2**24, 4, 64


class SelectedRows:
    """Some rows of an array. Of a memory-mapped one only their numbers travel. Where there is ``room``, they go there.

    >>> SelectedRows(np.arange(6).reshape(3, 2), np.array([2, 0])).values
    array([[4, 5],
           [0, 1]])
    """

    def __init__(self, source: NDArray[Any], index: Any, room: NDArray[Any] | None = None) -> None:
        self._source = source
        self._index = index
        self._room = room
        self._taken: weakref.ref[NDArray[Any]] | None = None

    @property
    def values(self) -> NDArray[Any]:
        """The rows themselves: the same array as before, if somebody has kept it."""
        values = self.kept
        if values is None:
            values = self._source[self._index] if self._room is None else self._in_room()
            self._taken = weakref.ref(values)
        return values

    def _in_room(self) -> NDArray[Any]:
        """The rows, written to their room; numbers are in range, and a mode that refuses others takes a copy."""
        return np.take(self._source, self._index, axis=0, out=self._room, mode="clip")

    @property
    def kept(self) -> NDArray[Any] | None:
        """The array that was given out, if it is still there."""
        return None if self._taken is None else self._taken()

    def __reduce__(self) -> Any:
        if _mapped(self._source) is not None:
            return SelectedRows, (self._source, self._index)
        return SelectedRows, (self.values, ...)


class Packed:
    """A pickle and the arrays that lie beside it, as bytes; those that nobody may write to are told apart."""

    def __init__(
        self, stream: bytes, arrays: list[NDArray[np.uint8]], readonly: list[bool], shared: SharedArrays | None = None
    ) -> None:
        self.stream = stream
        self.readonly = readonly
        self._arrays = arrays
        self._shared = shared

    @property
    def arrays(self) -> list[NDArray[np.uint8]]:
        """The arrays, opened if they are shared."""
        return self._arrays if self._shared is None else self._shared.open()

    @property
    def nbytes(self) -> int:
        """How much there is to send."""
        return len(self.stream) + sum(array.nbytes for array in self._arrays)

    def sharing(self) -> Packed:
        """A copy for processes of this machine, which map the arrays instead of being sent them."""
        return Packed(self.stream, [], self.readonly, SharedArrays(self._arrays))

    def __sizeof__(self) -> int:
        return self.nbytes

    def digest(self) -> str:
        """What the content is known by."""
        found = hashlib.blake2b(self.stream, digest_size=20)
        for array in self._arrays:
            found.update(array.data)
        return found.hexdigest()


def pack(value: Any, known: Sequence[SelectedRows] = ()) -> Packed:
    """The value ready to be sent, without rows that the receiver knows.

    >>> unpack(pack({"a": np.arange(3)}))
    {'a': array([0, 1, 2])}
    """
    stream = io.BytesIO()
    buffers: list[pickle.PickleBuffer] = []
    _Packer(stream, buffers, known).dump(value)
    raw = [buffer.raw() for buffer in buffers]
    return Packed(stream.getvalue(), [np.frombuffer(part, np.uint8) for part in raw], [part.readonly for part in raw])


def unpack(packed: Packed, known: Sequence[SelectedRows] = ()) -> Any:
    """The value again."""
    pairs = zip(packed.arrays, packed.readonly, strict=True)
    buffers = [array.data.toreadonly() if readonly else _writable(array).data for array, readonly in pairs]
    return _Unpacker(io.BytesIO(packed.stream), known, buffers).load()


def _writable(array: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A copy of bytes in memory that can be written to, at a place that suits any number."""
    if array.flags.writeable and array.ctypes.data % ALIGNMENT == 0:
        return array
    room = np.empty(array.size + ALIGNMENT, np.uint8)
    shift = -room.ctypes.data % ALIGNMENT
    own = room[shift : shift + array.size]
    own[:] = array
    return own


class _Packer(cloudpickle.Pickler):  # type: ignore[misc]
    def __init__(self, file: Any, buffers: list[pickle.PickleBuffer], known: Sequence[SelectedRows]) -> None:
        super().__init__(file, protocol=5, buffer_callback=buffers.append)
        kept = ((number, rows.kept) for number, rows in enumerate(known))
        self._known = {_place(array): number for number, array in kept if array is not None}

    def persistent_id(self, value: Any) -> int | None:
        """The number of an array that the receiver has."""
        is_rows = isinstance(value, np.ndarray) or (issparse(value) and value.format == "csr")
        return self._known.get(_place(value)) if self._known and is_rows else None

    def reducer_override(self, value: Any) -> Any:
        """How to send what pickle would send otherwise."""
        if isinstance(value, np.ndarray) and (source := _mapped(value)) is not None:
            return _by_name(value, source)
        if isinstance(value, Dispatcher):
            return _compiled, (value.py_func.__module__, value.py_func.__qualname__)
        return super().reducer_override(value)


class _Unpacker(pickle.Unpickler):
    def __init__(self, file: Any, known: Sequence[SelectedRows], buffers: list[Any]) -> None:
        super().__init__(file, buffers=buffers)
        self._known = known

    def persistent_load(self, number: int) -> NDArray[Any]:
        return self._known[number].values


def _place(array: Any) -> tuple[Any, ...]:
    """Which numbers an array shows: another array with the same place is the same."""
    if issparse(array):
        return array.shape, *map(_place, (array.indptr, array.indices, array.data))
    return array.ctypes.data, array.shape, array.strides, array.dtype.str


def _mapped(array: NDArray[Any]) -> np.memmap[Any, Any] | None:
    """The map of a file that an array is a view of, if nobody can write through it."""
    base: Any = array
    while isinstance(base, np.ndarray):
        owner: Any = base.base
        if isinstance(base, np.memmap) and isinstance(owner, mmap.mmap):
            return base if base.mode == "r" and base.filename is not None and array.size > 0 else None
        base = owner
    return None


def _by_name(array: NDArray[Any], source: np.memmap[Any, Any]) -> Any:
    spans = [(size - 1) * stride for size, stride in zip(array.shape, array.strides, strict=True)]
    before = -sum(span for span in spans if span < 0)
    length = before + sum(span for span in spans if span > 0) + array.itemsize
    begin = source.offset + array.ctypes.data - source.ctypes.data - before
    path = os.fspath(source.filename or "")
    view = (array.shape, array.dtype, before, array.strides)
    return _open, (path, begin, length, _sampled(path, begin, length), view)


def _open(path: str, begin: int, length: int, sampled: str, view: tuple[Any, ...]) -> NDArray[Any]:
    """An array that is memory-mapped where it came from."""
    advice = "put it on storage that all workers share under this name, or load it into memory"
    try:
        same = _sampled(path, begin, length) == sampled
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ValueError(f"the worker on {socket.gethostname()} cannot open {path} ({reason}); {advice}.") from None
    if not same:
        raise ValueError(f"the worker on {socket.gethostname()} has another file {path} than the client; {advice}.")
    mapped = np.memmap(path, np.uint8, "r", begin, (length,))
    shape, dtype, first, strides = view
    return np.ndarray(shape, dtype, mapped, first, strides)


def _sampled(path: str, begin: int, length: int) -> str:
    """A digest of some bytes of a file, spread over a part of it."""
    count = min(_MOST_SAMPLES, max(_FEWEST_SAMPLES, length // _SAMPLE_EVERY))
    found = hashlib.blake2b(digest_size=20)
    with open(path, "rb", buffering=0) as file:
        for number in range(count):
            file.seek(begin + (length - min(length, _SAMPLE)) * number // (count - 1))
            found.update(file.read(min(length, _SAMPLE)))
    return found.hexdigest()


def _compiled(module: str, name: str) -> Any:
    return getattr(import_module(module), name)

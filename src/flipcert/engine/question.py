"""What is asked about a block of rows, so that an answer that was kept is given to no other question.

A question is the function that is called on the block, with all that it refers to: a fitted model and its arguments. So
nobody has to say what a question consists of, and nothing can be left out.
"""

from __future__ import annotations

import hashlib
import io
import sys
from collections.abc import Callable
from functools import cached_property
from types import FunctionType
from typing import Any

import cloudpickle
import numpy as np
from numba.core.dispatcher import Dispatcher
from numpy.typing import NDArray
from scipy.sparse import issparse

from flipcert.engine.sources import digest_of_sources

_PACKAGE = __name__.split(".")[0]
# Where and on how many threads something is computed does not change what comes out.
_WITHOUT_EFFECT = {"n_jobs", "_n_jobs"}


class Asked:
    """A function that is called on one block after the other, known by what decides its results."""

    def __init__(self, function: Callable[..., Any], memory_budget: int) -> None:
        self._function = function
        self._memory_budget = memory_budget

    @cached_property
    def digest(self) -> str | None:
        """A digest of all that, or None if there is something in it that cannot be told from others of its kind."""
        try:
            return _digest((self._function, self._memory_budget, digest_of_sources()))
        except Exception:
            # Objects that pickle has no way with, such as a user's kernel that holds a lock, fail in their own ways.
            return None


class Question:
    """A function and the block that it is called on.

    Reading all of a model takes time: nothing is done until somebody wants to know the name.
    """

    def __init__(self, asked: Asked, rows: NDArray[Any]) -> None:
        self._asked = asked
        self._rows = rows

    @cached_property
    def name(self) -> str | None:
        """What the question is known by, in any process: the same name, the same answer. None: it is not known."""
        return None if self._asked.digest is None else _digest((self._asked.digest, self._rows))


def _digest(value: Any) -> str:
    stream = io.BytesIO()
    _Describer(stream, protocol=5).dump(value)
    return hashlib.blake2b(stream.getvalue(), digest_size=20).hexdigest()


class _Describer(cloudpickle.Pickler):  # type: ignore[misc]
    """Writes what can be told apart, not what could be read again."""

    def reducer_override(self, value: Any) -> Any:
        """How to describe what pickle would write otherwise."""
        if type(value) in (np.ndarray, np.memmap) and not value.dtype.hasobject:
            kind = np.lib.format.dtype_to_descr(value.dtype)
            return _Described, ("array", kind, value.shape, value.strides, _digest_of_array(value))
        if issparse(value) and value.format == "csr":
            # What else such an object holds tells what somebody has asked about it.
            places = value.indptr.astype(np.int64), value.indices.astype(np.int64)
            return _Described, ("sparse", value.shape, *places, value.data)
        if (torch := sys.modules.get("torch")) is not None and type(value) is torch.Tensor:
            # As torch pickles them, equal tensors differ by where they lie in memory.
            return _Described, ("tensor", value.detach().cpu().numpy())
        if isinstance(value, Dispatcher):
            return _Described, ("compiled", value.py_func.__module__, value.py_func.__qualname__)
        if isinstance(value, FunctionType) and _is_ours(value.__module__) and "<" in value.__qualname__:
            return _describe_nested(value)
        if _is_ours(type(value).__module__):
            return _without_caches(value)
        return super().reducer_override(value)


class _Described:
    """Stands for something in its description."""


def _is_ours(module: str | None) -> bool:
    return module is not None and module.split(".")[0] == _PACKAGE


def _describe_nested(function: FunctionType) -> Any:
    """A function without a name of its own: its place in the sources, which are known, and what it refers to there."""
    code = function.__code__
    place = (function.__module__, function.__qualname__, tuple(code.co_positions()), code.co_code)
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    return _Described, ("function", place, cells, function.__defaults__, function.__kwdefaults__)


def _without_caches(value: Any) -> Any:
    """An object as pickle sees it, without attributes that follow from the others or have no effect."""
    reduced = value.__reduce_ex__(5)
    if isinstance(reduced, str) or len(reduced) < 3 or not isinstance(reduced[2], dict):
        return reduced
    state = {
        name: own
        for name, own in reduced[2].items()
        if name not in _WITHOUT_EFFECT and not isinstance(getattr(type(value), name, None), cached_property)
    }
    return (*reduced[:2], state, *reduced[3:])


def _digest_of_array(array: NDArray[Any]) -> str:
    # Loaded here, because blocks need this file.
    from flipcert.engine.mapped import row_pieces

    found = hashlib.blake2b(digest_size=20)
    if array.nbytes:
        for _, piece in row_pieces(np.atleast_1d(array)):
            found.update(np.ascontiguousarray(piece).reshape(-1).view(np.uint8).data)
    return found.hexdigest()

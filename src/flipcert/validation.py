"""Input checks with one message form: the argument, the value seen, what to do."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def check_choice(value: Any, name: str, allowed: Sequence[str]) -> str:
    """Return ``value`` if it is one of the allowed strings."""
    if not isinstance(value, str) or value not in allowed:
        choices = ", ".join(repr(choice) for choice in allowed)
        raise ValueError(f"{name} must be one of {choices}; got {value!r}.")
    return value


def check_integers(
    values: ArrayLike, name: str, *, minimum: int | None = None, maximum: int | None = None, ndim: int
) -> NDArray[np.int64]:
    """Return whole numbers as int64, refusing fractions, strings and numbers out of range."""
    array = np.asarray(values)
    if array.ndim != ndim:
        shape = {0: "a single number", 1: "one-dimensional"}.get(ndim, f"of {ndim} dimensions")
        raise ValueError(f"{name} must be {shape}; got shape {array.shape}.")
    if array.dtype.kind == "f" and bool(np.all(array == np.floor(array))):
        # Whole numbers stored as floats lose nothing; larger ones than int64 are caught below.
        if array.size and not bool(np.all(np.abs(array) < 2.0**62)):
            raise ValueError(f"{name} must be smaller than 2**62; got {array[np.argmax(np.abs(array))]!r}.")
    elif array.dtype.kind not in "iu" and array.size:
        raise ValueError(f"{name} must hold whole numbers; got {_first(array)!r} of type {array.dtype}.")
    if minimum is not None and array.size and array.min() < minimum:
        raise ValueError(f"{name} must be at least {minimum}; got {array.min()}.")
    if maximum is not None and array.size and array.max() > maximum:
        raise ValueError(f"{name} must be at most {maximum}; got {array.max()}.")
    return array.astype(np.int64)


def check_weights(weights: ArrayLike, n_samples: int) -> NDArray[Any]:
    """Return a matrix of finite weights, float32 kept as float32 and everything else as float64."""
    array = np.asarray(weights)
    if array.dtype.kind not in "fiu":
        raise ValueError(f"weights must be numbers; got an array of type {array.dtype}.")
    array = np.ascontiguousarray(array, np.float32 if array.dtype == np.float32 else np.float64)
    if array.ndim != 2:
        raise ValueError(f"weights must have shape (n_test, n_train); got {array.shape}.")
    if array.shape[1] != n_samples:
        raise ValueError(f"weights has {array.shape[1]} columns, but labels has {n_samples} entries.")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"weights must be finite; got {array[~np.isfinite(array)][0]}.")
    return array


def check_offset(offset: ArrayLike | None, n_rows: int, n_classes: int) -> NDArray[np.float64]:
    """Return one finite offset for each row and class; None means zero."""
    if offset is None:
        return np.zeros((n_rows, n_classes))
    array = np.asarray(offset)
    if array.dtype.kind not in "fiu":
        raise ValueError(f"offset must be numbers; got an array of type {array.dtype}.")
    array = np.ascontiguousarray(array, np.float64)
    if array.shape != (n_rows, n_classes):
        raise ValueError(f"offset must have shape (n_test, n_classes) = {(n_rows, n_classes)}; got {array.shape}.")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"offset must be finite; got {array[~np.isfinite(array)][0]}.")
    return array


def check_mask(mask: ArrayLike | None, n_samples: int) -> NDArray[np.bool_] | None:
    """Return the mask of trusted labels; None if there is none."""
    if mask is None:
        return None
    array = np.asarray(mask)
    if array.dtype != np.bool_ or array.shape != (n_samples,):
        raise ValueError(
            f"trusted must be a boolean mask with one entry for each of the {n_samples} labels; "
            f"got shape {array.shape} of type {array.dtype}."
        )
    return array


def check_path(path: str | os.PathLike[str]) -> str:
    """Return a file path as a string."""
    return os.fspath(path)


def _first(array: NDArray[Any]) -> Any:
    value = array.ravel()[0]
    return value.item() if hasattr(value, "item") else value

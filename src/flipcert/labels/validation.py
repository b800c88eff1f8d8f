"""Input checks with one message form: the argument, the value seen, what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from flipcert.engine.sparse import SparseRows, canonical
from flipcert.engine.words import plural


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
    refuse_masked(values, name)
    array = np.asarray(values)
    if array.ndim != ndim:
        shape = {0: "a single number", 1: "one-dimensional"}.get(ndim, f"of {ndim} dimensions")
        raise ValueError(f"{name} must be {shape}; got shape {array.shape}.")
    if array.size:
        if array.dtype.kind == "O":
            # Integers of Python, of any size.
            for value in array.flat:
                if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
                    raise ValueError(f"{name} must hold whole numbers; got {_plain(value)!r}.")
        elif array.dtype.kind not in "iuf":
            raise ValueError(f"{name} must hold whole numbers; got {_plain(array.flat[0])!r} of type {array.dtype}.")
        else:
            # Whole numbers stored as floats lose nothing.
            _refuse(array, array != np.floor(array), f"{name} must hold whole numbers")
        if minimum is not None:
            _refuse(array, array < minimum, f"{name} must be at least {minimum}")
        if maximum is not None:
            _refuse(array, array > maximum, f"{name} must be at most {maximum}")
        sizes = np.abs(array if array.dtype.kind == "O" else array.astype(np.float64))
        _refuse(array, sizes > 2.0**62, f"{name} must be at most 2**62")
    return array.astype(np.int64)


def check_number(value: Any, name: str, *, zero: bool = False) -> float:
    """Return a finite positive number (``zero``: or zero)."""
    number = not isinstance(value, (bool, np.bool_)) and isinstance(value, (int, float, np.integer, np.floating))
    if not number or not (0 <= value < np.inf) or (value == 0 and not zero):
        wanted = "a number that is not negative" if zero else "a positive number"
        if isinstance(value, (float, np.floating)) and value == np.inf:
            wanted += ", and finite"
        raise ValueError(f"{name} must be {wanted}; got {_plain(value)!r}.")
    return float(value)


def check_flag(value: Any, name: str) -> bool:
    """Return whether something is asked for: True or False, and nothing else."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False; got {_plain(value)!r}.")
    return bool(value)


def check_n_jobs(n_jobs: Any) -> None:
    """Refuse numbers of threads that joblib could not use."""
    whole = isinstance(n_jobs, (int, np.integer)) and not isinstance(n_jobs, bool)
    if n_jobs is not None and (not whole or n_jobs == 0):
        raise ValueError(f"n_jobs must be None or a whole number other than 0; got {_plain(n_jobs)!r}.")


def check_weights(weights: ArrayLike, n_samples: int) -> NDArray[Any]:
    """Return a matrix of finite weights, float32 kept as float32 and everything else as float64."""
    given = np.asarray(weights)
    if given.dtype.kind not in "fiu":
        raise ValueError(f"weights must be numbers; got an array of type {given.dtype}.")
    array = np.ascontiguousarray(given, np.float32 if given.dtype == np.float32 else np.float64)
    if array.ndim != 2:
        raise ValueError(f"weights must have shape (n_test, n_train); got {array.shape}.")
    if array.shape[1] != n_samples:
        columns = plural(array.shape[1], "column")
        raise ValueError(f"weights has {columns}, but labels has {plural(n_samples, 'entry')}.")
    _refuse(given, ~np.isfinite(array), "weights must be finite")
    if array.dtype != given.dtype:
        # Integers and long doubles may not fit a double, and a certificate for rounded weights is for another model.
        _refuse(given, array.astype(given.dtype) != given, "weights must fit float64 exactly")
    return array


def check_inputs(X: Any, *, sparse: bool = False) -> NDArray[Any]:
    """Return the inputs of a kernel as a matrix of floats, float32 kept as float32, and sparse ones, if they may be."""
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype in (np.float32, np.float64):
        return X
    if isinstance(X, SparseRows):
        return X.csr
    if issparse(X) and not sparse:
        raise TypeError(f"X must be dense for this kernel; got a sparse {type(X).__name__}. Pass X.toarray().")
    array = canonical(X) if issparse(X) and X.ndim == 2 else np.asarray(X)
    if issparse(array) and array.dtype in (np.float32, np.float64):
        return array
    if array.ndim != 2 or array.dtype.kind not in "fiub":
        raise ValueError(f"X must be a matrix of numbers; got shape {array.shape} of type {array.dtype}.")
    return array.astype(np.float64)


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
    _refuse(array, ~np.isfinite(array), "offset must be finite")
    return array


def check_mask(mask: ArrayLike | None, n_samples: int) -> NDArray[np.bool_] | None:
    """Return the mask of trusted labels; None if there is none."""
    if mask is None:
        return None
    refuse_masked(mask, "trusted")
    array = np.asarray(mask)
    if array.dtype != np.bool_ or array.shape != (n_samples,):
        raise ValueError(
            f"trusted must be a boolean mask with one entry for each of the {n_samples} labels; "
            f"got shape {array.shape} of type {array.dtype}."
        )
    return array


def refuse_masked(values: Any, name: str) -> None:
    """Raise ValueError if entries of a masked array are masked: they would be read as what is beneath."""
    if isinstance(values, np.ma.MaskedArray) and (missing := int(np.ma.getmaskarray(values).sum())):
        raise ValueError(f"{name} must have no masked entries; got {missing}. Fill them in, or leave them out.")


def missing_in(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which entries stand for something missing: None, NaN, NaT, or pandas' NA."""
    if values.dtype.kind in "fcmM":
        return np.isnat(values) if values.dtype.kind in "mM" else np.isnan(values)
    if values.dtype.kind != "O":
        return np.zeros(values.shape, np.bool_)
    return np.array([own is None or _is_nan(own) for own in values.flat], np.bool_).reshape(values.shape)


def _is_nan(value: Any) -> bool:
    """Whether a value is not equal to itself, as NaN is, or cannot be asked, as pandas' NA."""
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return type(value).__name__ == "NAType"


def _refuse(array: NDArray[Any], wrong: NDArray[np.bool_], rule: str) -> None:
    """Raise with the first wrong value, if there is one."""
    if np.any(wrong):
        raise ValueError(f"{rule}; got {_plain(array[wrong].flat[0])!r}.")


def _plain(value: Any) -> Any:
    """A value as Python writes it, without NumPy's wrapping."""
    return value.item() if isinstance(value, np.generic) else value

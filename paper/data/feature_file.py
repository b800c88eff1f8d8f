"""Features of a training and a test set in one file: ``x_train``, ``y_train``, ``x_test``, ``y_test``."""

from __future__ import annotations

import os
import zipfile
import zlib
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from paper.data.table import Table
from paper.files import whole_file

_NEEDED = ("x_train", "y_train", "x_test", "y_test")


def read_features(path: str | os.PathLike[str], source: str | None = None) -> tuple[Table, Table]:
    """Read the features of a training and a test set.

    Parameters
    ----------
    path : path-like
        ``.npz`` with arrays ``x_train``, ``y_train``, ``x_test`` and ``y_test``; optionally ``scale``, one number or
        one a feature, by which the stored numbers are to be multiplied; optionally ``image_shape``.
    source : str, optional
        What messages call it; the path if not given.

    Returns
    -------
    train, test : Table
        Scaled features are float32; others stay as they are, bytes too.
    """
    source = source or os.fspath(path)
    stored = _arrays(path)
    missing = [key for key in _NEEDED if key not in stored]
    if missing:
        raise ValueError(
            f"{path} is no feature file: it has no array {missing[0]}, only {', '.join(stored) or 'none'}."
        )
    scale, shape = stored.get("scale"), stored.get("image_shape")
    image_shape = None
    if shape is not None:
        if shape.ndim != 1 or shape.dtype.kind not in "iu" or int(np.prod(shape)) != stored["x_train"].shape[-1]:
            raise ValueError(
                f"image_shape {shape.tolist()} of {path} does not fit its {stored['x_train'].shape[-1]} features."
            )
        image_shape = tuple(int(size) for size in shape)
    train, test = (
        _table(f"{source}:{part}", stored[f"x_{part}"], stored[f"y_{part}"], scale, image_shape)
        for part in ("train", "test")
    )
    return train, test


def write_features(path: str | os.PathLike[str], train: Table, test: Table) -> None:
    """Write the features of a training and a test set, for :func:`read_features`."""
    arrays = {"x_train": train.X, "y_train": train.y, "x_test": test.X, "y_test": test.y}
    if train.image_shape is not None:
        arrays["image_shape"] = np.array(train.image_shape)
    with whole_file(path) as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def is_feature_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file holds what a feature file must hold; its numbers are not looked at."""
    if not os.path.isfile(path) or not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return {f"{name}.npy" for name in _NEEDED} <= set(archive.namelist())


def _arrays(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """What a feature file may hold, as far as it is there; nothing is unpickled."""
    if not os.path.isfile(path) or not zipfile.is_zipfile(path):
        raise ValueError(f"{path} cannot be read as npz: it is no archive, or only a part of one.")
    with zipfile.ZipFile(path) as archive:
        try:
            held = [name for name in (*_NEEDED, "scale", "image_shape") if f"{name}.npy" in archive.namelist()]
            return {name: _array(archive, name) for name in held}
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
            raise ValueError(f"{path} cannot be read as npz: {str(error).rstrip('.')}.") from error


def _array(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    with archive.open(f"{name}.npy") as file:
        try:
            return np.asarray(npy.read_array(file, allow_pickle=False))
        except ValueError as error:
            if "pickle" in str(error):
                raise ValueError(f"its array {name} holds Python objects, which are not unpickled") from None
            raise


def _table(
    source: str, X: NDArray[Any], y: NDArray[Any], scale: NDArray[Any] | None, image_shape: tuple[int, ...] | None
) -> Table:
    if scale is not None:
        if X.ndim == 2 and scale.shape not in ((), (1,), (X.shape[1],)):
            raise ValueError(f"scale of {source} has shape {scale.shape}; it must be one number, or one a feature.")
        X = X.astype(np.float32) * scale.astype(np.float32)
    return Table(source, X, y.astype(np.int64) if y.dtype.kind in "iu" else y, image_shape)

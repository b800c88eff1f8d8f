"""Data sets by name, from a data folder; fetched when they are not there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from paper.data.cifar10 import read_cifar10
from paper.data.feature_file import is_feature_file, read_features
from paper.data.folder import data_folder
from paper.data.mnist import read_mnist
from paper.data.table import Dataset, Table

_KNOWN = ("cifar10", "digits", "mnist", "mnist-1-vs-7")


def load(
    name: str, folder: str | os.PathLike[str] | None = None, *, batches: Sequence[int] | None = None, fetch: bool = True
) -> Dataset:
    """Load a data set by name.

    ``"digits"`` comes with scikit-learn (8 x 8 pixels; every fifth image is a test point). ``"mnist"``,
    ``"mnist-1-vs-7"`` and ``"cifar10"`` are read from a data folder in the file formats in which they were published,
    compressed or not; where they are missing they are fetched from OpenML and kept there in these formats. Every other
    name is that of a feature file: ``NAME.npz`` in the data folder, with arrays ``x_train``, ``y_train``, ``x_test``,
    ``y_test`` and perhaps ``scale`` (multiplies the features) and ``image_shape``.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    folder : path-like, optional
        Data folder; else the one that the environment variable ``FLIPCERT_DATA`` names, else ``flipcert`` in the user's
        folder for caches.
    batches : sequence of int, optional
        Training batches of CIFAR-10 to read, of 1 to 5; all of them by default.
    fetch : bool, default=True
        Whether to fetch what is missing.

    Returns
    -------
    Dataset
        ``train`` and ``test``, each with ``X``, ``y`` and ``image_shape``. Pixels are uint8, and rows are images
        flattened channels first.

    Examples
    --------
    >>> digits = load("digits")
    >>> digits.train.X.shape, digits.test.X.shape, digits.image_shape
    ((1438, 64), (359, 64), (1, 8, 8))
    """
    place = data_folder(folder)
    if batches is not None and name != "cifar10":
        raise ValueError(f"batches are those of cifar10; {name} has none.")
    if name == "digits":
        return _digits()
    if name in ("mnist", "mnist-1-vs-7"):
        mnist = Dataset("mnist", *read_mnist(place, fetch))
        return mnist if name == "mnist" else _only(mnist, name, (1, 7))
    if name == "cifar10":
        return Dataset(name, *read_cifar10(place, batches, fetch))
    path = place / f"{name}.npz"
    if Path(name).name != name or not path.is_file():
        raise ValueError(f"{name!r} is no data set; there are {', '.join(names(place))}, and any NAME.npz in {place}.")
    return Dataset(name, *read_features(path, name))


def names(folder: str | os.PathLike[str] | None = None) -> list[str]:
    """Names that :func:`load` knows: data sets, then the feature files in the data folder.

    Parameters
    ----------
    folder : path-like, optional
        Data folder, as for :func:`load`.

    Examples
    --------
    >>> names()[:4]
    ['cifar10', 'digits', 'mnist', 'mnist-1-vs-7']
    """
    return [*_KNOWN, *sorted(path.stem for path in data_folder(folder).glob("*.npz") if is_feature_file(path))]


def _digits() -> Dataset:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    test = np.arange(len(X)) % 5 == 4
    parts = (
        Table(f"digits:{part}", X[rows].astype(np.uint8), y[rows].astype(np.int64), image_shape=(1, 8, 8))
        for part, rows in (("train", ~test), ("test", test))
    )
    return Dataset("digits", *parts)


def _only(dataset: Dataset, name: str, classes: tuple[int, ...]) -> Dataset:
    """The images of some classes, in their order."""

    def chosen(table: Table, part: str) -> Table:
        rows = np.isin(table.y, classes)
        return replace(table, source=f"{name}:{part}", X=table.X[rows], y=table.y[rows])

    return Dataset(name, chosen(dataset.train, "train"), chosen(dataset.test, "test"))

"""The data of the experiments: features, labels, and what partitions go by."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from paper import data as datasets
from paper.data.folder import data_folder

# Feature files in the data folder.
CIFAR10, MNIST = "cifar10-lite0-512", "mnist-rotnet"
# Rows of the quick versions.
QUICK_TRAIN, QUICK_TEST = 1500, 150


@dataclass(frozen=True, eq=False)
class Source:
    """Training and test set of an experiment.

    Attributes
    ----------
    X_train, X_test : ndarray of float32
        Features.
    y_train, y_test : ndarray
        Labels.
    image_shape : tuple of int or None
        Shape of a row (channels, height, width), where it has one.
    partition_by : ndarray or None
        What the training set is sorted by before it is dealt out to partitions; None for the features.
    described : str
        What the features are, for captions.
    """

    X_train: NDArray[np.float32]
    y_train: NDArray[Any]
    X_test: NDArray[np.float32]
    y_test: NDArray[Any]
    image_shape: tuple[int, ...] | None
    partition_by: NDArray[Any] | None
    described: str

    @property
    def digest(self) -> str:
        """A digest of everything that a certificate depends on."""
        state = hashlib.sha256()
        for values in (self.X_train, self.y_train, self.X_test, self.y_test, self.partition_by):
            if values is not None:
                state.update(repr((values.shape, values.dtype.str)).encode())
                state.update(np.ascontiguousarray(values).data)
        return state.hexdigest()

    def first(self, n_train: int, n_test: int) -> Source:
        """The first rows only."""
        return replace(
            self,
            X_train=self.X_train[:n_train],
            y_train=self.y_train[:n_train],
            X_test=self.X_test[:n_test],
            y_test=self.y_test[:n_test],
            partition_by=None if self.partition_by is None else self.partition_by[:n_train],
        )

    def only(self, classes: tuple[int, ...]) -> Source:
        """The rows of some classes only."""
        train, test = np.isin(self.y_train, classes), np.isin(self.y_test, classes)
        return replace(
            self,
            X_train=self.X_train[train],
            y_train=self.y_train[train],
            X_test=self.X_test[test],
            y_test=self.y_test[test],
            partition_by=None if self.partition_by is None else self.partition_by[train],
        )


def load(name: str, folder: Path | None = None) -> Source:
    """The data of a name, from the folder of data."""
    if name == "cifar10":
        return _features(
            CIFAR10,
            folder,
            "features of an EfficientNet-Lite0 trained with the labels of ImageNet (the paper: SimCLR, without labels)",
            "put it there",
            None,
        )
    # The features are sorted by the images they were made of.
    images = datasets.load("mnist", folder)
    how = f"make it: python -m paper features extract paper/checkpoints/mnist-rotnet.pt mnist --out {MNIST}.npz"
    source = _features(MNIST, folder, "second block of a RotNet trained by flipcert", how, images.train.X)
    return source.only((1, 7)) if name == "mnist-1-vs-7" else source


def _features(
    file: str, folder: Path | None, described: str, otherwise: str, partition_by: NDArray[Any] | None
) -> Source:
    place = data_folder(folder)
    if not (place / f"{file}.npz").is_file():
        raise ValueError(f"the figure needs the features {file}.npz in {place}; {otherwise}.")
    found = datasets.load(file, folder)
    train, test = found.train, found.test
    return Source(
        np.asarray(train.X, np.float32), train.y, np.asarray(test.X, np.float32), test.y, found.image_shape,
        partition_by, described,
    )  # fmt: skip


def digits(name: str) -> Source:
    """The bundled digits in place of any of the data, in an order that has all classes everywhere."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(y.size)
    X, y = (X[order] / 16).astype(np.float32), y[order]
    n_test = 297
    source = Source(X[n_test:], y[n_test:], X[:n_test], y[:n_test], (1, 8, 8), None, "digits of 8 x 8 pixels")
    return source.only((1, 7)) if name == "mnist-1-vs-7" else source

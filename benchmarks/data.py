"""Data of the benchmarks: real where it lies next to the repository, otherwise a stand-in of the same shape."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

# The folder with the data sets; the default is where the project keeps them, beside the repository.
FOLDER = Path(os.environ.get("FLIPCERT_DATA", Path(__file__).parent.parent.parent / "shared" / "data"))


@dataclass(frozen=True)
class Features:
    """A training set and test points, in float32 unless a check needs more."""

    train: NDArray[np.floating[Any]]
    labels: NDArray[np.int64]
    test: NDArray[np.floating[Any]]
    n_classes: int
    name: str
    truth: NDArray[np.int64] | None = None  # labels of the test points, where accuracy matters

    @property
    def shape(self) -> str:
        """Sizes, for the reader."""
        return f"n = {self.train.shape[0]:,}, d = {self.train.shape[1]}, K = {self.n_classes}"


def cifar10(n_train: int = 50_000, n_test: int = 10_000, standardised: bool = False) -> Features:
    """CIFAR-10 as 512 non-negative features of a pretrained network, as given or standardised (mixed signs)."""
    file = FOLDER / "cifar10-lite0-512.npz"
    if file.exists():
        with np.load(file) as arrays:
            train, test = (arrays[part][:rows] * arrays["scale"] for part, rows in _parts(n_train, n_test))
            labels, n_classes, name = arrays["y_train"][:n_train].astype(np.int64), 10, "CIFAR-10 features"
            truth = arrays["y_test"][:n_test].astype(np.int64)
    else:
        stand_in = synthetic(n_train, 512, 10, n_test)
        train, test, labels, n_classes, name = stand_in.train, stand_in.test, stand_in.labels, 10, stand_in.name
        truth = stand_in.truth
    if standardised:
        # Seen without labels, so the certificate stands.
        centre, scale = train.mean(axis=0), np.maximum(train.std(axis=0), np.finfo(np.float32).tiny)
        train, test = ((part - centre) / scale for part in (train, test))
        name += ", standardised"
    # Row by row in memory, as estimators want it: a copy that they had to make would count as theirs.
    rows, points = (part.astype(np.float32, order="C", copy=False) for part in (train, test))
    return Features(rows, labels, points, n_classes, name, truth)


def mnist(n_train: int = 60_000, n_test: int = 10_000) -> Features:
    """MNIST pixels in [0, 1]."""
    folder = FOLDER / "mnist"
    if not folder.exists():
        return synthetic(n_train, 784, 10, n_test)
    train, test = (
        _idx(folder / f"{part}-images-idx3-ubyte.gz")[:rows].reshape(-1, 784).astype(np.float32) / np.float32(255)
        for part, rows in (("train", n_train), ("t10k", n_test))
    )
    labels, truth = (
        _idx(folder / f"{part}-labels-idx1-ubyte.gz")[:rows].astype(np.int64)
        for part, rows in (("train", n_train), ("t10k", n_test))
    )
    return Features(train, labels, test, 10, "MNIST pixels", truth)


def digits() -> Features:
    """The 1,797 digits that come with scikit-learn, centred: four of five for training."""
    X, y = load_digits(return_X_y=True)
    train, test, labels, truth = train_test_split(X / 16, y.astype(np.int64), test_size=360, random_state=0)
    centre = train.mean(axis=0)
    return Features(train - centre, labels, test - centre, 10, "digits, centred", truth)


def synthetic(
    n_train: int,
    n_features: int,
    n_classes: int,
    n_test: int,
    seed: int = 0,
    room: Callable[[tuple[int, int], type], NDArray[Any]] = np.empty,
) -> Features:
    """Non-negative features with classes: rectified normal numbers around one centre a class.

    ``room`` makes the arrays that they are put into.
    """
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((n_classes, n_features), np.float32)

    def draw(classes: NDArray[np.int64]) -> NDArray[np.float32]:
        rows = room((classes.size, n_features), np.float32)
        # In pieces, so that making the data takes no more memory than the data.
        for start in range(0, classes.size, 4096):
            piece = rows[start : start + 4096]
            rng.standard_normal(out=piece, dtype=np.float32)
            piece += 0.5 * centres[classes[start : start + 4096]]
            np.maximum(piece, 0, out=piece)
        return rows

    labels, truth = (rng.integers(0, n_classes, size) for size in (n_train, n_test))
    return Features(draw(labels), labels, draw(truth), n_classes, "synthetic stand-in", truth)


def _parts(n_train: int, n_test: int) -> tuple[tuple[str, int], tuple[str, int]]:
    return ("x_train", n_train), ("x_test", n_test)


def _idx(file: Path) -> NDArray[Any]:
    """An array in the IDX format of MNIST: two zeros, type, number of axes, their lengths, the bytes."""
    content = gzip.decompress(file.read_bytes())
    n_axes = content[3]
    shape = np.frombuffer(content, ">u4", n_axes, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * n_axes).reshape(shape)

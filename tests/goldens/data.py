"""Fixed training and test sets, the same bits on every machine.

All features are multiples of a power of two with few digits, so that their inner products are exact whatever the
machine, the number of threads, and the order of additions.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

NAMES = np.array(["zebra", "ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen", "ibis"])


def digits(n_train=500, n_test=8, n_classes=10):
    """Images of digits, pixels 0 to 16: training inputs and labels, test inputs. Kernels are not negative."""
    X, y = load_digits(return_X_y=True)
    kept = y < n_classes
    X, y = X[kept], y[kept]
    return X[:n_train], y[:n_train], X[-n_test:]


def centred(n_train=500, n_test=8, n_classes=10):
    """Pixels from -1/2 to 1/2: inner products of both signs, and still exact."""
    X, y, X_test = digits(n_train, n_test, n_classes)
    return X / 16 - 0.5, y, X_test / 16 - 0.5


def jittered(n_train=500, n_test=8, n_classes=10):
    """Pixels with some noise: no two numbers that come of them tie, unless they must."""
    X, y, X_test = digits(n_train, n_test, n_classes)
    noise = np.random.RandomState(1)
    return tuple(
        (rows + noise.randint(-512, 513, rows.shape) / 1024) / 16 - 0.5 if rows.ndim == 2 else rows
        for rows in (X, y, X_test)
    )


def blobs(n_train=36, n_test=8, n_classes=3, spread=1.0):
    """Overlapping classes in the plane."""
    rng = np.random.RandomState(0)
    centres = np.array([[0.0, 0.0], [1.5, 0.5], [0.25, 1.75], [-1.5, 0.75]])
    y = np.arange(n_train + n_test) % n_classes
    X = centres[y] + rng.randint(-(2**12), 2**12 + 1, (y.size, 3, 2)).sum(axis=1) * spread / 2**12
    return X[:n_train], y[:n_train], X[n_train:]


def grid(n_train=60, n_test=8, n_classes=3):
    """Points of a small grid, many of them equal, with labels that do not follow: everything ties."""
    rng = np.random.RandomState(3)
    X = rng.randint(-2, 3, (n_train + n_test, 2)).astype(np.float64)
    return X[:n_train], rng.randint(0, n_classes, n_train), X[n_train:]


def cloud(n_train=60, n_test=6, n_classes=6, scale=1.0):
    """Points around the origin with labels that do not follow: weights of both signs, many classes, hard to close."""
    rng = np.random.RandomState(4)
    y = np.arange(n_train) % n_classes
    X = rng.randint(-1024, 1025, (n_train + n_test, n_classes)) / 512
    X[:n_train] += np.eye(n_classes)[y]
    return X[:n_train] * scale, y, X[n_train:] * scale


def hard_cloud():
    """Points whose costs no bound settles in ensembles, because numbers are too large for the fast search."""
    X, y, X_test = cloud(200, 200, scale=2.0**508)
    return X, y, X_test[[0, 15, 41, 61, 65, 81]]


def shares(y):
    """Masks of trusted labels: some, a whole class, all but one, all."""
    return {
        "some": np.arange(y.size) % 3 == 1,
        "class": y == y[0],
        "all but one": np.arange(y.size) != 4,
        "all": np.ones(y.size, bool),
    }


# Numbers that rounding treats badly; rows of weights are drawn from these.
_UP, _DOWN = np.nextafter(1.0, 2.0), np.nextafter(1.0, 0.0)
FAMILIES = {
    "integers": np.arange(-3.0, 4.0),
    "counts": np.arange(4.0),
    "tenths": 0.1 * np.arange(-6, 7),
    "positive tenths": 0.1 * np.arange(7),
    "cancelling": np.array([1e16, 1.0, 1e-16, 3.0, -1e16, -1.0, -1e-16, -3.0]),
    "neighbours": np.array([1.0, _UP, _DOWN, -1.0, -_UP, -_DOWN]),
    "positive neighbours": np.array([1.0, _UP, _DOWN]),
    "subnormal": 5e-324 * np.arange(-4, 5),
    "huge and small": np.array([1e300, 1e-300, 1.0, 2.0**-1074, -1e300, -1.0, -1e-300]),
    "extreme": np.array([1.7e308, -1.7e308, 1e308, 1.0, -5e-324]),
    "zeros": np.array([0.0, -0.0]),
}


def weights_of(family, n_rows=4, n_train=18, n_classes=3):
    """Rows of weights, labels and offsets from a family of numbers."""
    rng = np.random.RandomState(sorted(FAMILIES).index(family))
    values = FAMILIES[family]
    weights = rng.choice(values, (n_rows, n_train))
    labels = np.minimum(rng.randint(0, n_classes + 1, n_train), n_classes - 1)
    return weights, labels, rng.choice(values, (n_rows, n_classes))

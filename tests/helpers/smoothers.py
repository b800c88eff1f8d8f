"""Label-linear classifiers as users write them, and what brute force through fit and predict says of any model."""

from __future__ import annotations

import itertools

import numpy as np
import scipy.sparse

import flipcert


class Looked(flipcert.LabelLinearClassifier):
    """Weights from a table: the first feature of a row is its place there. ``form`` is what they come as."""

    def __init__(self, table=None, form="array", classes=None, n_jobs=1):
        self.table = table
        self.form = form
        self.classes = classes
        self.n_jobs = n_jobs

    def fit_inputs(self, X):
        self.places_ = X[:, 0].astype(int)

    def weights(self, X):
        found = self.table[np.ix_(X[:, 0].astype(int), self.places_)]
        return scipy.sparse.csr_array(found) if self.form == "sparse" else found

    def weight_rounding(self, X):
        return np.zeros(len(X))


class LookedInTiles(Looked):
    def weight_tile(self, X, start, stop):
        return self.table[np.ix_(X[:, 0].astype(int), self.places_[start:stop])]


class LookedBare(Looked):
    """Has parameters of its own only."""

    def __init__(self, table=None, form="array"):
        self.table = table
        self.form = form


class Linear(flipcert.LabelLinearClassifier):
    """Inner products, which round differently in blocks of another shape."""

    def fit_inputs(self, X):
        self.X_ = X

    def weights(self, X):
        return X @ self.X_.T


class LinearInTiles(flipcert.LabelLinearClassifier):
    def fit_inputs(self, X):
        self.X_ = X

    def weight_tile(self, X, start, stop):
        return X @ self.X_[start:stop].T


def fewest_units(model, X, y, x, labels, trusted=None, source=None, by_source=False):
    """Fewest flips, or sources, after which each of some labels is predicted for each row: all labellings are fitted.

    Labellings that ``fit`` refuses are no attacks. One more than there are units, where nothing does it.
    """
    n = len(y)
    kept = np.zeros(n, bool) if trusted is None else trusted
    most = len(set(source)) if by_source else n
    fewest = np.full((len(x), len(labels)), most + 1)
    for labelling in itertools.product(*([own] if stays else labels for own, stays in zip(y, kept, strict=True))):
        after = np.array(labelling)
        changed = np.flatnonzero(after != y)
        units = len({source[i] for i in changed}) if by_source else len(changed)
        if is_refused(model, after):
            continue
        predicted = model.fit(X, after, trusted=trusted, source=source).predict(x)
        reached = np.searchsorted(labels, predicted)
        rows = np.arange(len(x))
        fewest[rows, reached] = np.minimum(fewest[rows, reached], units)
    return fewest


def is_refused(model, y):
    """Whether fit refuses labels: those of one class, unless there is known to be another."""
    return model.classes is None and len(set(y)) < 2


def random_weights(rng, n_rows, n_samples):
    """A table of weights of some kind: of all signs, tied, with duplicates and zeros, huge, tiny, or both."""
    numbers = rng.normal(size=(n_rows, n_samples))
    kind = rng.choice(["plain", "positive", "tied", "zeros", "duplicates", "huge", "tiny", "both", "cancelling"])
    match kind:
        case "positive":
            return np.abs(numbers)
        case "tied":
            return rng.integers(-2, 3, numbers.shape).astype(float)
        case "zeros":
            return np.where(rng.random(numbers.shape) < 0.6, 0.0, numbers)
        case "duplicates":
            return numbers[:, rng.integers(max(1, n_samples // 2), size=n_samples)]
        case "huge":
            return numbers * 1e307
        case "tiny":
            return rng.integers(-3, 4, numbers.shape) * 5e-324
        case "both":
            return numbers * 10.0 ** rng.integers(-200, 200, numbers.shape)
        case "cancelling":
            return np.where(rng.random(numbers.shape) < 0.5, 1.0, -1.0) * (
                1.0 + rng.integers(-1, 2, numbers.shape) * 2**-52
            )
    return numbers

"""Label spreading on dense matrices, and all labellings of a small training set through fit and predict."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.polynomial import chebyshev
from sklearn.base import clone


def squared_distances(X, Z):
    """Feature after feature, so that equal inputs have equal distances."""
    total = np.zeros((len(X), len(Z)))
    for x, z in zip(X.T, Z.T, strict=True):
        total += (x[:, None] - z[None, :]) ** 2
    return total


def nearest(distances, count):
    return distances <= np.sort(distances, axis=1)[:, count - 1 : count]


def dense_graph(X, n_neighbors):
    """S, and the inverse roots of the degrees."""
    n = len(X)
    joined = np.zeros((n, n), bool)
    if n > 1:
        distances = squared_distances(X, X)
        np.fill_diagonal(distances, np.inf)
        joined = nearest(distances, min(n_neighbors, n - 1))
    A = (joined | joined.T).astype(float)
    root = 1 / np.sqrt(np.maximum(A.sum(axis=1), 1))
    return root[:, None] * A * root, root


def dense_start(X, X_test, n_neighbors, root):
    return nearest(squared_distances(X_test, X), min(n_neighbors, len(X))) * root


def dense_inverse(X, X_test, n_labeled, n_neighbors, alpha):
    """What the weights are close to."""
    S, root = dense_graph(X, n_neighbors)
    return np.linalg.solve(np.eye(len(X)) - alpha * S, dense_start(X, X_test, n_neighbors, root).T)[:n_labeled].T


def dense_polynomial(X, X_test, n_labeled, n_neighbors, alpha, n_steps):
    """What they are: by eigenvectors, with coefficients that are found by interpolation at many points."""
    S, root = dense_graph(X, n_neighbors)
    many = 64 + 4 * n_steps
    coefficients = chebyshev.chebinterpolate(lambda x: 1 / (1 - alpha * x), many)[: n_steps + 1]
    values, vectors = np.linalg.eigh(S)
    operator = vectors * chebyshev.chebval(values, coefficients) @ vectors.T
    return np.maximum(dense_start(X, X_test, n_neighbors, root) @ operator, 0)[:, :n_labeled]


def costs_by_refits(model, X, y, X_test, space, free, unlabeled=None):
    """Fewest changes of free labels after which each class of a space is predicted, over all fits that work."""
    n = len(y)
    best = np.full((len(X_test), len(space)), n + 1)
    for labels in itertools.product(*(space if free[i] else [y[i]] for i in range(n))):
        new = np.array(labels)
        if model.classes is None and np.unique(new).size < 2:
            continue  # refused, and so no attack
        predicted = clone(model).fit(X, new, unlabeled=unlabeled).predict(X_test)
        place = np.arange(len(X_test)), np.searchsorted(space, predicted)
        best[place] = np.minimum(best[place], np.sum(new != y))
    return best

"""Softmax regression for every labelling of a small training set at once; shares no code with the package."""

from __future__ import annotations

import itertools

import numpy as np


def all_labellings(n, n_classes):
    """Every labelling of n samples, one a row."""
    return np.array(list(itertools.product(range(n_classes), repeat=n)))


def minimisers(X, penalty, n_classes, labellings):
    """Weights of each labelling (labelling, class, feature), by damped Newton steps on all of them together."""
    targets = np.eye(n_classes)[labellings].transpose(0, 2, 1)
    d = X.shape[1]
    W = np.zeros((len(labellings), n_classes, d))

    def value(weights):
        scores = weights @ X.T
        top = scores.max(axis=1)
        loss = top + np.log(np.exp(scores - top[:, None]).sum(axis=1)) - (scores * targets).sum(axis=1)
        return loss.sum(axis=1) + penalty / 2 * (weights**2).sum(axis=(1, 2))

    for _ in range(100):
        scores = W @ X.T
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        gradient = (p - targets) @ X + penalty * W
        if np.abs(gradient).max() < 1e-13 * max(1.0, np.abs(X).sum()):
            break
        spread = np.einsum("lki,km->lkmi", p, np.eye(n_classes)) - p[:, :, None] * p[:, None]
        hessian = np.einsum("lkmi,ia,ib->lkamb", spread, X, X, optimize=True).reshape(len(W), n_classes * d, -1)
        hessian += penalty * np.eye(n_classes * d)
        step = np.linalg.solve(hessian, gradient.reshape(len(W), -1, 1)).reshape(W.shape)
        here, fall, length = value(W), (gradient * step).sum(axis=(1, 2)), np.ones(len(W))
        for _ in range(40):
            steep = value(W - length[:, None, None] * step) > here - 1e-4 * length * fall + 1e-13 * np.abs(here)
            if not steep.any():
                break
            length[steep] /= 2
        W = W - length[:, None, None] * step
    return W


KINDS = ("random", "separable", "duplicated", "large", "tiny", "line")


def inputs(rng, kind, n, d):
    """Inputs of a kind that is hard in its own way."""
    X = rng.normal(size=(n, d))
    if kind == "separable":
        X[:, 0] += 4 * np.sign(X[:, 0])
    elif kind == "duplicated":
        X = X[rng.integers(0, max(2, n // 3), n)]
    elif kind == "large":
        X *= 30
    elif kind == "tiny":
        X *= 1e-3
    elif kind == "line":
        X = X[:, :1] * np.ones(d)
    return X

"""Radii under the paper's own bounds are those of its method, step by step."""

from __future__ import annotations

import numpy as np
import pytest

import flipcert
from benchmarks import published
from paper.figures import bounds
from paper.figures.bounds import published_radii


def blobs():
    """Three overlapping classes in the plane."""
    rng = np.random.default_rng(7)
    centres = np.array([[0.0, 0.0], [1.5, 0.5], [0.3, 1.7]])
    y = np.arange(45) % 3
    X = centres[y] + rng.normal(size=(45, 2))
    return X[:30], y[:30], X[30:]


@pytest.mark.parametrize(
    ("base", "n_partitions", "one_class"),
    [
        (flipcert.KernelSVM("linear"), 1, False),
        (flipcert.KernelRidge("linear", reg=0.3), 4, False),
        (flipcert.KernelSVM("linear"), 5, True),
    ],
)
def test_published_radii_of_a_fitted_ensemble(base, n_partitions, one_class):
    X_train, y_train, X_test = blobs()
    if one_class:
        y_train = np.zeros_like(y_train)
    model = flipcert.PartitionEnsemble(base, n_partitions, classes=[0, 1, 2]).fit(X_train, y_train)
    radii = published_radii(model, X_test)
    members = [np.flatnonzero(model.partition_ == i) for i in range(n_partitions)]
    for t, row in enumerate(X_test):
        weights = [X_train[m] @ row for m in members]
        if isinstance(base, flipcert.KernelRidge):
            weights = [
                np.linalg.solve(X_train[m] @ X_train[m].T + 0.3 * np.eye(m.size), X_train[m] @ row) for m in members
            ]
        labels = [y_train[m] for m in members]
        one = published.certify_sample(weights, labels, 3, y_train.size)
        assert (radii.radius[t], radii.radius_upper[t]) == (one.radius, one.radius_upper)
        for_winner = [
            (w, own)
            for w, own in zip(weights, labels, strict=True)
            if published.class_scores(w, own, 3).argmax() == one.prediction
        ]
        assert radii.majority[t] == len(for_winner)
        assert radii.fragile[t] == sum(one_flip_turns(w, own) for w, own in for_winner)


def one_flip_turns(weights, labels):
    """Whether changing some one label changes the prediction."""
    leader = published.class_scores(weights, labels, 3).argmax()
    for i in range(labels.size):
        for c in range(3):
            flipped = np.where(np.arange(labels.size) == i, c, labels)
            if published.class_scores(weights, flipped, 3).argmax() != leader:
                return True
    return False


def test_points_are_taken_some_at_a_time(monkeypatch):
    X_train, y_train, X_test = blobs()
    model = flipcert.PartitionEnsemble(flipcert.KernelRidge(), 3).fit(X_train, y_train)
    whole = published_radii(model, X_test)
    monkeypatch.setattr(bounds, "_COSTS", 40)
    for name, values in vars(published_radii(model, X_test)).items():
        assert np.array_equal(values, vars(whole)[name])

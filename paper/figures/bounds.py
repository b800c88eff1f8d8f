"""Radii with the bounds of the EnsembleCert paper, for the figures that compare them with ours.

The paper bounds the cost of a vote from below by the flips that lift a class above the one voted for, and from above by
a greedy attack. The same knapsack turns either into a bound on the radius.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import flipcert

# Costs that are held at a time: 256 MB.
_COSTS = 2**25


@dataclass(eq=False)
class PublishedRadii:
    """One entry a test point.

    Attributes
    ----------
    radius, radius_upper : ndarray of int64
        Flips that provably leave the winner, and one less than those of the paper's attack (n where it has none).
    majority : ndarray of int64
        Voters for the winner.
    fragile : ndarray of int64
        How many of them a single flip turns; where it is all, the white-box certificate is the black-box one.
    """

    radius: NDArray[np.int64]
    radius_upper: NDArray[np.int64]
    majority: NDArray[np.int64]
    fragile: NDArray[np.int64]


def published_radii(model: flipcert.PartitionEnsemble, X: NDArray[np.floating]) -> PublishedRadii:
    """Radii of a fitted ensemble of label-linear classifiers under the bounds of the paper, some points at a time.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = flipcert.PartitionEnsemble(flipcert.KernelRidge(reg=10.0), n_partitions=10).fit(X[::2], y[::2])
    >>> published = published_radii(model, X[1::2])
    >>> published.radius[:6], published.radius_upper[:6]
    (array([10,  7,  0,  5,  3,  3]), array([10,  7,  0,  5,  3,  3]))
    """
    at_once = max(1, _COSTS // (model.n_partitions * model.classes_.size))
    parts = [_radii(model, X[start : start + at_once]) for start in range(0, X.shape[0], at_once)]
    return PublishedRadii(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _radii(model: flipcert.PartitionEnsemble, X: NDArray[np.floating]) -> tuple[NDArray[np.int64], ...]:
    n_labels = model.partition_.size
    votes, lower = model.voter_costs(X, "lower", method="published")
    _, upper = model.voter_costs(X, "upper", method="published")
    counts = np.stack([(votes == code).sum(axis=1) for code in range(model.classes_.size)], axis=1)
    # A voter's own class costs nothing; one flip turns whoever has another class of cost one.
    fragile = (votes == counts.argmax(axis=1)[:, None]) & (lower == 1).any(axis=2)
    return (
        flipcert.ensemble_radius(votes, lower, n_labels=n_labels),
        flipcert.ensemble_radius(votes, upper, n_labels=n_labels),
        counts.max(axis=1),
        fragile.sum(axis=1),
    )

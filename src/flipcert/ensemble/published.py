"""Radii with the bounds of the EnsembleCert paper, for the figures that compare them with ours.

The paper bounds the cost of a vote from below by the flips that lift a class above the one voted for, and from above by
a greedy attack. The same knapsack turns either into a bound on the radius.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from flipcert.engine.blocks import join
from flipcert.engine.watch import current_watcher
from flipcert.ensemble.electorate import Electorate
from flipcert.ensemble.votes.radius import change_costs, count_votes
from flipcert.ensemble.white_box import WhiteBox
from flipcert.flips._jit.reach import PUBLISHED

if TYPE_CHECKING:
    from flipcert.ensemble.partition_ensemble import PartitionEnsemble


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


def published_radii(model: PartitionEnsemble, X: ArrayLike) -> PublishedRadii:
    """Radii of a fitted ensemble of label-linear classifiers under the bounds of the paper.

    One model alone is an ensemble of one partition.

    Parameters
    ----------
    model : PartitionEnsemble
        Fitted, with a label-linear base classifier.
    X : array-like of shape (n_test, n_features)
        Test inputs.

    Returns
    -------
    PublishedRadii

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> import flipcert
    >>> X, y = load_digits(return_X_y=True)
    >>> model = flipcert.PartitionEnsemble(flipcert.KernelRidge(reg=10.0), n_partitions=10).fit(X[::2], y[::2])
    >>> published = published_radii(model, X[1::2])
    >>> published.radius[:6], published.radius_upper[:6]
    (array([10,  7,  0,  5,  3,  3]), array([10,  7,  0,  5,  3,  3]))
    """
    check_is_fitted(model)
    if not isinstance(model.electorate_, WhiteBox):
        raise ValueError(
            f"the published bounds need a label-linear base classifier, such as KernelRidge; got {model.estimator!r}."
        )
    radii: PublishedRadii = join(
        model.ask(X, _published_radii_of, current_watcher().progress("points, published bounds"))
    )
    return radii


def _published_radii_of(voters: Electorate, X: NDArray[Any], n_rows: int) -> PublishedRadii:
    """What the paper's bounds on all costs prove about a block of test points."""
    assert isinstance(voters, WhiteBox)
    ballots = voters.all_costs(X, n_rows, PUBLISHED, None)
    limit = ballots.labels.unreachable
    winner, lower, _ = change_costs(ballots.votes, ballots.lower)
    _, upper, _ = change_costs(ballots.votes, ballots.upper)
    majority = ballots.votes == winner[:, None]
    # A voter's own class costs nothing; one flip turns whoever has another class of cost one.
    fragile = (ballots.lower == 1).any(axis=2)
    return PublishedRadii(
        radius=np.minimum(lower, limit) - 1,
        radius_upper=np.minimum(upper, limit) - 1,
        majority=count_votes(ballots.votes, ballots.lower.shape[2]).max(axis=1),
        fragile=(majority & fragile).sum(axis=1),
    )

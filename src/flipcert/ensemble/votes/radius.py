"""Certificates of given votes: how many label flips change the winner, from votes and costs as arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flipcert.ensemble._jit.knapsack import change_rows
from flipcert.labels.validation import check_integers


def ensemble_radius(
    votes: ArrayLike, costs: ArrayLike, n_classes: int | None = None, *, n_labels: int | None = None
) -> NDArray[np.int64]:
    r"""White-box radius of a partition ensemble: the largest number of flips that cannot change the winner.

    With :math:`\rho_i(c)` the flips that turn voter i to class c, the radius is
    :math:`\min \sum_i \rho_i(v'_i) - 1` over all votes v' with another winner, ties to the smaller class.
    O(N log N) a class. Lower bounds in give a certified radius, upper bounds an upper bound, exact costs the exact
    radius; costs of 1 everywhere give :func:`blackbox_radius`.

    Parameters
    ----------
    votes : array-like of int of shape (n_test, n_voters)
        Class that each voter votes for.
    costs : array-like of int of shape (n_test, n_voters, n_classes)
        Flips that turn each voter to each class; the entry of the class it votes for is not read.
    n_classes : int, optional
        Must agree with ``costs``; for the reader.
    n_labels : int, optional
        Number of training labels: costs above it mean "unreachable", and no radius exceeds it.

    Returns
    -------
    ndarray of int64 of shape (n_test,)

    See Also
    --------
    blackbox_radius : What votes alone prove.
    PartitionEnsemble : The estimator.

    References
    ----------
    Mohgaonkar, Gosch, Sabanayagam, Ghoshdastidar and Günnemann, *Exact Certification of Neural Networks and
    Partition Aggregation Ensembles Against Label Poisoning*, 2026.

    Examples
    --------
    >>> import flipcert
    >>> votes = [[0, 0, 0, 1]]
    >>> costs = [[[0, 5], [0, 2], [0, 9], [4, 0]]]
    >>> flipcert.ensemble_radius(votes, costs)
    array([6])
    """
    ballots, prices = check_votes_and_costs(votes, costs, n_classes)
    if n_labels is not None:
        n_labels = int(check_integers(n_labels, "n_labels", minimum=1, ndim=0))
        prices = np.minimum(prices, n_labels + 1)
    if prices.size and int(prices.max()) > 2**61 // ballots.shape[1]:
        raise ValueError(f"costs holds {prices.max()}, too large to add up; say what is unreachable with n_labels.")
    cost = change_costs(ballots, prices)[1]
    return (cost if n_labels is None else np.minimum(cost, n_labels + 1)) - 1


def blackbox_radius(votes: ArrayLike, n_classes: int) -> NDArray[np.int64]:
    r"""Radius that the votes alone certify, each flip changing one voter at will (SS-DPA).

    :math:`\lfloor (n_a - \max_{c \ne a} (n_c + [c < a])) / 2 \rfloor` for the winner a with :math:`n_a` votes.

    Parameters
    ----------
    votes : array-like of int of shape (n_test, n_voters)
        Class that each voter votes for.
    n_classes : int
        Size of the label space, at least 2.

    Returns
    -------
    ndarray of int64 of shape (n_test,)

    See Also
    --------
    ensemble_radius : More, where costs are known.

    References
    ----------
    Levine and Feizi, *Deep Partition Aggregation: Provable Defenses against General Poisoning Attacks*, 2021.

    Examples
    --------
    >>> import flipcert
    >>> flipcert.blackbox_radius([[0, 0, 0, 1], [1, 1, 0, 1]], n_classes=2)
    array([1, 0])
    """
    n_classes = int(check_integers(n_classes, "n_classes", minimum=2, ndim=0))
    ballots = check_votes(votes, n_classes)
    counts = count_votes(ballots, n_classes)
    winner = counts.argmax(axis=1)
    rows = np.arange(counts.shape[0])
    strongest = counts + (np.arange(n_classes) < winner[:, None])
    strongest[rows, winner] = -1
    return (counts[rows, winner] - strongest.max(axis=1)) // 2


def change_costs(
    votes: NDArray[np.int64], costs: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Winner of each row, fewest flips that change it, and the class that overtakes it then."""
    winner, cost, target = (np.zeros(votes.shape[0], np.int64) for _ in range(3))
    change_rows(votes, costs, winner, cost, target)
    return winner, cost, target


def count_votes(votes: NDArray[np.int64], n_classes: int) -> NDArray[np.int64]:
    """Votes of each class, one row a test point."""
    counts = np.zeros((votes.shape[0], n_classes), np.int64)
    np.add.at(counts, (np.arange(votes.shape[0])[:, None], votes), 1)
    return counts


def check_votes(votes: ArrayLike, n_classes: int) -> NDArray[np.int64]:
    """Validate a table of votes."""
    ballots = check_integers(votes, "votes", minimum=0, maximum=n_classes - 1, ndim=2)
    if ballots.shape[1] == 0:
        raise ValueError(f"votes must have at least one voter; got shape {ballots.shape}.")
    return np.ascontiguousarray(ballots)


def check_votes_and_costs(
    votes: ArrayLike, costs: ArrayLike, n_classes: int | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Validate votes and the costs of changing them."""
    given = np.asarray(costs)
    # However large, unreachable is unreachable.
    prices = check_integers(
        np.minimum(given, 2**62) if given.dtype.kind in "iuf" else given, "costs", minimum=0, ndim=3
    )
    if prices.shape[2] < 2:
        raise ValueError(f"costs must cover at least two classes; got shape {prices.shape}.")
    if n_classes is not None and n_classes != prices.shape[2]:
        raise ValueError(f"n_classes={n_classes!r}, but costs has {prices.shape[2]} classes.")
    ballots = check_votes(votes, prices.shape[2])
    if ballots.shape != prices.shape[:2]:
        raise ValueError(f"votes has shape {ballots.shape}, but costs has shape {prices.shape}.")
    return ballots, np.ascontiguousarray(prices)

"""Flip costs of label-linear classifiers: the fewest label flips that lead to each class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flipcert.flips._jit import blocks, reach
from flipcert.flips._jit.ladder import Ladder, new_ladder
from flipcert.flips._jit.select import STRIP
from flipcert.flips.rows import IntegerRow
from flipcert.flips.solver import exact_cost
from flipcert.labels.labels import Labels, check_labels
from flipcert.labels.validation import check_choice, check_number, check_offset, check_weights
from flipcert.results.flip_costs import FlipCosts

KINDS = {
    ("lower", "best"): reach.LOWER,
    ("upper", "best"): reach.UPPER,
    ("exact", "best"): reach.BEST,
    ("lower", "published"): reach.PUBLISHED_LOWER,
    ("upper", "published"): reach.PUBLISHED_UPPER,
}


def flip_costs(
    weights: ArrayLike,
    labels: ArrayLike,
    n_classes: int,
    *,
    bound: str = "lower",
    method: str = "best",
    offset: ArrayLike | None = None,
    time_limit: float = 60.0,
) -> NDArray[np.int64]:
    r"""Fewest label flips after which each class is predicted.

    The classifier scores class c by :math:`s_c = b_c + \sum_i w_i [y_i = c]` and predicts the highest score, ties to
    the smaller index. Scores are exact real sums of the given numbers: no rounding enters a cost.

    Parameters
    ----------
    weights : array-like of shape (n_test, n_train)
        What each training label adds to its class, one row a test point. Any real numbers; float32 or float64.
    labels : array-like of int of shape (n_train,)
        Class index of each training sample.
    n_classes : int
        Size K of the label space.
    bound : {"lower", "upper", "exact"}, default="lower"
        "lower" is proven from below: the most expensive rival that the class has to overtake. "upper" is the cost of
        an attack that works. "exact" is both; where weights are negative and the bounds differ it solves an integer
        program. The smallest upper cost of a row always equals its smallest lower cost.
    method : {"best", "published"}, default="best"
        "published" gives the two bounds of the EnsembleCert paper, for comparison.
    offset : array-like of shape (n_test, n_classes), optional
        Label-independent part of the scores.
    time_limit : float, default=60.0
        Seconds for one integer program (``bound="exact"`` only); :class:`flipcert.UnsolvedError` if it runs out.

    Returns
    -------
    ndarray of int64 of shape (n_test, n_classes)
        0 for the class predicted now, ``n_train + 1`` where no labelling leads to the class.

    See Also
    --------
    cheapest_flips : The flips themselves.
    LabelLinearClassifier : A classifier from weights of your own.

    References
    ----------
    Mohgaonkar, Gosch, Sabanayagam, Ghoshdastidar and Günnemann, *Exact Certification of Neural Networks and
    Partition Aggregation Ensembles Against Label Poisoning*, 2026.

    Examples
    --------
    >>> import flipcert
    >>> flipcert.flip_costs([[3.0, 2.0, 2.0]], [0, 1, 1], n_classes=3, bound="exact")
    array([[1, 0, 2]])
    """
    check_choice(bound, "bound", ("lower", "upper", "exact"))
    check_choice(method, "method", ("best", "published"))
    if bound == "exact" and method == "published":
        raise ValueError('bound="exact" needs method="best"; got method="published", which has two bounds only.')
    check_number(time_limit, "time_limit")
    encoded = check_labels(labels, n_classes)
    rows = check_weights(weights, encoded.codes.size)
    offsets = check_offset(offset, rows.shape[0], encoded.n_classes)
    costs = cost_block(rows, encoded, offsets, KINDS[bound, method])
    if bound == "exact":
        close_gaps(costs, rows, encoded, offsets, time_limit)
    return costs.lower if bound == "lower" else costs.upper


@dataclass
class Radii:
    """Cheapest change of prediction of a block of rows; ``target`` is -1 where nothing changes it.

    ``upper`` is the cost of an attack that is known, where that may be another than the proven one.
    """

    prediction: NDArray[np.int64]
    runner_up: NDArray[np.int64]
    cost: NDArray[np.int64]
    target: NDArray[np.int64]
    margin: NDArray[np.float64]
    upper: NDArray[np.int64] | None = None

    @property
    def known(self) -> NDArray[np.int64]:
        """Cost of the cheapest attack that is known."""
        return self.cost if self.upper is None else self.upper


def cost_block(
    weights: NDArray[Any],
    labels: Labels,
    offset: NDArray[np.float64],
    kind: int = reach.BEST,
    tolerance: NDArray[np.float64] | None = None,
) -> FlipCosts:
    """Flip costs of one block of rows (inputs already checked).

    ``tolerance`` is by how much rounding could have moved the sums of each row; costs that it could change are marked.
    """
    prediction, lower, upper, lead, margin = decided_costs(weights, labels, offset, kind)
    sensitive = np.zeros(prediction.size, np.bool_)
    if tolerance is not None:
        sensitive = (tolerance > 0) & (np.minimum(lead, margin.min(axis=1)) <= tolerance)
    return FlipCosts(prediction, lower, upper, sensitive)


def decided_costs(weights: NDArray[Any], labels: Labels, offset: NDArray[np.float64], kind: int) -> tuple[Any, ...]:
    """Predictions, lower and upper costs of all classes, the lead over the second class, and margins of all costs."""
    n_rows, shape = weights.shape[0], (weights.shape[0], labels.n_classes)
    prediction, lower, upper = (np.zeros(size, np.int64) for size in (n_rows, shape, shape))
    lead, margin = np.zeros(n_rows), np.zeros(shape)
    decided = np.zeros(n_rows, np.bool_)
    blocks.cost_rows(
        weights, labels.coded, offset, labels.unreachable, kind, new_ladder(labels.n_labels, labels.n_classes),
        prediction, lower, upper, lead, margin, decided,
    )  # fmt: skip
    for t in np.flatnonzero(~decided):
        row = IntegerRow(weights[t], labels, offset[t])
        prediction[t], lead[t] = row.prediction, row.lead
        exact = row.costs(kind)
        assert exact is not None, "integers decide everything"
        lower[t], upper[t], margin[t] = exact
    return prediction, lower, upper, lead, margin


def close_gaps(
    costs: FlipCosts, weights: NDArray[Any], labels: Labels, offset: NDArray[np.float64], time_limit: float
) -> None:
    """Replace bounds that differ by the exact cost."""
    for t in np.flatnonzero((costs.lower < costs.upper).any(axis=1)):
        row = IntegerRow(weights[t], labels, offset[t])
        for c in np.flatnonzero(costs.lower[t] < costs.upper[t]):
            cost = exact_cost(row, int(c), int(costs.lower[t, c]), int(costs.upper[t, c]), time_limit)
            costs.lower[t, c] = costs.upper[t, c] = cost


def radius_block(weights: NDArray[Any], labels: Labels, offset: NDArray[np.float64]) -> Radii:
    """Exact cost of changing the prediction of each row of a block (inputs already checked)."""
    radii, decided = radii_in_doubles(weights, labels, offset, new_ladder(labels.n_labels, labels.n_classes))
    for t in np.flatnonzero(~decided):
        row = IntegerRow(weights[t], labels, offset[t])
        radii.prediction[t], radii.runner_up[t] = row.prediction, row.runner_up
        radii.cost[t], radii.target[t], radii.margin[t] = row.cheapest_change()
    return radii


def radii_in_doubles(
    weights: NDArray[Any], labels: Labels, offset: NDArray[np.float64], ladder: Ladder
) -> tuple[Radii, NDArray[np.bool_]]:
    """The same where doubles decide it, and which rows these are; flips of the last row stay on the ladder."""
    n_rows = weights.shape[0]
    prediction, runner_up, cost, target = (np.zeros(n_rows, np.int64) for _ in range(4))
    radii = Radii(prediction, runner_up, cost, target, margin=np.zeros(n_rows))
    decided = np.zeros(n_rows, np.bool_)
    blocks.radius_rows(
        weights, labels.coded, offset, labels.unreachable, ladder,
        radii.prediction, radii.runner_up, radii.cost, radii.target, radii.margin, decided,
    )  # fmt: skip
    return radii, decided


def score_block(
    weights: NDArray[Any], labels: Labels, offset: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Scores (rounded) and predictions (exact) of one block of rows (inputs already checked)."""
    n_rows = weights.shape[0]
    scores = np.zeros((n_rows, labels.n_classes))
    prediction = np.zeros(n_rows, np.int64)
    decided = np.zeros(n_rows, np.bool_)
    # Scores need no rungs, only room for the largest weight of every strip.
    ladder = new_ladder(labels.n_labels // STRIP, labels.n_classes)
    blocks.score_rows(weights, labels.coded, offset, ladder, scores, prediction, decided)
    for t in np.flatnonzero(~decided):
        prediction[t] = IntegerRow(weights[t], labels, offset[t]).prediction
    return scores, prediction

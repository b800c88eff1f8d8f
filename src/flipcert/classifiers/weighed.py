"""What weights tell about the flips that lead to each class, as an appraisal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flipcert.classifiers.appraisal import Appraisal
from flipcert.classifiers.label_linear import LabelLinearClassifier
from flipcert.engine.blocks import join
from flipcert.engine.rounding import SAFETY
from flipcert.flips.attack import attack_of_cost
from flipcert.flips.costs import Costs, close_gaps, cost_block
from flipcert.results.witness import Witness

# Seconds to find the flips of an attack whose cost is known already.
_REPLAY_TIME = 60.0


@dataclass
class _Bounds:
    """What an appraisal is made of, for a block of rows."""

    prediction: NDArray[np.int64]
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    sensitive: NDArray[np.bool_]
    weights: NDArray[Any]


def appraise_weights(
    model: LabelLinearClassifier,
    X: ArrayLike,
    lower_costs: Callable[[NDArray[Any], Costs], NDArray[np.int64]] = lambda _, costs: costs.lower,
    time_limit: float | None = None,
) -> Appraisal:
    """Costs and attacks of a label-linear classifier; ``lower_costs(weights, costs)`` may prove less.

    With a time limit, bounds that differ are closed by integer programs.
    """
    labels = model._labels

    def bounds(rows: NDArray[Any], weights: NDArray[Any]) -> _Bounds:
        offset = model._no_offset(weights)
        costs = cost_block(weights, labels, offset)
        if time_limit is not None:
            close_gaps(costs, weights, labels, offset, time_limit)
        tolerance = SAFETY * model._rounding(rows, weights)
        closest = np.minimum(costs.lead, costs.margin.min(axis=1))
        return _Bounds(
            prediction=costs.prediction,
            lower=lower_costs(weights, costs),
            upper=costs.upper,
            sensitive=(tolerance > 0) & (closest <= tolerance),
            weights=weights.copy(),
        )

    found: _Bounds = join(model._map_weights(X, bounds))

    def attack(row: int, target: int) -> Witness:
        weights, cost = found.weights[row], int(found.upper[row, target])
        return attack_of_cost(weights, labels, np.zeros(labels.n_classes), target, cost, _REPLAY_TIME)

    return Appraisal(found.prediction, found.lower, found.upper, found.sensitive, attack)

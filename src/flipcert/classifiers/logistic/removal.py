"""Attacks that flip away all labels of the predicted class, where the label space is read from the labels.

Nobody predicts a class that has no label, so nothing has to be proven; a refit tells which class wins instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from flipcert.labels.labels import Labels
from flipcert.labels.threats import FLIPS
from flipcert.results.flip_costs import FlipCosts
from flipcert.results.witness import Witness

# Predictions, as class indices, for some rows after a fit to other labels; None where such a fit is refused.
Refit = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64] | None]


def with_removals(costs: FlipCosts, labels: Labels, refit: Refit) -> FlipCosts:
    """Costs with the attacks that remove the predicted class, where these are the cheapest that are known."""
    removal = FLIPS.to_remove(labels)
    own = np.arange(labels.n_classes) == costs.prediction[:, None]
    known = np.where(own, labels.unreachable, costs.upper).min(axis=1)
    cheaper = removal[costs.prediction] < known
    upper = costs.upper.copy()
    removed: dict[tuple[int, int], Witness] = {}
    for a in np.unique(costs.prediction[cheaper]).tolist():
        rows, flipped = np.flatnonzero(cheaper & (costs.prediction == a)), np.flatnonzero(labels.codes == a)
        witness = Witness(flipped, np.full(flipped.size, (a + 1) % labels.n_classes))
        codes = labels.codes.copy()
        codes[witness.indices] = witness.labels
        winners = refit(codes, rows)
        if winners is not None:
            upper[rows, winners] = removal[a]
            removed |= dict.fromkeys(zip(rows.tolist(), winners.tolist(), strict=True), witness)

    def attack(row: int, target: int) -> Witness:
        return removed.get((row, target)) or costs.attack(row, target)

    return replace(costs, upper=upper, attack=attack) if removed else costs

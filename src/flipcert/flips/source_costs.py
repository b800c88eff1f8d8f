"""Costs of all classes in sources: bounds, and exact ones on demand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.labels.labels import Labels
from flipcert.labels.threats import SOURCES
from flipcert.results.flip_costs import FlipCosts
from flipcert.results.witness import Witness


def costs_in_sources(costs: FlipCosts, labels: Labels) -> FlipCosts:
    """Costs in sources of a model that tells costs in flips only.

    As many flips take at least the fewest sources that hold so many labels together; and an attack that is known takes
    the sources of the labels that it changes.
    """
    assert labels.sources is not None, "checked before"
    own = np.bincount(labels.sources.codes[labels.coded.movable], minlength=len(labels.sources))
    held = np.cumsum(np.sort(own[own > 0])[::-1])
    fewest = np.searchsorted(held, costs.lower) + 1
    most = SOURCES.unreachable(labels)
    lower = np.where(costs.lower > labels.n_movable, most, np.minimum(fewest, most))
    np.put_along_axis(lower, costs.prediction[:, None], 0, axis=1)

    def attack(row: int, target: int) -> Witness:
        flips = costs.attack(row, target)
        sources = labels.sources.codes[flips.indices]  # type: ignore[union-attr]
        _, first = np.unique(sources, return_index=True)
        return replace(flips, sources=sources[np.sort(first)], threat=SOURCES.name)

    upper = np.full(costs.upper.shape, most)
    for t, c in np.argwhere((costs.upper > 0) & (costs.upper <= labels.n_labels)).tolist():
        upper[t, c] = len(attack(t, c))
    np.put_along_axis(upper, costs.prediction[:, None], 0, axis=1)
    return replace(costs, lower=lower, upper=upper, attack=attack)


def source_cost_block(
    weights: NDArray[Any],
    labels: Labels,
    offset: NDArray[np.float64],
    tolerance: NDArray[np.float64] | None,
    time_limit: float | None,
) -> FlipCosts:
    """Costs of one block of rows to every class, in sources and in a fixed label space."""
    raise NotImplementedError


def attack_by_sources(
    weights: NDArray[Any], labels: Labels, offset: NDArray[np.float64], target: int, cost: int, time_limit: float
) -> Witness:
    """The sources, and the labels that they change, behind an upper cost of a class."""
    raise NotImplementedError

"""What each threat makes of rows of weights: the algorithms that answer for it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.flips.attack import attack_of_cost
from flipcert.flips.costs import close_gaps, cost_block
from flipcert.flips.label_space import RowsOfOpenSpace
from flipcert.flips.new_rows import NewRows
from flipcert.flips.row_change_costs import attack_by_rows, row_change_costs
from flipcert.flips.row_changes import RowChanges
from flipcert.flips.source_costs import attack_by_sources, source_cost_block
from flipcert.flips.source_rows import SourceRows
from flipcert.flips.whole_rows import Rows, WholeRows
from flipcert.labels.labels import Labels
from flipcert.labels.threats import SOURCES, Threat
from flipcert.results.flip_costs import FlipCosts
from flipcert.results.witness import Witness


def rows_against(
    threat: Threat, rows: Rows, labels: Labels, offset: NDArray[np.float64], new_rows: NewRows | None = None
) -> Rows:
    """Rows as what can be asked about them under a threat, in the label space that the labels have.

    Where training rows come and go, ``new_rows`` tells what new ones weigh.
    """
    if threat.changes_rows:
        assert isinstance(rows, WholeRows), "refused before"
        return RowChanges(rows, threat, _given(new_rows))
    if threat is SOURCES:
        return SourceRows(rows, labels, offset)
    return rows if labels.space_is_fixed else RowsOfOpenSpace(rows, labels, offset)


def costs_against(
    threat: Threat,
    weights: NDArray[Any],
    labels: Labels,
    offset: NDArray[np.float64],
    kind: int,
    tolerance: NDArray[np.float64] | None = None,
    time_limit: float | None = None,
    new_rows: NewRows | None = None,
) -> FlipCosts:
    """Costs of one block of rows to every class, in units of a threat and in a fixed label space.

    ``kind`` and ``tolerance`` as in ``cost_block``; with a time limit, bounds that differ are closed.
    """
    if threat.changes_rows:
        return row_change_costs(threat, weights, labels, offset, _given(new_rows), tolerance)
    if threat is SOURCES:
        return source_cost_block(weights, labels, offset, tolerance, time_limit)
    costs = cost_block(weights, labels, offset, kind, tolerance)
    if time_limit is not None:
        close_gaps(costs, weights, labels, offset, time_limit)
    return costs


def attack_against(
    threat: Threat,
    weights: NDArray[Any],
    labels: Labels,
    offset: NDArray[np.float64],
    target: int,
    cost: int,
    time_limit: float,
    new_rows: NewRows | None = None,
) -> Witness:
    """The attack on one row behind an upper cost of a class."""
    if threat.changes_rows:
        return attack_by_rows(threat, weights, labels, offset, target, cost, _given(new_rows))
    if threat is SOURCES:
        return attack_by_sources(weights, labels, offset, target, cost, time_limit)
    return attack_of_cost(weights, labels, offset, target, cost, time_limit)


def _given(new_rows: NewRows | None) -> NewRows:
    assert new_rows is not None, "models that are asked about rows tell what new ones weigh"
    return new_rows

"""One attack on points of a label-linear model: what it can change at most, and what was found."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.collective.attack import find_attack
from flipcert.collective.bound import changed_at_most
from flipcert.collective.effects import Columns
from flipcert.collective.facing import Facing
from flipcert.collective.label_effects import LabelEffects
from flipcert.collective.points import LinearPoints
from flipcert.collective.source_attack import find_attack_by_sources
from flipcert.collective.source_effects import SourceEffects
from flipcert.engine.blocks import memory_budget
from flipcert.engine.clock import working_time
from flipcert.engine.watch import current_watcher
from flipcert.labels.labels import Labels
from flipcert.labels.threats import FLIPS, SOURCES, Threat
from flipcert.linear.model import LabelLinearModel
from flipcert.results.witness import Witness

# Part of the time that goes to proofs; attacks have the rest.
_FOR_PROOFS = 0.6


class FacingLinear(Facing):
    """Points of a label-linear model whose labels are flipped, one by one or source by source.

    Parameters
    ----------
    model : LabelLinearModel
        The model.
    X : ndarray
        All test inputs.
    prediction : ndarray of int64
        What was predicted for each, when they were certified.
    threat : Threat
        Flips, or sources.
    """

    def __init__(
        self, model: LabelLinearModel, X: NDArray[Any], prediction: NDArray[np.int64], threat: Threat = FLIPS
    ) -> None:
        self._model, self._X, self._prediction, self._threat = model, X, prediction, threat
        self._rows = np.empty(0, np.int64)
        self._points: LinearPoints | None = None
        # What the linear program of each budget would choose.
        self._favourites: defaultdict[int, Columns] = defaultdict(_none)
        self._at_most: dict[int, int] = {}

    def at_most(self, budgets: NDArray[np.int64], threatened: NDArray[np.bool_], deadline: float) -> NDArray[np.int64]:
        """The bound of ``bound.py`` for relabellings."""
        rows = self._prepared(np.flatnonzero(threatened.any(axis=0)))
        points = self._points
        if points is None:
            return np.zeros(budgets.size, np.int64)
        # Where they were certified in other blocks, products may have rounded in another way; if that matters, anything
        # may be.
        certain = points.prediction == self._prediction[rows]
        in_doubt = np.count_nonzero(threatened[:, rows] & ~certain, axis=1)
        more, watcher = dict(zip(budgets.tolist(), in_doubt.tolist(), strict=True)), current_watcher()

        def told(budget: int, at_most: int) -> None:
            watcher.narrowed(budget, at_most=at_most + more[budget])

        if self._threat is SOURCES and SourceEffects.size(points) > memory_budget():
            self.why_one_by_one = (
                f"what {SOURCES.limit(points.labels):,} sources do to {points.n_points:,} points takes "
                f"{SourceEffects.size(points) / 2**30:.1f} GiB, more than scikit-learn's working_memory"
            )
            self._at_most |= dict(zip(budgets.tolist(), threatened.sum(axis=1).tolist(), strict=True))
            return threatened.sum(axis=1)
        effects = SourceEffects(points) if self._threat is SOURCES else LabelEffects(points)
        until = working_time() + _FOR_PROOFS * (deadline - working_time())
        searches = changed_at_most(effects, budgets, threatened[:, rows] & certain, until, told)
        at_most = np.array([search.at_most for search in searches]) + in_doubt
        self._favourites |= {search.budget: search.favourites for search in searches}
        self._at_most |= dict(zip(budgets.tolist(), at_most.tolist(), strict=True))
        return at_most

    def _prepared(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows whose weights are at hand: those asked for, and maybe others that were asked for before."""
        if not np.isin(rows, self._rows).all():
            self._rows, self._points = rows, LinearPoints(self._model, self._X, rows)
        return self._rows

    def attacks(
        self,
        budgets: NDArray[np.int64],
        threatened: NDArray[np.bool_],
        deadline: float,
        alone: Sequence[Witness | None],
    ) -> list[Witness | None]:
        """Exchanges of labels, from what the linear program would choose, until as many as proven are changed."""
        found: list[Witness | None] = []
        for place, (budget, own) in enumerate(zip(budgets.tolist(), threatened, strict=True)):
            rows = np.flatnonzero(own)
            if rows.size == 0:
                found.append(None)
                continue
            until = working_time() + (deadline - working_time()) / (budgets.size - place)
            points = self._points if rows.size == self._rows.size else None
            points = LinearPoints(self._model, self._X, rows) if points is None else points
            # A budget may do at least what a smaller one did.
            known = [last for last in found[-1:] if last is not None]
            enough = self._at_most[budget]
            if self._threat is SOURCES:
                sets = [self._favourites[budget].unit, *(last.sources for last in known)]
                found.append(find_attack_by_sources(points, budget, until, sets, enough))
            else:
                starts = [_rounded(self._favourites[budget], budget), *known]
                found.append(find_attack(points, budget, until, starts, enough=enough))
        return found

    def predictions_after(self, attack: Witness) -> NDArray[np.int64]:
        """Weights do not depend on labels: the same model with other labels is what a new fit would be."""
        labels, left = relabelled(self._model.labels, attack)
        _, after = replace(self._model, labels=labels).scores(self._X)
        return left[after]


def _none() -> Columns:
    return Columns(np.empty(0, np.int64), np.empty(0, np.int64))


def _rounded(favourites: Columns, budget: int) -> Witness:
    """The fullest choices of a linear program, one a label, as many as the budget has."""
    units, first = np.unique(favourites.unit, return_index=True)
    order = np.argsort(first)[:budget]
    return Witness(units[order], favourites.option[first[order]])


def relabelled(labels: Labels, attack: Witness) -> tuple[Labels, NDArray[np.int64]]:
    """Labels after an attack as a new fit would read them, and which classes it would know of."""
    codes = attack.apply(labels.codes)
    left = np.arange(labels.n_classes) if labels.space_is_fixed else np.unique(codes)
    trusted = ~labels.coded.movable
    return Labels.of(np.searchsorted(left, codes), left.size, trusted, labels.space_is_fixed, labels.sources), left

"""One model and the predictions that checks are to prove: chooses what to check, and measures what that proves."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flipcert.audit.by_attacks import choose_by_attacks
from flipcert.audit.checks import Units, refusal
from flipcert.audit.measured import proven_after
from flipcert.audit.potential import Chosen, choose_by_potential
from flipcert.classifiers.certified_by_weights import CertifiedByWeights
from flipcert.classifiers.description import behind
from flipcert.classifiers.pipelines import classifier_and_inputs
from flipcert.labels.labels import Labels
from flipcert.labels.threats import FLIPS
from flipcert.labels.validation import check_integers
from flipcert.results.audit_plan import AuditPlan
from flipcert.results.certificates import Certificates

# Random orders of checks that are averaged.
_DRAWS = 5


class Auditor:
    """A fitted model, test points and a budget; who plans several audits asks the same one.

    Parameters
    ----------
    model, X, flips, y, threat
        As in :func:`flipcert.plan_audit`.
    start : Certificates or None
        What ``certify`` says of these points, if that is known.
    """

    def __init__(
        self,
        model: Any,
        X: ArrayLike,
        flips: int,
        y: ArrayLike | None = None,
        threat: str = "flips",
        start: Certificates | None = None,
    ) -> None:
        classifier, inputs = classifier_and_inputs(model, X, "certify", threat)
        if not hasattr(classifier, "_proven_threat"):
            raise TypeError(f"an audit is planned for estimators of flipcert; got {type(classifier).__name__}.")
        asked = classifier._proven_threat(threat)
        if (reason := refusal(classifier, asked)) is not None:
            raise ValueError(f"no audit can be planned: {reason}.")
        self._model, self._inputs, self._described = classifier, inputs, model
        self.units = Units(classifier._labels, asked)
        self.budget = int(check_integers(flips, "flips", minimum=1, ndim=0))
        if self.budget > self.units.count:
            raise ValueError(
                f"flips must be at most the {self.units.count:,} {asked.unit}s that there are; got {self.budget:,}."
            )
        self._start, self._y = start, y

    @cached_property
    def start(self) -> Certificates:
        """What is proven before any check."""
        if self._start is not None:
            return self._start
        certificates: Certificates = self._model.certify(self._inputs, threat=self.units.threat.name)
        return certificates

    @cached_property
    def counted(self) -> NDArray[np.bool_]:
        """Which points count: all, or those that are predicted right."""
        return np.ones(len(self.start), np.bool_) if self._y is None else self.start.correct(self._y)

    def checked_count(self, n_labels: int) -> int:
        """The number of checks, if there is so much to check."""
        count, left = int(check_integers(n_labels, "n_labels", minimum=1, ndim=0)), self.units.attackable.size
        if count > left:
            raise ValueError(
                f"n_labels must be at most the {left:,} {self.units.threat.unit}s that are not trusted yet; "
                f"got {count:,}."
            )
        return count

    def given(self, order: ArrayLike) -> NDArray[np.int64]:
        """An order of a user as units: labels by place, sources by id."""
        labels: Labels = self.units.labels
        if self.units.threat is FLIPS:
            units = check_integers(order, "order", minimum=0, maximum=labels.n_labels - 1, ndim=1)
        else:
            assert labels.sources is not None, "refused otherwise"
            places = {own: place for place, own in enumerate(labels.sources.ids.tolist())}
            ids = np.asarray(order).tolist()
            for own in ids:
                if own not in places:
                    raise ValueError(f"order names the source {own!r}, which gave no label.")
            units = np.array([places[own] for own in ids], np.int64)
        if np.unique(units).size < units.size:
            raise ValueError("order names something twice; name everything that is checked once.")
        return units

    def choose(self, count: int, among: NDArray[np.bool_] | None = None) -> Chosen:
        """What to check, best first, for all points that count or some of them."""
        counted = self.counted if among is None else self.counted & among
        model = self._model
        if isinstance(model, CertifiedByWeights):
            linear, rows = model._asked(self._inputs)
            return choose_by_potential(linear, rows, count, self.units, self.budget, self.start.radius, counted)
        return choose_by_attacks(model, self._inputs, count, self.units, self.budget, self.start, counted)

    def as_given(self, units: NDArray[np.int64]) -> Chosen:
        """An order that was not planned: nobody counted what it weighs on."""
        return Chosen(units, np.zeros(units.size, np.int64))

    def proven(self, order: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each point counts and is proven after the first k checks, of shape (n_order + 1, n_points)."""
        proven = proven_after(self._model, self._inputs, order, self.units, self.budget, self.start)
        return proven & self.counted

    def certified(self, order: NDArray[np.int64]) -> NDArray[np.float64]:
        """The share of all points that count and are proven after the first k checks."""
        return self.proven(order).mean(axis=1)

    def held_out(self, count: int) -> NDArray[np.float64]:
        """The same for points that were not planned for: each half of the points by the plan for the other half."""
        odd = np.arange(self.counted.size) % 2 == 1
        shares = np.zeros(count + 1)
        for half in (~odd, odd):
            shares += self.proven(self.choose(count, half).units)[:, ~half].sum(axis=1)
        return shares / self.counted.size

    def random(self, count: int) -> NDArray[np.float64]:
        """The same for random checks, on average."""
        rng = np.random.default_rng(0)
        draws = [rng.permutation(self.units.attackable)[:count] for _ in range(_DRAWS)]
        return np.mean([self.certified(order) for order in draws], axis=0)

    def plan(self, chosen: Chosen, certified: NDArray[np.float64], **curves: NDArray[np.float64] | None) -> AuditPlan:
        """All of it for a user."""
        labels, by_source = self.units.labels, self.units.threat is not FLIPS
        return AuditPlan(
            indices=self.units.labels_of(chosen.units),
            certified=certified,
            weighs_on=chosen.weighs_on,
            sources=labels.sources.ids[chosen.units] if by_source and labels.sources is not None else None,
            flips=self.budget,
            threat=self.units.threat.name,
            counts_correct=self._y is not None,
            n_points=self.counted.size,
            n_labels=labels.n_labels,
            n_attackable=labels.n_movable,
            n_sources=labels.n_sources,
            model=behind(self._described, self.start.model),
            **curves,
        )

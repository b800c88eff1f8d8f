"""Models of which no more is known than each point by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing

from flipcert.collective.facing import Facing
from flipcert.labels.encoding import class_indices
from flipcert.labels.threats import FLIPS, SOURCES, Threat
from flipcert.results.certificates import Certificates
from flipcert.results.witness import Witness

if TYPE_CHECKING:
    from flipcert.classifiers.certified import CertifiedClassifier


class OneByOne(Facing):
    """Points with a radius and an attack each; what the attack on one does to the others is not known.

    All points that can be changed one by one are an upper bound, and one point that can be changed a lower one.
    """

    replays = False

    def __init__(self, model: CertifiedClassifier, X: ArrayLike, threat: Threat, certificates: Certificates) -> None:
        self._model, self._X, self._threat, self._certificates = model, X, threat, certificates
        self.why_one_by_one = (
            f"{type(model).__name__} tells what flips do to each point, not what the same flips do to the others"
            if threat in (FLIPS, SOURCES)
            else f"what one attack does to several points is known for flips and for sources, not for {threat.name}"
        )
        # The points that attacks were made for; they are few.
        self._made_for: dict[int, Witness] = {}

    def at_most(self, budgets: NDArray[np.int64], threatened: NDArray[np.bool_], deadline: float) -> NDArray[np.int64]:
        """All threatened points."""
        return threatened.sum(axis=1)

    def attacks(
        self,
        budgets: NDArray[np.int64],
        threatened: NDArray[np.bool_],
        deadline: float,
        alone: Sequence[Witness | None],
    ) -> list[Witness | None]:
        """The smallest known attack on one threatened point."""
        return [*alone]

    def smallest(
        self, budgets: NDArray[np.int64], threatened: NDArray[np.bool_], replayed: bool
    ) -> list[Witness | None]:
        """For each budget, the smallest known attack on one threatened point, which may be replayed afterwards."""
        known = self._certificates
        certain = ~np.ma.getmaskarray(known.target)
        if not replayed:
            # Alone, a point might be rounded in another way.
            certain &= ~known.rounding_sensitive
        cost = np.where(certain, known.radius_upper + 1, known.limit + 1)
        return [
            self._attack_on(cost, budget, points) for budget, points in zip(budgets.tolist(), threatened, strict=True)
        ]

    def _attack_on(self, cost: NDArray[np.int64], budget: int, points: NDArray[np.bool_]) -> Witness | None:
        within = np.flatnonzero(points & (cost <= min(budget, self._certificates.limit)))
        if within.size == 0:
            return None
        point = int(within[cost[within].argmin()])
        if point not in self._made_for:
            (attack,) = self._model._attacks(_safe_indexing(self._X, [point]), self._threat, False, 60.0)
            if attack is None or len(attack) > cost[point]:
                return None
            self._made_for[point] = attack
        return self._made_for[point]

    def predictions_after(self, attack: Witness) -> NDArray[np.int64]:
        """The class that the attack leads to, for the point that it was made for; the others may change as well."""
        known, classes = self._certificates, self._model.classes_
        complaint = "{label} is none of the classes {classes}."
        after = class_indices(known.prediction, classes, complaint)
        point = next(own for own, made in self._made_for.items() if made is attack)
        after[point] = class_indices(np.asarray([np.ma.getdata(known.target)[point]]), classes, complaint)[0]
        return after

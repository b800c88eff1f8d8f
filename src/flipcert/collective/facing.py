"""What one attack on all test points faces: the interface of models to collective certificates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from flipcert.results.witness import Witness


class Facing(ABC):
    """A model and a set of test points under one threat. Classes are indices, budgets ascend and differ.

    ``threatened`` of shape (n_budgets, n_points) tells which points count and are not certified on their own: nothing
    within the budget changes any other that counts. A deadline is a time of ``working_time``; whoever is past it
    answers with what there is.
    """

    # Why no more is proven than point by point, in words that end a sentence.
    why_one_by_one: str | None = None
    # Whether it is known what an attack does to all points; else, to the one that it was made for.
    replays: bool = True

    @abstractmethod
    def at_most(self, budgets: NDArray[np.int64], threatened: NDArray[np.bool_], deadline: float) -> NDArray[np.int64]:
        """For each budget, how many threatened points one attack changes at most: proven."""

    @abstractmethod
    def attacks(
        self,
        budgets: NDArray[np.int64],
        threatened: NDArray[np.bool_],
        deadline: float,
        alone: Sequence[Witness | None],
    ) -> list[Witness | None]:
        """For each budget, an attack that changes as many threatened points as could be found.

        ``alone`` are the smallest known attacks on one threatened point, which stand where nothing better is found.
        """

    @abstractmethod
    def predictions_after(self, attack: Witness) -> NDArray[np.int64]:
        """What ``fit`` and ``predict`` would say once the attack is made: of all points, or of the one it is for."""

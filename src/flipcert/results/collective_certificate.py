"""Collective certificates: what was proven about one attack on all test points together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.results.witness import Witness


@dataclass(frozen=True, eq=False)
class CollectiveCertificate:
    """How many predictions one attack can change at once, for each budget that an attacker may have.

    Point by point, each prediction is attacked by whatever is worst for it. But there is one training set: an attacker
    who may flip so many labels flips them once, for all test points.

    Attributes
    ----------
    flips : ndarray of int64 of shape (n_budgets,)
        Budgets, in units of the threat: an attack uses at most so many.
    changed_at_most : ndarray of int64 of shape (n_budgets,)
        Proven: no attack within the budget changes more of the counted predictions.
    changed_at_least : ndarray of int64 of shape (n_budgets,)
        The attack that was found changes so many of them.
    changed_one_by_one : ndarray of int64 of shape (n_budgets,)
        Counted predictions that are not certified on their own: their radius is below the budget.
    attacks : list of Witness or None
        The attack that was found for each budget; None where none is known.
    prediction : ndarray of shape (n_points,)
        Predicted labels.
    prediction_after : ndarray of shape (n_budgets, n_points)
        What is predicted once the attack is made.
    counted : ndarray of bool of shape (n_points,)
        Which predictions count: all, or those that are right.
    counts_correct : bool
        Whether true labels were given, so that only predictions that are right count.
    why_one_by_one : str or None
        Why no more is proven than point by point, in words that end a sentence; None where more is.
    n_labels, n_attackable, threat, n_sources, model, classes
        As in :class:`flipcert.Certificates`.
    """

    flips: NDArray[np.int64]
    changed_at_most: NDArray[np.int64]
    changed_at_least: NDArray[np.int64]
    changed_one_by_one: NDArray[np.int64]
    attacks: list[Witness | None]
    prediction: NDArray[Any]
    prediction_after: NDArray[Any]
    counted: NDArray[np.bool_]
    counts_correct: bool
    n_labels: int
    n_attackable: int
    threat: str = "flips"
    n_sources: int | None = None
    why_one_by_one: str | None = None
    model: Mapping[str, Any] = field(default_factory=dict)
    classes: NDArray[Any] | None = None

    def __len__(self) -> int:
        return self.flips.size

    @property
    def n_points(self) -> int:
        """Number of test points."""
        return self.counted.size

    @property
    def n_counted(self) -> int:
        """Number of predictions that count: all, or those that are right."""
        return int(np.count_nonzero(self.counted))

    @property
    def certified_accuracy(self) -> NDArray[np.float64]:
        """Share of all points that count and are still predicted the same after any one attack within each budget."""
        return (self.n_counted - self.changed_at_most) / self.n_points

    @property
    def certified_one_by_one(self) -> NDArray[np.float64]:
        """The same share as far as it is known point by point."""
        return (self.n_counted - self.changed_one_by_one) / self.n_points

    @property
    def accuracy_under_attack(self) -> NDArray[np.float64]:
        """The same share after the attack that was found for each budget."""
        return (self.n_counted - self.changed_at_least) / self.n_points

    def changed(self, budget: int) -> NDArray[np.int64]:
        """Counted points that the attack found for the ``budget``-th budget changes.

        Parameters
        ----------
        budget : int
            Place of the budget in ``flips``.

        Returns
        -------
        ndarray of int64
            Test points.
        """
        return np.flatnonzero(self.counted & (self.prediction_after[budget] != self.prediction))

    def to_frame(self) -> Any:
        """Return a pandas data frame, one row a budget."""
        try:
            import pandas as pd
        except ImportError:
            raise ImportError('to_frame needs pandas. Install with: pip install "flipcert[frame]".') from None
        names = ("flips", "changed_at_most", "changed_at_least", "changed_one_by_one", "certified_accuracy")
        return pd.DataFrame({name: getattr(self, name) for name in names})

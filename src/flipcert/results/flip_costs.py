"""What is known about the flips that lead a classifier to each class, however it was found out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.exceptions import CertificateError, UnsolvedError
from flipcert.labels.labels import Labels
from flipcert.labels.threats import FLIPS, Threat
from flipcert.results.witness import Witness, classes_after


def no_attack(row: int, target: int) -> Witness:
    """Stands for attacks where none is known."""
    raise CertificateError(f"no attack on class {target} is known for row {row}; please report this.")


@dataclass
class FlipCosts:
    """Bounds on the flips (or units of another threat) that lead some rows to each class, in class indices.

    Attributes
    ----------
    prediction : ndarray of shape (rows,)
    lower, upper : ndarray of int64 of shape (rows, classes)
        Proven from below, and of attacks that are known; more than there are labels where no labelling leads to a
        class, or no attack is known. 0 for the class predicted now.
    sensitive : ndarray of bool of shape (rows,)
        Whether rounding might change the prediction or a cost.
    attack : callable
        ``attack(row, target)``: the flips behind an upper cost.
    """

    prediction: NDArray[np.int64]
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    sensitive: NDArray[np.bool_]
    attack: Callable[[int, int], Witness] = field(default=no_attack)

    def __getstate__(self) -> dict[str, Any]:
        # Attacks may hold on to all that they were found with: they stay where that is.
        return vars(self) | {"attack": no_attack}

    @classmethod
    def proven(cls, prediction: NDArray[np.int64], lower: NDArray[np.int64], limit: int) -> FlipCosts:
        """Proven costs without attacks."""
        upper = np.full(lower.shape, limit + 1)
        np.put_along_axis(upper, prediction[:, None], 0, axis=1)
        return cls(prediction, lower, upper, np.zeros(prediction.size, np.bool_))

    @classmethod
    def joined(cls, parts: list[FlipCosts], attack: Callable[[int, int], Witness] = no_attack) -> FlipCosts:
        """Costs of all rows from those of blocks of them."""
        return cls(
            prediction=np.concatenate([part.prediction for part in parts]),
            lower=np.concatenate([part.lower for part in parts]),
            upper=np.concatenate([part.upper for part in parts]),
            sensitive=np.concatenate([part.sensitive for part in parts]),
            attack=attack,
        )

    def in_label_space(self, labels: Labels, threat: Threat = FLIPS) -> FlipCosts:
        """What of it is left if the label space is read from the labels.

        Whatever enters a classifier with the number of its classes changes with the label space: no cost is proven
        beyond that of removing another class, and no attack is known to work that leaves no label of some class.
        """
        fewest, limit = int(threat.to_empty(labels).min()), threat.limit(labels)
        if labels.space_is_fixed or max(self.lower.max(), self.upper.max()) < fewest:
            return self
        upper = self.upper.copy()
        for t, c in np.argwhere((upper >= fewest) & (upper <= limit)).tolist():
            if not classes_after(self.attack(t, c), labels).all():
                upper[t, c] = limit + 1
        lower = np.minimum(self.lower, threat.to_remove_another(labels))
        np.put_along_axis(lower, self.prediction[:, None], 0, axis=1)
        return replace(self, lower=lower, upper=upper)

    def cheapest(self, limit: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Lower and upper cost of changing each prediction, and the class it goes to then (-1: none is known)."""
        lower, upper = self.lower.copy(), self.upper.copy()
        for costs in (lower, upper):
            np.put_along_axis(costs, self.prediction[:, None], limit + 1, axis=1)
        proven, known = (np.minimum(costs.min(axis=1), limit + 1) for costs in (lower, upper))
        target = np.where(known <= limit, upper.argmin(axis=1), np.where(proven <= limit, lower.argmin(axis=1), -1))
        return proven, known, target

    def of_bound(self, bound: str, classes: NDArray[Any], how_to_close: str) -> NDArray[np.int64]:
        """The lower costs, the upper ones, or both where they are the same ("exact"), else an error.

        ``how_to_close`` says what else there is to do about it.
        """
        if bound == "exact":
            require_closed(self.lower, self.upper, classes, how_to_close)
        return self.upper if bound == "upper" else self.lower


def require_closed(
    lower: NDArray[np.int64], upper: NDArray[np.int64], classes: NDArray[Any], how_to_close: str
) -> None:
    """Raise unless the bounds on all costs meet; ``how_to_close`` says what else there is to do about it."""
    still_open = np.argwhere(lower < upper)
    if still_open.size:
        t, c = still_open[0]
        raise UnsolvedError(
            f"the exact cost of class {classes.tolist()[c]!r} for row {t} is not known (it is between "
            f"{lower[t, c]} and {upper[t, c]}); take the two bounds{how_to_close}."
        )

"""Votes of label-linear classifiers in a label space that is read from the labels.

An attacker can remove a class by flipping all its labels. Voters whose labels are not touched may then vote otherwise:
one with negative weights may have voted for a class that it holds no label of. What a fixed label space proves holds up
to the removal of the smallest class, and attacks count only if they leave labels that can be fitted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.ensemble._jit.ballot import Ballot
from flipcert.ensemble._jit.outcome import BLACKBOX_COST, LOWER_COST, RUNNER_UP, TARGET, UPPER_COST, WINNER
from flipcert.flips.rows import as_integers
from flipcert.labels.labels import Labels
from flipcert.labels.threats import FLIPS
from flipcert.results.witness import Witness, classes_after


class OpenVote:
    """What becomes of an outcome that was found in a fixed label space.

    Parameters
    ----------
    labels : Labels
        All training labels.
    members : list of ndarray
        Training samples of each voter.
    bounds : ndarray
        The weights of voter i are those from ``bounds[i]`` to ``bounds[i + 1]`` of a row.
    """

    def __init__(self, labels: Labels, members: list[NDArray[np.int64]], bounds: NDArray[np.int64]) -> None:
        self._labels = labels
        self._members = members
        self._bounds = bounds
        self._most = labels.n_labels - int(np.bincount(labels.codes).max())
        # Which voters have labels of each class.
        held = [np.bincount(labels.codes[own], minlength=labels.n_classes) > 0 for own in members]
        self._holders = np.stack(held, axis=1)

    def is_steady(self, row: NDArray[Any]) -> bool:
        """Whether no voter can vote for a class that it has no label of, so that the label space does not matter."""
        return bool(row.min() >= 0 and np.maximum.reduceat(row, self._bounds[:-1]).min() > 0)

    def changes(self, row: NDArray[Any], outcome: NDArray[np.int64]) -> bool:
        """Whether an outcome may be another than in a fixed label space."""
        fewest = int(self._labels.flips_to_empty.min())
        if fewest == self._labels.unreachable or max(outcome[LOWER_COST], outcome[UPPER_COST]) < fewest:
            return False
        # Steady voters need two classes, whichever these are.
        return outcome[UPPER_COST] >= self._most or not self.is_steady(row)

    def settle(
        self, row: NDArray[Any], ballot: Ballot, outcome: NDArray[np.int64], carry_out: Callable[[], Witness]
    ) -> Witness | None:
        """Set an outcome to what holds here; return the attack behind it if that is not the plan of the ballot.

        ``carry_out()`` makes flips of the plan.
        """
        labels = self._labels
        if not self.is_steady(row):
            smallest = int(FLIPS.to_remove(labels).min())
            outcome[LOWER_COST], outcome[BLACKBOX_COST] = (
                min(outcome[LOWER_COST], smallest),
                min(outcome[BLACKBOX_COST], smallest),
            )
        removal = int(FLIPS.to_remove(labels)[outcome[WINNER]])
        planned = None
        if outcome[UPPER_COST] <= labels.n_labels:
            if outcome[UPPER_COST] <= removal and not self._may_empty_a_class(ballot, int(outcome[UPPER_COST])):
                return None
            planned = carry_out()
        attacks = [] if planned is None else [planned]
        if removal < labels.unreachable:
            own = np.flatnonzero(labels.codes == outcome[WINNER])
            attacks.append(Witness(own, np.full(own.size, outcome[RUNNER_UP])))
        for witness in sorted(attacks, key=len):
            if witness is planned and classes_after(witness, labels).all():
                return witness
            winner = self._winner_after(witness, row)
            if winner is not None and winner != outcome[WINNER]:
                outcome[UPPER_COST], outcome[TARGET] = len(witness), winner
                return witness
        outcome[UPPER_COST] = labels.unreachable
        return None

    def _may_empty_a_class(self, ballot: Ballot, flips: int) -> bool:
        """Whether so many flips of the plan could: whoever holds labels of the class has to be turned."""
        turned = ballot.plan != ballot.votes
        return bool(np.any((self._labels.flips_to_empty <= flips) & (turned | ~self._holders).all(axis=1)))

    def _winner_after(self, witness: Witness, row: NDArray[Any]) -> int | None:
        """Class that wins the vote once the flips are made; None if the labels are of one class only then."""
        left: list[int] = np.flatnonzero(classes_after(witness, self._labels)).tolist()
        if len(left) < 2:
            return None
        codes = witness.apply(self._labels.codes)
        votes = np.zeros(self._labels.n_classes, np.int64)
        for own, begin, end in zip(self._members, self._bounds[:-1], self._bounds[1:], strict=True):
            weights, _ = as_integers(row[begin:end].astype(np.float64))
            scores = [0] * self._labels.n_classes
            for weight, c in zip(weights, codes[own].tolist(), strict=True):
                scores[c] += weight
            highest = max(scores[c] for c in left)
            votes[next(c for c in left if scores[c] == highest)] += 1
        return left[int(votes[left].argmax())]

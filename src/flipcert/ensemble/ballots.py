"""All votes on a block of test points with bounds on the cost of changing each, and what each class needs to win."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flipcert.ensemble._jit.knapsack import plan_rows, tally
from flipcert.ensemble._jit.winning import reach_lower, reach_upper
from flipcert.ensemble.program import exact_reach
from flipcert.ensemble.votes import change_costs
from flipcert.exceptions import UnsolvedError
from flipcert.flips.costs import require_closed
from flipcert.flips.label_space import NAME_THE_SPACE
from flipcert.labels.labels import Labels


@dataclass
class Ballots:
    """Votes of all base classifiers.

    Attributes
    ----------
    votes : ndarray of shape (rows, voters)
    lower, upper : ndarray of shape (rows, voters, classes)
        Bounds on the flips that turn a voter to a class; above ``n_labels`` where nothing does or no attack is known.
    labels : Labels
        All training labels.
    steady : ndarray of bool of shape (rows,)
        Whether voters whose labels are not touched vote as before even if a class is removed from the label space.
    """

    votes: NDArray[np.int64]
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    labels: Labels
    steady: NDArray[np.bool_]

    @property
    def n_labels(self) -> int:
        """Number of all training labels."""
        return self.labels.n_labels

    def reach_costs(self, bound: str, time_limit: float) -> NDArray[np.int64]:
        """Flips that make each class win the vote: bounds, or exact costs where the bounds on the voters are exact."""
        n_classes = self.lower.shape[2]
        winner, _, _ = change_costs(self.votes, self.lower)
        costs = np.zeros((self.votes.shape[0], n_classes), np.int64)
        plans = {} if bound == "lower" else self._plans()
        for t in range(costs.shape[0]):
            rivals = [c for c in range(n_classes) if c != winner[t]]
            lower = {c: int(reach_lower(self.votes[t], self.lower[t], c)) for c in rivals}
            if bound == "lower":
                costs[t, rivals] = list(lower.values())
                continue
            costs[t, rivals] = [reach_upper(self.votes[t], self.upper[t], c) for c in rivals]
            if t in plans:
                # The cheapest change is known exactly; it belongs to whichever class it makes win.
                changed = np.flatnonzero(plans[t] != self.votes[t])
                costs[t, tally(plans[t], n_classes)[1]] = self.upper[t, changed, plans[t][changed]].sum()
            if bound == "exact":
                for c in rivals:
                    if lower[c] < costs[t, c]:
                        self._require_exact_votes(t)
                        costs[t, c] = exact_reach(
                            self.votes[t], self.upper[t], c, lower[c], int(costs[t, c]), time_limit
                        )
        return self._in_label_space(np.minimum(costs, self.n_labels + 1), winner, bound)

    def _in_label_space(self, costs: NDArray[np.int64], winner: NDArray[np.int64], bound: str) -> NDArray[np.int64]:
        """Costs where classes may be flipped away: proven up to there, and of attacks that cannot do so."""
        labels = self.labels
        proven = np.where(self.steady[:, None], costs, np.minimum(costs, labels.flips_to_remove_another))
        # Steady voters need two classes, whichever these are.
        to_one_class = self.n_labels - np.bincount(labels.codes).max()
        harmless = np.where(self.steady & ~labels.space_is_fixed, to_one_class, labels.flips_to_empty.min())
        known = np.where(costs < harmless[:, None], costs, labels.unreachable)
        if bound == "exact":
            require_closed(proven, known, np.arange(labels.n_classes), NAME_THE_SPACE)
        return proven if bound == "lower" else known

    def _require_exact_votes(self, t: int) -> None:
        """Raise if not even the costs of the voters are known exactly."""
        if np.any(self.lower[t] != self.upper[t]):
            raise UnsolvedError(
                'bound="exact" needs exact flip costs of all base classifiers, but some are known as bounds only; '
                "take the two bounds."
            )

    def _plans(self) -> dict[int, NDArray[np.int64]]:
        """New votes of the cheapest change of each row that has one."""
        winner, cost, overtaker = change_costs(self.votes, self.upper)
        rows = np.flatnonzero(cost <= self.n_labels)
        plans = np.empty((rows.size, self.votes.shape[1]), np.int64)
        plan_rows(self.votes, self.upper, winner, overtaker, rows, plans, np.empty(rows.size, np.int64))
        return dict(zip(rows.tolist(), plans, strict=True))

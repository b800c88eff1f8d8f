"""All votes on a block of test points, and what follows from the costs of changing them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flipcert.ensemble._knapsack import plan_rows, reach_lower, reach_upper, tally
from flipcert.ensemble.program import exact_reach
from flipcert.ensemble.votes import change_costs, count_votes

# (row, class, lower, upper): a cost whose bounds differ.
Gap = tuple[int, int, int, int]


@dataclass
class Outcome:
    """What is certified about each row, in class indices (-1 where there is no target)."""

    prediction: NDArray[np.int64]
    radius: NDArray[np.int64]
    radius_upper: NDArray[np.int64]
    blackbox_radius: NDArray[np.int64]
    runner_up: NDArray[np.int64]
    target: NDArray[np.int64]
    rounding_sensitive: NDArray[np.bool_]


@dataclass
class Ballots:
    """Votes of all base classifiers, with bounds on the cost of changing each.

    Attributes
    ----------
    votes : ndarray of shape (rows, voters)
    lower, upper : ndarray of shape (rows, voters, classes)
        Bounds on the flips that turn a voter to a class; above ``n_labels`` where nothing does or no attack is known.
    unsteady_vote, unsteady_cost : ndarray of bool
        Votes and costs that another rounding of the weights could change, costs by one.
    movable : ndarray of bool of shape (voters,)
        Voters with at least one label that can be flipped.
    n_labels : int
        Number of all training labels.
    """

    votes: NDArray[np.int64]
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    unsteady_vote: NDArray[np.bool_]
    unsteady_cost: NDArray[np.bool_]
    movable: NDArray[np.bool_]
    n_labels: int

    @property
    def n_classes(self) -> int:
        """Size of the label space."""
        return self.lower.shape[2]

    def outcome(self) -> Outcome:
        """Winner and radii of each row."""
        limit = self.n_labels + 1
        winner, lower, overtaker = change_costs(self.votes, self.lower)
        blackbox, target = self._blackbox()
        upper = lower
        if not np.array_equal(self.lower, self.upper):
            _, upper, overtaker = change_costs(self.votes, self.upper)
        rows, _, after = self._plans(self.upper, winner, upper, overtaker)
        target[rows] = after
        counts = count_votes(self.votes, self.n_classes)
        counts[np.arange(winner.size), winner] = -1
        return Outcome(
            prediction=winner,
            radius=np.minimum(lower, limit) - 1,
            radius_upper=np.minimum(upper, limit) - 1,
            blackbox_radius=np.minimum(blackbox, limit) - 1,
            runner_up=counts.argmax(axis=1),
            target=target,
            rounding_sensitive=self.sensitive(),
        )

    def _blackbox(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Flips that change each winner if one flip may turn any voter that can be turned, and who overtakes then."""
        limit = self.n_labels + 1
        at_will = np.broadcast_to(np.where(self.movable, 1, limit)[:, None], self.lower.shape)
        _, cost, overtaker = change_costs(self.votes, np.ascontiguousarray(at_will))
        return cost, np.where(cost < limit, overtaker, -1)

    def _plans(
        self,
        costs: NDArray[np.int64],
        winner: NDArray[np.int64],
        cost: NDArray[np.int64],
        overtaker: NDArray[np.int64],
    ) -> tuple[NDArray[np.intp], NDArray[np.int64], NDArray[np.int64]]:
        """Rows that can change under the given costs, their new votes at the cheapest, and who wins then."""
        rows = np.flatnonzero(cost <= self.n_labels)
        plans = np.empty((rows.size, self.votes.shape[1]), np.int64)
        after = np.empty(rows.size, np.int64)
        plan_rows(self.votes, costs, winner, overtaker, rows, plans, after)
        return rows, plans, after

    def plans(self, costs: NDArray[np.int64]) -> dict[int, NDArray[np.int64]]:
        """New votes of the cheapest change of each row under the given costs; rows that cannot change are left out."""
        rows, plans, _ = self._plans(costs, *change_costs(self.votes, costs))
        return dict(zip(rows.tolist(), plans, strict=True))

    def sensitive(self) -> NDArray[np.bool_]:
        """Whether the radius would move if every cost that rounding could move did, by one either way."""
        sensitive: NDArray[np.bool_] = np.any(self.unsteady_vote, axis=1)
        rows = np.flatnonzero(~sensitive & np.any(self.unsteady_cost, axis=(1, 2)))
        if rows.size:
            for bound in (self.lower[rows], self.upper[rows]):
                moving = self.unsteady_cost[rows] & (bound <= self.n_labels)
                _, fewer, _ = change_costs(self.votes[rows], bound - (moving & (bound > 1)))
                _, more, _ = change_costs(self.votes[rows], bound + moving)
                sensitive[rows] |= fewer != more
        return sensitive

    def reach_costs(self, bound: str, time_limit: float) -> NDArray[np.int64]:
        """Flips that make each class win the vote: bounds, or exact costs where the bounds on the voters are exact."""
        winner, _, _ = change_costs(self.votes, self.lower)
        costs = np.zeros((self.votes.shape[0], self.n_classes), np.int64)
        plans = {} if bound == "lower" else self.plans(self.upper)
        for t in range(costs.shape[0]):
            rivals = [c for c in range(self.n_classes) if c != winner[t]]
            lower = {c: int(reach_lower(self.votes[t], self.lower[t], c)) for c in rivals}
            if bound == "lower":
                costs[t, rivals] = list(lower.values())
                continue
            costs[t, rivals] = [reach_upper(self.votes[t], self.upper[t], c) for c in rivals]
            if t in plans:
                # The cheapest change is known exactly; it belongs to whichever class it makes win.
                changed = np.flatnonzero(plans[t] != self.votes[t])
                costs[t, tally(plans[t], self.n_classes)[1]] = self.upper[t, changed, plans[t][changed]].sum()
            if bound == "exact":
                for c in rivals:
                    if lower[c] < costs[t, c]:
                        costs[t, c] = exact_reach(
                            self.votes[t], self.upper[t], c, lower[c], int(costs[t, c]), time_limit
                        )
        return np.minimum(costs, self.n_labels + 1)

    def deciding_gaps(self, skip: set[tuple[int, int, int]]) -> dict[int, list[Gap]]:
        """Costs to solve next, by voter, so that open radii close.

        The cheapest change under the lower bounds uses a few costs. If all of them are exact, so is the radius; if
        not, solving them raises the radius or proves it. Costs that no such change uses need never be solved.
        """
        _, lower, _ = change_costs(self.votes, self.lower)
        _, upper, _ = change_costs(self.votes, self.upper)
        wanted: dict[int, list[Gap]] = defaultdict(list)
        for t, plan in self.plans(self.lower).items():
            if lower[t] == upper[t]:
                continue
            for i in np.flatnonzero(plan != self.votes[t]).tolist():
                c = int(plan[i])
                low, high = int(self.lower[t, i, c]), int(self.upper[t, i, c])
                if low < high and (t, i, c) not in skip:
                    wanted[i].append((t, c, low, high))
        return wanted

    def all_gaps(self) -> dict[int, list[Gap]]:
        """Every cost whose bounds differ, by voter."""
        wanted: dict[int, list[Gap]] = defaultdict(list)
        for t, i, c in np.argwhere(self.lower < self.upper).tolist():
            wanted[i].append((t, c, int(self.lower[t, i, c]), int(self.upper[t, i, c])))
        return wanted

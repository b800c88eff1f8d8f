"""The vote of most voters: how many label flips change its winner."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from flipcert.ensemble._jit.knapsack import plan_rows, tally
from flipcert.ensemble._jit.outcome import (
    BLACKBOX_COST,
    LOWER_COST,
    N_COLUMNS,
    SENSITIVE,
    TARGET,
    UPPER_COST,
    blackbox_rows,
)
from flipcert.ensemble._jit.winning import reach_lower, reach_upper
from flipcert.ensemble.votes.ballots import Ballots, in_units
from flipcert.ensemble.votes.integer_program import exact_reach
from flipcert.ensemble.votes.poll import AboutLabels
from flipcert.ensemble.votes.radius import change_costs, count_votes
from flipcert.ensemble.votes.table import certificates_of_table
from flipcert.exceptions import UnsolvedError
from flipcert.flips.label_space import NAME_THE_SPACE
from flipcert.labels.labels import Labels
from flipcert.labels.threats import DELETIONS, FLIPS, Threat
from flipcert.results.certificates import Certificates
from flipcert.results.flip_costs import require_closed


class Plurality:
    """The class with most votes wins, ties to the smaller class."""

    def scores(self, votes: NDArray[np.int64], n_classes: int) -> NDArray[np.int64]:
        """Votes of each class, one row a test point."""
        return count_votes(votes, n_classes)

    def certify_votes(
        self, votes: NDArray[np.int64], can_turn: NDArray[np.bool_], labels: Labels, threat: Threat = FLIPS
    ) -> Certificates:
        """Winner and black-box radius of each row; no attack is known."""
        return certificates_of_table(blackbox_table(votes, can_turn, labels, threat), labels, threat)

    def certify(self, ballots: Ballots) -> Certificates:
        """Winner and radii of each row."""
        unreachable = ballots.unreachable
        table = blackbox_table(ballots.votes, ballots.can_turn, ballots.labels, ballots.threat)
        _, cost, overtaker = change_costs(ballots.votes, ballots.lower)
        table[:, LOWER_COST] = np.minimum(ballots.in_units(cost), unreachable)
        table[:, TARGET] = np.where(cost < unreachable, overtaker, -1)
        rows, costs, _, after = self._plans(ballots)
        table[rows, UPPER_COST] = costs
        table[rows, TARGET] = after
        return certificates_in_label_space(table, ballots)

    def changed_votes(self, ballots: Ballots) -> dict[int, NDArray[np.int64]]:
        """New votes of the cheapest known attack, for each row that has one."""
        rows, _, plans, _ = self._plans(ballots)
        return dict(zip(rows.tolist(), plans, strict=True))

    def _plans(self, ballots: Ballots) -> tuple[NDArray[np.int64], ...]:
        """Rows on which an attack is known, its cost, the votes that it leads to, and who wins then."""
        # An attack that could leave no label of some class is not known to work, nor is one that leaves none at all.
        empties_all = ballots.labels.n_labels if ballots.threat is DELETIONS else ballots.unreachable
        return cheapest_plans(ballots, min(int(ballots.threat.to_empty(ballots.labels).min()), empties_all))

    def reach_costs(self, ballots: Ballots, bound: str, time_limit: float) -> NDArray[np.int64]:
        """Flips that make each class win the vote: bounds, or exact costs where the bounds on the voters are exact."""
        votes, n_classes = ballots.votes, ballots.lower.shape[2]
        winner, _, _ = change_costs(votes, ballots.lower)
        costs = np.zeros((votes.shape[0], n_classes), np.int64)
        planned = {}
        if bound != "lower":
            rows, _, plans, _ = cheapest_plans(ballots, ballots.unreachable)
            planned = dict(zip(rows.tolist(), plans, strict=True))
        for t in range(costs.shape[0]):
            rivals = [c for c in range(n_classes) if c != winner[t]]
            lower = {c: int(reach_lower(votes[t], ballots.lower[t], c)) for c in rivals}
            if bound == "lower":
                costs[t, rivals] = list(lower.values())
                continue
            costs[t, rivals] = [reach_upper(votes[t], ballots.upper[t], c) for c in rivals]
            if t in planned:
                # The cheapest change is known exactly; it belongs to whichever class it makes win.
                changed = np.flatnonzero(planned[t] != votes[t])
                costs[t, tally(planned[t], n_classes)[1]] = ballots.upper[t, changed, planned[t][changed]].sum()
            if bound == "exact":
                for c in rivals:
                    if lower[c] < costs[t, c]:
                        _require_exact_votes(ballots, t)
                        costs[t, c] = exact_reach(votes[t], ballots.upper[t], c, lower[c], int(costs[t, c]), time_limit)
        if bound == "lower":
            costs = ballots.in_units(costs)
        return costs_in_label_space(ballots, np.minimum(costs, ballots.unreachable), bound)


def cheapest_plans(ballots: Ballots, most: int) -> tuple[NDArray[np.int64], ...]:
    """Rows whose cheapest change costs less than ``most``; its cost, the votes that it leads to, and who wins then."""
    winner, cost, overtaker = change_costs(ballots.votes, ballots.upper)
    rows = np.flatnonzero(cost < most)
    plans, after = np.empty((rows.size, ballots.votes.shape[1]), np.int64), np.empty(rows.size, np.int64)
    plan_rows(ballots.votes, ballots.upper, winner, overtaker, rows, plans, after)
    return rows, cost[rows], plans, after


def proven_in_label_space(costs: NDArray[np.int64], facts: AboutLabels) -> NDArray[np.int64]:
    """Costs of changing the winner, of which those that were found in a fixed label space hold up to its change."""
    # Voters may have been told of the label space: with a class of it removed, anything could be.
    removal = facts.threat.to_remove(facts.labels).min()
    return np.minimum(costs, np.where(facts.steady, facts.unreachable, removal))


def certificates_in_label_space(table: NDArray[np.int64], ballots: Ballots) -> Certificates:
    """Certificates of what was found in a fixed label space."""
    table[:, LOWER_COST], table[:, BLACKBOX_COST] = (
        proven_in_label_space(table[:, own], ballots) for own in (LOWER_COST, BLACKBOX_COST)
    )
    table[:, SENSITIVE] = ballots.sensitive
    return certificates_of_table(table, ballots.labels, ballots.threat)


def blackbox_table(
    votes: NDArray[np.int64], can_turn: NDArray[np.bool_], labels: Labels, threat: Threat
) -> NDArray[np.int64]:
    """What votes alone tell, as a table of compiled code."""
    table = np.zeros((votes.shape[0], N_COLUMNS), np.int64)
    blackbox_rows(votes, can_turn, labels.n_classes, threat.unreachable(labels), table)
    table[:, LOWER_COST], table[:, BLACKBOX_COST] = (
        in_units(table[:, own], threat) for own in (LOWER_COST, BLACKBOX_COST)
    )
    return table


def costs_in_label_space(ballots: AboutLabels, costs: NDArray[np.int64], bound: str) -> NDArray[np.int64]:
    """Costs where classes may be flipped away: proven up to there, and of attacks that cannot do so."""
    labels, steady, threat = ballots.labels, ballots.steady, ballots.threat
    proven = np.where(steady[:, None], costs, np.minimum(costs, threat.to_remove_another(labels)))
    # Steady voters need two classes, whichever these are.
    to_one_class = labels.n_labels - np.bincount(labels.codes).max()
    open_to_flips = steady & (not labels.space_is_fixed) & (threat is FLIPS)
    harmless = np.where(open_to_flips, to_one_class, threat.to_empty(labels).min())
    known = np.where(costs < harmless[:, None], costs, ballots.unreachable)
    if bound == "exact":
        require_closed(proven, known, np.arange(labels.n_classes), NAME_THE_SPACE)
    return proven if bound == "lower" else known


def _require_exact_votes(ballots: Ballots, t: int) -> None:
    """Raise if not even the costs of the voters are known exactly."""
    if np.any(ballots.lower[t] != ballots.upper[t]):
        raise UnsolvedError(
            'bound="exact" needs exact flip costs of all base classifiers, but some are known as bounds only; '
            "take the two bounds."
        )

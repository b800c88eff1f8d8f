"""Votes of partitions that share sources: whoever is a source reaches every partition that holds a label of it.

Costs of different voters do not add up then, because one source pays for several. What is proven is a bound.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from flipcert.ensemble._jit.outcome import BLACKBOX_COST, LOWER_COST, TARGET, WINNER
from flipcert.ensemble._jit.powers import fewest_sources
from flipcert.ensemble._jit.winning import reach_lower
from flipcert.ensemble.votes.ballots import Ballots
from flipcert.ensemble.votes.plurality import blackbox_table, certificates_in_label_space, costs_in_label_space
from flipcert.ensemble.votes.radius import change_costs
from flipcert.labels.labels import Labels
from flipcert.labels.threats import SOURCES
from flipcert.results.certificates import Certificates
from flipcert.results.flip_costs import require_closed

# Cost of what nothing does: sums of it stay out of reach and fit.
_BEYOND = 2**40


class SharedSources:
    """Which partitions each source touches, and what sources can do to the vote of most voters.

    Parameters
    ----------
    labels : Labels
        All training labels, with their sources.
    members : list of ndarray
        Training samples of each voter.
    """

    def __init__(self, labels: Labels, members: list[NDArray[np.int64]]) -> None:
        assert labels.sources is not None, "checked before"
        partition = np.empty(labels.n_labels, np.int64)
        for number, own in enumerate(members):
            partition[own] = number
        # A trusted label is no way into a partition.
        pairs = labels.sources.codes * len(members) + partition
        source, self._touched = np.divmod(np.unique(pairs[labels.coded.movable]), len(members))
        self._n_voters = len(members)
        self._reach = np.bincount(source, minlength=len(labels.sources))
        self._starts = np.append(0, np.cumsum(self._reach))

    @property
    def apart(self) -> bool:
        """Whether no source touches two partitions, so that costs of different voters add up."""
        return bool(self._reach.max(initial=0) <= 1)

    def certify(self, ballots: Ballots) -> Certificates:
        """Winner and certified radius of each row; no attack is known."""
        table = blackbox_table(ballots.votes, ballots.can_turn, ballots.labels, SOURCES)
        winner = table[:, WINNER]
        blackbox, costs, rounded = self._overtaking(ballots)
        for own in (blackbox, costs):
            np.put_along_axis(own, winner[:, None], ballots.unreachable, axis=1)
        for t in np.flatnonzero(rounded.any(axis=1)).tolist():
            self._settle(ballots, t, int(winner[t]), costs[t], rounded[t])
        table[:, BLACKBOX_COST], table[:, LOWER_COST] = blackbox.min(axis=1), costs.min(axis=1)
        table[:, TARGET] = np.where(table[:, LOWER_COST] < ballots.unreachable, costs.argmin(axis=1), -1)
        return certificates_in_label_space(table, ballots)

    def changed_votes(self, ballots: Ballots) -> dict[int, NDArray[np.int64]]:
        """No attack is known."""
        return {}

    def reach_costs(self, ballots: Ballots, bound: str, time_limit: float) -> NDArray[np.int64]:
        """Sources that make each class win the vote: a bound from below, and no attack is known."""
        winner, _, _ = change_costs(ballots.votes, ballots.lower)
        rows = np.arange(winner.size)
        upper = np.full((winner.size, ballots.labels.n_classes), ballots.unreachable)
        upper[rows, winner] = 0
        if bound == "upper":
            return upper
        _, lower, _ = self._overtaking(ballots)
        prices = _prices(ballots)
        for t, c in np.argwhere(lower < ballots.unreachable).tolist():
            if c != winner[t]:
                # Not only the winner has to be overtaken.
                turning = np.array(reach_lower(ballots.votes[t], prices[t], c))
                lower[t, c] = max(lower[t, c], self._to_touch(turning, ballots.unreachable))
        lower[rows, winner] = 0
        lower = costs_in_label_space(ballots, lower, "lower")
        if bound == "exact":
            require_closed(lower, upper, np.arange(ballots.labels.n_classes), "")
        return lower

    def _overtaking(self, ballots: Ballots) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """For each row and class, bounds on the sources with which it overtakes the winner: from votes, and from costs.

        And whether the second may be too small because shares were rounded up.
        """
        shape = (ballots.votes.shape[0], ballots.labels.n_classes)
        blackbox, whitebox, turning = (np.empty(shape, np.int64) for _ in range(3))
        rounded = np.empty(shape, np.bool_)
        fewest_sources(
            ballots.votes, _prices(ballots), _BEYOND, self._starts, self._touched, self._unit, ballots.unreachable,
            blackbox, whitebox, rounded, turning,
        )  # fmt: skip
        touching = self._to_touch(turning, ballots.unreachable)
        return blackbox, np.maximum(whitebox, touching), rounded & (whitebox >= touching)

    def _to_touch(self, times: NDArray[np.int64], unreachable: int) -> NDArray[np.int64]:
        """Fewest sources that touch partitions so many times in all."""
        if self._reach.sum() == 0:
            return np.where(times > 0, unreachable, 0)
        most = np.cumsum(np.sort(self._reach)[::-1])
        fewest = np.where(times > 0, np.searchsorted(most, times) + 1, 0)
        return np.where(times > most[-1], unreachable, fewest)

    @cached_property
    def _unit(self) -> int:
        """A multiple of all small numbers, so that their fractions are not rounded; sums of powers still fit."""
        unit, number = 1, 2
        while math.lcm(unit, number) <= 2**62 // (3 * self._n_voters + 2):
            unit, number = math.lcm(unit, number), number + 1
        return unit

    def _settle(
        self, ballots: Ballots, t: int, winner: int, costs: NDArray[np.int64], rounded: NDArray[np.bool_]
    ) -> None:
        """Add up fractions as they are, where rounding them up may have made the smallest cost of a row too small."""
        while rounded[c := int(costs.argmin())]:
            costs[c] = max(costs[c], self._exactly(ballots, t, winner, c))
            rounded[c] = False

    def _exactly(self, ballots: Ballots, t: int, winner: int, target: int) -> int:
        """Sources with which a class overtakes the winner, by their powers as fractions."""
        votes, prices = ballots.votes[t], _prices(ballots)[t]
        shares = [(0, 1)] * votes.size
        for i, vote in enumerate(votes.tolist()):
            options = [] if vote == target else [(2 if vote == winner else 1, int(prices[i, target]))]
            if vote == winner:
                options += [(1, int(cost)) for q, cost in enumerate(prices[i]) if q != winner]
            for closed, cost in options:
                if cost < _BEYOND and closed * shares[i][1] > shares[i][0] * cost:
                    shares[i] = closed, cost
        unit = math.lcm(*(cost for _, cost in shares))
        whole = [closed * (unit // cost) for closed, cost in shares]
        bounds = zip(self._starts[:-1].tolist(), self._starts[1:].tolist(), strict=True)
        powers = sorted(
            (sum(whole[i] for i in self._touched[begin:end].tolist()) for begin, end in bounds), reverse=True
        )
        counts = np.bincount(votes, minlength=ballots.labels.n_classes)
        missing = int(counts[winner] - counts[target] + (winner < target)) * unit
        for count, power in enumerate(powers, start=1):
            missing -= power
            if missing <= 0:
                return count
        return ballots.unreachable


def _prices(ballots: Ballots) -> NDArray[np.int64]:
    """Lower costs of turning voters, those that nothing turns out of reach of any sum."""
    return np.where(ballots.lower >= ballots.unreachable, _BEYOND, np.maximum(ballots.lower, 1))

"""Any deterministic classifiers: of their votes nothing is known but that a flip may change one of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.ensemble.electorate import Electorate
from flipcert.ensemble.ranking import rank
from flipcert.ensemble.voters import Voter, vote
from flipcert.ensemble.votes.ballots import Ballots
from flipcert.ensemble.votes.rule import VoteRule
from flipcert.labels.labels import Labels
from flipcert.labels.threats import Threat
from flipcert.results.certificates import Certificates
from flipcert.results.witness import Witness


class BlackBox(Electorate):
    """Voters without flip costs."""

    def __init__(
        self, voters: list[Voter], classes: NDArray[Any], labels: Labels, rule: VoteRule, pairwise: bool = False
    ) -> None:
        super().__init__(voters, labels, rule)
        self._classes = classes
        self._pairwise = pairwise

    @property
    def bytes_per_row(self) -> int:
        """Memory of votes and costs."""
        return 16 * len(self.voters) * (self.n_classes + 1)

    def votes(self, X: NDArray[Any], n_rows: int) -> NDArray[np.int64]:
        """Class index that each voter votes for."""
        asked = [vote(voter.estimator, self._seen_by(voter, X), self._classes, n_rows) for voter in self.voters]
        return np.stack(asked, axis=1)

    def rankings(self, X: NDArray[Any], n_rows: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Class indices by the scores of each voter, best first."""
        ranked = [rank(voter.estimator, self._seen_by(voter, X), self._classes, n_rows) for voter in self.voters]
        return np.stack(ranked, axis=1), np.zeros(n_rows, np.bool_)

    def certify(self, X: NDArray[Any], n_rows: int, threat: Threat, exact: bool, time_limit: float) -> Certificates:
        """Winner and black-box radius of each row; no attack is known."""
        if self.any_empty or self.outcome(threat) is not self.rule:
            return super().certify(X, n_rows, threat, exact, time_limit)
        return self.rule.certify_votes(self.votes(X, n_rows), self.can_be_turned(threat), self.labels, threat)

    def ballots(self, X: NDArray[Any], n_rows: int, threat: Threat, exact: bool, time_limit: float) -> Ballots:
        """One unit may turn a voter to any class; what does so is unknown."""
        # Nobody is told of the label space: whoever is not touched votes as before, whatever becomes of it.
        return blackbox_ballots(self, self.votes(X, n_rows), threat, steady=not self.any_empty)

    def attacks(
        self, X: NDArray[Any], n_rows: int, threat: Threat, exact: bool, time_limit: float
    ) -> list[Witness | None]:
        """None is known."""
        return [None] * n_rows

    def _seen_by(self, voter: Voter, X: NDArray[Any]) -> NDArray[Any]:
        """Rows as the voter takes them: of a kernel matrix, the columns of its own samples."""
        return np.ascontiguousarray(X[:, voter.rows]) if self._pairwise else voter.seen(X)


def blackbox_ballots(electorate: Electorate, votes: NDArray[np.int64], threat: Threat, steady: bool) -> Ballots:
    """Ballots of which nothing is known but that a unit of the threat may turn a voter."""
    can_turn, unreachable = electorate.can_be_turned(threat), threat.unreachable(electorate.labels)
    shape = (*votes.shape, electorate.n_classes)
    lower = np.broadcast_to(np.where(can_turn, 1, unreachable)[:, None], shape).copy()
    upper = np.full(shape, unreachable)
    for costs in (lower, upper):
        np.put_along_axis(costs, votes[:, :, None], 0, axis=2)
    every, none = np.full(votes.shape[0], steady), np.zeros(votes.shape[0], np.bool_)
    return Ballots(votes, lower, upper, can_turn, electorate.labels, every, none, threat)

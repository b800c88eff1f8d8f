"""Any deterministic classifiers: of their votes nothing is known but that a flip may change one of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.ensemble._jit.outcome import N_COLUMNS, blackbox_rows
from flipcert.ensemble.ballots import Ballots
from flipcert.ensemble.electorate import Electorate, certificates_of_table
from flipcert.ensemble.voters import Voter, vote
from flipcert.labels.labels import Labels
from flipcert.results.certificates import Certificates
from flipcert.results.witness import Witness


class BlackBox(Electorate):
    """Voters without flip costs."""

    def __init__(self, voters: list[Voter], classes: NDArray[Any], labels: Labels) -> None:
        super().__init__(voters, labels)
        self._classes = classes

    @property
    def bytes_per_row(self) -> int:
        """Memory of votes and costs."""
        return 16 * len(self.voters) * (self.n_classes + 1)

    def votes(self, X: NDArray[Any], n_rows: int) -> NDArray[np.int64]:
        """Class index that each voter votes for."""
        return np.stack([vote(voter.estimator, X, self._classes, n_rows) for voter in self.voters], axis=1)

    def certify(self, X: NDArray[Any], n_rows: int, exact: bool, time_limit: float) -> Certificates:
        """Winner and black-box radius of each row; no attack is known."""
        table = np.zeros((n_rows, N_COLUMNS), np.int64)
        blackbox_rows(self.votes(X, n_rows), self.can_turn, self.n_classes, self.n_labels + 1, table)
        return certificates_of_table(table, self.labels)

    def ballots(self, X: NDArray[Any], n_rows: int, exact: bool, time_limit: float) -> Ballots:
        """A flip may turn a voter to any class; what does so is unknown."""
        votes = self.votes(X, n_rows)
        shape = (*votes.shape, self.n_classes)
        lower = np.broadcast_to(np.where(self.can_turn, 1, self.n_labels + 1)[:, None], shape).copy()
        upper = np.full(shape, self.n_labels + 1)
        for costs in (lower, upper):
            np.put_along_axis(costs, votes[:, :, None], 0, axis=2)
        # Nobody is told of the label space: whoever is not touched votes as before, whatever becomes of it.
        return Ballots(votes, lower, upper, self.labels, steady=np.ones(n_rows, np.bool_))

    def attacks(self, X: NDArray[Any], n_rows: int, exact: bool, time_limit: float) -> list[Witness | None]:
        """None is known."""
        return [None] * n_rows

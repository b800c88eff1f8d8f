"""All base classifiers of an ensemble together: what they vote, and what is known about changing that."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.ensemble._jit.outcome import BLACKBOX, LOWER, RUNNER_UP, SENSITIVE, TARGET, UPPER, WINNER
from flipcert.ensemble.ballots import Ballots
from flipcert.ensemble.voters import Voter
from flipcert.labels.labels import Labels
from flipcert.results.certificates import Certificates
from flipcert.results.witness import Witness


def certificates_of_table(table: NDArray[np.int64], labels: Labels) -> Certificates:
    """Read a table of costs as compiled code fills it; labels stay class indices."""
    return Certificates(
        prediction=table[:, WINNER],
        radius=table[:, LOWER] - 1,
        radius_upper=table[:, UPPER] - 1,
        blackbox_radius=table[:, BLACKBOX] - 1,
        runner_up=table[:, RUNNER_UP],
        target=np.ma.masked_less(table[:, TARGET], 0),
        rounding_sensitive=table[:, SENSITIVE] > 0,
        n_labels=labels.n_labels,
        n_attackable=labels.n_movable,
    )


class Electorate(ABC):
    """Voters over class indices. Every method takes a full block of rows, of which the first ``n_rows`` are meant."""

    def __init__(self, voters: list[Voter], labels: Labels) -> None:
        self.voters = voters
        self.labels = labels
        self.n_classes = labels.n_classes
        self.n_labels = labels.n_labels
        self.can_turn = np.array([voter.can_turn for voter in voters])

    def spreads_voters(self, question: str) -> bool:
        """Whether a question is spread over the cores voter by voter, not block by block."""
        return False

    def without_ballast(self) -> Electorate:
        """All that is needed to answer questions, which may have to be sent to other machines."""
        return self

    def release(self) -> None:  # noqa: B027  (most have none to give back)
        """Give up memory that was kept from block to block; called when a job ends."""

    @property
    @abstractmethod
    def bytes_per_row(self) -> int:
        """Memory that a row of a block takes."""

    @abstractmethod
    def votes(self, X: NDArray[Any], n_rows: int) -> NDArray[np.int64]:
        """Class index that each voter votes for."""

    @abstractmethod
    def certify(self, X: NDArray[Any], n_rows: int, exact: bool, time_limit: float) -> Certificates:
        """Winner and radii of each row, in class indices."""

    @abstractmethod
    def ballots(self, X: NDArray[Any], n_rows: int, exact: bool, time_limit: float) -> Ballots:
        """Votes and bounds on the cost of every change of a vote, equal ones if ``exact``."""

    @abstractmethod
    def attacks(self, X: NDArray[Any], n_rows: int, exact: bool, time_limit: float) -> list[Witness | None]:
        """The flips behind the upper radius of each row."""

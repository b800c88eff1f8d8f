"""Elections in which a unit of a threat may reach several voters: who wins, and how few units make another win."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from flipcert.ensemble._jit.election import N_NEEDS, elect_rows, needs_of_costs, plurality_rows, runoff_rows
from flipcert.ensemble.votes.radius import count_votes
from flipcert.ensemble.votes.reach import Reach


@dataclass(frozen=True)
class Standings:
    """What each class needs to win.

    Attributes
    ----------
    winner, second : ndarray of shape (rows,)
        The class that wins, and the one that it beats.
    costs : ndarray of shape (rows, classes)
        Proven from below: fewer units do not make the class win. The winner's is 0.
    target : ndarray of shape (rows,)
        A class of the smallest cost that overtakes the winner, or beats it; -1 where it is not known which.
    """

    winner: NDArray[np.int64]
    second: NDArray[np.int64]
    costs: NDArray[np.int64]
    target: NDArray[np.int64]

    @property
    def cheapest(self) -> NDArray[np.int64]:
        """Units that the cheapest change of the winner takes at least."""
        others = self.costs.copy()
        np.put_along_axis(others, self.winner[:, None], np.iinfo(np.int64).max, axis=1)
        return np.asarray(others.min(axis=1))


class Election(Protocol):
    """A rule over votes, or over whole rankings."""

    # Whether voters rank all classes, best first; else each names one.
    ranks: bool

    def scores(self, votes: NDArray[np.int64], n_classes: int) -> NDArray[np.int64]:
        """What each class has got, one row a test point; the largest wins, ties to the smaller class."""

    def standings(
        self, votes: NDArray[np.int64], n_classes: int, reach: Reach, limit: int, every: bool = False
    ) -> Standings:
        """What the votes alone prove; ``limit`` is the cost of what not even all units do.

        Unless costs of ``every`` class are asked for, only the smallest of each row is meant.
        """


class MostVotes:
    """The class with most votes wins, ties to the smaller class."""

    ranks = False

    def scores(self, votes: NDArray[np.int64], n_classes: int) -> NDArray[np.int64]:
        """Votes of each class."""
        return count_votes(votes, n_classes)

    def standings(
        self, votes: NDArray[np.int64], n_classes: int, reach: Reach, limit: int, every: bool = False
    ) -> Standings:
        """Winner, second, and what each class needs to overtake the winner."""
        winner, second = (np.zeros(votes.shape[0], np.int64) for _ in range(2))
        costs = np.zeros((votes.shape[0], n_classes), np.int64)
        plurality_rows(votes, reach.starts, reach.touched, limit, winner, second, costs)
        return Standings(winner, second, costs, _cheapest_class(costs, winner, limit))


class RunOff:
    """Of the two classes that most voters rank first, the one wins that more voters prefer; ties to the smaller class.

    ``votes`` are rankings of shape (rows, voters, classes): classes in the order of each voter, best first.
    """

    ranks = True

    def scores(self, votes: NDArray[np.int64], n_classes: int) -> NDArray[np.int64]:
        """Votes of the first round; a class in the second has the number of voters, and its votes there, instead."""
        return self._elect(votes)[2]

    def standings(
        self, votes: NDArray[np.int64], n_classes: int, reach: Reach, limit: int, every: bool = False
    ) -> Standings:
        """Winner, loser of the second round, and what each class needs to win."""
        winner, second, _ = self._elect(votes)
        floors = np.zeros((N_NEEDS, *votes.shape[::2]), np.int64)
        return self._standings(votes, winner, second, reach, limit, floors, every)

    def standings_by_costs(
        self,
        votes: NDArray[np.int64],
        costs: NDArray[np.int64],
        reversing: NDArray[np.int64],
        reach: Reach,
        limit: int,
        every: bool = False,
    ) -> Standings:
        """What rankings and the costs of changing them prove, if no unit reaches several voters.

        ``costs`` of shape (rows, voters, classes) turn a voter to a class; ``reversing`` are those of having it prefer
        the class to the winner.
        """
        winner, second, _ = self._elect(votes)
        floors = np.zeros((N_NEEDS, *votes.shape[::2]), np.int64)
        needs_of_costs(votes, winner, second, costs, reversing, limit, floors)
        return self._standings(votes, winner, second, reach, limit, floors, every)

    def _elect(self, votes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        winner, second = (np.zeros(votes.shape[0], np.int64) for _ in range(2))
        scores = np.zeros(votes.shape[::2], np.int64)
        elect_rows(votes, winner, second, scores)
        return winner, second, scores

    def _standings(
        self,
        votes: NDArray[np.int64],
        winner: NDArray[np.int64],
        second: NDArray[np.int64],
        reach: Reach,
        limit: int,
        floors: NDArray[np.int64],
        every: bool,
    ) -> Standings:
        costs, faced = (np.zeros(votes.shape[::2], np.int64) for _ in range(2))
        runoff_rows(votes, winner, second, reach.starts, reach.touched, limit, floors, every, costs, faced)
        standings = Standings(winner, second, costs, _cheapest_class(faced, winner, limit))
        # Where the winner is best kept out of the second round, either of two classes may win that.
        known = np.take_along_axis(faced, standings.target[:, None], axis=1)[:, 0] == standings.cheapest
        return Standings(winner, second, costs, np.where(known, standings.target, -1))


def _cheapest_class(costs: NDArray[np.int64], winner: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    """The other class of the smallest cost, the smaller index of several; -1 where none is reachable."""
    others = costs.copy()
    np.put_along_axis(others, winner[:, None], limit, axis=1)
    return np.where(others.min(axis=1) < limit, others.argmin(axis=1), -1)

"""Test points on which label-linear voters vote: the weights of all voters, their votes and how far these lead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.blocks import block_rows, map_threads, memory_budget
from flipcert.ensemble.electorate import Electorate
from flipcert.ensemble.linear_votes import LinearVotes
from flipcert.flips._jit.ladder import rounding_slack
from flipcert.flips.costs import score_block
from flipcert.labels.labels import Labels

# Blocks whose results wait to be added up.
_TOGETHER = 8
_SMALLEST_LEAD = 2.0**-900


class VotePoints:
    """Rows of inputs, met in passes; weights are kept where there is room for them.

    They are the very weights that a job on all inputs uses, so that what is proven is about the same numbers. Columns
    of weights, and with them all samples here, are in the order of the voters.

    Parameters
    ----------
    electorate : LinearVotes
        The voters.
    X : ndarray
        All inputs.
    rows : ndarray of int64
        The points: some of them, in ascending order.
    n_jobs : int or None
        Threads.

    Attributes
    ----------
    labels : Labels
        Labels of all columns.
    members : ndarray of int64
        The training sample of each column.
    bounds : ndarray of int64
        Columns of voter i are those from ``bounds[i]`` to ``bounds[i + 1]``.
    voter : ndarray of int64
        The voter of each column.
    votes : ndarray of int64 of shape (n_points, n_voters)
        What each votes for, exactly.
    scores : ndarray of float64 of shape (n_points, n_voters, n_classes)
        Scores of all voters, rounded.
    gaps : ndarray of float64 of shape (n_points, n_voters, n_classes)
        By how much its vote leads each class, rounded down; 0 if that may be a tie, or next to one.
    """

    def __init__(self, electorate: Electorate, X: NDArray[Any], rows: NDArray[np.int64], n_jobs: int | None) -> None:
        assert isinstance(electorate, LinearVotes), "weights are known of label-linear voters only"
        self._electorate, self._X, self._rows, self._n_jobs = electorate, X, rows, n_jobs
        self.members = np.concatenate([voter.members for voter in electorate.voters])
        self.bounds = electorate.weights.bounds
        self.voter = np.repeat(np.arange(len(electorate.voters)), np.diff(self.bounds))
        whole = electorate.labels
        trusted = ~whole.coded.movable[self.members]
        self.labels = Labels.of(whole.codes[self.members], whole.n_classes, trusted, whole.space_is_fixed)
        # Points of one block of the job are met together.
        block = rows // block_rows(X.shape[0], electorate.bytes_per_row)
        self._ranges = list(pairwise([0, *(np.flatnonzero(np.diff(block)) + 1).tolist(), rows.size]))
        self._held: dict[int, NDArray[Any]] | None = None
        if rows.size * electorate.bytes_per_row <= memory_budget():
            blocks = list(self.each(lambda _, weights: weights))
            self._held = {start: own for (start, _), own in zip(self._ranges, blocks, strict=True)}
        parts = list(self.each(self._counted))
        self.votes, self.scores, self.gaps = (np.concatenate([part[k] for part in parts]) for k in range(3))

    @property
    def n_points(self) -> int:
        """Number of points."""
        return self._rows.size

    def each(self, function: Callable[[slice, NDArray[Any]], Any]) -> Iterator[Any]:
        """Call ``function(points, weights)`` on every block of points, on threads; results come in order."""
        for place in range(0, len(self._ranges), _TOGETHER):
            yield from map_threads(
                lambda own: function(slice(*own), self._block(*own)),
                self._ranges[place : place + _TOGETHER],
                self._n_jobs,
            )

    def columns(self, samples: NDArray[np.int64]) -> NDArray[np.float64]:
        """Weights of some columns, of shape (n_points, n_samples)."""
        out = np.empty((self.n_points, samples.size))

        def copied(points: slice, weights: NDArray[Any]) -> None:
            out[points] = weights[:, samples]

        for _ in self.each(copied):
            pass
        return out

    def _block(self, start: int, stop: int) -> NDArray[Any]:
        """Weights of some points."""
        if self._held is not None:
            return self._held[start]
        return np.concatenate(self._electorate.weights.formed(self._X, self._rows[start:stop]), axis=1)

    def pull(self, slopes: NDArray[np.float64]) -> NDArray[np.float64]:
        """What each sample would add to a weighted sum of scores with each label.

        Slopes are of shape (n_points, n_voters, n_classes), what comes back of shape (n_labels, n_classes).
        """

        def of_block(points: slice, weights: NDArray[Any]) -> NDArray[np.float64]:
            out = np.empty((self.labels.n_labels, self.labels.n_classes))
            own = slopes[points].astype(weights.dtype)
            for p, (begin, end) in enumerate(zip(self.bounds[:-1], self.bounds[1:], strict=True)):
                out[begin:end] = weights[:, begin:end].T @ own[:, p]
            return out

        total = np.zeros((self.labels.n_labels, self.labels.n_classes))
        for own in self.each(of_block):
            total += own
        return total

    def _counted(self, _: slice, weights: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """Votes and scores of a block, and gaps of all voters, at least."""
        n_voters, n_classes = self.bounds.size - 1, self.labels.n_classes
        votes = np.empty((weights.shape[0], n_voters), np.int64)
        scores, gaps = (np.empty((weights.shape[0], n_voters, n_classes)) for _ in range(2))
        for i, labels in enumerate(self._electorate.weights.labels):
            own = np.ascontiguousarray(weights[:, self._electorate.weights.of(i)])
            scores[:, i], votes[:, i] = score_block(own, labels, np.zeros((own.shape[0], n_classes)))
            # Where everything overflows, nothing is known of leads.
            with np.errstate(over="ignore", invalid="ignore"):
                totals = np.abs(own.astype(np.float64)).sum(axis=1)
                slack = np.array([rounding_slack(total, labels.n_labels + n_classes + 8) for total in totals])
                leads = np.take_along_axis(scores[:, i], votes[:, i, None], axis=1) - scores[:, i] - slack[:, None]
            leads = np.nan_to_num(leads, nan=0.0, neginf=0.0)
            # Shares of a smaller lead would underflow.
            gaps[:, i] = np.where(leads > _SMALLEST_LEAD, leads, 0.0)
        return votes, scores, gaps

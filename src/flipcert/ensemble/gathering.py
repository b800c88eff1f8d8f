"""Fitted base classifiers put together, with as much as is known about them."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from flipcert.ensemble.assembly import Assembly
from flipcert.ensemble.black_box import BlackBox
from flipcert.ensemble.electorate import Electorate
from flipcert.ensemble.grey_box import GreyBox
from flipcert.ensemble.voters import Voter, is_label_linear, is_white_box
from flipcert.ensemble.votes.election import MostVotes, RunOff
from flipcert.ensemble.votes.plurality import Plurality
from flipcert.ensemble.votes.reach import Buckets
from flipcert.ensemble.white_box import WhiteBox


def gathered(
    estimator: Any,
    voters: list[Voter],
    classes: NDArray[Any],
    vote: str,
    buckets: Buckets,
    pairwise: bool,
    n_jobs: int | None,
) -> Electorate:
    """All voters together, under a majority vote or a run-off; ``buckets`` tell which labels reach whom."""
    electorate = _parted(estimator, voters, classes, buckets, pairwise, n_jobs)
    # Of two classes, most voters prefer the one that most vote for: a majority vote, of which more is known.
    by_majority = vote == "majority" or (classes.size == 2 and is_white_box(estimator))
    if by_majority and buckets.users.shape[1] == 1:
        return electorate
    return Assembly(electorate, MostVotes() if by_majority else RunOff(), buckets)


def _parted(
    estimator: Any,
    voters: list[Voter],
    classes: NDArray[Any],
    buckets: Buckets,
    pairwise: bool,
    n_jobs: int | None,
) -> Electorate:
    """The same under a majority vote, as if no two of them shared a label."""
    labels, rule = buckets.labels, Plurality()
    if not is_white_box(estimator):
        return BlackBox(voters, classes, labels, rule, pairwise)
    plain = is_label_linear(estimator) and all(voter.members.size for voter in voters)
    if plain and not any(voter.label_linear.weights.has_offset for voter in voters):
        return WhiteBox(voters, labels, rule, pairwise)
    return GreyBox(voters, classes, labels, rule, pairwise, n_jobs)

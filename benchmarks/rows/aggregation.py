"""Aggregation of a vote alone: against the compiled dynamic program, and how it grows with the number of voters."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.checks import agree
from benchmarks.dynamic_program import dynamic_program_radii
from benchmarks.records import Record
from benchmarks.settings import Settings
from benchmarks.timing import compare, exponent, sweep
from flipcert.ensemble.votes.radius import change_costs

N_LABELS = 50_000
_DATA = (
    "random votes of 10 classes, the winner with 35 to 75 % of them, costs 1 + Poisson(1200 / N): "
    "like those of standardised CIFAR-10 features"
)


def random_votes(n_voters: int, n_rows: int, n_classes: int = 10) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Votes and costs that look like real ones."""
    rng = np.random.default_rng(n_voters)
    # The same shares for every number of voters: drawn anew, they would drown the growth in how close votes are.
    shares = 0.35 + 0.4 * (np.arange(n_rows) + 0.5) / n_rows
    leading = rng.random((n_rows, n_voters)) < shares[:, None]
    # The other votes go to few classes mostly.
    others = np.minimum(rng.geometric(0.4, (n_rows, n_voters)), n_classes - 1)
    votes = (np.where(leading, 0, others) + rng.integers(0, n_classes, (n_rows, 1))) % n_classes
    costs = 1 + rng.poisson(1200 / n_voters, (n_rows, n_voters, n_classes))
    np.put_along_axis(costs, votes[:, :, None], 0, axis=2)
    return votes, costs


def voters(settings: Settings) -> tuple[int, ...]:
    """Sizes over which growth is measured."""
    return settings.size((500, 1000, 2000, 4000, 8000), (500, 1000, 2000))


def rows(settings: Settings) -> Iterator[Record]:
    """Two ratios and an exponent."""
    for n_voters, target in ((1000, 15.0), (4000, 40.0)):
        votes, costs = random_votes(n_voters, settings.size(64, 16))
        ours = partial(change_costs, votes, costs)
        program = partial(dynamic_program_radii, votes, costs, N_LABELS + 1)
        for t, (cost, radius) in enumerate(zip(ours()[1], program(), strict=True)):
            agree("radius", t, int(cost) - 1, int(radius))
        yield Record(
            name=f"aggregation-{n_voters}",
            group="aggregation",
            job=f"compiled dynamic program over aggregation, N = {n_voters:,}, K = 10",
            measured=compare(program, ours, settings.pairs, time.process_time),
            unit="×",
            target=target,
            at_most=False,
            method=f"processor time for {len(votes)} votes, in turns; the program's table is as long as the votes to "
            "close, shorter than the paper's",
            data=_DATA,
            checked=f"dynamic program: all {len(votes)} radii equal",
            quick=settings.quick,
        )
    sizes = voters(settings)
    problems = [random_votes(n_voters, settings.size(64, 16)) for n_voters in sizes]
    times = sweep([partial(change_costs, *problem) for problem in problems], settings.pairs, time.process_time)
    yield Record(
        name="aggregation-growth",
        group="aggregation",
        job=f"aggregation: growth exponent in N, N = {sizes[0]} to {sizes[-1]:,}",
        measured=exponent(sizes, times),
        target=1.2,
        method="slope of log processor time against log N, all N in every round",
        data=_DATA,
        checked="as above",
        quick=settings.quick,
    )

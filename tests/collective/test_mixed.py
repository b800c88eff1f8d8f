"""Rows of both kinds in one bound on an ensemble: its formula in fractions, a linear program, and all attacks."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

import flipcert
from flipcert.collective.ballot_effects import BallotEffects
from flipcert.collective.effects import Columns
from flipcert.collective.mixed import Mixed
from flipcert.collective.search import Search
from flipcert.collective.vote_effects import VoteEffects
from flipcert.collective.vote_points import VotePoints
from tests.collective.test_votes import shared_flips
from tests.helpers.collective_oracle import most_changed


def ended(search):
    """A search that has come to its end."""
    while not search.finished:
        search.hears(search._effects.prices([(search.cuts, search.shares)])[0])
        search.goes_on(np.inf)
    return search


def searches_of_both(turns, weighed, budget):
    """Searches for shared flips and for what voters cost, which have come to their ends."""
    rows = np.flatnonzero(turns.costs.min(axis=1) <= budget)
    return ended(Search(BallotEffects(weighed, turns), budget, rows)), ended(Search(turns, budget, rows))


def both(seed, budget):
    """A tiny ensemble with its data, its weights, and searches of both kinds."""
    model, data, turns, weighed = shared_flips(seed, budget)
    return (model, *data), weighed, *searches_of_both(turns, weighed, budget)


def divisions(budget, n_voters):
    """All ways to give so many flips to voters."""
    return (own for own in itertools.product(range(budget + 1), repeat=n_voters) if sum(own) <= budget)


def exact_bound(turns, ballots, mixed, weighed):
    """The formula of the bound, in fractions: every division of the flips, and the best labels of each voter."""
    n_voters = weighed.bounds.size - 1

    def priced(effects, search):
        unit, option = (own.ravel() for own in np.indices((effects.n_units, effects.n_options)))
        worth = effects.seen(np.arange(effects.n_units)).coefficients(search.cuts, Columns(unit, option))
        shares = [Fraction(own) for own in search.shares]
        prices = [sum((s * Fraction(g) for s, g in zip(shares, own, strict=True)), Fraction(0)) for own in worth.T]
        return np.array(prices, object).reshape(effects.n_units, effects.n_options)

    of_turns, of_labels = priced(turns, mixed._turns), priced(ballots, mixed)
    codes = weighed.labels.codes
    of_labels[np.arange(codes.size), codes] = Fraction(0)
    of_labels[~weighed.labels.coded.movable] = Fraction(0)
    most = Fraction(0)
    for spent in divisions(mixed.budget, n_voters):
        worth = Fraction(0)
        for p, flips in enumerate(spent):
            own = sorted((max(row) for row in of_labels[weighed.bounds[p] : weighed.bounds[p + 1]]), reverse=True)
            worth += sum(own[:flips], Fraction(0))
            worth += of_turns[p, min(flips, turns.n_options) - 1] if flips else 0
        most = max(most, worth)
    given = sum(Fraction(own) for search in (mixed, mixed._turns) for own in search.shares)
    return mixed.n_points - given + most


@pytest.mark.parametrize("seed", range(10))
def test_any_shares_of_rows_of_both_kinds_prove_what_flips_do(seed):
    budget = 1 + seed % 2
    (model, X, y, points, trusted), weighed, ballots, turns = both(seed, budget)
    if not Mixed.begins(ballots, turns):
        return
    most = most_changed(model, X, y, points, np.ones(len(points), bool), budget, trusted)
    rng = np.random.default_rng(seed)
    mixed = Mixed(ballots, turns, weighed.voter, np.inf)
    assert mixed.at_most == min(ballots.at_most, turns.at_most) >= most
    for k in range(12):
        if k:
            searches = [mixed, mixed._turns]
            drawn = [rng.random(own.shares.size) ** rng.integers(1, 5) for own in searches]
            total = sum(
                np.bincount(own.cuts.point, shares, weighed.n_points)
                for own, shares in zip(searches, drawn, strict=True)
            )
            for own, shares in zip(searches, drawn, strict=True):
                own.shares = np.floor(shares / np.maximum(1.0, total)[own.cuts.point] * 2**20) / 2**20
        mixed.hears(ballots._effects.prices([(mixed.cuts, mixed.shares)])[0])
        exact = exact_bound(turns._effects, ballots._effects, mixed, weighed)
        assert exact <= Fraction(mixed._now) <= exact + Fraction(1, 10**9)
        assert most <= mixed.at_most


@pytest.mark.parametrize(
    ("budget", "partition", "y", "weights"),
    [
        (
            1,
            [0, 0, 1, 1, 0, 2, 2, 2],
            [1, 0, 1, 0, 1, 1, 1, 1],
            [[0, 5, 5, 0, 0, -4, -2, 1], [11, 11, 4, 4, 11, 10, 10, 9]],
        ),
        (
            1,
            [0, 1, 2, 1, 3, 3],
            [1, 0, 1, 0, 1, 0],
            [[3, 10, 3, 10, 2, 4], [5, 5, 4, 0, 0, 0], [4, 1, 1, 0, 5, 0]],
        ),
        (
            2,
            [0, 0, 0, 1, 1, 1, 1],
            [1, 1, 1, 0, 1, 1, 1],
            [
                [1, 1, 1, 3, -4, 0, 0],
                [-1, 3, -1, 3, -2, 2, -1],
                [-4, 2, 1, 0, 5, 0, 0],
                [11, 10, 10, 0, 0, 0, 5],
                [1, 1, 1, -2, 3, 2, 0],
            ],
        ),
    ],
)
def test_rows_of_both_kinds_prove_less_than_rows_of_either(budget, partition, y, weights):
    # Training inputs are unit vectors: the linear kernel makes points their own weights.
    X, y, points = np.eye(len(y)), np.array(y), np.array(weights, np.float64)
    base, n_voters = flipcert.KernelSVM("linear"), max(partition) + 1
    model = flipcert.PartitionEnsemble(base, n_voters, partition, classes=[0, 1], n_jobs=1).fit(X, y)
    turns = VoteEffects(*model.voter_costs(points), budget)
    weighed = VotePoints(model.electorate_, points, np.arange(len(points)), 1)
    ballots, turns = searches_of_both(turns, weighed, budget)
    either = min(ballots.at_most, turns.at_most)
    mixed = ended(Mixed(ballots, turns, weighed.voter, np.inf))
    assert most_changed(model, X, y, points, np.ones(len(points), bool), budget) <= mixed.at_most < either


@pytest.mark.parametrize("seed", range(8))
def test_the_program_with_rows_of_both_kinds_is_solved(seed):
    budget = 1 + seed % 3
    _, weighed, ballots, turns = both(seed, budget)
    if not Mixed.begins(ballots, turns):
        return
    mixed = Mixed(ballots, turns, weighed.voter, np.inf)
    (g, of_g), (h, of_h) = mixed._rows(), mixed._turns._rows()
    label, voter = mixed._columns, mixed._turns._columns
    n, m, n_points, n_voters = label.unit.size, voter.unit.size, mixed.n_points, weighed.bounds.size - 1
    points, spent = np.eye(n_points), voter.option + 1
    of_voter = np.eye(n_voters)[voter.unit].T
    left = np.block(
        [
            [-g, np.zeros((of_g.size, m)), points[of_g]],
            [np.zeros((of_h.size, n)), -h, points[of_h]],
            [np.eye(n_voters)[weighed.voter[label.unit]].T, -of_voter * spent, np.zeros((n_voters, n_points))],
            [np.zeros((1, n)), spent[None], np.zeros((1, n_points))],
            [np.eye(weighed.voter.size)[label.unit].T, np.zeros((weighed.voter.size, m + n_points))],
            [np.zeros((n_voters, n)), of_voter, np.zeros((n_voters, n_points))],
        ]
    )  # fmt: skip
    right = np.concatenate(
        [np.zeros(of_g.size + of_h.size + n_voters), [budget], np.ones(weighed.voter.size + n_voters)]
    )
    aim = np.concatenate([np.zeros(n + m), -np.ones(n_points)])
    best = linprog(aim, left, right, bounds=[(0, None)] * (n + m) + [(0, 1)] * n_points)
    assert mixed._solution.value == pytest.approx(-best.fun, rel=5e-3, abs=5e-3)

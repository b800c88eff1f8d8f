"""One attack on all points of a partition ensemble, against all attacks there are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

import flipcert
from flipcert.collective.ballot_effects import BallotEffects
from flipcert.collective.bound import Search
from flipcert.collective.cuts import cuts_of
from flipcert.collective.effects import Columns
from flipcert.collective.vote_effects import VoteEffects
from flipcert.collective.vote_points import VotePoints
from flipcert.ensemble.votes.radius import change_costs
from tests.ensemble.test_grey_box import Attacking, Quoting
from tests.helpers.collective_oracle import most_changed

BASES = {
    "ridge": flipcert.KernelRidge("linear", reg=1.0),
    "little ridge": flipcert.KernelRidge("linear", reg=0.01),
    "svm": flipcert.KernelSVM("rbf"),
    "neighbours": flipcert.WeightedNeighbors(n_neighbors=1),
    "tree": DecisionTreeClassifier(random_state=0),
    "costs": Quoting(),
    "costs and attacks": Attacking(),
}


def drawn(seed):
    """A tiny problem: whole numbers, where ties are, or any."""
    rng = np.random.default_rng(seed)
    n, n_points, n_voters = int(rng.integers(5, 8)), int(rng.integers(3, 7)), int(rng.integers(2, 6))
    X, points = rng.integers(-3, 4, (n, 2)).astype(float), rng.integers(-3, 4, (n_points, 2)).astype(float)
    if seed % 2:
        X, points = rng.normal(size=(n, 2)), rng.normal(size=(n_points, 2))
    y = np.concatenate([[0, 1, 2], rng.integers(0, 3, n - 3)])
    trusted = rng.random(n) < 0.3 if seed % 3 == 0 else None
    truth = rng.integers(0, 3, n_points) if seed % 4 == 0 else None
    return X, y, points, trusted, truth, n_voters


@pytest.mark.parametrize("classes", [None, [0, 1, 2]])
@pytest.mark.parametrize("name", BASES)
def test_no_attack_changes_more_than_is_proven_and_the_one_found_does_what_is_said(name, classes):
    X, y, points, trusted, truth, n_voters = drawn(10 * len(name) + (classes is None))
    model = flipcert.PartitionEnsemble(BASES[name], n_voters, classes=classes, n_jobs=1).fit(X, y, trusted=trusted)
    before = model.predict(points)
    counted = np.ones(before.size, bool) if truth is None else before == truth
    certificate = model.certify_collectively(points, [1, 2], truth, time_limit=5.0)
    assert certificate.why_one_by_one is None
    for place, budget in enumerate((1, 2)):
        least, proven = certificate.changed_at_least[place], certificate.changed_at_most[place]
        most = most_changed(model, X, y, points, counted, budget, trusted)
        assert least <= most <= proven <= certificate.changed_one_by_one[place]
        attack = certificate.attacks[place]
        if attack is None:
            assert least == 0
            continue
        assert len(attack) <= budget
        assert trusted is None or not trusted[attack.indices].any()
        after = clone(model).fit(X, attack.apply(y)).predict(points)
        if name in ("ridge", "little ridge", "svm", "neighbours"):
            np.testing.assert_array_equal(after, certificate.prediction_after[place])
            assert np.count_nonzero(counted & (after != before)) == least
        # Of others, no more is known of an attack than what it does to one point.
        assert np.count_nonzero(counted & (after != before)) >= least


@pytest.mark.parametrize("seed", [44, *range(8)])
def test_the_last_label_of_a_class_may_go_once_another_has_come_within_the_budget(seed):
    """Labels that are taken back on the way would empty the class that they had made room in."""
    rng = np.random.default_rng(seed)
    n_classes, n = int(rng.choice([2, 2, 2, 3])), int(rng.integers(5, 8))
    model = flipcert.PartitionEnsemble(flipcert.KernelSVM("linear"), int(rng.integers(2, 4)), n_jobs=1)
    X, points = rng.normal(size=(n, 3)), rng.normal(size=(8, 3))
    y = rng.integers(0, n_classes - 1, n)
    y[0] = n_classes - 1
    model.fit(X, y)
    certificate = model.certify_collectively(points, [1, 2], time_limit=5.0)
    for place, budget in enumerate((1, 2)):
        attack, least = certificate.attacks[place], certificate.changed_at_least[place]
        assert (0 if attack is None else len(attack)) <= budget
        most = most_changed(model, X, y, points, np.ones(8, bool), budget)
        assert least <= most <= certificate.changed_at_most[place]


@pytest.mark.parametrize("name", ["ridge", "tree"])
def test_sources_that_touch_one_partition_each_are_units_too(name):
    X, y, points, _, _, _ = drawn(3)
    source = np.arange(y.size) % 4
    model = flipcert.PartitionEnsemble(BASES[name], 3, partition="source", classes=[0, 1, 2], n_jobs=1)
    model.fit(X, y, source=source)
    certificate = model.certify_collectively(points, [1, 2], threat="sources")
    assert certificate.why_one_by_one is None
    units = [set(np.flatnonzero(source == own).tolist()) for own in range(4)]
    before = model.predict(points)
    most = dict.fromkeys((1, 2), 0)
    for budget in most:
        for chosen in itertools.combinations(units, budget):
            places = sorted(set().union(*chosen))
            for labels in itertools.product(range(3), repeat=len(places)):
                changed = y.copy()
                changed[places] = labels
                after = clone(model).fit(X, changed, source=source).predict(points)
                most[budget] = max(most[budget], int(np.count_nonzero(after != before)))
    for place, budget in enumerate((1, 2)):
        assert most[budget] <= certificate.changed_at_most[place] <= certificate.changed_one_by_one[place]


def test_sources_that_touch_several_partitions_are_left_to_single_points():
    X, y, points, _, _, _ = drawn(3)
    model = flipcert.PartitionEnsemble(BASES["ridge"], 3, classes=[0, 1, 2]).fit(X, y, source=np.arange(y.size) % 2)
    certificate = model.certify_collectively(points, 1, threat="sources")
    assert "not what the same flips do" in certificate.why_one_by_one


def changes_of_votes(votes, costs, budget, n_classes):
    """The most rows whose winner changes if flips are dealt out to voters, each turned wherever it can be."""
    n_points, n_voters = votes.shape
    winner = np.array([np.bincount(own, minlength=n_classes).argmax() for own in votes])
    most = 0
    for spent in itertools.product(range(budget + 1), repeat=n_voters):
        if sum(spent) > budget:
            continue
        changed = 0
        for t in range(n_points):
            options = [
                [c for c in range(n_classes) if c == votes[t, i] or costs[t, i, c] <= spent[i]] for i in range(n_voters)
            ]
            changed += any(
                np.bincount(own, minlength=n_classes).argmax() != winner[t] for own in itertools.product(*options)
            )
        most = max(most, changed)
    return most


@pytest.mark.parametrize("seed", range(12))
def test_any_shares_of_any_cuts_prove_what_turned_voters_do(seed):
    rng = np.random.default_rng(seed)
    n_points, n_voters, n_classes, budget = 5, int(rng.integers(2, 5)), 3, int(rng.integers(1, 4))
    votes = rng.integers(0, n_classes, (n_points, n_voters))
    costs = rng.integers(1, 4, (n_points, n_voters, n_classes))
    np.put_along_axis(costs, votes[:, :, None], 0, axis=2)
    most = changes_of_votes(votes, costs, budget, n_classes)
    effects = VoteEffects(votes, costs, budget)
    winner, cheapest, _ = change_costs(votes, costs)
    np.testing.assert_array_equal(effects.winner, winner)
    np.testing.assert_array_equal(effects.costs.min(axis=1), np.minimum(cheapest, budget + 1))
    any_shares_hold(effects, budget, np.flatnonzero(cheapest <= budget), most, rng)


def any_shares_hold(effects, budget, rows, most, rng):
    """Try random shares of all cuts that a search comes by, and its own."""
    search = Search(effects, budget, rows)
    while not search.finished:
        own = search.shares
        for k in range(20):
            if k < 19:
                drawn = rng.random(own.size) ** rng.integers(1, 6)
                total = np.bincount(search.cuts.point, drawn, effects.n_points)[search.cuts.point]
                search.shares = np.floor(drawn / np.maximum(1.0, total) * 2**20) / 2**20
            else:
                search.shares = own
            (prices,) = effects.prices([(search.cuts, search.shares)])
            search.hears(prices)
            assert search.at_most >= most
            # Choices are worth the same one by one and in a pass over all of them.
            unit, option = np.nonzero(prices > 0.0)
            seen = effects.seen(np.unique(unit))
            worth = search.shares @ seen.coefficients(search.cuts, Columns(unit, option))
            np.testing.assert_allclose(worth, prices[unit, option], rtol=1e-9, atol=1e-12)
        search.goes_on(np.inf)


def shared_flips(seed, budget):
    """A tiny ensemble with the effects of its labels."""
    X, y, points, trusted, _, n_voters = drawn(seed)
    model = flipcert.PartitionEnsemble(BASES["ridge"], n_voters, classes=[0, 1, 2], n_jobs=1)
    model.fit(X, y, trusted=trusted)
    turns = VoteEffects(*model.voter_costs(points), budget)
    return model, (X, y, points, trusted), turns, VotePoints(model.electorate_, points, np.arange(len(points)), 1)


@pytest.mark.parametrize("seed", range(6))
def test_any_shares_of_any_cuts_prove_what_flips_do(seed):
    budget = 1 + seed % 2
    model, (X, y, points, trusted), turns, weighed = shared_flips(seed, budget)
    most = most_changed(model, X, y, points, np.ones(len(points), bool), budget, trusted)
    rows = np.flatnonzero(turns.costs.min(axis=1) <= budget)
    any_shares_hold(BallotEffects(weighed, turns), budget, rows, most, np.random.default_rng(seed))


@pytest.mark.parametrize("seed", range(4))
def test_a_flip_moves_the_share_of_a_vote_that_it_closes_of_the_gap(seed):
    budget, theta = 3, (0.0, 0.5, 0.8)[seed % 3]
    _, _, turns, weighed = shared_flips(seed, budget)
    effects = BallotEffects(weighed, turns)
    codes, n_points = weighed.labels.codes, weighed.n_points
    units = np.arange(codes.size)
    columns = Columns(np.repeat(units, 3), np.tile(np.arange(3), codes.size))
    which = np.arange(n_points)
    none = [np.empty(0, np.int64)] * n_points
    cuts = cuts_of(which, effects.gaps, effects.costs <= budget, budget, np.full(n_points, theta), none)
    given = effects.seen(units).coefficients(cuts, columns)
    weights = weighed.columns(units)
    for t, k in itertools.product(range(n_points), range(columns.unit.size)):
        i, new = columns.unit[k], columns.option[k]
        voter, old, winner = weighed.voter[i], codes[i], turns.winner[t]
        vote = weighed.votes[t, voter]
        if new == old:
            continue
        moved = [0.0] * 3
        for q in range(3):
            closes = weights[t, i] * ((old == vote) - int(old == q) - int(new == vote) + int(new == q))
            if q != vote and closes > 0:
                gap = weighed.gaps[t, voter, q]
                moved[q] = min(1.0, closes / gap) if gap > 0 else 1.0
        expected = 0.0
        for c in range(3):
            if c == winner or c == vote or effects.costs[t, c] > budget:
                continue
            effect = max(2 * moved[c], *moved) if vote == winner else moved[c]
            gap = effects.gaps[t, c]
            expected = max(expected, min(1.0, max(0.0, effect - theta * gap / budget) / (gap * (1 - theta))))
        np.testing.assert_allclose(given[t, k], expected, atol=1e-9)


def test_shared_flips_prove_more_than_costs_and_one_attack_changes_many(digits):
    X, y, points, truth = digits
    model = flipcert.PartitionEnsemble(flipcert.KernelRidge("linear", reg=10.0), 10, classes=range(10)).fit(X, y)
    certificate = model.certify_collectively(points[:150], 4, truth[:150], time_limit=6.0)
    assert certificate.changed_at_most[0] < 0.6 * certificate.changed_one_by_one[0]
    assert certificate.changed_at_least[0] >= 2
    (attack,), (after,) = certificate.attacks, certificate.prediction_after
    assert len(attack) <= 4
    np.testing.assert_array_equal(clone(model).fit(X, attack.apply(y)).predict(points[:150]), after)


def test_where_weights_are_too_many_to_be_held_the_same_is_proven(blobs):
    X, y, points, truth = blobs
    model = flipcert.PartitionEnsemble(BASES["ridge"], 4, classes=[0, 1, 2]).fit(X, y)
    held = model.certify_collectively(points, [1, 3], truth)
    with sklearn.config_context(working_memory=1e-3):
        formed = model.certify_collectively(points, [1, 3], truth)
    np.testing.assert_array_equal(formed.changed_at_most, held.changed_at_most)
    assert np.all(formed.changed_at_least <= held.changed_at_most)
    assert np.all(formed.changed_at_least >= 1)


def test_more_flips_never_do_less_and_no_time_proves_what_holds_point_by_point(digits):
    X, y, points, truth = digits
    model = flipcert.PartitionEnsemble(DecisionTreeClassifier(random_state=0), 20).fit(X, y)
    certificate = model.certify_collectively(points, [1, 2, 3, 5, 8, 30], truth, time_limit=20.0)
    assert np.all(np.diff(certificate.changed_at_most) >= 0)
    assert np.all(certificate.changed_at_most <= certificate.changed_one_by_one)
    assert certificate.changed_at_most[0] < certificate.changed_one_by_one[0]
    at_once = model.certify_collectively(points, [1, 2], truth, time_limit=1e-9)
    np.testing.assert_array_equal(at_once.changed_at_most, at_once.changed_one_by_one)

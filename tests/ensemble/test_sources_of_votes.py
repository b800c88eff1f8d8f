"""Ensembles against sources: every subset of sources and all their relabellings are tried."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.tree import DecisionTreeClassifier

import flipcert
from flipcert.ensemble.votes.ballots import Ballots
from flipcert.ensemble.votes.shared_sources import SharedSources
from flipcert.labels.labels import Labels
from flipcert.labels.sources import Sources
from flipcert.labels.threats import SOURCES
from tests.helpers.threat_oracle import (
    Lookup,
    all_labellings,
    changed_sources,
    fewest_to_each_class,
    linear_votes,
    looked_up_vote,
    winner_of_votes,
)


def random_case(rng, rule=None):
    """A small training set with sources, some of them trusted, and how it is cut."""
    n_classes = int(rng.integers(2, 4))
    n = int(rng.integers(4, 10 if n_classes == 2 else 8))
    codes = np.append(np.arange(n_classes), rng.integers(0, n_classes, n - n_classes))
    source = rng.integers(0, rng.integers(1, n + 1), n)
    trusted = rng.random(n) < rng.choice([0.0, 0.25])
    n_sources = np.unique(source).size
    rule = rule or str(rng.choice(["source", "given", "sorted"]))
    n_partitions = int(rng.integers(1, min(4, n_sources if rule == "source" else n) + 1))
    partition = rule
    if rule == "given":
        partition = rng.permutation(np.append(np.arange(n_partitions), rng.integers(0, n_partitions, n - n_partitions)))
    return codes, n_classes, source, trusted, n_partitions, partition


def truth_of_lookup(X, codes, parts, source, trusted, n_classes, space, salt):
    labellings = all_labellings(codes, n_classes, trusted)
    votes = {}
    for part in range(parts.max() + 1):
        own = np.flatnonzero(parts == part)
        for labels in {tuple(row) for row in labellings[:, own].tolist()}:
            votes[part, labels] = looked_up_vote(X[own], labels, space, salt)
    groups = [np.flatnonzero(parts == part) for part in range(parts.max() + 1)]
    winners = np.array([
        winner_of_votes([votes[p, tuple(row[own].tolist())] for p, own in enumerate(groups)], n_classes)
        for row in labellings
    ])  # fmt: skip
    lawful = np.array([space is not None or np.unique(row).size > 1 for row in labellings])
    return fewest_to_each_class(winners, changed_sources(labellings, codes, source), lawful)


def certified_cost(truth, prediction, unreachable):
    """Units that change a prediction."""
    assert truth[prediction] == 0
    return min((cost for c, cost in truth.items() if c != prediction), default=unreachable)


def check_lookup(rng):
    """Any base at all: the radius is never above the truth; returns whether it is the truth."""
    codes, n_classes, source, trusted, n_partitions, partition = random_case(rng)
    X = rng.permutation(codes.size).astype(float)[:, None]
    space = None if rng.random() < 0.4 else range(n_classes)
    salt = int(rng.integers(10**6))
    model = flipcert.PartitionEnsemble(
        Lookup(None if space is None else list(space), salt), n_partitions, partition,
        classes=None if space is None else list(space), n_jobs=1,
    ).fit(X, codes, trusted=trusted, source=source)  # fmt: skip
    certificates = model.certify(np.zeros((1, 1)), threat="sources")
    truth = truth_of_lookup(X, codes, model.partition_, source, trusted, n_classes, space, salt)
    n_sources = np.unique(source).size
    cost = certified_cost(truth, int(certificates.prediction[0]), n_sources + 1)
    assert certificates.radius[0] < cost or certificates.radius[0] == n_sources == cost - 1
    assert certificates.blackbox_radius[0] <= certificates.radius[0] <= certificates.radius_upper[0] == n_sources
    assert model.worst_flips(np.zeros((1, 1)), threat="sources") == [None]
    lower = model.flip_costs(np.zeros((1, 1)), threat="sources")[0]
    assert all(lower[c] <= truth.get(c, n_sources + 1) for c in range(n_classes))
    assert lower.min() == 0
    return certificates.radius[0] == min(cost, n_sources + 1) - 1


def test_any_base_against_sources():
    rng = np.random.default_rng(0)
    assert sum(check_lookup(rng) for _ in range(60)) > 10


def check_linear(rng, rule=None, bases=None):
    """Label-linear voters: exact if partitions share no source, else never above the truth; returns how tight it is."""
    codes, n_classes, source, trusted, n_partitions, partition = random_case(rng, rule)
    n, n_sources = codes.size, np.unique(source).size
    low = int(rng.choice([-3, 0, 1]))
    # The second feature keeps rows apart; at the test point it is 0.
    X = np.stack([rng.integers(low, 5, n), rng.permutation(n) + 1.0], axis=1)
    open_space = bool(rng.random() < 0.3)
    base = rng.choice([None] if bases is None else bases) or flipcert.KernelSVM("linear")
    model = flipcert.PartitionEnsemble(
        base, n_partitions, partition, classes=None if open_space else list(range(n_classes)), n_jobs=1
    )
    model.fit(X, codes, trusted=trusted, source=source)
    point = np.array([[1.0, 0.0]])
    labellings = all_labellings(codes, n_classes, trusted)
    winners, lawful = linear_votes(X[:, 0].astype(int), labellings, model.partition_, n_classes, open_space)
    truth = fewest_to_each_class(winners, changed_sources(labellings, codes, source), lawful)
    found = model.certify(point, threat="sources", exact=True)
    cost = certified_cost(truth, int(found.prediction[0]), n_sources + 1)
    movable = np.unique(source[~trusted])
    apart = all(np.unique(model.partition_[(source == own) & ~trusted]).size <= 1 for own in movable)
    radius, upper = int(found.radius[0]), int(found.radius_upper[0])
    assert found.blackbox_radius[0] <= radius <= upper <= n_sources
    assert radius < cost or radius == n_sources
    plain = model.certify(point, threat="sources")
    assert plain.radius[0] <= radius
    lower, attacked = (model.flip_costs(point, bound, threat="sources")[0] for bound in ("lower", "upper"))
    for c in range(n_classes):
        assert lower[c] <= truth.get(c, n_sources + 1)
        assert attacked[c] >= truth.get(c, n_sources + 1)
    (witness,) = model.worst_flips(point, threat="sources", exact=True)
    if witness is None:
        assert upper == n_sources
    else:
        assert len(witness) == upper + 1 == np.unique(source[witness.indices]).size
        assert set(source[witness.indices]) == set(witness.sources.tolist())
        assert not trusted[witness.indices].any()
        assert (witness.labels != codes[witness.indices]).all()
        again = model.fit(X, witness.apply(codes), trusted=trusted, source=source).predict(point)
        assert again != found.prediction
    if apart and not open_space:
        assert radius == upper == min(cost, n_sources + 1) - 1
        return "exact"
    truth = min(cost, n_sources + 1) - 1
    assert upper >= truth
    kind = "open" if open_space else "shared"
    return f"{kind}, {'exact' if radius == upper else 'tight' if radius == truth else 'loose'}"


def test_label_linear_votes_against_sources():
    rng = np.random.default_rng(1)
    seen = [check_linear(rng) for _ in range(80)]
    assert seen.count("exact") > 20
    assert seen.count("shared, exact") > 5


class Quoting(ClassifierMixin, BaseEstimator):
    """Somebody else's classifier, which tells flip costs, and has never heard of sources."""

    def __init__(self, classes=None):
        self.classes = classes

    def fit(self, X, y, trusted=None):
        self.inner_ = flipcert.KernelSVM("linear", classes=self.classes).fit(X, y, trusted=trusted)
        self.classes_ = self.inner_.classes_
        return self

    def predict(self, X):
        return self.inner_.predict(X)

    def flip_costs(self, X, bound="lower"):
        return self.inner_.flip_costs(X, bound)


def check_quoting(rng):
    """Bases that tell flips only: as many sources as hold so many labels; returns whether the radius is the truth."""
    codes, n_classes, source, trusted, n_partitions, partition = random_case(rng)
    n, n_sources = codes.size, np.unique(source).size
    X = np.stack([rng.integers(-2, 5, n), rng.permutation(n) + 1.0], axis=1)
    classes = list(range(n_classes))
    model = flipcert.PartitionEnsemble(Quoting(), n_partitions, partition, classes=classes, n_jobs=1)
    found = model.fit(X, codes, trusted=trusted, source=source).certify(np.array([[1.0, 0.0]]), threat="sources")
    labellings = all_labellings(codes, n_classes, trusted)
    winners, lawful = linear_votes(X[:, 0].astype(int), labellings, model.partition_, n_classes, False)
    truth = fewest_to_each_class(winners, changed_sources(labellings, codes, source), lawful)
    cost = certified_cost(truth, int(found.prediction[0]), n_sources + 1)
    assert found.blackbox_radius[0] <= found.radius[0] <= cost - 1
    return found.radius[0] == cost - 1


def test_bases_that_tell_flips_only():
    rng = np.random.default_rng(2)
    assert sum(check_quoting(rng) for _ in range(40)) > 20


@pytest.mark.parametrize("base", [flipcert.KernelRidge(), DecisionTreeClassifier(), Quoting()])
@pytest.mark.parametrize("rule", ["source", "sorted", "hash"])
def test_sources_of_one_label_are_flips(base, rule, blobs):
    X, y, X_test, _ = blobs
    model = flipcert.PartitionEnsemble(base, 4, rule, classes=[0, 1, 2]).fit(X, y, source=np.arange(30))
    flips, sources = model.certify(X_test, exact=True), model.certify(X_test, threat="sources", exact=True)
    assert sources.threat == "sources"
    assert sources.limit == sources.n_sources == 30
    for column in ("prediction", "radius", "blackbox_radius", "runner_up"):
        assert np.array_equal(getattr(flips, column), getattr(sources, column)), column
    bound = "exact" if isinstance(base, flipcert.KernelRidge) else "lower"
    assert np.array_equal(model.flip_costs(X_test, bound), model.flip_costs(X_test, bound, threat="sources"))


@pytest.mark.parametrize("base", [flipcert.KernelRidge(), flipcert.KernelSVM(), DecisionTreeClassifier()])
def test_one_source_that_holds_everything(base, blobs):
    X, y, X_test, _ = blobs
    model = flipcert.PartitionEnsemble(base, 3, classes=[0, 1, 2]).fit(X, y, source=np.zeros(30))
    assert (model.certify(X_test, threat="sources").radius == 0).all()
    alone = flipcert.PartitionEnsemble(base, 1, "source", classes=[0, 1, 2]).fit(X, y, source=np.zeros(30))
    certificates = alone.certify(X_test, threat="sources")
    assert (certificates.radius == 0).all()
    if not isinstance(base, DecisionTreeClassifier):
        assert certificates.exact.all()


def test_trusted_sources_cannot_attack(blobs):
    X, y, X_test, _ = blobs
    source = np.array(["ann", "bob", "cho"])[np.arange(30) % 3]
    for rule in ("source", "sorted"):
        model = flipcert.PartitionEnsemble(flipcert.KernelRidge(), 3, rule, classes=[0, 1, 2])
        free = model.fit(X, y, source=source).certify(X_test, threat="sources")
        tied = model.fit(X, y, trusted=source == "bob", source=source).certify(X_test, threat="sources")
        assert (tied.radius >= free.radius).all()
        everyone = model.fit(X, y, trusted=np.ones(30, bool), source=source).certify(X_test, threat="sources")
        assert (everyone.radius == 3).all()
        for witness in model.fit(X, y, trusted=source == "bob", source=source).worst_flips(X_test, threat="sources"):
            assert witness is None or "bob" not in witness.sources


def test_attacks_by_named_sources(digits):
    X, y, X_test, _ = digits
    source = np.array([f"worker {k}" for k in np.random.default_rng(0).integers(0, 40, len(y)) ** 2 // 40])
    model = flipcert.PartitionEnsemble(flipcert.KernelRidge(reg=10.0), 7, "source", classes=range(10))
    certificates = model.fit(X, y, source=source).certify(X_test[:40], threat="sources")
    assert certificates.exact.mean() > 0.8
    assert (certificates.radius >= certificates.blackbox_radius).all()
    assert (certificates.radius <= model.certify(X_test[:40]).radius).all()
    witnesses = model.worst_flips(X_test[:40], threat="sources")
    for t in range(0, 40, 13):
        witness = witnesses[t]
        assert len(witness) == certificates.radius_upper[t] + 1
        assert set(witness.sources) == set(source[witness.indices])
        again = clone(model).fit(X, witness.apply(y), source=source)
        assert again.predict(X_test[t : t + 1])[0] == certificates.target[t] != certificates.prediction[t]


def test_sources_go_to_the_emptiest_partition():
    source = np.repeat(["d", "c", "b", "a", "e"], [3, 2, 2, 4, 1])
    X = np.arange(12.0)[:, None]
    # a: 4 labels to partition 0; d: 3 to 1; b: 2 to 1, which has fewer; c: 2 to 0; e: 1 to 1.
    where = {"a": 0, "d": 1, "b": 1, "c": 0, "e": 1}
    expected = [where[own] for own in source]
    assert flipcert.assign_partitions(X, 2, "source", source=source).tolist() == expected
    model = flipcert.PartitionEnsemble(flipcert.KernelSVM(), 2, "source").fit(X, np.arange(12) % 2, source=source)
    assert model.partition_.tolist() == expected
    # Equal sizes: by name, then the smaller partition.
    assert flipcert.assign_partitions(X[:4], 3, "source", source=[9, 1, 5, 5]).tolist() == [2, 1, 0, 0]


@pytest.mark.parametrize(
    ("n_partitions", "source", "message"),
    [
        (2, None, r'partition="source" needs to know who gave the labels; pass one id a label to fit\(X, y, source'),
        (4, np.arange(30) % 3, "n_partitions=4 is more than the 3 different sources, .* use fewer partitions"),
    ],
)
def test_partitions_that_sources_do_not_fill(n_partitions, source, message, blobs):
    X, y, _, _ = blobs
    with pytest.raises(ValueError, match=message):
        flipcert.PartitionEnsemble(flipcert.KernelSVM(), n_partitions, "source").fit(X, y, source=source)


def test_threat_without_sources(blobs):
    X, y, X_test, _ = blobs
    model = flipcert.PartitionEnsemble(flipcert.KernelSVM(), 3).fit(X, y)
    with pytest.raises(ValueError, match=r'threat="sources" is refused by PartitionEnsemble: nobody said who gave'):
        model.certify(X_test, threat="sources")


def test_sources_that_reach_many_partitions(digits):
    X, y, X_test, _ = digits
    source = np.random.default_rng(0).integers(0, 40, len(y)) ** 2 // 40
    model = flipcert.PartitionEnsemble(flipcert.KernelRidge(reg=10.0), 7, classes=range(10)).fit(X, y, source=source)
    certificates = model.certify(X_test[:40], threat="sources")
    assert (certificates.radius_upper < certificates.n_sources).all()
    assert certificates.exact.any()
    witnesses = model.worst_flips(X_test[:40], threat="sources")
    for t in range(0, 40, 13):
        witness = witnesses[t]
        assert len(witness) == certificates.radius_upper[t] + 1
        assert set(witness.sources) == set(source[witness.indices])
        again = clone(model).fit(X, witness.apply(y), source=source)
        assert again.predict(X_test[t : t + 1])[0] == certificates.target[t] != certificates.prediction[t]
    with pytest.raises(flipcert.UnsolvedError, match=r"is not known \(it is between"):
        model.flip_costs(X_test[:2], "exact", threat="sources")


def bound_by_fractions(votes, lower, touched, n_classes):
    """Fewest sources that change a vote: what powers in fractions and touched partitions prove, class by class."""
    counts = [votes.count(c) for c in range(n_classes)]
    winner, n_sources = counts.index(max(counts)), len(touched)
    reach = sorted((len(own) for own in touched), reverse=True)
    proven = []
    for c in range(n_classes):
        if c == winner:
            continue
        need = counts[winner] - counts[c] + (winner < c)
        shares, cheapest = [], [0] + [10**9] * need
        for vote, costs in zip(votes, lower, strict=True):
            ways = [] if vote == c else [(2 if vote == winner else 1, int(costs[c]))]
            ways += [(1, int(costs[q])) for q in range(n_classes) if vote == winner and q not in (winner, c)]
            ways = [(closed, cost) for closed, cost in ways if cost <= n_sources]
            shares.append(max((Fraction(closed, cost) for closed, cost in ways), default=Fraction(0)))
            cheapest = [
                min([cheapest[k], *(cheapest[max(k - closed, 0)] + cost for closed, cost in ways)])
                for k in range(need + 1)
            ]
        powers = sorted((sum(shares[i] for i in own) for own in touched), reverse=True)
        enough = [k for k in range(n_sources + 1) if sum(powers[:k]) >= need and sum(reach[:k]) >= cheapest[need]]
        proven.append(min(enough, default=n_sources + 1))
    return min(proven)


def check_powers(rng):
    """Shared sources with any costs: the bound is that of fractions, however shares are rounded on the way."""
    n_classes, n_voters, n_sources = int(rng.integers(2, 5)), int(rng.integers(1, 9)), int(rng.integers(2, 60))
    source, partition = (rng.integers(0, high, 3 * n_sources) for high in (n_sources, n_voters))
    source[:n_sources] = np.arange(n_sources)
    members = [np.flatnonzero(partition == i) for i in range(n_voters)]
    labels = Labels.of(source % n_classes, n_classes, sources=Sources(np.arange(n_sources), source))
    votes = rng.integers(0, n_classes, n_voters)
    lower = rng.integers(1, rng.integers(2, n_sources + 3), (1, n_voters, n_classes))
    lower[0, np.arange(n_voters), votes] = 0
    flags = np.ones(1, bool)
    ballots = Ballots(votes[None], lower, lower, np.ones(n_voters, bool), labels, flags, ~flags, SOURCES)
    shared = SharedSources(labels, members)
    found = int(shared.certify(ballots).radius[0]) + 1
    touched = [sorted({int(partition[k]) for k in np.flatnonzero(source == j)}) for j in range(n_sources)]
    assert found == bound_by_fractions(votes.tolist(), lower[0], touched, n_classes)
    # In units that no cost divides, all is rounded, and settled in whole numbers of any size.
    shared.__dict__["_unit"] = 2**20 + 7
    assert int(shared.certify(ballots).radius[0]) + 1 == found
    return found


def test_powers_are_fractions():
    rng = np.random.default_rng(3)
    assert len({check_powers(rng) for _ in range(200)}) > 5

"""Ensembles whose partitions are a hash of rows, while rows come and go: all training sets of small ones are tried."""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import flipcert
from flipcert.ensemble.placing import placed
from tests.helpers.threat_oracle import (
    Lookup,
    looked_up_vote,
    operations,
    place_of_row,
    training_sets,
    winner_of_votes,
)

ROW_THREATS = ["deletions", "insertions", "replacements", "edits"]


def random_rows(rng, n_classes, most=6):
    """A small training set, and new rows that cover every partition."""
    n_partitions = int(rng.integers(1, 6))
    n = int(rng.integers(n_classes, most))
    rows = [(float(value),) for value in rng.choice(20, n)]
    codes = np.append(np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)).tolist()
    trusted = (rng.random(n) < rng.choice([0.0, 0.3])).tolist()
    pool, value = {}, 0.5
    while len(pool) < n_partitions:
        pool.setdefault(place_of_row((value,), n_partitions), (value,))
        value += 1.0
    return rows, codes, trusted, list(pool.values()), n_partitions


def winner_after(content, n_partitions, n_classes, vote, open_space):
    """Winner of the votes on a training set; None if ``fit`` refuses it."""
    there = sorted({c for _, c in content})
    if not content or (open_space and len(there) < 2):
        return None
    first = there[0] if open_space else 0
    parts = [[] for _ in range(n_partitions)]
    for row, c in content:
        parts[place_of_row(row, n_partitions)].append((row, c))
    return winner_of_votes([vote(tuple(own), first) for own in parts], n_classes)


def check_hashed_lookup(rng):
    """Any base: no attack within the radius changes the vote; returns how many budgets were tried."""
    n_classes = int(rng.integers(2, 4))
    rows, codes, trusted, pool, n_partitions = random_rows(rng, n_classes)
    open_space, salt = bool(rng.random() < 0.4), int(rng.integers(10**6))
    space = None if open_space else range(n_classes)

    @cache
    def vote(own, first):
        return looked_up_vote([row for row, _ in own], [c for _, c in own], space, salt, first)

    model = flipcert.PartitionEnsemble(
        Lookup(None if open_space else list(space), salt), n_partitions, "hash",
        classes=None if open_space else list(space), n_jobs=1,
    ).fit(np.array(rows), codes, trusted=trusted)  # fmt: skip
    n_tried = 0
    for threat in ["flips", *ROW_THREATS]:
        found = model.certify(np.zeros((1, 1)), threat=threat)
        prediction, radius = int(found.prediction[0]), int(found.radius[0])
        assert (found.radius == found.blackbox_radius).all()
        assert found.radius_upper[0] == found.limit == len(codes)
        for budget in range(min(radius, 2) + 1):
            for content in training_sets(rows, codes, trusted, pool, n_classes, threat, budget):
                after = winner_after(content, n_partitions, n_classes, vote, open_space)
                assert after in (None, prediction), (threat, budget, content)
            n_tried += budget > 0
        lower = model.flip_costs(np.zeros((1, 1)), threat=threat)[0]
        assert lower[prediction] == 0
        assert np.delete(lower, prediction).min() > min(radius, trusted.count(False))
    return n_tried


def test_any_base_while_rows_come_and_go():
    rng = np.random.default_rng(0)
    assert sum(check_hashed_lookup(rng) for _ in range(60)) > 40


@pytest.mark.parametrize("threat", ROW_THREATS)
@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("sorted", 'rows of partition="sorted" move to other partitions when others come or go'),
        ("random", 'rows of partition="random" move to other partitions'),
        ("source", 'sources of partition="source" move to other partitions when they gain or lose rows'),
        (np.arange(30) % 3, "nobody knows which partition a new row would be given"),
    ],
)
def test_rules_under_which_rows_move(rule, reason, threat, blobs):
    X, y, X_test, _ = blobs
    model = flipcert.PartitionEnsemble(flipcert.KernelSVM("rbf"), 3, rule).fit(X, y, source=np.arange(30))
    with pytest.raises(ValueError, match=f'threat="{threat}" is refused by PartitionEnsemble: {reason}') as error:
        model.certify(X_test, threat=threat)
    assert 'partition="hash" keeps every row in its place' in str(error.value)


def test_rows_of_a_kernel_matrix(blobs):
    X, y, _, _ = blobs
    model = flipcert.PartitionEnsemble(flipcert.KernelSVM("precomputed"), 3, "hash").fit(X @ X.T, y)
    with pytest.raises(ValueError, match="rows of a precomputed kernel matrix change when others come or go"):
        model.certify(X @ X.T, threat="deletions")


BASES = [
    flipcert.KernelRidge(),
    flipcert.WeightedNeighbors(1),
    flipcert.LabelSpreading(2),
    DecisionTreeClassifier(),
    make_pipeline(StandardScaler(), flipcert.KernelSVM("rbf")),
]


@pytest.mark.parametrize("base", BASES, ids=lambda base: type(base).__name__)
@pytest.mark.parametrize("n_partitions", [8, 45])
def test_votes_alone_while_rows_come_and_go(base, n_partitions, blobs):
    """Of bases that know nothing of rows, each may turn one vote; a replacement two. 45 partitions: many are empty."""
    X, y, X_test, _ = blobs
    model = flipcert.PartitionEnsemble(base, n_partitions, "hash", classes=[0, 1, 2]).fit(X, y)
    flips = model.certify(X_test)
    expected = flipcert.blackbox_radius(model.electorate_.votes(X_test, len(X_test)), 3)
    for threat in ROW_THREATS:
        found = model.certify(X_test, threat=threat)
        assert np.array_equal(found.prediction, flips.prediction)
        assert np.array_equal(found.prediction, model.predict(X_test))
        halved = expected // 2 if threat == "replacements" else expected
        if threat == "deletions":
            # An empty partition cannot be turned.
            assert (found.radius >= expected).all()
            assert n_partitions == 45 or np.array_equal(found.radius, expected)
        else:
            assert np.array_equal(found.radius, halved)
            assert np.array_equal(found.blackbox_radius, halved)
        assert found.threat == threat
        assert (found.radius_upper == 30).all()
        assert model.worst_flips(X_test, threat=threat) == [None] * len(X_test)


def test_empty_partitions_vote_for_the_first_class(blobs):
    X, y, X_test, _ = blobs
    for base in (flipcert.KernelRidge(), DecisionTreeClassifier()):
        model = flipcert.PartitionEnsemble(base, 60, "hash", classes=["a", "b", "c"]).fit(
            X, np.array(["a", "b", "c"])[y]
        )
        sizes = np.bincount(model.partition_, minlength=60)
        votes = model.electorate_.votes(X_test, len(X_test))
        assert (sizes == 0).sum() > 20
        assert (votes[:, sizes == 0] == 0).all()
        assert all(
            own.predict(X_test)[0] == "a" for own, size in zip(model.estimators_, sizes, strict=True) if not size
        )
        certificates = model.certify(X_test)
        assert (certificates.radius >= certificates.blackbox_radius).all()
        assert np.array_equal(model.predict(X_test), certificates.prediction)


def test_partitions_keep_the_order_of_rows_and_their_seed(blobs):
    """What an attacker does not touch is trained as before, whatever else comes or goes."""
    X, y, X_test, _ = blobs
    base = DecisionTreeClassifier(max_features=1)
    model = flipcert.PartitionEnsemble(base, 4, "hash", classes=[0, 1, 2])
    before = model.fit(X, y).electorate_.votes(X_test, len(X_test))
    rows = np.delete(np.arange(30), np.flatnonzero(model.partition_ == 2)[:2])
    after = model.fit(X[rows], y[rows]).electorate_.votes(X_test, len(X_test))
    assert np.array_equal(np.delete(before, 2, axis=1), np.delete(after, 2, axis=1))


def winner_of_scores(scores, counts, open_space):
    """Winner of the votes of label-linear classifiers; None if ``fit`` refuses their training set."""
    there = [c for c, count in enumerate(counts) if count or not open_space]
    if sum(counts) == 0 or len(there) < 2:
        return None
    votes = [max(there, key=lambda c: (own[c], -c)) for own in scores]
    return max(there, key=lambda c: (votes.count(c), -c))


def fewest_operations(content, trusted, n_partitions, n_classes, new, threat, most, open_space):
    """Fewest operations that change a vote of label-linear classifiers, if a new row weighs up to ``new`` anywhere.

    ``content`` are the rows: partition, class, weight. More than ``most`` operations are not tried.
    """
    free = [i for i in range(len(content)) if not trusted[i]]
    options = list(itertools.product(range(n_partitions), range(n_classes), (Fraction(new), -Fraction(new))))

    def winner(changes):
        scores, counts = [[Fraction(0)] * n_classes for _ in range(n_partitions)], [0] * n_classes
        for sign, (part, c, weight) in itertools.chain(((1, own) for own in content), changes):
            scores[part][c] += sign * Fraction(weight)
            counts[c] += sign
        return winner_of_scores(scores, counts, open_space)

    before = winner([])
    for budget in range(1, most + 1):
        for n_flips, n_deleted, n_inserted in operations(threat, budget):
            for gone in itertools.combinations(free, n_deleted):
                for flipped in itertools.combinations([i for i in free if i not in gone], n_flips):
                    for to in itertools.product(range(n_classes), repeat=n_flips):
                        changes = [(-1, content[i]) for i in (*gone, *flipped)]
                        changes += [(1, (content[i][0], c, content[i][2])) for i, c in zip(flipped, to, strict=True)]
                        for added in itertools.combinations_with_replacement(options, n_inserted):
                            if winner([*changes, *((1, own) for own in added)]) not in (None, before):
                                return budget
    return most + 1


def check_hashed_machines(rng):
    """Kernel machines: what rows that come and go cost is known; returns how tight the radius is."""
    n_classes = int(rng.integers(2, 4))
    n_partitions, n = int(rng.integers(1, 4)), int(rng.integers(3, 6))
    low = int(rng.choice([-3, 0]))
    X = np.stack([rng.integers(low, 6, n), rng.permutation(n) + 1.0], axis=1)
    codes = np.append(np.arange(n_classes), rng.integers(0, n_classes, n - n_classes))[rng.permutation(n)]
    trusted = rng.random(n) < rng.choice([0.0, 0.3])
    max_norm = float(rng.choice([8.3, 12.1]))
    base = flipcert.KernelSVM("linear", max_norm=max_norm)
    open_space = bool(rng.random() < 0.3)
    classes = None if open_space else list(range(n_classes))
    model = flipcert.PartitionEnsemble(base, n_partitions, "hash", classes=classes, n_jobs=1)
    model.fit(X, codes, trusted=trusted)
    threat = str(rng.choice(ROW_THREATS))
    point = np.array([[1.0, 0.0]])
    found = model.certify(point, threat=threat)
    radius, upper = int(found.radius[0]), int(found.radius_upper[0])
    assert found.blackbox_radius[0] <= radius <= upper <= n
    parts, most = model.partition_.tolist(), 2 if threat in ("replacements", "edits") else 3
    content = list(zip(parts, codes.tolist(), X[:, 0].tolist(), strict=True))
    cost = fewest_operations(content, trusted, n_partitions, n_classes, max_norm, threat, most, open_space)
    assert radius + 1 <= cost or cost == most + 1
    lower = model.flip_costs(point, threat=threat)[0]
    assert np.delete(lower, found.prediction[0]).min() <= cost or cost == most + 1
    (witness,) = model.worst_flips(point, threat=threat)
    if witness is None:
        assert upper == n
    else:
        assert len(witness) == upper + 1
        assert not trusted[witness.indices].any()
        assert not trusted[witness.deleted].any()
        assert (np.linalg.norm(witness.inserted, axis=1) <= max_norm).all()
        again = clone(model).fit(witness.apply_inputs(X), witness.apply(codes))
        assert again.predict(point) != found.prediction
    kind = f"{threat}{', open' if open_space else ''}{', empty' if np.unique(parts).size < n_partitions else ''}"
    if cost > most:
        return f"{kind}: beyond" if radius >= most else f"{kind}: loose"
    return f"{kind}: {'exact' if radius == upper == cost - 1 else 'tight' if radius == cost - 1 else 'loose'}"


def test_kernel_machines_while_rows_come_and_go():
    rng = np.random.default_rng(1)
    seen = [check_hashed_machines(rng) for _ in range(40)]
    for threat in ("deletions", "insertions", "edits"):
        assert f"{threat}: exact" in seen
    assert "replacements: tight" in seen


@pytest.mark.parametrize("threat", ["deletions", "insertions", "edits"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_new_rows_lie_where_they_have_to(threat, dtype, digits):
    X, y, X_test, _ = digits
    X, X_test = X.astype(dtype), X_test[:30].astype(dtype)
    model = flipcert.PartitionEnsemble(flipcert.KernelSVM(flipcert.kernels.RBF(0.5)), 9, "hash", classes=range(10))
    certificates = model.fit(X, y).certify(X_test, threat=threat)
    assert (certificates.radius >= certificates.blackbox_radius).all()
    assert (certificates.radius > certificates.blackbox_radius).any()
    assert certificates.exact.mean() > 0.8
    assert np.array_equal(certificates.prediction, model.predict(X_test))
    witnesses = model.worst_flips(X_test, threat=threat)
    for t in range(0, 30, 7):
        witness = witnesses[t]
        assert len(witness) == certificates.radius_upper[t] + 1
        assert witness.threat == threat
        again = clone(model).fit(witness.apply_inputs(X), witness.apply(y))
        assert again.predict(X_test[t : t + 1])[0] == certificates.target[t] != certificates.prediction[t]


def test_replacements_are_half_of_what_comes_and_goes(digits):
    X, y, X_test, _ = digits
    machine = flipcert.KernelSVM(flipcert.kernels.RBF(0.5))
    model = flipcert.PartitionEnsemble(machine, 9, "hash", classes=range(10)).fit(X, y)
    found = {threat: model.certify(X_test, threat=threat) for threat in ROW_THREATS}
    assert (found["replacements"].radius >= found["edits"].radius // 2).all()
    assert (found["replacements"].radius <= np.minimum(found["deletions"].radius, found["insertions"].radius)).all()
    assert (found["replacements"].radius > found["replacements"].blackbox_radius).any()


@pytest.mark.parametrize("row", [np.zeros(3), np.array([0.0, 2.0, -1e100]), np.array([5e-324]), np.array([-7.25])])
def test_inputs_next_to_one(row):
    for number in range(5):
        others = list(itertools.islice(placed(row, number, 5), 3))
        assert others or row[0] == 5e-324
        for other in others:
            assert place_of_row(other, 5) == number
            assert np.linalg.norm(other - row) <= 1e-12 * np.linalg.norm(row) + 1e-300
            assert (np.abs(other) <= np.abs(row)).all() or not row.any()


def test_a_deletion_may_empty_a_partition_and_remove_a_class_at_once():
    """All weights are positive, but who has no row left votes for the first class of those that are left."""
    content = [(1, 1, 1.0), (1, 2, 3.0), (0, 0, 2.0), (1, 1, 3.0), (1, 1, 3.0)]
    X = []
    for part, _, weight in content:
        value = next(v for v in itertools.count(1.0) if place_of_row((weight, v), 2) == part)
        X.append([weight, value])
    X, y, point = np.array(X), [c for _, c, _ in content], np.array([[1.0, 0.0]])
    model = flipcert.PartitionEnsemble(flipcert.KernelSVM("linear"), 2, "hash").fit(X, y)
    certificates = model.certify(point, threat="deletions")
    assert certificates.prediction[0] == 0
    assert certificates.radius[0] == 0
    assert clone(model).fit(np.delete(X, 2, axis=0), np.delete(y, 2)).predict(point)[0] == 1

"""Ensembles whose partitions are a hash of rows, while rows come and go: all training sets of small ones are tried."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import flipcert
from tests.helpers.threat_oracle import Lookup, looked_up_vote, place_of_row, training_sets, winner_of_votes

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

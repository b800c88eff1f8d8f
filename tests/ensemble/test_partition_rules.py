"""Rules that cut the training set without ever seeing a label."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone

import flipcert
from flipcert.ensemble.partition import assign_partitions, lexicographic_places

RULES = ["sorted", "hash", "random"]


@pytest.mark.parametrize("rule", RULES)
def test_rules_fill_every_partition(rule):
    X = np.random.default_rng(0).normal(size=(200, 3))
    numbers = assign_partitions(X, 7, rule, 0)
    assert set(numbers) == set(range(7))
    if rule != "hash":
        assert np.ptp(np.bincount(numbers)) <= 1


@pytest.mark.parametrize("rule", ["sorted", "hash"])
def test_content_rules_ignore_the_order_of_rows_and_keep_copies_together(rule):
    rng = np.random.default_rng(1)
    X = rng.integers(0, 3, size=(300, 4)).astype(float)
    numbers = assign_partitions(X, 5, rule, 0)
    order = rng.permutation(300)
    assert np.array_equal(assign_partitions(X[order], 5, rule, 0), numbers[order])
    for row in np.unique(X, axis=0):
        assert np.unique(numbers[(row == X).all(axis=1)]).size == 1
    assert np.array_equal(assign_partitions(np.where(X == 0, -0.0, X), 5, rule, 0), numbers)
    assert np.array_equal(assign_partitions(X.astype(np.float32), 5, rule, 0), numbers)


def test_sorted_rule_deals_rows_out_in_lexicographic_order():
    X = np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 1.0], [1.0, -1.0], [0.0, 1.0]])
    assert assign_partitions(X, 2, "sorted", 0).tolist() == [1, 1, 0, 0, 0]


def test_hash_rule_is_the_same_everywhere():
    X = np.arange(12.0).reshape(6, 2)
    assert assign_partitions(X, 2, "hash", 0).tolist() == [0, 0, 1, 1, 0, 1]
    assert np.array_equal(assign_partitions(X, 2, "hash", 0), assign_partitions(X.copy(), 2, "hash", 1))


def test_random_rule_follows_its_seed():
    X = np.zeros((50, 1))
    assert np.array_equal(assign_partitions(X, 5, "random", 3), assign_partitions(X, 5, "random", 3))
    assert not np.array_equal(assign_partitions(X, 5, "random", 3), assign_partitions(X, 5, "random", 4))


@pytest.mark.parametrize("rule", [*RULES, np.arange(30) % 3])
def test_partitions_do_not_depend_on_labels(rule, blobs):
    X, y, _, _ = blobs
    model = flipcert.PartitionEnsemble(flipcert.KernelSVM(), n_partitions=3, partition=rule)
    before = model.fit(X, y).partition_
    assert np.array_equal(clone(model).fit(X, y[::-1].copy()).partition_, before)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_partitions": 0}, "n_partitions must be a whole number from 1 to the number of rows; got 0"),
        ({"n_partitions": 31}, "got 31 for 30 samples"),
        ({"n_partitions": 2.0}, "n_partitions must be a whole number"),
        ({"partition": "sort"}, "partition must be one of 'sorted', 'hash', 'random', 'source'; got 'sort'"),
        ({"partition": np.zeros(30, int)}, "partition 1 of n_partitions=10 would be empty"),
        ({"partition": np.arange(30)}, "partition must be at most 9; got 10"),
        ({"partition": np.arange(20) % 10}, "partition has 20 entries, but X has 30 rows"),
        ({"partition": np.full(30, 0.5)}, "partition must hold whole numbers"),
    ],
)
def test_bad_partitions(options, message, blobs):
    X, y, _, _ = blobs
    with pytest.raises(ValueError, match=message):
        flipcert.PartitionEnsemble(flipcert.KernelSVM(), **options).fit(X, y)


@pytest.mark.parametrize("seed", [None, np.random.RandomState(0), "a"])
def test_random_partitions_need_a_seed(seed, blobs):
    X, y, _, _ = blobs
    with pytest.raises(ValueError, match="random_state must be a whole number"):
        flipcert.PartitionEnsemble(flipcert.KernelSVM(), 2, "random", random_state=seed).fit(X, y)


def test_too_many_copies_leave_partitions_empty():
    X = np.repeat([[0.0], [1.0]], 10, axis=0)
    with pytest.raises(
        ValueError, match=r"partition 2 of n_partitions=4 would be empty.*keeps identical rows together"
    ):
        flipcert.PartitionEnsemble(flipcert.KernelSVM(), n_partitions=4).fit(X, np.arange(20) % 2)


@settings(max_examples=200)
@given(
    st.integers(1, 30).flatmap(
        lambda n: st.integers(1, 4).flatmap(
            lambda d: arrays(np.float64, (n, d), elements=st.sampled_from([-0.0, 0.0, 1.0, -2.0, 1e-300, 1e300]))
        )
    )
)
def test_lexicographic_places(X):
    _, expected = np.unique(X + 0.0, axis=0, return_inverse=True)
    assert np.array_equal(lexicographic_places(X), expected.ravel())


def test_partitions_of_anything_that_is_a_table():
    assert flipcert.assign_partitions([[3], [1], [2], [0]], 2).tolist() == [1, 1, 0, 0]
    with pytest.raises(ValueError, match=r"X must have two dimensions, one row a sample; got shape \(3,\)"):
        flipcert.assign_partitions([3, 1, 2], 2)

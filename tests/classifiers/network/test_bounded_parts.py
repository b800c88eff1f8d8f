"""The parts of which bounds on networks are made: sums, shares, margins, and the search for the last proof."""

from __future__ import annotations

import itertools

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from flipcert.classifiers.network._jit.top import flips_below, sum_of_largest
from flipcert.classifiers.network.boxes import cannot_win
from flipcert.classifiers.network.intervals import Box, softmax, softmax_ahead
from flipcert.classifiers.network.search import raise_floor


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.5, 7.0]), max_size=40), st.integers(0, 45))
def test_sum_of_largest(values, count):
    # Dyadic numbers: nothing rounds.
    assert sum_of_largest(np.array(values), len(values), count) == sum(sorted(values, reverse=True)[:count])


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 1e-4, 1.0]))
def test_flips_below_a_limit(seed, small):
    # Dyadic numbers, many alike: nothing rounds. Some are far below the largest, where the search takes all at once.
    rng = np.random.default_rng(seed)
    n_classes, n = int(rng.integers(2, 5)), int(rng.integers(1, 25))
    weights = rng.integers(-9, 10, (3, n)) / 8 * np.where(rng.random(n) < 0.5, 1.0, np.round(small * 2**20) / 2**20)
    extra, scale = rng.integers(0, 9, n) / 8 * rng.integers(0, 2), np.array([1.0, 0.5, 2.0])
    codes, movable = rng.integers(0, n_classes, n), rng.random(n) < 0.8
    winners, limits = rng.integers(0, n_classes, 3), rng.integers(-1, 20, (3, n_classes)) / 2
    counts = np.empty(limits.shape, np.int64)
    flips_below(weights, extra, scale, codes, movable, winners, limits, counts)
    votes = np.eye(n_classes)
    for t, c in itertools.product(range(3), range(n_classes)):
        if c == winners[t] or limits[t, c] <= 0:
            assert counts[t, c] == -1
            continue
        lead = votes[winners[t]] - votes[c]
        gains = [
            max(weights[t, i] * (lead[codes[i]] - lead[new]) for new in range(n_classes) if new != codes[i])
            + scale[t] * extra[i]
            for i in np.flatnonzero(movable)
        ]
        sums = np.cumsum(np.sort(np.maximum(gains, 0.0))[::-1])
        assert counts[t, c] == (sums < limits[t, c]).sum()


@settings(max_examples=100)
@given(st.integers(0, 10**6), st.sampled_from([1e-12, 0.1, 3.0, 800.0]))
def test_shares_stay_inside_their_bounds(seed, width):
    rng = np.random.default_rng(seed)
    n_classes = int(rng.integers(2, 6))
    lower = rng.normal(size=(5, n_classes)) * rng.choice([1.0, 30.0])
    upper = lower + width * rng.random((5, n_classes))
    box = Box(torch.from_numpy(lower), torch.from_numpy(upper))
    shares = softmax(box)
    ahead = [softmax_ahead(box, a) for a in range(n_classes)]
    corners = [np.where(pick, upper, lower) for pick in itertools.product([False, True], repeat=n_classes)]
    inside = [lower + (upper - lower) * rng.random(lower.shape) for _ in range(5)]
    found = torch.softmax(torch.from_numpy(np.stack(corners + inside)), dim=2).numpy()
    gaps = found[..., :, None] - found[..., None, :]
    assert (shares.lower.numpy() <= found).all()
    assert (shares.upper.numpy() >= found).all()
    for a, box in enumerate(ahead):
        others = np.arange(n_classes) != a
        assert (box.lower.numpy()[:, others] <= gaps[:, :, a, others]).all()
        assert (box.upper.numpy()[:, others] >= gaps[:, :, a, others]).all()
    if width == 800.0:
        return  # too far apart for all digits
    # Sharp: some corner reaches every end.
    assert np.allclose(found.min(axis=0), shares.lower, atol=1e-9)
    assert np.allclose(found.max(axis=0), shares.upper, atol=1e-9)
    assert np.allclose(gaps.max(axis=0)[:, 0, 1:], ahead[0].upper[:, 1:], atol=1e-9)
    assert np.allclose(gaps.min(axis=0)[:, 0, 1:], ahead[0].lower[:, 1:], atol=1e-9)


@given(
    st.lists(st.tuples(st.integers(-1, 40), st.integers(-1, 40), st.integers(0, 5)), min_size=1, max_size=30),
    st.integers(0, 50),
)
def test_the_search_finds_the_last_proof(entries, limit):
    floor, truth, optimism = (np.array(column) for column in zip(*entries, strict=True))
    trials = []

    def hope(flips, which):
        trials.append(flips)
        return np.where(flips <= truth, truth + optimism, flips - 1)

    found = floor.copy()
    raise_floor(found, hope, limit)
    assert np.array_equal(found, np.maximum(floor, np.minimum(truth, limit)))
    assert all(0 <= flips <= limit for flips in trials)
    assert len(set(trials)) == len(trials)


def test_few_trials_for_equal_radii():
    trials = []
    floor = np.full((1000, 10), -1)
    raise_floor(floor, lambda flips, which: trials.append(flips) or np.where(which & (flips <= 700), 1000, -1), 1000)
    assert (floor == 700).all()
    assert len(trials) <= 22


def test_margins_are_sharper_than_scores():
    # One hidden unit of unknown size that all classes see alike: scores overlap, differences do not.
    last = torch.tensor([[1.0, 0.5], [1.0, 0.0], [1.0, -0.5]], dtype=torch.float64)
    layers = [
        Box(torch.tensor([[1.0, 0.0]], dtype=torch.float64), torch.tensor([[3.0, 0.0]], dtype=torch.float64)),
        Box(last - 1e-3, last + 1e-3),
    ]
    point = torch.tensor([[5.0]], dtype=torch.float64)
    assert cannot_win(layers, point, torch.tensor([0])).tolist() == [[False, True, True]]

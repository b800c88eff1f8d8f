"""Attacks on long rows: found on a ladder that is cut off, replayed in fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flipcert
from flipcert.flips import attack
from flipcert.flips.rows import IntegerRow

KINDS = ["normal", "positive", "whole", "equal", "wide", "huge", "denormal", "zeros"]


def weights_of(rng, kind, n):
    """Weights with ties, zeros, and sums that doubles cannot hold."""
    weights = {
        "normal": lambda: rng.standard_normal(n),
        "positive": lambda: rng.random(n) + 1.0,
        "whole": lambda: rng.integers(-3, 4, n).astype(float),
        "equal": lambda: np.where(rng.random(n) < 0.5, 0.1, 0.2),
        "wide": lambda: rng.standard_normal(n) * 10.0 ** rng.integers(-30, 30, n),
        "huge": lambda: rng.standard_normal(n) * 1e305,
        "denormal": lambda: rng.integers(-9, 10, n) * 5e-324,
        "zeros": lambda: np.where(rng.random(n) < 0.98, 0.0, rng.standard_normal(n)),
    }[kind]()
    weights[rng.random(n) < 0.2] = weights[0]
    return weights


def scores_of(weights, labels, offset):
    """Exact class scores."""
    sums = [Fraction(float(b)) for b in offset]
    for weight, c in zip(weights.tolist(), labels.tolist(), strict=True):
        sums[c] += Fraction(weight)
    return sums


def fewest_flips(weights, labels, offset):
    """Fewest flips that change the prediction, by a full sort of exact gains for every class."""
    scores = scores_of(weights, labels, offset)
    first = scores.index(max(scores))
    best = labels.size + 1
    for c in range(len(scores)):
        if c == first:
            continue
        gains = []
        for weight, own in zip(weights.tolist(), labels.tolist(), strict=True):
            to_c, to_first = (own != c) + (own == first), (own != first) + (own == c)
            gains.append(max(Fraction(weight) * to_c, -Fraction(weight) * to_first, Fraction(0)))
        missing = scores[first] - scores[c]
        for cost, gain in enumerate(sorted(gains, reverse=True), start=1):
            missing -= gain
            if missing < 0 or (missing == 0 and c < first):
                best = min(best, cost)
                break
    return first, best


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(KINDS),
    n=st.sampled_from([3, 65, 300, 1500]),
    single=st.booleans(),
    lean=st.floats(0.0, 0.9),
)
def test_attacks_are_as_short_as_exact_arithmetic_says_and_work(seed, kind, n, single, lean):
    rng = np.random.default_rng(seed)
    n_classes = int(rng.integers(2, 5))
    labels = np.where(rng.random(n) < lean, 0, rng.integers(0, n_classes, n))
    weights = np.abs(weights_of(rng, kind, n)) if rng.random() < 0.5 else weights_of(rng, kind, n)
    if single:
        weights = np.clip(weights, -1e38, 1e38).astype(np.float32)
    offset = rng.integers(-1, 2, n_classes) * np.abs(weights[0])
    (witness,) = flipcert.cheapest_flips(weights[None], labels, n_classes, offset=offset[None])
    first, fewest = fewest_flips(weights, labels, offset)
    if fewest > n:
        assert witness is None
        return
    assert len(witness) == np.unique(witness.indices).size == fewest
    after = witness.apply(labels)
    assert np.all(after[witness.indices] != labels[witness.indices])
    scores = scores_of(weights, after, offset)
    assert scores.index(max(scores)) != first


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_attacks_of_estimators_have_one_flip_more_than_the_radius_and_change_the_fit(given, dtype):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((900, 6)).astype(dtype)
    X[::7] = X[0]
    y = rng.integers(0, 4, 900) + (X[:, 0] > 0.5) * rng.integers(0, 2, 900)
    trusted = rng.random(900) < 0.2
    model = flipcert.KernelSVM(classes=range(6) if given else None).fit(X, y, trusted=trusted)
    test = np.concatenate([rng.standard_normal((30, 6)), X[:4]]).astype(dtype)
    certificates = model.certify(test)
    for t, witness in enumerate(model.worst_flips(test)):
        assert len(witness) == certificates.radius_upper[t] + 1 == certificates.radius[t] + 1
        assert not trusted[witness.indices].any()
        refitted = flipcert.KernelSVM(classes=range(6) if given else None).fit(X, witness.apply(y), trusted=trusted)
        assert refitted.predict(test)[t] != certificates.prediction[t]


def test_an_attack_is_replayed_and_what_does_not_work_is_not_told(monkeypatch):
    weights, labels = np.array([[3.0, 2.0, 2.0]]), [0, 1, 1]
    monkeypatch.setattr(attack, "recorded", lambda ladder, cost: flipcert.results.witness.Witness.of([(0, 1)]))
    with pytest.raises(flipcert.CertificateError, match="did not change the prediction"):
        flipcert.cheapest_flips(weights, labels, 2)


def test_each_attack_is_replayed_on_the_labels_as_they_were():
    labels = flipcert.labels.labels.Labels.of(np.array([0, 1, 1]), 3)
    replay, flips, offset = attack.Replay(labels), flipcert.results.witness.Witness.of, np.zeros(3)
    for weights in (np.array([3.0, 2.0, 2.0]), np.array([3.0, 2.0, 2.0]) * 5e-324):
        assert replay.winner(flips([(0, 2), (1, 2)]), weights, offset) == 2
        assert replay.winner(flips([(1, 0)]), weights, offset) == 0
        assert replay.winner(flips([]), weights, offset) == 1
    # So close that only integers tell which class wins.
    close = np.array([1.0, 2.0**-60, 1.0])
    assert replay.winner(flips([]), close, offset) == 1
    assert replay.winner(flips([(1, 0)]), close, offset) == 0
    assert labels.codes.tolist() == labels.coded.codes.tolist() == [0, 1, 1]


def test_integers_are_left_out_where_doubles_decide(monkeypatch):
    def never(*_):
        raise AssertionError("a row of clear weights in integers")

    monkeypatch.setattr(IntegerRow, "__init__", never)
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 2000)
    weights = rng.standard_normal((4, 2000)) + (labels == 1)
    assert all(len(own) > 10 for own in flipcert.cheapest_flips(weights, labels, 3))

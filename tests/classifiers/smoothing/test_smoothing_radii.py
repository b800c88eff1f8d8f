"""From a probability of losing to a radius: divergence, Neyman and Pearson, and where the published formula errs."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flipcert
from flipcert.classifiers.smoothing._jit.critical import critical_table
from flipcert.classifiers.smoothing.label_noise import LabelNoise


@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("q", [1e-4, 0.0125, 0.1, 0.4])
def test_divergence_by_direct_summation(n_classes, q):
    clean = np.full(n_classes, q / (n_classes - 1))
    flipped = clean.copy()
    clean[0] = flipped[1] = 1 - q
    noise = LabelNoise(q, n_classes)
    assert noise.divergence == pytest.approx(np.sum(clean * np.log(clean / flipped)))
    assert noise.divergence == pytest.approx(np.sum(flipped * np.log(flipped / clean)))
    assert noise.binary_divergence == pytest.approx((1 - 2 * q) * math.log((1 - q) / q))


@pytest.mark.parametrize("q", [1e-4, 0.1, 0.45])
def test_critical_probability_of_one_flip(q):
    assert math.exp(critical_table(q, 2, -np.inf, 1)[0]) == pytest.approx(q / (2 * (1 - q)), rel=1e-12)


@pytest.mark.parametrize(("n_classes", "q"), [(2, Fraction(1, 10)), (3, Fraction(1, 4)), (10, Fraction(3, 10))])
def test_critical_probabilities_in_fractions(n_classes, q):
    """The least probable event that r flips can make as probable as one half, outcome by outcome."""
    move = q / (n_classes - 1)
    outcomes = [(1 - q, move), (move, 1 - q), (q - move, q - move)]  # (clean, attacked): the old label, the new, others
    table = critical_table(float(q), n_classes, -np.inf, 7)
    for r in range(1, 8):
        events = []
        for draw in itertools.product(outcomes, repeat=r):
            events.append((math.prod(clean for clean, _ in draw), math.prod(attacked for _, attacked in draw)))
        events = sorted((e for e in events if e[1]), key=lambda e: e[0] / e[1])
        clean, missing = Fraction(0), Fraction(1, 2)
        for own, attacked in events:
            share = min(missing / attacked, 1)
            clean += own * share
            missing -= attacked * share
        assert table[r - 1] <= math.log(clean)
        assert table[r - 1] == pytest.approx(math.log(clean), rel=1e-10)


def test_examples_of_radii():
    """Figures worked out by hand: (K, q, p, multi-class divergence, two-class formula, Neyman-Pearson)."""
    for n_classes, q, p, kl, published, critical in [
        (10, 0.0125, 1e-30, 5, 7, 10),
        (10, 1e-4, 1e-60, 5, 7, 12),
        (2, 0.1, 1e-30, 19, 19, 37),
    ]:
        noise = LabelNoise(q, n_classes)
        log_p = np.array([math.log(p), math.log(0.5), 0.0])
        assert noise.divergence_flips(log_p, 100, published=False).tolist() == [kl, 0, 0]
        assert noise.divergence_flips(log_p, 100, published=True).tolist() == [published, 0, 0]
        assert noise.neyman_pearson_flips(log_p, 100).tolist() == [critical, 0, 0]
        assert noise.neyman_pearson_flips(log_p, 3).tolist() == [3, 0, 0]


@settings(max_examples=200)
@given(st.integers(2, 12), st.floats(1e-6, 0.45), st.lists(st.floats(-300.0, 0.0), min_size=1, max_size=5))
def test_neyman_pearson_certifies_at_least_what_divergence_does(n_classes, q, log_p):
    noise = LabelNoise(q, n_classes)
    log_p = np.array(log_p)
    critical = noise.neyman_pearson_flips(log_p, 200)
    divergence = noise.divergence_flips(log_p, 200, published=False)
    assert (critical >= divergence).all()
    assert (divergence >= 0).all()
    # In any order, whatever was asked before.
    assert np.array_equal(np.concatenate([noise.neyman_pearson_flips(p[None], 200) for p in log_p]), critical)


def test_where_the_published_formula_is_wrong():
    """Events as probable as the formula allows for r flips, against what r flips can do."""

    def first_failure(n_classes, q):
        table = critical_table(q, n_classes, -np.inf, 59)
        binary = LabelNoise(q, n_classes).binary_divergence
        for r in range(1, 60):
            # the p with radius r: 4 p (1 - p) = exp(-2 r D)
            p = (1 - math.sqrt(1 - math.exp(-2 * r * binary))) / 2
            if p and math.log(p) >= table[r - 1] + 1e-9:
                return r
        return None

    assert [first_failure(10, q) for q in (1e-4, 0.0125, 0.05)] == [None] * 3
    assert [first_failure(10, q) for q in (0.06, 0.07, 0.08, 0.1)] == [7, 3, 2, 1]
    assert [first_failure(3, q) for q in (0.1, 0.2, 0.3)] == [None, 2, 1]
    assert [first_failure(2, q) for q in (0.1, 0.2, 0.4)] == [None] * 3


@pytest.mark.parametrize(("q", "published", "kl", "critical"), [(0.25, 17, 3, 7), (0.3, 22, 3, 6)])
def test_a_published_radius_that_flips_break(q, published, kl, critical):
    """Thirty equal weights of one class, ten classes: 16 flips change the prediction."""
    X, y = np.ones((30, 1)), np.zeros(30, int)
    point = np.ones((1, 1))
    methods = ["white-box", "neyman-pearson", "kl", "published"]
    models = {m: flipcert.SmoothedLinear(q, method=m, classes=range(10)).fit(X, y) for m in methods}
    with pytest.warns(UserWarning, match="not proven for more than two classes"):
        claimed = models["published"].certify(point)
    assert claimed.radius.tolist() == [published]
    assert claimed.radius_upper.tolist() == [15]
    assert not claimed.exact.any()
    witness = models["published"].worst_flips(point)[0]
    assert len(witness) == 16 <= published
    assert flipcert.SmoothedLinear(q, classes=range(10)).fit(X, witness.apply(y)).predict(point)[0] != 0
    # Not even the smoothed classifier keeps its promise.
    flipped = np.where(np.arange(30) < 16, 1, 0)
    keep, move = 1 - q, q / 9
    ahead = np.array([1.0])  # law of #[Y = 0] - #[Y = 1]
    for label in flipped:
        up, down = (keep, move) if label == 0 else (move, keep)
        ahead = np.convolve(ahead, [down, 1 - up - down, up])
    assert ahead[:30].sum() > 0.5
    assert models["kl"].certify(point).radius.tolist() == [kl]
    assert models["neyman-pearson"].certify(point).radius.tolist() == [critical]
    assert models["white-box"].certify(point).radius[0] <= 15


def test_published_equals_divergence_for_two_classes(blobs):
    X, y, X_test, _ = blobs
    kl = flipcert.SmoothedLinear(0.05, method="kl").fit(X, y == 1)
    published = flipcert.SmoothedLinear(0.05, method="published").fit(X, y == 1)
    with pytest.warns(UserWarning, match="published"):
        claimed = published.certify(X_test)
    assert np.array_equal(claimed.radius, kl.certify(X_test).radius)
    with pytest.warns(UserWarning, match="published"):
        published.flip_costs(X_test)

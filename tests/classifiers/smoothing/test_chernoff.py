"""Chernoff bounds of noisy votes: every formula against enumeration, and what they certify against all attacks."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import flipcert
from flipcert.classifiers.smoothing._jit.binned import (
    LOWEST,
    N_TIMES,
    STEPS,
    evaluate,
    fill,
    loss_of,
    new_bins,
    rounding,
    time_of,
)
from flipcert.classifiers.smoothing._jit.chernoff import exponent
from flipcert.classifiers.smoothing.label_noise import LabelNoise
from flipcert.classifiers.smoothing.noise_curves import noise_curves
from flipcert.labels.labels import Labels
from tests.helpers.models import weights_of
from tests.helpers.oracles import brute_force_costs, exact_winner, labellings
from tests.helpers.strategies import label_problems


def law(q, n_classes):
    return 1 - q, q / (n_classes - 1), q * (n_classes - 2) / (n_classes - 1)


def plain_exponent(weights, codes, a, c, n_classes, q, t):
    """log E exp(-t m), sample by sample."""
    total = 0.0
    for w, y in zip(weights, codes, strict=True):
        moment = 0.0
        for noisy in range(n_classes):
            probability = 1 - q if noisy == y else q / (n_classes - 1)
            moment += probability * math.exp(-t * w * ((noisy == a) - (noisy == c)))
        total += math.log(moment)
    return total


def plain_chernoff(weights, codes, a, c, n_classes, q):
    """The smallest exponent, by a general minimiser over log t."""
    scale = 1 / np.abs(weights).max()
    found = minimize_scalar(
        lambda u: plain_exponent(weights, codes, a, c, n_classes, q, math.exp(u) * scale), bounds=(-15, 5),
        method="bounded", options={"xatol": 1e-6},
    )  # fmt: skip
    return min(found.fun, 0.0)


def exact_loss(weights, codes, a, c, n_classes, q):
    """Probability that a is not ahead of c, over all noisy labellings."""
    total = 0.0
    for noisy in itertools.product(range(n_classes), repeat=len(codes)):
        margin = sum(w * ((y == a) - (y == c)) for w, y in zip(weights, noisy, strict=True))
        if margin <= 0:
            total += math.prod(
                1 - q if new == old else q / (n_classes - 1) for new, old in zip(noisy, codes, strict=True)
            )
    return total


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_exponents_and_their_derivatives(n_classes):
    rng = np.random.default_rng(n_classes)
    for q in (1e-6, 0.03, 0.45):
        weights, codes = rng.normal(size=20), rng.integers(0, n_classes, 20).astype(np.int32)
        weights[3] = 0.0

        def at(c, t, weights=weights, codes=codes, q=q):
            return exponent(weights, codes, 1, c, t, law(q, n_classes))

        for t in (0.0, 1e-3, 0.4, 3.0, 40.0):
            for c in range(n_classes):
                if c == 1:
                    continue
                plain = plain_exponent(weights, codes, 1, c, n_classes, q, t)
                value, slope, bend, slack = at(c, t)
                assert slack < 1e-9
                assert value == pytest.approx(plain, rel=1e-12, abs=1e-12)
                step = 1e-5
                near = [at(c, max(t, step) + s * step) for s in (-1, 1)]
                here = at(c, max(t, step))
                assert here[1] == pytest.approx((near[1][0] - near[0][0]) / (2 * step), abs=1e-6, rel=1e-5)
                assert here[2] == pytest.approx((near[1][1] - near[0][1]) / (2 * step), abs=1e-6, rel=1e-5)
                assert bend >= 0
                if t == 0.0:
                    scores = [weights[codes == k].sum() for k in (1, c)]
                    expected = -(1 - q * n_classes / (n_classes - 1)) * (scores[0] - scores[1])
                    assert slope == pytest.approx(expected)


def exact_exponent(weights, codes, a, c, n_classes, q, t):
    """The same in more digits than the least probable noise takes."""
    with mpmath.workdps(150):
        move = mpmath.mpf(q) / (n_classes - 1)
        total = mpmath.mpf(0)
        for w, y in zip(weights, codes, strict=True):
            x = mpmath.mpf(t) * mpmath.mpf(float(w))
            up, down = (1 - mpmath.mpf(q) if y == k else move for k in (c, a))
            total += mpmath.log(up * mpmath.exp(x) + down * mpmath.exp(-x) + 1 - up - down)
        return total


@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("q", [1e-100, 1e-4, 0.0125, 0.45])
@pytest.mark.parametrize("spread", [0.0, 0.7, 4.0, 30.0])
def test_exponents_from_bins_are_bounds(n_classes, q, spread):
    """Never below the truth, and above it by little more than the loss that is reported; for sizes of any spread."""
    rng = np.random.default_rng(int(10 * spread) + n_classes)
    noise = law(q, n_classes)
    curves = noise_curves(noise)
    weights = np.exp(spread * rng.normal(size=60)) * rng.choice([-1.0, 1.0], 60, p=[0.3, 0.7])
    weights[::7] = rng.choice([0.0, 1.0, -2.0, 0.5], weights[::7].size)  # ends of bins, and nothing at all
    codes = rng.integers(0, n_classes, 60)
    first, c = 0, n_classes - 1
    bins = new_bins(60, n_classes)
    scale, total = fill(bins, weights, codes, first)
    assert 1 <= np.abs(weights).max() * scale < 2
    assert total == pytest.approx(np.abs(weights).sum() * scale)
    for number in [0, N_TIMES - 1, *(STEPS * (octave - LOWEST) + octave % STEPS for octave in range(-12, 12, 2))]:
        evaluate(bins, curves, first, total, noise[1], number)
        t = time_of(number) * scale
        truth = exact_exponent(weights, codes, first, c, n_classes, q, t)
        bound, loss = bins.values[number, c], loss_of(bins, curves, first, c, number)
        assert bound >= truth
        # Far beyond the minimum bins are wide, and bounds poor.
        slack = 2 * rounding(60, time_of(number) * total, noise[1])
        assert number // STEPS + LOWEST > 2 or bound - truth <= 2 * loss + slack


def test_no_flip_is_lost_to_bins(digits):
    """Costs from bins against those of sharp bounds, for every class."""
    X, y, X_test, _ = digits
    for q in (1e-4, 0.0125):
        model = flipcert.SmoothedLinear(q, 10.0).fit(X, y)
        weights = weights_of(model, X_test[:60])
        labels, noise, first = model.label_linear_.labels, model._noise, model.predict(X_test[:60])
        sharp = noise.chernoff(weights, labels, first)
        for flips_of in (
            lambda p, noise=noise: noise.neyman_pearson_flips(p, 1000),
            lambda p, noise=noise: noise.divergence_flips(p, 1000, published=False),
        ):
            quick = noise.chernoff(weights, labels, first, flips_of)
            assert (quick >= sharp).all()
            assert np.array_equal(flips_of(quick), flips_of(sharp))


def plain_withstood(weights, codes, trusted, a, c, n_classes, q):
    """Flips that some t of a fine grid withstands: all terms sorted, for each t."""
    move = q / (n_classes - 1)
    best = 0
    for t in np.exp(np.arange(-3.0, 4.0, 0.02)) / np.abs(weights).max():

        def moments(up, down, t=t):
            return np.log(up * np.exp(t * weights) + down * np.exp(-t * weights) + 1 - up - down)

        as_first, as_c, as_other = moments(move, 1 - q), moments(1 - q, move), moments(move, move)
        now = np.where(codes == a, as_first, np.where(codes == c, as_c, as_other))
        worst = np.maximum(np.maximum(as_first, as_c), as_other) if n_classes > 2 else np.maximum(as_first, as_c)
        gains = np.sort(np.where(trusted, 0.0, worst - now))[::-1]
        best = max(best, int((now.sum() + np.cumsum(gains) < math.log(0.5)).sum()))
    return best


@pytest.mark.parametrize(("n_classes", "q"), [(2, 0.02), (3, 1e-4), (5, 0.0125), (4, 0.2)])
def test_white_box_costs_against_a_search_over_all_terms(n_classes, q):
    """Long rows, so that only the largest weights are sorted at first."""
    rng = np.random.default_rng(n_classes)
    noise = LabelNoise(q, n_classes)
    some = 0
    for share in (0.5, 0.9, 1.0):
        weights = rng.gamma(0.5, size=700) * rng.choice([-1.0, 1.0], 700, p=[0.2, 0.8])
        codes = np.where(rng.random(700) < share, 0, rng.integers(0, n_classes, 700))
        trusted = rng.random(700) < 0.3
        a = exact_winner(weights, codes, n_classes)
        costs = noise.white_box_costs(weights[None], Labels.of(codes, n_classes, trusted), np.array([a]))[0]
        for c in set(range(n_classes)) - {a}:
            flips = plain_withstood(weights, codes, trusted, a, c, n_classes, q)
            some += flips > 20
            assert abs(costs[c] - 1 - flips) <= 1
    assert some


@pytest.mark.parametrize(("n", "n_classes"), [(8, 2), (6, 3)])
def test_chernoff_bounds_are_tight_minima_above_the_truth(n, n_classes):
    rng = np.random.default_rng(n)
    for _ in range(12):
        weights, codes = rng.normal(size=n), rng.integers(0, n_classes, n)
        q = float(rng.choice([1e-3, 0.05, 0.2]))
        a = exact_winner(weights, codes, n_classes)
        labels = Labels.of(codes, n_classes)
        log_p = LabelNoise(q, n_classes).chernoff(weights[None], labels, np.array([a]))[0]
        for c in set(range(n_classes)) - {a}:
            assert log_p[c] >= math.log(exact_loss(weights, codes, a, c, n_classes, q)) - 1e-12
            best = plain_chernoff(weights, codes, a, c, n_classes, q)
            # Bounds that certify nothing need not be minima.
            assert log_p[c] == pytest.approx(best, rel=1e-5) or best > 0.5 * math.log(0.5)


def test_the_published_rule_is_the_argmax():
    """The class whose worst Chernoff bound is smallest has the highest score."""
    rng = np.random.default_rng(5)
    for _ in range(15):
        weights, codes = rng.normal(size=9), rng.integers(0, 3, 9)
        table = np.full((3, 3), -np.inf)
        for a, c in itertools.permutations(range(3), 2):
            table[a, c] = plain_chernoff(weights, codes, a, c, 3, 0.05)
        assert table.max(axis=1).argmin() == exact_winner(weights, codes, 3)


@pytest.mark.parametrize(("n", "n_classes", "q"), [(9, 2, 0.01), (9, 2, 0.1), (7, 3, 0.02), (7, 3, 0.1), (6, 4, 0.02)])
def test_no_attack_within_a_certificate_succeeds(n, n_classes, q):
    """All sets of flips: the noisy majority, the Chernoff bound and the deployed prediction stay as certified."""
    rng = np.random.default_rng(n * n_classes)
    noise = LabelNoise(q, n_classes)
    certified = 0
    for trial in range(4):
        weights = rng.random(n) + 0.3 if trial % 2 else rng.integers(2, 5, n).astype(float)
        codes = np.where(rng.random(n) < 0.95, 0, rng.integers(0, n_classes, n))
        labels = Labels.of(codes, n_classes)
        a = exact_winner(weights, codes, n_classes)
        first = np.array([a])
        white = noise.white_box_costs(weights[None], labels, first)[0]
        critical = noise.neyman_pearson_flips(noise.chernoff(weights[None], labels, first), n)[0]
        for c in set(range(n_classes)) - {a}:
            for flips in range(1, n + 1):
                if flips >= white[c] and flips > critical[c]:
                    break
                for flipped in labellings(codes, n_classes, flips):
                    certified += 1
                    scores = np.bincount(flipped, weights, n_classes)
                    if flips < white[c]:
                        assert scores[a] > scores[c]
                        assert plain_chernoff(weights, flipped, a, c, n_classes, q) < math.log(0.5)
                    if flips <= critical[c]:
                        assert scores[a] > scores[c]
                        if n_classes == 2:
                            assert exact_loss(weights, flipped, a, c, n_classes, q) < 0.5
    assert certified > 50


@settings(max_examples=150)
@given(label_problems(), st.sampled_from([1e-9, 1e-4, 0.0125, 0.1, 0.3, 0.45]), st.data())
def test_costs_never_exceed_those_of_the_ridge_regression(problem, q, data):
    """Before any cap: smoothing certifies no more than brute force over labellings."""
    weights, codes, n_classes, _ = problem
    n = len(weights)
    trusted = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    assume(not trusted.all())
    labels = Labels.of(codes, n_classes, trusted)
    truth = brute_force_costs(weights, codes, n_classes, trusted=trusted)
    first = np.array([truth.argmin()])
    noise = LabelNoise(q, n_classes)
    white = noise.white_box_costs(weights[None], labels, first)[0]
    assert (white <= truth).all()
    log_p = noise.chernoff(weights[None], labels, first)
    assert not np.isnan(log_p).any()
    flips = noise.neyman_pearson_flips(log_p, labels.n_movable)[0]
    others = np.arange(n_classes) != first[0]
    assert (np.where(flips < labels.n_movable, flips + 1, n + 1)[others] <= truth[others]).all()

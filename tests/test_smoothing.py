"""Randomized smoothing: every formula against enumeration, every certificate against exhaustive attacks."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import flipcert
from flipcert.classifiers._binned import LOWEST, N_TIMES, STEPS, evaluate, fill, loss_of, new_bins, rounding, time_of
from flipcert.classifiers._chernoff import exponent
from flipcert.classifiers._critical import critical_table
from flipcert.classifiers.label_noise import LabelNoise
from flipcert.classifiers.noise_curves import noise_curves
from flipcert.flips.labels import Labels
from models import votes_of, weights_of
from oracles import brute_force_costs, exact_winner
from strategies import label_problems

METHODS = ["white-box", "neyman-pearson", "kl"]


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


def attacks(codes, n_classes, flips):
    """All labellings with exactly so many flips."""
    for indices in itertools.combinations(range(len(codes)), flips):
        for steps in itertools.product(range(1, n_classes), repeat=flips):
            flipped = codes.copy()
            for i, step in zip(indices, steps, strict=True):
                flipped[i] = (flipped[i] + step) % n_classes
            yield flipped


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
        labels, noise, first = model._labels, model._noise, model.predict(X_test[:60])
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
    models = {m: flipcert.SmoothedLinear(q, method=m, classes=range(10)).fit(X, y) for m in (*METHODS, "published")}
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
                for flipped in attacks(codes, n_classes, flips):
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


@pytest.mark.parametrize("method", METHODS)
def test_estimator_against_refitting_on_every_labelling(method):
    rng = np.random.default_rng(11)
    X, y = 0.1 * rng.normal(size=(10, 2)), np.array([0, 1, 2, 0, 0, 0, 0, 0, 0, 0])
    X += 2.0 * np.array([[1, 0], [0, 1], [-1, -1]])[y]
    points = np.array([[2.0, 0.0], [0.0, 2.0], [3.0, 1.0]])
    model = flipcert.SmoothedLinear(0.001, reg=0.1, method=method, classes=[0, 1, 2]).fit(X, y)
    certificates = model.certify(points)
    assert certificates.radius.max() > 0
    assert not certificates.exact.all()
    for t in range(len(points)):
        for flips in range(1, int(certificates.radius[t]) + 1):
            for flipped in attacks(y, 3, flips):
                again = flipcert.SmoothedLinear(0.001, reg=0.1, classes=[0, 1, 2]).fit(X, flipped)
                assert again.predict(points[t : t + 1])[0] == certificates.prediction[t]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_it_is_the_ridge_regression(method, dtype, digits):
    X, y, X_test, _ = digits
    X, X_test = X.astype(dtype), X_test[:60].astype(dtype)
    ridge = flipcert.KernelRidge("linear", reg=10.0).fit(X, y)
    model = flipcert.SmoothedLinear(0.0125, reg=10.0, method=method).fit(X, y)
    exact, certificates = ridge.certify(X_test), model.certify(X_test)
    assert np.array_equal(model.predict(X_test), ridge.predict(X_test))
    assert np.array_equal(model.decision_function(X_test), ridge.decision_function(X_test))
    assert np.array_equal(certificates.radius_upper, exact.radius)
    assert (certificates.radius <= exact.radius).all()
    share = {"white-box": 0.9, "neyman-pearson": 0.6, "kl": 0.25}[method]
    assert certificates.radius.mean() > share * exact.radius.mean()
    costs = model.flip_costs(X_test)
    others = np.sort(costs, axis=1)[:, 1]
    assert np.array_equal(others - 1, certificates.radius)
    assert np.array_equal(model.flip_costs(X_test, "upper"), ridge.flip_costs(X_test, "upper"))
    for jobs in (1, 2):
        assert np.array_equal(model.set_params(n_jobs=jobs).flip_costs(X_test), costs)


def test_methods_compare_as_they_should(digits):
    X, y, X_test, _ = digits
    radii = {m: flipcert.SmoothedLinear(0.01, 10.0, m).fit(X, y).certify(X_test[:80]).radius for m in METHODS}
    assert (radii["neyman-pearson"] >= radii["kl"]).all()
    assert radii["white-box"].mean() > radii["neyman-pearson"].mean() > radii["kl"].mean() > 0


def test_abstention_has_radius_zero():
    """No class is ahead with probability above one half: cost one for all others."""
    X, y = np.ones((4, 1)), np.array([0, 0, 1, 1])
    for method in METHODS:
        model = flipcert.SmoothedLinear(0.1, method=method, classes=[0, 1, 2]).fit(X, y)
        assert model.predict([[1.0]]).tolist() == [0]
        assert model.flip_costs([[1.0], [0.0]]).tolist() == [[0, 1, 1], [0, 1, 1]]
        assert model.certify([[1.0], [0.0]]).radius.tolist() == [0, 0]


@pytest.mark.parametrize("method", METHODS)
def test_trusted_labels(method, blobs):
    X, y, X_test, _ = blobs
    free = flipcert.SmoothedLinear(0.01, 0.1, method).fit(X, y).certify(X_test)
    model = flipcert.SmoothedLinear(0.01, 0.1, method)
    some = model.fit(X, y, trusted=np.arange(30) % 2 == 0).certify(X_test)
    assert np.array_equal(free.prediction, some.prediction)
    assert (some.radius >= free.radius).all()
    assert (some.radius <= some.radius_upper).all()
    everything = model.fit(X, y, trusted=np.ones(30, bool)).certify(X_test)
    assert (everything.radius == 30).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_partitions", [1, 3])
def test_ensembles(method, n_partitions, blobs):
    X, y, X_test, _ = blobs
    X, X_test = np.hstack([X, np.ones((30, 1))]), np.hstack([X_test, np.ones((15, 1))])
    base = flipcert.SmoothedLinear(0.001, 0.1, method)
    model = flipcert.PartitionEnsemble(base, n_partitions, classes=[0, 1, 2]).fit(X, y)
    certificates = model.certify(X_test)
    votes = votes_of(model, X_test)
    assert np.array_equal(certificates.blackbox_radius, flipcert.blackbox_radius(votes, 3))
    assert (certificates.radius >= certificates.blackbox_radius).all()
    assert (certificates.radius <= certificates.radius_upper).all()
    ridge = flipcert.PartitionEnsemble(flipcert.KernelRidge("linear", reg=0.1), n_partitions, classes=[0, 1, 2])
    exact = ridge.fit(X, y).certify(X_test, exact=True)
    assert np.array_equal(exact.prediction, certificates.prediction)
    assert (certificates.radius <= exact.radius).all()
    assert (certificates.radius_upper >= exact.radius).all()
    for t, witness in enumerate(model.worst_flips(X_test)):
        assert len(witness) == certificates.radius_upper[t] + 1
        after = flipcert.PartitionEnsemble(base, n_partitions, classes=[0, 1, 2]).fit(X, witness.apply(y))
        assert after.predict(X_test[t : t + 1])[0] == certificates.target[t] != certificates.prediction[t]
    if n_partitions == 1:
        alone = flipcert.SmoothedLinear(0.001, 0.1, method, classes=[0, 1, 2]).fit(X, y).certify(X_test)
        assert np.array_equal(alone.radius, certificates.radius)
        assert np.array_equal(alone.radius_upper, certificates.radius_upper)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"flip_probability": 0.0}, "flip_probability must be a positive number; got 0.0"),
        ({"flip_probability": 0.7}, "flip_probability must be below 0.666667 for 3 classes .*; got 0.7"),
        ({"flip_probability": 0.5, "method": "published"}, "flip_probability must be below 0.5 for 3 classes"),
        ({"flip_probability": 1e-200}, "flip_probability must be at least 1e-100"),
        ({"flip_probability": "low"}, "flip_probability must be a positive number; got 'low'"),
        ({"reg": 0.0}, "reg must be a positive number; got 0.0"),
        ({"method": "exact"}, "method must be one of 'white-box', 'neyman-pearson', 'kl', 'published'; got 'exact'"),
    ],
)
def test_bad_parameters(parameters, message, blobs):
    X, y, _, _ = blobs
    with pytest.raises(ValueError, match=message):
        flipcert.SmoothedLinear(**parameters).fit(X, y)

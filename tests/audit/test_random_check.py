"""What a random check proves, against whole numbers, and over all draws that there can be."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

import flipcert
from flipcert.audit.hypergeometric import is_plausible
from flipcert.audit.log_gamma import ERROR, log_gamma

CONFIDENCES = [0.95, 0.5, 0.8, 0.99, 0.05, 1 - 2**-53, 2**-60, 0.75]


def tail(n, M, m, e):
    """P(at most e of M wrong labels are among m of n), as a fraction."""
    ways = sum(math.comb(M, k) * math.comb(n - M, m - k) for k in range(e + 1))
    return Fraction(ways, math.comb(n, m))


def plain_bound(n, m, e, confidence):
    delta = 1 - Fraction(confidence)
    return max(M for M in range(e, n - (m - e) + 1) if tail(n, M, m, e) > delta)


def plain_fortune(n, M, m, e):
    """What the gambler has after m labels, e of them wrong, in this or that order."""
    stakes = Fraction(1)
    for k in range(e):
        stakes *= (Fraction(1, 10) + k) / (Fraction(81, 10) + k)
    for k in range(m - e):
        stakes *= (8 + k) / (Fraction(81, 10) + e + k)
    return stakes / Fraction(math.perm(M, e) * math.perm(n - M, m - e), math.perm(n, m))


def plain_bound_at_every_stage(n, m, e, confidence):
    delta = 1 - Fraction(confidence)
    return max(M for M in range(e, n - (m - e) + 1) if plain_fortune(n, M, m, e) * delta < 1)


def counts(largest):
    return [(n, m, e) for n in range(1, largest + 1) for m in range(n + 1) for e in range(m + 1)]


@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_the_bound_is_that_of_whole_numbers(confidence):
    for n, m, e in counts(12):
        assert flipcert.wrong_labels_at_most(n, m, e, confidence) == plain_bound(n, m, e, confidence), (n, m, e)


@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_the_bound_at_every_stage_is_that_of_fractions(confidence):
    for n, m, e in counts(9):
        bound = flipcert.wrong_labels_at_most(n, m, e, confidence, peeking=True)
        assert bound == plain_bound_at_every_stage(n, m, e, confidence), (n, m, e)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_larger_numbers_are_decided_as_whole_numbers_decide(data):
    n = data.draw(st.integers(13, 400))
    m = data.draw(st.integers(0, n))
    e = data.draw(st.integers(0, m))
    confidence = data.draw(st.floats(1e-12, 1, exclude_max=True))
    assert flipcert.wrong_labels_at_most(n, m, e, confidence) == plain_bound(n, m, e, confidence)
    bound = flipcert.wrong_labels_at_most(n, m, e, confidence, peeking=True)
    assert bound == plain_bound_at_every_stage(n, m, e, confidence)
    # Whoever peeks is not told more.
    assert bound >= flipcert.wrong_labels_at_most(n, m, e, confidence)


@pytest.mark.parametrize(("n", "m", "e"), [(10**9, 300, 0), (10**9, 1000, 3), (10**6, 2000, 7), (50_000, 500, 30)])
def test_numbers_of_any_size_are_decided_as_whole_numbers_decide(n, m, e):
    delta = 1 - Fraction(0.95)
    bound = flipcert.wrong_labels_at_most(n, m, e)
    assert tail(n, bound, m, e) > delta >= tail(n, bound + 1, m, e)
    bound = flipcert.wrong_labels_at_most(n, m, e, peeking=True)
    assert plain_fortune(n, bound, m, e) * delta < 1 <= plain_fortune(n, bound + 1, m, e) * delta


@pytest.mark.parametrize("n", [2, 10, 14, 10**9 + 2])
def test_equal_is_not_more_however_large_the_numbers_are(n):
    # Of n labels with one wrong, half are drawn: it is among them with a probability of exactly one half.
    assert flipcert.wrong_labels_at_most(n, n // 2, 0, 0.5) == 0
    assert flipcert.wrong_labels_at_most(n, n // 2, 0, math.nextafter(0.5, 1)) == 1
    assert flipcert.wrong_labels_at_most(n, 1, 0, 0.5) == n // 2 - 1


@pytest.mark.parametrize("n", [6, 20, 26])
def test_what_is_known_to_be_one_half_is_one_half(n):
    for wrong in range(1, n, 2):
        found = wrong // 2
        assert tail(n, wrong, n // 2, found) == tail(n, n // 2, wrong, found) == Fraction(1, 2)
        for m, M in ((n // 2, wrong), (wrong, n // 2)):
            assert not is_plausible(M, n, m, found, Fraction(1, 2))
            assert is_plausible(M, n, m, found, Fraction(1, 2) - Fraction(1, 10**40))
            assert not is_plausible(M, n, m, found, Fraction(1, 2) + Fraction(1, 10**40))


def test_a_difference_in_the_fortieth_digit_is_seen():
    for n, M, m, e in ((30, 7, 11, 2), (50, 25, 20, 9), (12, 5, 6, 3)):
        exact, little = tail(n, M, m, e), Fraction(1, 10**40)
        assert not is_plausible(M, n, m, e, exact)
        assert is_plausible(M, n, m, e, exact - little)
        assert not is_plausible(M, n, m, e, exact + little)


@pytest.mark.parametrize("peeking", [False, True])
def test_nothing_checked_proves_nothing_and_all_checked_leaves_no_doubt(peeking):
    assert flipcert.wrong_labels_at_most(100, 0, 0, peeking=peeking) == 100
    assert flipcert.wrong_labels_at_most(100, 100, 7, peeking=peeking) == 7


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95, 0.99])
def test_the_bound_holds_with_its_confidence_for_every_true_number(confidence):
    for n in range(1, 15):
        for m in range(n + 1):
            bounds = [flipcert.wrong_labels_at_most(n, m, e, confidence) for e in range(m + 1)]
            for M in range(n + 1):
                possible = range(max(0, m - (n - M)), min(m, M) + 1)
                held = sum(math.comb(M, e) * math.comb(n - M, m - e) for e in possible if bounds[e] >= M)
                assert Fraction(held, math.comb(n, m)) >= Fraction(confidence), (n, m, M)


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("n", [1, 5, 12, 16])
def test_whoever_peeks_at_every_stage_is_misled_no_more_often(n, confidence):
    """All ways to draw the labels one by one, by dynamic programming over how many were found when."""
    bounds = {
        (m, e): flipcert.wrong_labels_at_most(n, m, e, confidence, peeking=True)
        for m in range(n + 1)
        for e in range(m + 1)
    }
    for M in range(n + 1):

        @cache
        def misled(m, e, M=M):
            if bounds[m, e] < M:
                return Fraction(1)
            if m == n:
                return Fraction(0)
            wrong = Fraction(M - e, n - m)
            after = wrong * misled(m + 1, e + 1) if wrong else Fraction(0)
            return after + ((1 - wrong) * misled(m + 1, e) if wrong < 1 else Fraction(0))

        assert misled(0, 0) <= 1 - Fraction(confidence)


def test_peeking_at_the_bound_for_a_settled_number_would_mislead():
    """Why there are two bounds: the same dynamic program for the other one."""
    n, M, confidence = 60, 6, 0.8
    bounds = {
        (m, e): flipcert.wrong_labels_at_most(n, m, e, confidence) for m in range(n + 1) for e in range(min(m, M) + 1)
    }

    @cache
    def misled(m, e):
        if bounds[m, e] < M:
            return Fraction(1)
        if m == n:
            return Fraction(0)
        wrong = Fraction(M - e, n - m)
        return wrong * (misled(m + 1, e + 1) if wrong else 0) + (1 - wrong) * (misled(m + 1, e) if wrong < 1 else 0)

    assert misled(0, 0) > Fraction(1, 4)


@pytest.mark.parametrize("peeking", [False, True])
def test_who_may_go_on_needs_the_bound_for_every_stage_from_the_first_result(peeking):
    """Who stops if the settled bound after 40 labels pleases, and else goes on with peeking, has two chances to err."""
    n, M, first = 200, 13, 40

    @cache
    def misled(m, e):
        if flipcert.wrong_labels_at_most(n, m, e, peeking=peeking or m > first) < M:
            return Fraction(1)
        if m == n:
            return Fraction(0)
        wrong = Fraction(M - e, n - m)
        return wrong * (misled(m + 1, e + 1) if wrong else 0) + (1 - wrong) * (misled(m + 1, e) if wrong < 1 else 0)

    ways = math.comb(n, first)
    chance = sum(Fraction(math.comb(M, e) * math.comb(n - M, first - e), ways) * misled(first, e) for e in range(M + 1))
    # docs/audit.md tells the first number.
    assert chance <= 0.05 if peeking else round(float(chance), 4) == 0.0542


def test_whoever_peeks_at_larger_checks_is_misled_no_more_often():
    n, confidence, rng = 2000, 0.8, np.random.default_rng(0)
    stages = [20, 50, 100, 200, 300, 500, 800]
    for M in (1, 10, 40, 200):
        missed = 0
        for _ in range(200):
            found = np.cumsum(rng.permutation(n) < M)[np.array(stages) - 1]
            missed += any(_known_bound(n, m, e, confidence) < M for m, e in zip(stages, found.tolist(), strict=True))
        # 200 x 0.2 = 40 are allowed on average; 60 are beyond three standard deviations.
        assert missed <= 60, M


@cache
def _known_bound(n, m, e, confidence):
    return flipcert.wrong_labels_at_most(n, m, e, confidence, peeking=True)


def test_the_price_of_peeking_is_as_told():
    """Up to a quarter if nothing is found, up to double if something is; small numbers apart, which are whole."""
    for n in (200, 5_000, 50_000, 10**6):
        for m in (100, 300, 1000, 20_000):
            if m > n:
                continue
            for e in (0, 1, 2, 5, m // 20, m // 5):
                plain, peeked = (flipcert.wrong_labels_at_most(n, m, e, peeking=own) for own in (False, True))
                assert peeked <= plain * (1.27 if e == 0 else 2) + 1, (n, m, e)


def test_logarithms_are_as_exact_as_is_said():
    with mp.workdps(90):
        for x in (Fraction(1, 10), Fraction(81, 10), 1, 2, 17, 999, 1000, 1001, 54321, 10**9, Fraction(10**10 + 1, 10)):
            true = mp.loggamma(mpf(Fraction(x).numerator) / Fraction(x).denominator)
            assert abs(mpf(str(log_gamma(x))) - true) < mpf(str(ERROR)) / 1000


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((0, 0, 0), "n_labels must be at least 1; got 0."),
        ((10, 11, 0), "n_checked must be at most n_labels = 10; got 11. No label is checked twice."),
        ((10, 5, 6), "n_wrong must be at most n_checked = 5; got 6."),
        ((10, 5, -1), "n_wrong must be at least 0; got -1."),
        ((10.5, 5, 0), "n_labels must hold whole numbers; got 10.5."),
        ((10, 5, 0, 1.0), "confidence must be a number between 0 and 1, such as 0.95; got 1.0."),
        ((10, 5, 0, 0), "confidence must be a number between 0 and 1, such as 0.95; got 0."),
        ((10, 5, 0, 95), "confidence must be a number between 0 and 1, such as 0.95; got 95."),
        ((10, 5, 0, float("nan")), "confidence must be a number between 0 and 1, such as 0.95; got nan."),
        ((10, 5, 0, "high"), "confidence must be a number between 0 and 1, such as 0.95; got 'high'."),
    ],
)
def test_bad_arguments_get_one_sentence(arguments, said):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        flipcert.wrong_labels_at_most(*arguments)
    assert str(error.value) == said


def test_peeking_is_a_yes_or_a_no():
    with pytest.raises(ValueError, match=r"peeking must be True or False; got 'often'\."):
        flipcert.wrong_labels_at_most(10, 5, 0, peeking="often")

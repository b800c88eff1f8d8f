"""Is it plausible that so few of the labels that were drawn are wrong? The tail of the hypergeometric distribution."""

from __future__ import annotations

import math
from decimal import localcontext
from fractions import Fraction

from flipcert.audit.log_gamma import DIGITS, ERROR, decimal_of, log_choose


def is_plausible(wrong: int, n_labels: int, n_checked: int, n_found: int, delta: Fraction) -> bool:
    """Whether a check finds so few, or fewer, of the ``wrong`` labels with a probability of more than ``delta``."""
    if n_found * n_labels <= n_checked * wrong:
        return _compare_tail(wrong, n_labels, n_checked, n_found, delta) > 0
    # More were found than expected: so fewer right ones than expected, and that tail is the short one.
    right, n_right = n_labels - wrong, n_checked - n_found
    return n_right == 0 or _compare_tail(right, n_labels, n_checked, n_right - 1, 1 - delta) < 0


def _compare_tail(marked: int, n_labels: int, n_drawn: int, n_found: int, bound: Fraction) -> int:
    """The sign of P(at most ``n_found`` of the marked labels are drawn) - ``bound``, not beyond the expected number.

    The probabilities of ``n_found``, ``n_found - 1``, ... are added up, each from the one before, in 60 digits. What is
    still to come is at most a geometric series, because the ratio of neighbours falls. The sum is left as soon as it is
    decided.
    """
    n, M, m = n_labels, marked, n_drawn
    if n_found < m + M - n:
        return -1  # not all of them fit among the others, and the bound is positive
    with localcontext(DIGITS):
        term = (log_choose(M, n_found) + log_choose(n - M, m - n_found) - log_choose(n, m)).exp()
        # The logarithm is off by ERROR at most, and so is, relatively, each probability; all else is far below.
        low, high = (decimal_of(bound) * (1 + 4 * sign * ERROR) for sign in (-1, 1))
        total = term
        for k in range(n_found, -1, -1):
            if total > high:
                return 1
            # Whole numbers of at most 38 digits, so that not even 1 - ratio loses any.
            above, below = k * (n - M - m + k), (M - k + 1) * (m - k + 1)
            if above < below and total + term * above / (below - above) < low:
                return -1
            if above == 0:
                break
            term = term * above / below
            total += term
    return _compare_exactly(M, n, m, n_found, bound)


def _compare_exactly(marked: int, n_labels: int, n_drawn: int, n_found: int, bound: Fraction) -> int:
    """The same in whole numbers, for what is equal or nearly so."""
    # It is all the same which of the two sets is drawn, and smaller numbers are faster.
    drawn, marked = sorted((marked, n_drawn))
    if (n_labels, 2 * n_found + 1) in ((2 * drawn, marked), (2 * marked, drawn)):
        # Half of the labels, against an odd number of them: more of these are as likely drawn as left.
        return (2 * bound < 1) - (2 * bound > 1)
    ways = sum(
        math.comb(marked, k) * math.comb(n_labels - marked, drawn - k)
        for k in range(max(0, drawn + marked - n_labels), min(n_found, drawn) + 1)
    )
    difference = ways * bound.denominator - bound.numerator * math.comb(n_labels, drawn)
    return (difference > 0) - (difference < 0)

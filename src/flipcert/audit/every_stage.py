"""Is a number of wrong labels plausible at every stage of a check? Bets against it that are fair if it is true."""

from __future__ import annotations

from decimal import localcontext
from fractions import Fraction

from flipcert.audit.log_gamma import DIGITS, ERROR, decimal_of, log_rising

# The gambler behaves as if he had seen so many wrong and right labels before the first one. Any two numbers above 0
# are valid. These pay where few labels are wrong: the bound is above that of a settled number of checks by about a
# sixth if none is found, and by two thirds or less if some are.
WRONG_BEFORE, RIGHT_BEFORE = Fraction(1, 10), 8


def is_plausible_at_every_stage(wrong: int, n_labels: int, n_checked: int, n_found: int, delta: Fraction) -> bool:
    """Whether a gambler against ``wrong`` wrong labels has less than ``1 / delta`` times what he began with.

    That is the probability of what was found under his stakes, over the one if so many labels were wrong; both of a
    sequence, in whose order neither is interested.
    """
    M, n, m, e = wrong, n_labels, n_checked, n_found
    with localcontext(DIGITS):
        true = log_rising(M - e + 1, e) + log_rising(n - M - (m - e) + 1, m - e) - log_rising(n - m + 1, m)
        staked = log_rising(WRONG_BEFORE, e) + log_rising(RIGHT_BEFORE, m - e)
        staked -= log_rising(WRONG_BEFORE + RIGHT_BEFORE, m)
        lead = true - staked - decimal_of(delta).ln()
        if abs(lead) > 2 * ERROR:
            return lead > 0
    return _is_plausible_exactly(M, n, m, e, delta)


def _is_plausible_exactly(wrong: int, n_labels: int, n_checked: int, n_found: int, delta: Fraction) -> bool:
    """The same in fractions, step by step, for what is equal or nearly so."""
    fortune = Fraction(1)
    for drawn in range(n_checked):
        # The order does not matter: first those that were found.
        is_wrong, found = drawn < n_found, min(drawn, n_found)
        seen, stake = (found, WRONG_BEFORE) if is_wrong else (drawn - found, Fraction(RIGHT_BEFORE))
        left = wrong - found if is_wrong else n_labels - wrong - (drawn - found)
        fortune *= (stake + seen) / (WRONG_BEFORE + RIGHT_BEFORE + drawn) / Fraction(left, n_labels - drawn)
    return fortune * delta < 1

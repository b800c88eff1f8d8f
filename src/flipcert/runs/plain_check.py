"""What a random check of labels proves, in whole numbers and without a search."""

from __future__ import annotations

from fractions import Fraction
from math import comb


def is_largest(n: int, checked: int, found: int, confidence: float, peeked: bool, largest: int) -> bool:
    """Whether ``largest`` wrong labels of n are plausible after such a check, and one more is not, or cannot be."""
    delta = 1 - Fraction(confidence)
    plausible = _at_every_stage if peeked else _settled
    if not found <= largest <= n - (checked - found) or not plausible(n, checked, found, delta, largest):
        return False
    return largest == n - (checked - found) or not plausible(n, checked, found, delta, largest + 1)


def _settled(n: int, checked: int, found: int, delta: Fraction, wrong: int) -> bool:
    """More than delta of all draws find so few of the wrong labels."""
    ways = sum(comb(wrong, k) * comb(n - wrong, checked - k) for k in range(found + 1))
    return ways * delta.denominator > delta.numerator * comb(n, checked)


def _at_every_stage(n: int, checked: int, found: int, delta: Fraction, wrong: int) -> bool:
    """Bets of found + 1/10 to others + 8 on wrong labels, fair if so many are wrong, gain less than 1 / delta."""
    gained, lost = 1, 1
    for k in range(found):
        gained, lost = gained * (10 * k + 1) * (n - k), lost * (10 * k + 81) * (wrong - k)
    for k in range(checked - found):
        gained, lost = gained * (10 * k + 80) * (n - found - k), lost * (10 * (found + k) + 81) * (n - wrong - k)
    return gained * delta.numerator < lost * delta.denominator

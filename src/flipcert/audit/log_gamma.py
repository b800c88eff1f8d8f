"""Logarithms of factorials and their kin, to many more digits than a double has, with an error that is known."""

from __future__ import annotations

from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    ROUND_HALF_EVEN,
    Context,
    Decimal,
    DivisionByZero,
    InvalidOperation,
    localcontext,
)
from fractions import Fraction
from functools import lru_cache

# In it every operation of Decimal, logarithms and powers of e included, is rounded correctly to 60 digits, and no
# probability is so small that it vanishes.
DIGITS = Context(60, ROUND_HALF_EVEN, MIN_EMIN, MAX_EMAX, traps=[InvalidOperation, DivisionByZero])
# No sum of a dozen of the logarithms below, of numbers up to 2**63, is off by more. They are below 1e21, so each of
# their few operations loses less than 1e-38; the thousand factors of a product lose 1e-56 together, and the first term
# of the series that is left out is below 1e-56.
ERROR = Decimal("1e-30")

_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640629")
# Stirling's series: Bernoulli numbers B(2k) over 2k(2k - 1). What is left out is smaller than the next term.
_SERIES = [
    Fraction(1, 12),
    Fraction(-1, 360),
    Fraction(1, 1260),
    Fraction(-1, 1680),
    Fraction(1, 1188),
    Fraction(-691, 360360),
    Fraction(1, 156),
    Fraction(-3617, 122400),
    Fraction(43867, 244188),
]
# From here on the series has so many digits.
_LARGE = 1000


def decimal_of(number: Fraction | int) -> Decimal:
    """A rational number, rounded once."""
    number = Fraction(number)
    return DIGITS.divide(Decimal(number.numerator), Decimal(number.denominator))


@lru_cache(maxsize=4096)
def log_gamma(x: Fraction | int) -> Decimal:
    """The logarithm of Gamma(x) for a rational x > 0: that of (x - 1)! if x is whole."""
    with localcontext(DIGITS):
        below, at = Decimal(1), decimal_of(x)
        while at < _LARGE:
            below, at = below * at, at + 1
        series, power = Decimal(0), 1 / at
        for own in _SERIES:
            series += power * decimal_of(own)
            power /= at * at
        return (at - Decimal("0.5")) * at.ln() - at + (2 * _PI).ln() / 2 + series - below.ln()


def log_rising(x: Fraction | int, count: int) -> Decimal:
    """The logarithm of x (x + 1) ... (x + count - 1)."""
    return DIGITS.subtract(log_gamma(x + count), log_gamma(x))


def log_choose(n: int, k: int) -> Decimal:
    """The logarithm of n over k."""
    return DIGITS.subtract(log_rising(n - k + 1, k), log_gamma(k + 1))

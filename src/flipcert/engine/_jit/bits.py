"""Lowest set bits of floating-point numbers. Compiled."""

from __future__ import annotations

import math

from flipcert.engine.jit import compiled


@compiled
def lowest_bit(numbers, none, stop):
    """Largest q such that every number is a multiple of 2**q; ``none`` if all are zero.

    The search may end once q is at most ``stop``.
    """
    lowest = none
    for number in numbers:
        if number != 0.0:
            mantissa, exponent = math.frexp(abs(float(number)))
            bits = int(mantissa * 2.0**53)
            q = exponent - 53
            while bits & 1 == 0:
                bits >>= 1
                q += 1
            if q < lowest:
                lowest = q
                if lowest <= stop:
                    break
    return lowest

"""Activations seen from outside: expected products over jointly normal numbers. Compiled.

For two normal numbers of mean zero, a *dual* is the expectation of the product of their activations, and of their
activations' derivatives. It depends on their standard deviations and on the cosine between them, and near a cosine
of 1 or -1 on nothing as much as on what is missing there: an arc cosine of rounded numbers is good to half the digits.
So the duals take that *gap*, ``1 - |cosine|``, which whoever knows the inputs can tell to all digits, and the sign.

The loops hold no branches but choices between two numbers, so that the compiler works on several entries at a time.
"""

from __future__ import annotations

import math

import numpy as np

from flipcert.engine.jit import compiled

RELU, ERF, GELU = range(3)

_HALF_PI = math.pi / 2.0
_PER_TURN = 0.5 / math.pi


@compiled
def dual_row(covariance, theta, gap, x_std, z_std, activation, leak):
    """Replace covariances of one number with many by those of their activations; multiply theta by the derivatives'.

    ``gap`` becomes one minus the cosine, for ``gap_behind`` in the next layer. ``leak`` is the slope of a (leaky) ReLU
    for negative numbers.
    """
    if activation == RELU:
        for j in range(covariance.size):
            acute = covariance[j] > 0.0
            outer, slope = _rectified(gap[j], acute, leak)
            covariance[j] = x_std * z_std[j] * outer
            theta[j] *= slope
            gap[j] = gap[j] if acute else 2.0 - gap[j]
    elif activation == ERF:
        x_rest = 1.0 / (1.0 + 2.0 * x_std * x_std)
        for j in range(covariance.size):
            z_rest = np.divide(1.0, 1.0 + 2.0 * z_std[j] * z_std[j])
            shares = (2.0 * x_std * x_std * x_rest) * (2.0 * z_std[j] * z_std[j] * z_rest)
            outer, slope = _sigmoid(gap[j], covariance[j] > 0.0, x_rest, z_rest, shares)
            covariance[j] = outer
            theta[j] *= slope
    else:
        x_rest = 1.0 / (1.0 + x_std * x_std)
        for j in range(covariance.size):
            z_rest = np.divide(1.0, 1.0 + z_std[j] * z_std[j])
            shares = (x_std * x_std * x_rest) * (z_std[j] * z_std[j] * z_rest)
            outer, slope = _gated(gap[j], covariance[j] > 0.0, x_rest, z_rest, shares)
            covariance[j] = x_std * z_std[j] * outer
            theta[j] *= slope


@compiled
def dual_alone(std, activation, leak):
    """Expected square of the activation of one normal number, and of its derivative."""
    if activation == RELU:
        outer, slope = _rectified(0.0, True, leak)
        return std * std * outer, slope
    if activation == ERF:
        rest = 1.0 / (1.0 + 2.0 * std * std)
        share = 2.0 * std * std * rest
        return _sigmoid(0.0, True, rest, rest, share * share)
    rest = 1.0 / (1.0 + std * std)
    share = std * std * rest
    outer, slope = _gated(0.0, True, rest, rest, share * share)
    return std * std * outer, slope


@compiled
def gap_row(covariance, x_std, z_std, gap, near):
    """Write ``1 - |cosine|`` as far as covariances tell; return how many are below ``near``, to be measured anew."""
    count = 0
    for j in range(covariance.size):
        scale = x_std * z_std[j]
        beside = 1.0 - np.divide(abs(covariance[j]), scale)
        beside = beside if beside > 0.0 else 0.0
        # A number that is always zero has no direction; its covariance is zero as well.
        gap[j] = beside if scale > 0.0 else 1.0
        count += gap[j] < near
    return count


@compiled
def gap_behind(gap, leak):
    """How much of the largest possible covariance of (leaky) ReLUs is missing, over the numbers' deviations.

    To all digits, for ``gap`` one minus the cosine.
    """
    angle = _angle(gap) if gap <= 1.0 else math.pi - _angle(2.0 - gap)
    if angle < 0.1:
        square = angle * angle
        beside = angle * square * (1 / 3 - square * (1 / 30 - square * (1 / 840 - square / 45360)))
    else:
        beside = math.sqrt(gap * (2.0 - gap)) - angle * (1.0 - gap)
    missing = gap - beside / math.pi
    return leak * gap + 0.5 * (1.0 - leak) * (1.0 - leak) * missing


@compiled
def _rectified(gap, acute, leak):
    """(Leaky) ReLU, beside the deviations: ``leak x + (1 - leak) max(x, 0)``."""
    size = 1.0 - gap
    angle = _angle(gap)
    cosine = size if acute else -size
    both = (math.pi - angle if acute else angle) * _PER_TURN  # probability that both are positive
    outer = math.sqrt(gap * (2.0 - gap)) * _PER_TURN + cosine * both
    part = (1.0 - leak) * (1.0 - leak)
    return leak * cosine + part * outer, leak + part * both


@compiled
def _sigmoid(gap, acute, x_rest, z_rest, shares):
    """Error function. A number of variance v, in units of the noise 1/2, has the share 2v / (1 + 2v); 1 is the rest."""
    correlation = math.sqrt(shares) * (1.0 - gap)
    free = _free(gap, x_rest, z_rest, shares)
    arc = _arc_sine(correlation, free)
    # z_rest / free first: the product of the two rests may underflow.
    return (arc if acute else -arc) / _HALF_PI, 4.0 / math.pi * math.sqrt(x_rest * np.divide(z_rest, free))


@compiled
def _gated(gap, acute, x_rest, z_rest, shares):
    """GELU, ``x`` times the normal distribution function, beside the deviations; noise of variance 1."""
    size = 1.0 - gap
    correlation = math.sqrt(shares) * size
    free = _free(gap, x_rest, z_rest, shares)
    arc = _arc_sine(correlation, free) * _PER_TURN
    both = 0.25 + (arc if acute else -arc)  # probability that both exceed independent noise
    density = np.divide(_PER_TURN, math.sqrt(free))
    outer = (size if acute else -size) * both
    outer += density * math.sqrt(shares) * (gap * (2.0 - gap) + size * size * (x_rest + z_rest))
    bend = density * correlation * (x_rest + z_rest + x_rest * np.divide(z_rest, free))
    return outer, both + (bend if acute else -bend)


@compiled
def _free(gap, x_rest, z_rest, shares):
    """One minus the squared correlation of two normal numbers with noise, without cancellation."""
    return x_rest + z_rest - x_rest * z_rest + shares * gap * (2.0 - gap)


@compiled
def _angle(gap):
    """Arc cosine of ``1 - gap``, for a gap up to 1."""
    size = 1.0 - gap
    wide = gap > 0.5
    square = size * size if wide else 0.5 * gap
    root = math.sqrt(square)
    arc = root + root * square * _bulge(square)
    return _HALF_PI - arc if wide else 2.0 * arc


@compiled
def _arc_sine(value, free):
    """Arc sine of a value from 0 to 1, given ``1 - value**2`` to all digits."""
    steep = value > 0.5
    below = 0.5 * np.divide(free, 1.0 + value)
    square = below if steep else value * value
    flat = math.sqrt(below)
    root = flat if steep else value
    arc = root + root * square * _bulge(square)
    return _HALF_PI - 2.0 * arc if steep else arc


@compiled
def _bulge(square):
    """``(asin(s) / s - 1) / s**2`` for a square of s up to 1/4: the best polynomial, within 4e-18."""
    value = 0.028757851367421566
    value = value * square - 0.014851887071247204
    value = value * square + 0.01740087944269402
    value = value * square + 0.005457506718640358
    value = value * square + 0.01032281435018578
    value = value * square + 0.011479177415184906
    value = value * square + 0.013971212973552933
    value = value * square + 0.017352392720869973
    value = value * square + 0.02237217294214989
    value = value * square + 0.030381944138531247
    value = value * square + 0.04464285714635543
    value = value * square + 0.07499999999998433
    return value * square + 0.16666666666666669

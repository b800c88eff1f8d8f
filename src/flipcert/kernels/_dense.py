"""Layer recursions of dense networks, entry by entry. Compiled."""

from __future__ import annotations

import math

import numpy as np

from flipcert.engine.jit import compiled

RELU, ERF = range(2)


@compiled
def dense_kernel(product, x_square, z_square, first_scale, weight, bias, depth, activation, tangent):
    """Turn inner products into kernel values, in place.

    ``x_square`` and ``z_square`` are the inner products of the inputs with themselves.
    """
    rows, columns = product.shape
    x_variance = _variances(x_square, first_scale, weight, bias, depth, activation)
    z_variance = _variances(z_square, first_scale, weight, bias, depth, activation)
    for i in range(rows):
        for j in range(columns):
            covariance = first_scale * product[i, j] + bias
            theta = covariance
            for layer in range(depth):
                outer, slope = _dual(covariance, x_variance[layer, i], z_variance[layer, j], activation)
                covariance = weight * outer + bias
                theta = covariance + weight * theta * slope
            product[i, j] = theta if tangent else covariance


@compiled
def dense_diagonal(square, first_scale, weight, bias, depth, activation, tangent):
    """Kernel of inputs with themselves, given their squared norms."""
    variance = _variances(square, first_scale, weight, bias, depth, activation)
    values = np.empty(square.size)
    for i in range(square.size):
        theta = variance[0, i]
        for layer in range(depth):
            before = variance[layer, i]
            slope = 0.5 if activation == RELU else 4.0 / (math.pi * math.sqrt(1.0 + 4.0 * before))
            theta = variance[layer + 1, i] + weight * theta * slope
        values[i] = theta if tangent else variance[depth, i]
    return values


@compiled
def _variances(square, first_scale, weight, bias, depth, activation):
    """Variance of every layer's outputs, for each input."""
    variance = np.empty((depth + 1, square.size))
    for i in range(square.size):
        variance[0, i] = first_scale * square[i] + bias
        for layer in range(depth):
            before = variance[layer, i]
            if activation == RELU:
                after = before / 2.0
            else:
                after = 2.0 / math.pi * math.asin(2.0 * before / (1.0 + 2.0 * before))
            variance[layer + 1, i] = weight * after + bias
    return variance


@compiled
def _dual(covariance, x_variance, z_variance, activation):
    """Expected product of the activations of two jointly normal numbers, and of their derivatives."""
    if activation == RELU:
        scale = math.sqrt(x_variance * z_variance)
        if scale == 0.0:
            return 0.0, 0.0
        cosine = min(1.0, max(-1.0, covariance / scale))
        sine = math.sqrt((1.0 - cosine) * (1.0 + cosine))
        angle = math.atan2(sine, cosine)
        outer = scale * (sine + (math.pi - angle) * cosine) / (2.0 * math.pi)
        return outer, (math.pi - angle) / (2.0 * math.pi)
    spread = 4.0 * max(0.0, x_variance * z_variance - covariance * covariance)
    spread += 1.0 + 2.0 * x_variance + 2.0 * z_variance
    ratio = 2.0 * covariance / math.sqrt((1.0 + 2.0 * x_variance) * (1.0 + 2.0 * z_variance))
    outer = 2.0 / math.pi * math.asin(min(1.0, max(-1.0, ratio)))
    return outer, 4.0 / (math.pi * math.sqrt(spread))

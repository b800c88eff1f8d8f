"""Layer recursions of dense networks. Compiled."""

from __future__ import annotations

import math

import numpy as np

from flipcert.engine._jit.sparse import places_of_entries, squared_apart
from flipcert.engine.jit import compiled
from flipcert.kernels._jit.dual import RELU, dual_alone, dual_row, gap_behind, gap_row

# Entries that go through all layers together: few enough to stay in the nearest cache.
_CHUNK = 256
# Below this gap of a hidden layer, where covariances are doubles, the gap is measured anew.
NEAR = 2e-7


@compiled
def dense_kernel(product, X, Z, x_square, z_square, input_scale, weight, bias, activation, leak, tangent, near):
    """Turn inner products into kernel values, in place; Z is a matrix, or the three arrays of a sparse one.

    ``x_square`` and ``z_square`` are the inner products of the inputs with themselves, ``weight`` and ``bias`` the
    variances of each layer after the first. Gaps of inputs below ``near`` are measured on the inputs.
    """
    rows, columns = product.shape
    depth = weight.size - 1
    x_std = _deviations(x_square, input_scale, weight, bias, activation, leak)
    z_std = _deviations(z_square, input_scale, weight, bias, activation, leak)
    covariances, thetas, gaps, gaps_before = np.empty(_CHUNK), np.empty(_CHUNK), np.empty(_CHUNK), np.empty(_CHUNK)
    for start in range(0, columns, _CHUNK):
        size = min(_CHUNK, columns - start)
        covariance, theta = covariances[:size], thetas[:size]
        for i in range(rows):
            for j in range(size):
                covariance[j] = input_scale * product[i, start + j] + bias[0]
                theta[j] = covariance[j]
            for layer in range(depth):
                own, others = x_std[layer, i], z_std[layer, start : start + size]
                gap, gap_before = gaps[:size], gaps_before[:size]
                if layer == 0:
                    if gap_row(covariance, own, others, gap, near):
                        _measure(gap, near, covariance, X[i], Z, start, own, others, input_scale, bias[0])
                elif gap_row(covariance, own, others, gap, NEAR) and activation == RELU:
                    before = x_std[layer - 1, i], z_std[layer - 1, start : start + size]
                    _carry(gap, gap_before, covariance, own, others, before, weight[layer], bias[layer], leak)
                dual_row(covariance, theta, gap, own, others, activation, leak)
                gaps, gaps_before = gaps_before, gaps
                for j in range(size):
                    covariance[j] = weight[layer + 1] * covariance[j] + bias[layer + 1]
                    theta[j] = covariance[j] + weight[layer + 1] * theta[j]
            values = theta if tangent else covariance
            for j in range(size):
                product[i, start + j] = values[j]


@compiled
def dense_diagonal(square, input_scale, weight, bias, activation, leak, tangent):
    """Kernel of inputs with themselves, given their squared norms."""
    values = np.empty(square.size)
    for i in range(square.size):
        covariance = input_scale * square[i] + bias[0]
        theta = covariance
        for layer in range(1, weight.size):
            outer, slope = dual_alone(math.sqrt(covariance), activation, leak)
            covariance = weight[layer] * outer + bias[layer]
            theta = covariance + weight[layer] * theta * slope
        values[i] = theta if tangent else covariance
    return values


@compiled
def _deviations(square, input_scale, weight, bias, activation, leak):
    """Standard deviation of every hidden layer's outputs before the activation, for each input."""
    std = np.empty((weight.size - 1, square.size))
    for i in range(square.size):
        variance = input_scale * square[i] + bias[0]
        for layer in range(std.shape[0]):
            std[layer, i] = math.sqrt(variance)
            outer, _ = dual_alone(std[layer, i], activation, leak)
            variance = weight[layer + 1] * outer + bias[layer + 1]
    return std


@compiled
def _measure(gap, near, covariance, x, Z, start, x_std, z_std, input_scale, bias):
    """Small gaps of inputs: half the squared distance of both (and the constant of the biases) scaled to norm 1."""
    filled = places_of_entries(x)
    for j in range(gap.size):
        if gap[j] < near:
            side = 1.0 if covariance[j] > 0.0 else -1.0
            to_x, to_z = 1.0 / x_std, side / z_std[j]
            total = squared_apart(x, filled, to_x, Z, start + j, to_z)
            gap[j] = 0.5 * (input_scale * total + (math.sqrt(bias) * (to_x - to_z)) ** 2)


@compiled
def _carry(gap, gap_before, covariance, x_std, z_std, before, weight, bias, leak):
    """Small gaps of a hidden layer from those of the one before: what lengths add, and what angles add."""
    x_before, z_before = before
    part = weight * 0.5 * (1.0 + leak * leak)
    for j in range(gap.size):
        if gap[j] < NEAR and covariance[j] > 0.0:
            to_x, to_z = 1.0 / x_std, 1.0 / z_std[j]
            lengths = part * (x_before * to_x - z_before[j] * to_z) ** 2 + (math.sqrt(bias) * (to_x - to_z)) ** 2
            angles = weight * (x_before * to_x) * (z_before[j] * to_z) * gap_behind(gap_before[j], leak)
            gap[j] = 0.5 * lengths + angles

"""Layer recursions of convolutional networks. Compiled.

Covariances of one image x with other images lie in *sheets*: a row for each position in x, and a column for each image
at the same position (read-out by flattening, where no other pairs of positions matter) or for each position in one
image (average pooling). A convolution adds up a sheet over the patch around a position: around the row's position,
and with pooling around the column's position too, in step.
"""

from __future__ import annotations

import math

import numpy as np

from flipcert.engine.jit import compiled
from flipcert.kernels._jit.dense import NEAR
from flipcert.kernels._jit.dual import RELU, dual_alone, dual_row, gap_behind, gap_row

# Covariance, tangent kernel, gaps of this layer and of the one before, and one for sums over patches.
N_SHEETS = 5
# From one in so many small gaps in a row on, all are measured.
_MANY = 8


@compiled
def conv_rows(products, images, others, x_std, z_std, shape, weight, bias, activation, leak, near, values):
    """Kernel values of images with others at equal positions, from products of their pixels at every position.

    ``products`` has shape (positions, images, others), or no entries if the pixels of ``others``, laid out as
    (positions, channels, others), are still to be multiplied. ``values`` receives covariance and tangent kernel.
    """
    columns = others.shape[2]
    sheets = np.empty((N_SHEETS, x_std.shape[1], columns))
    for i in range(images.shape[0]):
        _products_here(sheets[0], products, images[i], others, i)
        own = np.ascontiguousarray(x_std[:, :, i])
        propagate(sheets, images[i], others, own, z_std, shape, weight, bias, activation, leak, near, False)
        for kind in range(2):
            sheet = sheets[kind]
            for j in range(columns):
                total = 0.0
                for p in range(sheet.shape[0]):
                    total += sheet[p, j]
                values[kind, i, j] = total / sheet.shape[0]


@compiled
def conv_pooled(products, image, others, x_std, z_std, shape, weight, bias, activation, leak, near, values):
    """Kernel values of one image with others at all pairs of positions.

    ``products`` has shape (others, positions, positions), ``others`` (others, channels, positions).
    """
    depth, positions = x_std.shape
    sheets = np.empty((N_SHEETS, positions, positions))
    for j in range(products.shape[0]):
        sheets[0] = products[j]
        theirs = np.ascontiguousarray(z_std[:, :, j]).reshape(depth, 1, positions)
        other = np.ascontiguousarray(others[j].T).reshape(positions, -1, 1)
        propagate(sheets, image, other, x_std, theirs, shape, weight, bias, activation, leak, near, True)
        for kind in range(2):
            values[kind, j] = np.sum(sheets[kind]) / positions**2


@compiled
def conv_deviations(images, shape, weight, bias, activation, leak):
    """Standard deviations before each activation at each position, and what a read-out by flattening sees.

    All have images as their last axis.
    """
    depth = weight.size - 1
    height, width, reach, channels = shape
    patch = (2 * reach + 1) ** 2
    std = np.empty((depth, height * width, images.shape[0]))
    sheet, tangent, spare = np.zeros(std.shape[1:]), np.empty(std.shape[1:]), np.empty(std.shape[1:])
    for i in range(images.shape[0]):
        for c in range(channels):
            for p in range(height * width):
                pixel = np.float64(images[i, c, p])
                sheet[p, i] += pixel * pixel
    for layer in range(depth):
        part = weight[layer] / (patch * channels if layer == 0 else patch)
        _add_patches(sheet, spare, height, width, reach, False)
        if layer > 0:
            _add_patches(tangent, spare, height, width, reach, False)
        for p in range(sheet.shape[0]):
            for i in range(sheet.shape[1]):
                variance = part * sheet[p, i] + bias[layer]
                theta = variance if layer == 0 else variance + part * tangent[p, i]
                std[layer, p, i] = math.sqrt(variance)
                outer, slope = dual_alone(std[layer, p, i], activation, leak)
                sheet[p, i] = outer
                tangent[p, i] = theta * slope
    return std, sheet, tangent


@compiled
def propagate(sheets, image, others, x_std, z_std, shape, weight, bias, activation, leak, near, pooled):
    """Take products of pixels (the first sheet) through all convolutions and activations.

    Leaves the covariance of the last activations in the first sheet, and what the read-out passes on of the tangent
    kernel in the second.
    """
    covariance, theta, gap, gap_before, spare = sheets[0], sheets[1], sheets[2], sheets[3], sheets[4]
    height, width, reach, channels = shape
    patch = (2 * reach + 1) ** 2
    for layer in range(weight.size - 1):
        part = weight[layer] / (patch * channels if layer == 0 else patch)
        _add_patches(covariance, spare, height, width, reach, pooled)
        if layer > 0:
            _add_patches(theta, spare, height, width, reach, pooled)
        for p in range(covariance.shape[0]):
            own, theirs = x_std[layer, p], z_std[layer, 0 if pooled else p]
            row, tangent, gaps = covariance[p], theta[p], gap[p]
            if own == 0.0:
                # A blank patch without bias: nothing comes from here.
                row[:], tangent[:], gaps[:] = 0.0, 0.0, 1.0
                continue
            for j in range(row.size):
                row[j] = part * row[j] + bias[layer]
                tangent[j] = row[j] if layer == 0 else row[j] + part * tangent[j]
            if layer == 0:
                count = gap_row(row, own, theirs, gaps, near)
                if count > row.size // _MANY and not pooled:
                    _measure_all(gaps, near, row, image, others, p, own, theirs, shape, part, bias[0], spare)
                elif count > 0:
                    _measure(gaps, near, row, image, others, p, own, theirs, shape, part, bias[0], pooled)
            elif gap_row(row, own, theirs, gaps, NEAR) and activation == RELU:
                _carry(gaps, gap_before, row, p, x_std, z_std, layer, shape, part, bias[layer], leak, pooled)
            dual_row(row, tangent, gaps, own, theirs, activation, leak)
        gap, gap_before = gap_before, gap


@compiled
def _products_here(sheet, products, image, others, i):
    """Products of the pixels of one image with those of others at the same position, summed over channels."""
    if products.size > 0:
        sheet[:] = products[:, i]
        return
    for p in range(sheet.shape[0]):
        row = sheet[p]
        row[:] = 0.0
        for c in range(image.shape[0]):
            pixel = image[c, p]
            if pixel != 0.0:
                for j in range(row.size):
                    row[j] += pixel * others[p, c, j]


@compiled
def _add_patches(sheet, spare, height, width, reach, pooled):
    """Add up a sheet over the patch around each position, in place: along the rows of the image, then along columns."""
    for y in range(height):
        for x in range(width):
            row = spare[y * width + x]
            row[:] = 0.0
            for across in range(max(-reach, -x), min(reach, width - 1 - x) + 1):
                _add_shifted(row, sheet[y * width + x + across], height, width, 0, across, pooled)
    for y in range(height):
        for x in range(width):
            row = sheet[y * width + x]
            row[:] = 0.0
            for down in range(max(-reach, -y), min(reach, height - 1 - y) + 1):
                _add_shifted(row, spare[(y + down) * width + x], height, width, down, 0, pooled)


@compiled
def _add_shifted(row, other, height, width, down, across, pooled):
    """Add one row of a sheet to another; if columns are positions, those so far down and across, within the image."""
    if not pooled:
        for j in range(row.size):
            row[j] += other[j]
        return
    shift = down * width + across
    left, right = max(0, -across), width - max(0, across)
    for y in range(max(0, -down), height - max(0, down)):
        for q in range(y * width + left, y * width + right):
            row[q] += other[q + shift]


@compiled
def _measure(gap, near, covariance, image, others, p, x_std, z_std, shape, part, bias, pooled):
    """Small gaps of patches: half the squared distance of both (and the constant of the biases) scaled to norm 1."""
    height, width, reach, channels = shape
    y, x = divmod(p, width)
    for j in range(gap.size):
        if gap[j] < near:
            side = 1.0 if covariance[j] > 0.0 else -1.0
            to_x, to_z = 1.0 / x_std, side / z_std[j]
            column = 0 if pooled else j
            v, u = divmod(j, width) if pooled else (y, x)
            total = 0.0
            for down in range(-reach, reach + 1):
                own_row, other_row = 0 <= y + down < height, 0 <= v + down < height
                for across in range(-reach, reach + 1):
                    here, there = own_row and 0 <= x + across < width, other_row and 0 <= u + across < width
                    if here or there:
                        own, other = (y + down) * width + x + across, (v + down) * width + u + across
                        for c in range(channels):
                            apart = to_x * image[c, own] if here else 0.0
                            apart -= to_z * others[other, c, column] if there else 0.0
                            total += apart * apart
            gap[j] = 0.5 * (part * total + (math.sqrt(bias) * (to_x - to_z)) ** 2)


@compiled
def _measure_all(gap, near, covariance, image, others, p, x_std, z_std, shape, part, bias, spare):
    """Measure the gaps of all images at once, which is faster where much is equal, such as backgrounds."""
    height, width, reach, channels = shape
    y, x = divmod(p, width)
    to_x, to_z, total = 1.0 / x_std, spare[0], spare[1] if spare.shape[0] > 1 else np.empty(gap.size)
    for j in range(gap.size):
        to_z[j] = np.divide(1.0 if covariance[j] > 0.0 else -1.0, z_std[j])
        total[j] = 0.0
    for v in range(max(0, y - reach), min(height, y + reach + 1)):
        for u in range(max(0, x - reach), min(width, x + reach + 1)):
            for c in range(channels):
                own, pixels = to_x * image[c, v * width + u], others[v * width + u, c]
                for j in range(gap.size):
                    apart = own - to_z[j] * pixels[j]
                    total[j] += apart * apart
    for j in range(gap.size):
        measured = 0.5 * (part * total[j] + (math.sqrt(bias) * (to_x - to_z[j])) ** 2)
        gap[j] = measured if gap[j] < near else gap[j]


@compiled
def _carry(gap, gap_before, covariance, p, x_std, z_std, layer, shape, part, bias, leak, pooled):
    """Small gaps of a hidden layer from those of the one before: what lengths add, and what angles add."""
    height, width, reach, _ = shape
    square = 0.5 * (1.0 + leak * leak)
    y, x = divmod(p, width)
    for j in range(gap.size):
        if gap[j] < NEAR and covariance[j] > 0.0:
            to_x = 1.0 / x_std[layer, p]
            to_z = 1.0 / z_std[layer, 0 if pooled else p, j]
            v, u = divmod(j, width) if pooled else (y, x)
            lengths, angles = 0.0, 0.0
            for down in range(-reach, reach + 1):
                own_row, other_row = 0 <= y + down < height, 0 <= v + down < height
                for across in range(-reach, reach + 1):
                    here, there = own_row and 0 <= x + across < width, other_row and 0 <= u + across < width
                    position = (y + down) * width + x + across
                    column = (v + down) * width + u + across if pooled else j
                    own = to_x * x_std[layer - 1, position] if here else 0.0
                    theirs = to_z * z_std[layer - 1, 0 if pooled else position, column] if there else 0.0
                    lengths += square * (own - theirs) ** 2
                    if own * theirs > 0.0:
                        angles += own * theirs * gap_behind(gap_before[position, column], leak)
            gap[j] = 0.5 * (part * lengths + (math.sqrt(bias) * (to_x - to_z)) ** 2) + part * angles

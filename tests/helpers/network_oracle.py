"""Kernels of wide networks the slow way: textbook formulas in 60 digits, all pairs of positions, one pair of inputs."""

from __future__ import annotations

from mpmath import acos, asin, mp, mpf, pi, sqrt

DIGITS = 60


def dense(x, z, depth, activation, weight_std, bias_std, kind, negative_slope=0.1):
    """Kernel of two inputs; scales are lists, one number a layer."""
    with mp.workdps(DIGITS):
        weight, bias = _squares(weight_std), _squares(bias_std)
        x, z = [mpf(float(v)) for v in x], [mpf(float(v)) for v in z]
        inner = [sum(a * b for a, b in zip(u, v, strict=True)) / len(x) for u, v in ((x, x), (x, z), (z, z))]
        xx, xz, zz = (weight[0] * value + bias[0] for value in inner)
        theta = xz
        for layer in range(1, depth + 1):
            outer, slope = _dual(xx, xz, zz, activation, negative_slope)
            own = [_dual(v, v, v, activation, negative_slope)[0] for v in (xx, zz)]
            xx, zz = (weight[layer] * value + bias[layer] for value in own)
            xz = weight[layer] * outer + bias[layer]
            theta = xz + weight[layer] * theta * slope
        return theta if kind == "ntk" else xz


def conv(x, z, image_shape, filter_size, depth, activation, pooling, weight_std, bias_std, kind, negative_slope=0.1):
    """Kernel of two images, from the covariance of every position with every other."""
    with mp.workdps(DIGITS):
        weight, bias = _squares(weight_std), _squares(bias_std)
        channels, height, width = image_shape
        places = [(i, j) for i in range(height) for j in range(width)]
        images = {"x": x.reshape(image_shape), "z": z.reshape(image_shape)}
        names = [("x", "x"), ("x", "z"), ("z", "z")]

        def pixels(a, p, b, q):
            return sum(mpf(float(images[a][c][p])) * mpf(float(images[b][c][q])) for c in range(channels)) / channels

        def averaged(table, p, q):
            reach = range(-(filter_size // 2), filter_size // 2 + 1)
            total = mpf(0)
            for i in reach:
                for j in reach:
                    total += table.get(((p[0] + i, p[1] + j), (q[0] + i, q[1] + j)), mpf(0))
            return total / filter_size**2

        pairs = [(p, q) for p in places for q in places]
        before = {(a, b): {(p, q): pixels(a, p, b, q) for p, q in pairs} for a, b in names}
        theta = {}
        for layer in range(depth):
            here = {
                name: {(p, q): weight[layer] * averaged(before[name], p, q) + bias[layer] for p, q in pairs}
                for name in names
            }
            own = here["x", "z"]
            passed = {pair: weight[layer] * averaged(theta, *pair) if layer else 0 for pair in pairs}
            slopes = {}
            for p, q in pairs:
                before["x", "z"][p, q], slopes[p, q] = _dual(
                    here["x", "x"][p, p], own[p, q], here["z", "z"][q, q], activation, negative_slope
                )
            theta = {pair: (own[pair] + passed[pair]) * slopes[pair] for pair in pairs}
            for a in "xz":
                # Only variances of one image with itself are needed further on.
                variances = here[a, a]
                before[a, a] = {(p, p): _dual(*3 * [variances[p, p]], activation, negative_slope)[0] for p in places}
        seen = pairs if pooling else [(p, p) for p in places]
        mean, tangent = (sum(table[pair] for pair in seen) / len(seen) for table in (before["x", "z"], theta))
        covariance = weight[depth] * mean + bias[depth]
        return covariance + weight[depth] * tangent if kind == "ntk" else covariance


def _squares(scales):
    return [mpf(float(scale)) ** 2 for scale in scales]


def _dual(xx, xz, zz, activation, negative_slope):
    """Expected product of activations, and of their derivatives, of normal numbers with these covariances."""
    if activation == "linear":
        return xz, mpf(1)
    if activation in ("relu", "leaky_relu"):
        leak = mpf(float(negative_slope)) if activation == "leaky_relu" else mpf(0)
        scale = sqrt(xx * zz)
        if scale == 0:
            return mpf(0), mpf(0)
        cosine = max(mpf(-1), min(mpf(1), xz / scale))
        angle = acos(cosine)
        outer = scale * (sqrt(1 - cosine**2) + (pi - angle) * cosine) / (2 * pi)
        return leak * xz + (1 - leak) ** 2 * outer, leak + (1 - leak) ** 2 * (pi - angle) / (2 * pi)
    if activation == "erf":
        ratio = 2 * xz / sqrt((1 + 2 * xx) * (1 + 2 * zz))
        return 2 / pi * asin(ratio), 4 / pi / sqrt((1 + 2 * xx) * (1 + 2 * zz) - 4 * xz**2)
    determinant = (1 + xx) * (1 + zz) - xz**2
    both = mpf(1) / 4 + asin(xz / sqrt((1 + xx) * (1 + zz))) / (2 * pi)
    density = 1 / (2 * pi * sqrt(determinant))
    outer = xz * both + density * (xx * zz + xz**2 * (1 / (1 + xx) + 1 / (1 + zz) - 1))
    return outer, both + density * xz * (1 / (1 + xx) + 1 / (1 + zz) + 1 / determinant)

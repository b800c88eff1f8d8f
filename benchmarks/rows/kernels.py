"""Kernels of networks: what they cost beside the products and element-wise passes that they cannot do without."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.checks import Mismatch
from benchmarks.data import cifar10, mnist, synthetic
from benchmarks.records import Record
from benchmarks.settings import Settings
from benchmarks.timing import Spread, compare, seconds
from flipcert.engine.blocks import map_blocks
from flipcert.engine.buffers import Buffers
from flipcert.kernels import NTK, ConvNTK

DEPTH = 3
# Entries of a piece of the reference.
_PIECE = 2**15
Write = Callable[[NDArray[Any], NDArray[Any], NDArray[Any]], None]


def rows(settings: Settings) -> Iterator[Record]:
    """Dense ReLU network, convolution on MNIST images, convolution on a feature map."""
    yield from dense(settings)
    yield from convolution(settings)
    yield from feature_map(settings)


def dense(settings: Settings) -> Iterator[Record]:
    """ReLU NTK of depth 3, against its product and NumPy's passes."""
    features = cifar10(settings.size(10_000, 2_000), settings.size(2_000, 500))
    kernel = NTK(DEPTH, "relu", np.sqrt(2.0))
    for dtype in (np.float64, np.float32):
        train, test = features.train.astype(dtype), features.test.astype(dtype)
        off = _largest_difference(kernel, _passes, test[:200], train[:200])
        yield Record(
            name=f"kernels-dense-{np.dtype(dtype)}",
            group="kernels",
            job=f"ReLU NTK of depth {DEPTH}, {len(test):,} x {len(train):,} pairs, d = {train.shape[1]}, "
            f"{np.dtype(dtype)}",
            measured=compare(_in_blocks(kernel.write, test, train), _in_blocks(_passes, test, train), settings.pairs),
            unit="×",
            target=2.0,
            method="the kernel over the product and the element-wise passes of its formula in NumPy, both in blocks on "
            "all cores into the same memory, in turns",
            data=features.name,
            checked=f"passes in NumPy: 40,000 entries within {off:.0e}",
            quick=settings.quick,
        )


def convolution(settings: Settings) -> Iterator[Record]:
    """ReLU NTK of one convolution on 28 x 28 images, read out from all positions."""
    features = mnist(settings.size(10_000, 500), settings.size(1_000, 100))
    kernel = ConvNTK(image_shape=(1, 28, 28))
    work = _in_blocks(kernel.write, features.test, features.train)
    _in_blocks(kernel.write, features.test[:2], features.train[:2])()
    off = _largest_difference(kernel, _plain(1, 28, 28), features.test[:3], features.train[:3])
    n_pairs = len(features.test) * len(features.train)
    yield Record(
        name="kernels-convolution",
        group="kernels",
        job=f"ReLU NTK of a convolution, 28 x 28 x 1, filter 3, flattened: {len(features.test):,} x "
        f"{len(features.train):,} pairs",
        measured=Spread.of([n_pairs / seconds(work) for _ in range(settings.few_pairs)]),
        unit="pairs/s",
        method="pairs of images over seconds, in blocks on all cores",
        data=features.name,
        checked=f"plain NumPy: 9 entries within {off:.0e}",
        quick=settings.quick,
    )


def feature_map(settings: Settings) -> Iterator[Record]:
    """The same on a feature map of 192 x 7 x 7, as a RotNet has it, against the products at each position."""
    shape = (192, 7, 7)
    features = synthetic(settings.size(4_000, 500), int(np.prod(shape)), 10, settings.size(1_000, 100))
    kernel = ConvNTK(image_shape=shape)
    off = _largest_difference(kernel, _plain(*shape), features.test[:3], features.train[:3])
    others = np.ascontiguousarray(features.train.reshape(-1, 192, 49).transpose(2, 1, 0))

    def products(X: NDArray[Any], Z: NDArray[Any], out: NDArray[Any]) -> None:
        own = np.ascontiguousarray(X.reshape(-1, 192, 49).transpose(2, 0, 1))
        for here, there in zip(own, others, strict=True):
            np.matmul(here, there, out=out)

    yield Record(
        name="kernels-feature-map",
        group="kernels",
        job=f"ReLU NTK of a convolution, 192 x 7 x 7, filter 3, flattened: {len(features.test):,} x "
        f"{len(features.train):,} pairs",
        measured=compare(
            _in_blocks(kernel.write, features.test, features.train),
            _in_blocks(products, features.test, features.train),
            settings.few_pairs,
        ),
        unit="×",
        method="the kernel over the 49 products that it contains, in float32, both in blocks on all cores, in turns",
        data=features.name,
        checked=f"plain NumPy: 9 entries within {off:.0e}",
        quick=settings.quick,
    )


def _in_blocks(write: Write, X: NDArray[Any], Z: NDArray[Any]) -> Callable[[], None]:
    """Form all kernel values as a classifier would: block by block, into memory that is used again."""

    def run() -> None:
        buffers = Buffers()

        def block(rows: NDArray[Any], n_rows: int) -> None:
            with buffers.borrow((rows.shape[0], Z.shape[0]), X.dtype) as out:
                write(rows, Z, out)

        map_blocks(block, X, Z.shape[0] * X.itemsize, None)
        buffers.close()

    return run


def _passes(X: NDArray[Any], Z: NDArray[Any], out: NDArray[Any]) -> None:
    """The dense kernel as good NumPy code would have it: a product, then passes over pieces that stay in a cache."""
    np.matmul(X, Z.T, out=out)
    kind = out.dtype.type
    scale = 2.0 / X.shape[1]
    x_std, z_std = (np.sqrt(scale * np.einsum("ij,ij->i", A, A)).astype(X.dtype) for A in (X, Z))
    step = max(1, _PIECE // len(Z))
    spare = np.empty((3, step, len(Z)), X.dtype)
    for start in range(0, len(X), step):
        cosine, own = out[start : start + step], x_std[start : start + step, None]
        theta, sine, obtuse = spare[:, : len(own)]
        cosine *= kind(scale) / own
        cosine /= z_std
        theta[:] = cosine
        for _ in range(DEPTH):
            # With weights of variance 2 all layers have the variances of the first, so that only cosines change.
            np.clip(cosine, -1, 1, out=cosine)
            np.arccos(cosine, out=obtuse)
            np.subtract(kind(np.pi), obtuse, out=obtuse)
            np.multiply(cosine, cosine, out=sine)
            np.subtract(1, sine, out=sine)
            np.sqrt(sine, out=sine)
            cosine *= obtuse
            cosine += sine
            cosine *= kind(1 / np.pi)
            theta *= obtuse
            theta *= kind(1 / np.pi)
            theta += cosine
        np.multiply(theta, own, out=cosine)
        cosine *= z_std


def _plain(channels: int, height: int, width: int) -> Write:
    """The convolutional kernel pair by pair, position by position."""

    def write(X: NDArray[Any], Z: NDArray[Any], out: NDArray[Any]) -> None:
        patches = [_patches(A.astype(np.float64).reshape(-1, channels, height, width)) for A in (X, Z)]
        for i, x in enumerate(patches[0]):
            for j, z in enumerate(patches[1]):
                covariance = np.einsum("pk,pk->p", x, z) / (9 * channels)
                scale = np.sqrt(np.einsum("pk,pk->p", x, x) * np.einsum("pk,pk->p", z, z)) / (9 * channels)
                angle = np.arccos(np.clip(covariance / np.where(scale > 0, scale, 1), -1, 1))
                outer = scale * (np.sin(angle) + (np.pi - angle) * np.cos(angle))
                out[i, j] = np.mean(outer + covariance * (np.pi - angle)) / (2 * np.pi)

    return write


def _patches(images: NDArray[Any]) -> NDArray[Any]:
    """All 3 x 3 patches: shape (images, positions, numbers in a patch)."""
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    n, channels, height, width = images.shape
    return windows.transpose(0, 2, 3, 1, 4, 5).reshape(n, height * width, channels * 9)


def _largest_difference(kernel: NTK | ConvNTK, plain: Write, X: NDArray[Any], Z: NDArray[Any]) -> float:
    """Beside the kernels of the inputs with themselves; an error if it is not rounding."""
    expected = np.empty((len(X), len(Z)), X.dtype)
    plain(X, Z, expected)
    scale = np.sqrt(np.outer(kernel.diag(X), kernel.diag(Z)))
    off = float(np.max(np.abs(kernel(X, Z) - expected) / np.where(scale > 0, scale, 1)))
    if off > np.sqrt(np.finfo(X.dtype).eps):
        raise Mismatch(f"{kernel!r} and plain NumPy differ by {off:.1e}.")
    return off

"""The loop that trains: the same weights from the same seed, however often it was stopped."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paper.features.checkpoint import Progress, identity_of, open_checkpoint, write_checkpoint
from paper.features.encoder import Encoder, Pixels, as_images
from paper.features.method import Method, load_torch

# The share of steps in which the learning rate rises.
_WARM = 0.05


def train(
    method: Method,
    images: ArrayLike,
    *,
    image_shape: tuple[int, ...] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    seconds_between: float = 60.0,
    on_step: Callable[[int, int], None] = lambda done, n_steps: None,
) -> Encoder:
    r"""Learn features from images alone. There is no way to hand over labels.

    Chance in step s comes from a generator seeded with (seed, s), and the order of the images in an epoch from one
    seeded with the epoch; so the weights after a step are a function of the settings, the images and the weights
    before it, and a run that goes on from a checkpoint ends where an uninterrupted one ends, bit for bit (on one kind
    of machine, with one number of threads).

    Parameters
    ----------
    method : RotNet or SimCLR
        What to train, and how.
    images : array-like of shape (n, channels, height, width)
        Pixels from 0 to any largest value; or flattened rows, with ``image_shape``.
    image_shape : tuple of int, optional
        Channels, height and width of flattened images.
    checkpoint : path-like, optional
        File to go on from, if it is there, and to keep the state in. One of other settings or images is refused.
    seconds_between : float, default=60
        Time between two states that are kept. It has no influence on the result.
    on_step : callable, optional
        Is told after each step how many are done, and of how many.

    Returns
    -------
    Encoder

    Examples
    --------
    >>> from paper.data import load
    >>> from paper.features import RotNet
    >>> digits = load("digits").train
    >>> encoder = train(RotNet(width=4, epochs=1), digits.X[:64], image_shape=digits.image_shape)
    >>> encoder.features(digits.X[:3]).shape
    (3, 16)
    """
    torch = load_torch()
    values = as_images(images, image_shape)
    if len(values) < 2:
        raise ValueError("training needs at least two images; got 1.")
    shape = values.shape[1:]
    identity = identity_of(method, values)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(_seed(method, 0))
        network = method.network(shape).to(memory_format=torch.channels_last)
    optimiser = method.optimiser(network.parameters())
    progress = Progress()
    if checkpoint is not None:
        progress = open_checkpoint(checkpoint, identity, network, optimiser) or progress
    pixels = Pixels.of(values)
    network.train()
    n_batches = max(1, len(values) // method.batch_size)
    n_steps = method.epochs * n_batches
    kept = begun = time.monotonic()
    spent = progress.seconds
    order = None
    while progress.step < n_steps:
        epoch, batch = divmod(progress.step, n_batches)
        if order is None or batch == 0:
            order = np.random.default_rng(_seed(method, 1, epoch)).permutation(len(values))
        rows = order[batch * method.batch_size : (batch + 1) * method.batch_size]
        _set_rate(optimiser, method.learning_rate * _share_of_rate(progress.step, n_steps))
        cost = _step(method, network, optimiser, pixels, values[rows], _seed(method, 2, progress.step))
        if not math.isfinite(cost):
            raise ValueError(
                f"training diverged in step {progress.step}; use a smaller learning_rate than {method.learning_rate}."
            )
        progress.add(cost, n_batches)
        on_step(progress.step, n_steps)
        now = time.monotonic()
        progress.seconds = spent + now - begun
        if checkpoint is not None and now - kept >= seconds_between and progress.step < n_steps:
            write_checkpoint(checkpoint, identity, pixels, network, optimiser, progress)
            kept = now
    if checkpoint is not None and not progress.finished:
        progress.finished = True
        write_checkpoint(checkpoint, identity, pixels, network, None, progress)
    return Encoder(method, shape, pixels, network, progress.losses, progress.seconds)


def _step(method: Method, network: Any, optimiser: Any, pixels: Pixels, images: NDArray[Any], seed: int) -> float:
    generator = load_torch().Generator().manual_seed(seed)
    optimiser.zero_grad(set_to_none=True)
    cost = method.loss(network, pixels.shares(images), pixels.prepare, generator)
    cost.backward()
    optimiser.step()
    return float(cost.detach())


def _seed(method: Method, *use: int) -> int:
    """A seed for one use of chance, independent of those for others."""
    return int(np.random.SeedSequence([method.seed, *use]).generate_state(1, np.uint64)[0])


def _share_of_rate(step: int, n_steps: int) -> float:
    """Rises in a straight line, then falls to 0 as a cosine."""
    warm = max(1, round(_WARM * n_steps))
    if step < warm:
        return (step + 1) / warm
    return 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, n_steps - warm)))


def _set_rate(optimiser: Any, rate: float) -> None:
    for group in optimiser.param_groups:
        group["lr"] = rate

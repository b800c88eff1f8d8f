"""What the commands about features do."""

from __future__ import annotations

import math
from dataclasses import asdict, fields
from pathlib import Path

import typer

from flipcert.cli.errors import stopping_at_once
from flipcert.cli.features import Learning
from flipcert.cli.progress import Display
from flipcert.datasets import Dataset, load
from flipcert.engine.watch import watched_by
from flipcert.features import checkpoint as checkpoints
from flipcert.features.extraction import extract
from flipcert.features.method import Method, load_torch
from flipcert.features.training import train


def train_command(
    method: str, dataset: str, out: Path, learning: Learning, data: Path | None, batches: str | None, quiet: bool
) -> None:
    """Train, or go on."""
    load_torch()
    chosen = _method(method, learning)
    _check_out(out)
    with (
        Display(quiet) as display,
        watched_by(display),
        stopping_at_once(f"Give the same command again to go on from {out}."),
    ):
        display.stage("reading")
        images = _images(dataset, data, batches).train
        display.stage("training")
        # Only the images are handed over.
        encoder = train(chosen, images.X, image_shape=images.image_shape, checkpoint=out)
    first, last = encoder.losses[0], encoder.losses[-1]
    typer.echo(f"Loss: {first:.4f} in the first epoch, {last:.4f} in the last of {len(encoder.losses)}")
    typer.echo(f"Checkpoint: {out}")


def extract_command(
    checkpoint: Path, dataset: str, out: Path, data: Path | None, batches: str | None, quiet: bool
) -> None:
    """Write a feature file."""
    if out.suffix != ".npz":
        raise ValueError(f"--out {out} must end in .npz, such as {out.with_suffix('.npz')}.")
    _check_out(out)
    with Display(quiet) as display, watched_by(display), stopping_at_once("Nothing was written."):
        display.stage("reading")
        encoder = checkpoints.load(checkpoint)
        images = _images(dataset, data, batches)
        display.stage("extracting")
        extract(encoder, images, out)
    shape = " x ".join(map(str, encoder.feature_shape))
    sizes = f"{len(images.train.X):,} and {len(images.test.X):,} images"
    typer.echo(f"{math.prod(encoder.feature_shape):,} features ({shape}) of {sizes}: {out}")


def _method(name: str, learning: Learning) -> Method:
    if name not in checkpoints.METHODS:
        raise ValueError(f"{name!r} is no method; use {' or '.join(checkpoints.METHODS)}.")
    kind = checkpoints.METHODS[name]
    given = {option: value for option, value in asdict(learning).items() if value is not None}
    known = {field.name for field in fields(kind)}
    for option in given:
        if option not in known:
            raise ValueError(f"--{option.replace('_', '-')} does not apply to {name}; leave it out.")
    return kind(**given)


def _images(name: str, folder: Path | None, batches: str | None) -> Dataset:
    try:
        wanted = None if batches is None else tuple(int(batch) for batch in batches.split(","))
    except ValueError:
        raise ValueError(f"--batches must be numbers with commas between them, such as 1,2; got {batches!r}.") from None
    dataset = load(name, folder, batches=wanted)
    if dataset.image_shape is None or len(dataset.image_shape) != 3:
        raise ValueError(f"{name} holds features, not images; name a data set of images, such as mnist.")
    return dataset


def _check_out(out: Path) -> None:
    if out.is_dir():
        raise ValueError(f"--out {out} is a folder; name the file to write.")
    if not out.absolute().parent.is_dir():
        raise ValueError(f"--out {out}: the folder {out.parent} does not exist; make it first.")

"""What ``python -m paper features`` does: train a network, write the features of a data set, hand data to flipcert."""

from __future__ import annotations

import argparse
import math
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from paper.data import Dataset, load
from paper.features import checkpoint as checkpoints
from paper.features.extraction import extract
from paper.features.method import Method, load_torch
from paper.features.training import train
from paper.files import whole_file
from paper.lines import Lines, say


def run(arguments: list[str]) -> None:
    """Train, extract or export."""
    options = _parser().parse_args(arguments)
    options.run(options)


def _train(options: Any) -> None:
    """Train, or go on."""
    load_torch()
    method = _method(options)
    _check_out(options.out)
    images = _images(options).train
    if not options.quiet:
        say("Training ...")
    # Only the images are handed over.
    encoder = train(
        method,
        images.X,
        image_shape=images.image_shape,
        checkpoint=options.out,
        on_step=(lambda done, of: None) if options.quiet else Lines("Training"),
    )
    first, last = encoder.losses[0], encoder.losses[-1]
    print(f"Loss: {first:.4f} in the first epoch, {last:.4f} in the last of {len(encoder.losses)}")
    print(f"Checkpoint: {options.out}")


def _extract(options: Any) -> None:
    """Write a feature file."""
    if options.out.suffix != ".npz":
        raise ValueError(f"--out {options.out} must end in .npz, such as {options.out.with_suffix('.npz')}.")
    _check_out(options.out)
    encoder = checkpoints.load(options.checkpoint)
    images = _images(options)
    if not options.quiet:
        say("Extracting ...")
    extract(encoder, images, options.out)
    shape = " x ".join(map(str, encoder.feature_shape))
    sizes = f"{len(images.train.X):,} and {len(images.test.X):,} images"
    print(f"{math.prod(encoder.feature_shape):,} features ({shape}) of {sizes}: {options.out}")


def _export(options: Any) -> None:
    """Write a training and a test file that ``flipcert certify`` takes."""
    dataset = load(options.dataset, options.data)
    options.out.mkdir(parents=True, exist_ok=True)
    for name, table in (("train", dataset.train), ("test", dataset.test)):
        with whole_file(options.out / f"{name}.npz") as file:
            np.savez(file, X=np.asarray(table.X, np.float32), y=table.y)
    print(f"Files: {options.out / 'train.npz'} and {options.out / 'test.npz'}")


def _method(options: Any) -> Method:
    if options.method not in checkpoints.METHODS:
        raise ValueError(f"{options.method!r} is no method; use {' or '.join(checkpoints.METHODS)}.")
    kind = checkpoints.METHODS[options.method]
    given = {name: getattr(options, name) for name in _settings() if getattr(options, name) is not None}
    for name in given:
        if name not in {field.name for field in fields(kind)}:
            raise ValueError(f"--{name.replace('_', '-')} does not apply to {options.method}; leave it out.")
    try:
        return kind(**given)
    except ValueError as error:
        name, *words = str(error).split(" ")
        raise ValueError(" ".join([f"--{name.replace('_', '-')}", *words])) from None


def _images(options: Any) -> Dataset:
    batches = options.batches
    try:
        wanted = None if batches is None else tuple(int(batch) for batch in batches.split(","))
    except ValueError:
        raise ValueError(f"--batches must be numbers with commas between them, such as 1,2; got {batches!r}.") from None
    dataset = load(options.dataset, options.data, batches=wanted)
    if dataset.image_shape is None or len(dataset.image_shape) != 3:
        raise ValueError(f"{options.dataset} holds features, not images; name a data set of images, such as mnist.")
    return dataset


def _check_out(out: Path) -> None:
    if out.is_dir():
        raise ValueError(f"--out {out} is a folder; name the file to write.")
    if not out.absolute().parent.is_dir():
        raise ValueError(f"--out {out}: the folder {out.parent} does not exist; make it first.")


def _settings() -> dict[str, str]:
    """Settings of all methods, and their defaults in words."""
    found: dict[str, list[str]] = {}
    for method in checkpoints.METHODS.values():
        for field in fields(method):
            found.setdefault(field.name, []).append(f"{method.name} {field.default}")
    return {name: ", ".join(defaults) for name, defaults in found.items()}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m paper features", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    training = commands.add_parser("train", help="train a network on the training images; labels are not used")
    training.add_argument("method", help="rotnet or simclr")
    training.set_defaults(run=_train)
    whole = {field.name for method in checkpoints.METHODS.values() for field in fields(method) if field.type == "int"}
    for name, defaults in _settings().items():
        kind = int if name in whole else float
        training.add_argument(f"--{name.replace('_', '-')}", type=kind, help=f"if not given: {defaults}")
    extracting = commands.add_parser("extract", help="write the features of a data set into a file, NAME.npz")
    extracting.add_argument("checkpoint", type=Path, help="what train wrote")
    extracting.set_defaults(run=_extract)
    exporting = commands.add_parser("export", help="write train.npz and test.npz, as flipcert certify takes them")
    exporting.set_defaults(run=_export)
    for command in (training, extracting, exporting):
        command.add_argument("dataset", help="data set by name: mnist, cifar10, digits, or NAME of a feature file")
        command.add_argument("--out", "-o", type=Path, required=True, help="what to write, and to go on from")
        command.add_argument("--data", type=Path, help="data folder; FLIPCERT_DATA or the user's cache if not given")
    for command in (training, extracting):
        command.add_argument("--batches", help="cifar10: training batches to read, such as 1,2; all if not given")
        command.add_argument("--quiet", "-q", action="store_true", help="show no progress")
    return parser

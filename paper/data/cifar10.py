"""CIFAR-10: 50,000 and 10,000 small colour images, in binary batches of 10,000."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from paper.data.folder import find, how_to_complete
from paper.data.openml import fetched
from paper.data.published import read_cifar, write_cifar
from paper.data.table import Table

_SHAPE = (3, 32, 32)
_SUBFOLDERS = ("cifar10", "cifar-10-batches-bin")
_BATCHES = (1, 2, 3, 4, 5)
_IN_A_BATCH = 10_000
_TEST = "test_batch.bin"


def read_cifar10(folder: Path, batches: Sequence[int] | None, fetch: bool) -> tuple[Table, Table]:
    """Some or all training batches and the test set, fetched if no file of them is there."""
    batches = _BATCHES if batches is None else tuple(batches)
    if not batches or not set(batches) <= set(_BATCHES) or len(set(batches)) < len(batches):
        raise ValueError(f"batches must be different numbers from 1 to 5; got {batches}.")
    all_files = [*map(_file, _BATCHES), _TEST]
    found = find(folder, all_files, _SUBFOLDERS)
    if not found and fetch:
        _fetch(folder / "cifar10", all_files)
        found = find(folder, all_files, _SUBFOLDERS)
    wanted = [*map(_file, batches), _TEST]
    missing = [file for file in wanted if file not in found]
    if missing:
        there = tuple(batch for batch in _BATCHES if _file(batch) in found)
        only = f", or ask for the images at hand with batches={there}" if there and _TEST in found else ""
        raise ValueError(f"{how_to_complete('cifar10', missing, folder / 'cifar10')}{only}.")
    *train, test = (read_cifar(found[file]) for file in wanted)
    images, labels = (np.concatenate(part) for part in zip(*train, strict=True))
    return (
        Table("cifar10:train", images, labels.astype(np.int64), image_shape=_SHAPE),
        Table("cifar10:test", test[0], test[1].astype(np.int64), image_shape=_SHAPE),
    )


def _file(batch: int) -> str:
    return f"data_batch_{batch}.bin"


def _fetch(folder: Path, files: list[str]) -> None:
    images, labels = fetched("cifar10", how_to_complete("cifar10", files, folder))
    folder.mkdir(parents=True, exist_ok=True)
    for place, file in enumerate(files):
        rows = slice(_IN_A_BATCH * place, _IN_A_BATCH * (place + 1))
        write_cifar(folder / file, images[rows], labels[rows])

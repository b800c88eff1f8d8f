"""MNIST: 60,000 and 10,000 images of handwritten digits, in IDX files."""

from __future__ import annotations

from pathlib import Path

from paper.data.folder import find, how_to_complete
from paper.data.openml import fetched
from paper.data.published import read_idx, write_idx
from paper.data.table import Table

_SHAPE = (1, 28, 28)
_SUBFOLDERS = ("mnist",)
_N_TRAIN = 60_000
# Images, then labels.
_FILES = {
    part: (f"{stem}-images-idx3-ubyte", f"{stem}-labels-idx1-ubyte")
    for part, stem in (("train", "train"), ("test", "t10k"))
}


def read_mnist(folder: Path, fetch: bool) -> tuple[Table, Table]:
    """The training and the test set, fetched if no file of them is there."""
    files = [file for part in _FILES.values() for file in part]
    found = find(folder, files, _SUBFOLDERS)
    if not found and fetch:
        _fetch(folder / "mnist", files)
        found = find(folder, files, _SUBFOLDERS)
    missing = [file for file in files if file not in found]
    if missing:
        raise ValueError(f"{how_to_complete('mnist', missing, folder / 'mnist')}.")
    train, test = (_read(part, *(found[file] for file in own)) for part, own in _FILES.items())
    return train, test


def _read(part: str, image_file: Path, label_file: Path) -> Table:
    images, labels = read_idx(image_file, 3), read_idx(label_file, 1)
    if images.shape[1:] != _SHAPE[1:]:
        raise ValueError(f"{image_file} holds images of {images.shape[1]} x {images.shape[2]} pixels, not of 28 x 28.")
    if len(images) != len(labels):
        raise ValueError(f"{image_file} holds {len(images):,} images, but {label_file} holds {len(labels):,} labels.")
    if not len(images):
        raise ValueError(f"{image_file} holds no images; get it again.")
    return Table(f"mnist:{part}", images.reshape(len(images), -1), labels.astype("int64"), image_shape=_SHAPE)


def _fetch(folder: Path, files: list[str]) -> None:
    images, labels = fetched("mnist", how_to_complete("mnist", files, folder))
    images = images.reshape(-1, *_SHAPE[1:])
    folder.mkdir(parents=True, exist_ok=True)
    parts = (images[:_N_TRAIN], labels[:_N_TRAIN], images[_N_TRAIN:], labels[_N_TRAIN:])
    for file, values in zip(files, parts, strict=True):
        write_idx(folder / f"{file}.gz", values)

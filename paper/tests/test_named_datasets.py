"""Data sets by name: published files, what is fetched, and what is said about bad files."""

from __future__ import annotations

import gzip
import struct
import sys
from pathlib import Path
from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pytest
import sklearn.datasets

from paper.data import load
from paper.data.folder import data_folder

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    def refuse(*_, **__):
        raise URLError("no network here")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", refuse)


def put(path: Path, content: bytes, compress: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if compress:
        path = path.with_name(path.name + ".gz")
        content = gzip.compress(content)
    path.write_bytes(content)


def idx(values) -> bytes:
    return struct.pack(">HBB", 0, 8, values.ndim) + struct.pack(f">{values.ndim}I", *values.shape) + values.tobytes()


def put_mnist(folder: Path, compress: bool = False) -> dict[str, np.ndarray]:
    written = {}
    for stem, n in (("train", 7), ("t10k", 3)):
        written[f"{stem}-images-idx3-ubyte"] = RNG.integers(0, 256, (n, 28, 28), dtype=np.uint8)
        written[f"{stem}-labels-idx1-ubyte"] = np.resize(np.array([1, 0, 7], np.uint8), n)
    for name, values in written.items():
        put(folder / name, idx(values), compress)
    return written


def cifar_batch(n: int) -> tuple[bytes, np.ndarray, list[int]]:
    planes = RNG.integers(0, 256, (n, 3, 32, 32), dtype=np.uint8)
    labels = [int(label) for label in RNG.integers(0, 10, n)]
    return b"".join(bytes([y]) + x.tobytes() for x, y in zip(planes, labels, strict=True)), planes, labels


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("place", [".", "mnist"])
def test_mnist_as_published(tmp_path, compress, place):
    written = put_mnist(tmp_path / place, compress)
    found = load("mnist", tmp_path)
    for table, stem in ((found.train, "train"), (found.test, "t10k")):
        images = written[f"{stem}-images-idx3-ubyte"]
        assert table.X.dtype == np.uint8
        np.testing.assert_array_equal(table.X, images.reshape(len(images), 784))
        np.testing.assert_array_equal(table.y, written[f"{stem}-labels-idx1-ubyte"])
        assert table.y.dtype == np.int64
    assert found.image_shape == (1, 28, 28)


def test_ones_and_sevens_are_those_of_mnist_in_their_order(tmp_path):
    written = put_mnist(tmp_path)
    found = load("mnist-1-vs-7", tmp_path)
    np.testing.assert_array_equal(found.train.y, [1, 7, 1, 7, 1])
    rows = [0, 2, 3, 5, 6]
    np.testing.assert_array_equal(found.train.X, written["train-images-idx3-ubyte"][rows].reshape(5, -1))
    assert found.train.source == "mnist-1-vs-7:train"
    assert found.image_shape == (1, 28, 28)


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("place", [".", "cifar10", "cifar-10-batches-bin"])
def test_cifar10_as_published(tmp_path, compress, place):
    batches = {name: cifar_batch(4) for name in (*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin")}
    for name, (content, _, _) in batches.items():
        put(tmp_path / place / name, content, compress)
    found = load("cifar10", tmp_path)
    assert found.image_shape == (3, 32, 32)
    assert found.train.X.dtype == np.uint8
    planes, labels = (np.concatenate([batches[f"data_batch_{i}.bin"][k] for i in range(1, 6)]) for k in (1, 2))
    np.testing.assert_array_equal(found.train.X.reshape(-1, 3, 32, 32), planes)
    np.testing.assert_array_equal(found.train.y, labels)
    np.testing.assert_array_equal(found.test.X.reshape(-1, 3, 32, 32), batches["test_batch.bin"][1])
    some = load("cifar10", tmp_path, batches=(3, 1))
    np.testing.assert_array_equal(some.train.y, batches["data_batch_3.bin"][2] + batches["data_batch_1.bin"][2])


def test_part_of_cifar10_is_used_only_when_asked_for(tmp_path):
    content, _, labels = cifar_batch(4)
    for name in ("data_batch_1.bin", "test_batch.bin"):
        put(tmp_path / "cifar10" / name, content, True)
    with pytest.raises(
        ValueError, match=r"^cifar10 is not complete; put data_batch_2.bin, .* and data_batch_5.bin "
    ) as e:
        load("cifar10", tmp_path)
    assert str(e.value).endswith(f"into {tmp_path / 'cifar10'}, or ask for the images at hand with batches=(1,).")
    np.testing.assert_array_equal(load("cifar10", tmp_path, batches=(1,)).train.y, labels)
    for wrong in ((), (6,), (1, 1)):
        with pytest.raises(ValueError, match="batches must be different numbers from 1 to 5"):
            load("cifar10", tmp_path, batches=wrong)
    with pytest.raises(ValueError, match="batches are those of cifar10; digits has none"):
        load("digits", batches=(1,))


def test_digits_are_all_there():
    found = load("digits")
    X, y = sklearn.datasets.load_digits(return_X_y=True)
    assert len(found.train.X) + len(found.test.X) == len(X) == 1797
    np.testing.assert_array_equal(found.test.X[2], X[14])
    assert found.test.y[2] == y[14]
    assert found.image_shape == (1, 8, 8)


IMAGES, LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
GOOD = idx(np.zeros((7, 28, 28), np.uint8))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (IMAGES, GOOD[:-5], r"should hold 5,488 bytes of images after its header, but holds 5,483; get it again"),
        (IMAGES, GOOD + b"x", r"should hold 5,488 bytes of images after its header, but holds 5,489; get it again"),
        (IMAGES, GOOD[:9], r"ends after 9 bytes, inside its header; get it again"),
        (IMAGES, b"", r"is no IDX file of images: it begins with nothing"),
        (IMAGES, b"\x89PNG" + GOOD, r"is no IDX file of images: it begins with 89 50 4e 47"),
        (LABELS, GOOD, r"is no IDX file of labels: it begins with 00 00 08 03"),
        (IMAGES, idx(np.zeros((7, 8, 8), np.uint8)), r"holds images of 8 x 8 pixels, not of 28 x 28"),
        (IMAGES, idx(np.zeros((6, 28, 28), np.uint8)), r"holds 6 images, but .*labels-idx1-ubyte holds 7 labels"),
    ],
)
def test_bad_idx_files_are_named(tmp_path, name, content, said):
    put_mnist(tmp_path)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=said) as error:
        load("mnist", tmp_path)
    assert str(error.value).startswith(str(tmp_path / name))
    assert str(error.value).endswith(".")


def test_no_images_are_no_data(tmp_path):
    put_mnist(tmp_path)
    (tmp_path / IMAGES).write_bytes(idx(np.zeros((0, 28, 28), np.uint8)))
    (tmp_path / LABELS).write_bytes(idx(np.zeros(0, np.uint8)))
    with pytest.raises(ValueError, match="holds no images"):
        load("mnist", tmp_path)


@pytest.mark.parametrize("damage", [lambda c: c[:-20], lambda c: c[:30] + bytes(30) + c[60:], lambda c: b"plain"])
def test_damaged_compression_is_named(tmp_path, damage):
    put_mnist(tmp_path, compress=True)
    file = tmp_path / f"{IMAGES}.gz"
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(ValueError, match=r"train-images-idx3-ubyte.gz cannot be decompressed: .*; get it again\.$"):
        load("mnist", tmp_path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (cifar_batch(2)[0][:-1], r"holds 6,145 bytes, which is no whole number of images of 3,073 bytes; get it again"),
        (b"", r"holds 0 bytes"),
        (bytes([10]) + bytes(3072), r"is no batch of CIFAR-10: it has a label 10, and labels are 0 to 9"),
    ],
)
def test_bad_cifar_files_are_named(tmp_path, content, said):
    put(tmp_path / "data_batch_1.bin", content, False)
    put(tmp_path / "test_batch.bin", cifar_batch(2)[0], False)
    with pytest.raises(ValueError, match=said) as error:
        load("cifar10", tmp_path, batches=(1,))
    assert str(error.value).startswith(str(tmp_path / "data_batch_1.bin"))


def test_missing_files_are_named_with_their_place(tmp_path):
    put_mnist(tmp_path / "mnist")
    (tmp_path / "mnist" / LABELS).unlink()
    with pytest.raises(ValueError, match="mnist is not complete") as error:
        load("mnist", tmp_path)
    assert str(error.value) == (
        f"mnist is not complete; put {LABELS} (or the same with .gz) into {tmp_path / 'mnist'}."
    )


@pytest.mark.parametrize(("name", "file"), [("mnist-1-vs-7", "t10k-images-idx3-ubyte"), ("cifar10", "test_batch.bin")])
def test_offline_and_absent_is_one_sentence(tmp_path, name, file):
    with pytest.raises(ValueError, match=f"put .*{file}.* into .*, for it could not be fetched from OpenML") as error:
        load(name, tmp_path)
    assert "no network here" in str(error.value)
    assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match=f"put .*{file}.* into") as error:
        load(name, tmp_path, fetch=False)
    assert "fetched" not in str(error.value)
    assert not list(tmp_path.iterdir())


COUNTS = (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949)


def fake_openml(monkeypatch, X, y):
    asked = []

    def fetch_openml(title, **settings):
        asked.append(title)
        assert settings["as_frame"] is False
        return SimpleNamespace(data=X, target=y.astype(str).astype(object))

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch_openml)
    return asked


def test_mnist_is_fetched_once_and_kept_as_published(tmp_path, monkeypatch):
    # The same in small.
    monkeypatch.setattr("paper.data.openml._SETS", {"mnist": ("mnist_784", 70, 784, (6,) * 10)})
    monkeypatch.setattr("paper.data.mnist._N_TRAIN", 60)
    y = np.resize(np.arange(10), 70)
    X = RNG.integers(0, 256, (70, 784)).astype(np.float64)
    asked = fake_openml(monkeypatch, X, y)
    for _ in range(2):
        found = load("mnist", tmp_path / "cache")
        np.testing.assert_array_equal(found.train.X, X[:60])
        np.testing.assert_array_equal(found.test.X, X[60:])
        np.testing.assert_array_equal(np.concatenate([found.train.y, found.test.y]), y)
    assert asked == ["mnist_784"]
    assert len(list((tmp_path / "cache" / "mnist").iterdir())) == 4


def test_another_order_or_form_is_refused(tmp_path, monkeypatch):
    y = np.concatenate([np.repeat(np.arange(10), COUNTS), np.resize(np.arange(10), 10_000)])
    X = np.zeros((70_000, 784), np.uint8)
    fake_openml(monkeypatch, X, y[::-1])
    with pytest.raises(ValueError, match=r"for mnist_784 of OpenML is not in the published order\.$"):
        load("mnist", tmp_path)
    fake_openml(monkeypatch, X[:, :10], y)
    with pytest.raises(ValueError, match=r"for mnist_784 of OpenML has another form\.$"):
        load("mnist", tmp_path)
    assert not list(tmp_path.iterdir())


def test_cifar10_is_fetched_into_batches(tmp_path, monkeypatch):
    # The sizes of the real one take a gigabyte; what is tested here does not depend on them.
    monkeypatch.setattr("paper.data.openml._SETS", {"cifar10": ("CIFAR_10", 60, 3072, (5,) * 10)})
    monkeypatch.setattr("paper.data.cifar10._IN_A_BATCH", 10)
    X = RNG.integers(0, 256, (60, 3072), dtype=np.uint8)
    y = np.resize(np.arange(10), 60)
    assert fake_openml(monkeypatch, X, y) == []
    found = load("cifar10", tmp_path)
    np.testing.assert_array_equal(np.concatenate([found.train.X, found.test.X]), X)
    np.testing.assert_array_equal(np.concatenate([found.train.y, found.test.y]), y)
    assert len(list((tmp_path / "cifar10").glob("*.bin"))) == 6


def test_data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FLIPCERT_DATA", str(tmp_path / "data"))
    assert data_folder() == tmp_path / "data"
    assert data_folder(tmp_path) == tmp_path
    monkeypatch.delenv("FLIPCERT_DATA")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data_folder() == tmp_path / "flipcert"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert data_folder() == Path.home() / ".cache" / "flipcert"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert data_folder() == Path.home() / "Library" / "Caches" / "flipcert"


def test_what_unpacks_to_too_much_is_none_of_these(tmp_path, monkeypatch):
    put_mnist(tmp_path, compress=True)
    monkeypatch.setattr("paper.data.published._LARGEST", 1000)
    with pytest.raises(ValueError, match=r"images-idx3-ubyte\.gz unpacks to more than 1,000 bytes; get it again\.$"):
        load("mnist", tmp_path)

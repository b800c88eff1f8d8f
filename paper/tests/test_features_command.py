"""Training, extracting and exporting from the command line."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
import torch

from paper import features
from paper.command import main
from paper.data import load
from paper.features import RotNet, train

TINY = ("--width", 4, "--epochs", 1, "--quiet")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    path = tmp_path_factory.mktemp("trained") / "rotnet.pt"
    assert main(["features", "train", "rotnet", "digits", "--out", str(path), *map(str, TINY)]) == 0
    return path


def test_the_command_trains_what_the_function_trains(checkpoint):
    digits = load("digits").train
    encoder = train(RotNet(width=4, epochs=1), digits.X, image_shape=digits.image_shape)
    for ours, theirs in zip(
        encoder.network.state_dict().values(), features.load(checkpoint).network.state_dict().values(), strict=True
    ):
        assert torch.equal(ours, theirs)


def test_from_images_to_certificates(paper, checkpoint, tmp_path, monkeypatch):
    monkeypatch.setenv("FLIPCERT_DATA", str(tmp_path))
    said = paper("features", "extract", checkpoint, "digits", "--out", tmp_path / "digits-rotnet.npz", "--quiet").out
    assert "16 features (4 x 2 x 2) of 1,438 and 359 images" in said
    np.testing.assert_array_equal(
        load("digits-rotnet").test.X, features.load(checkpoint).features(load("digits").test.X)
    )
    said = paper("features", "export", "digits-rotnet", "--out", tmp_path / "files").out
    assert f"Files: {tmp_path / 'files' / 'train.npz'} and" in said
    files = [str(tmp_path / "files" / f"{name}.npz") for name in ("train", "test")]
    command = ["certify", *files, "--model", "ridge", "--scale", "standard", "--quiet", "--json"]
    ended = subprocess.run([sys.executable, "-m", "flipcert", *command], capture_output=True, text=True, check=True)
    assert json.loads(ended.stdout)["metrics"]["accuracy"] > 0.3


def test_pixels_are_exported_as_they_are(paper, tmp_path):
    paper("features", "export", "digits", "--out", tmp_path / "files")
    stored = np.load(tmp_path / "files" / "test.npz")
    assert stored["X"].dtype == np.float32
    np.testing.assert_array_equal(stored["X"], load("digits").test.X)
    np.testing.assert_array_equal(stored["y"], load("digits").test.y)


def test_a_finished_training_is_shown_again_and_another_refused(paper, refused, checkpoint):
    before = checkpoint.read_bytes()
    again = paper("features", "train", "rotnet", "digits", "--out", checkpoint, *TINY).out
    assert "Loss: " in again
    assert f"Checkpoint: {checkpoint}" in again
    said = refused("features", "train", "rotnet", "digits", "--out", checkpoint, "--width", 4, "--epochs", 2, "-q")
    assert said == f"{checkpoint} holds a training with epochs 1, not 2; name another file."
    assert checkpoint.read_bytes() == before


def test_progress_is_shown(paper, tmp_path):
    said = paper("features", "train", "simclr", "digits", "--out", tmp_path / "s.pt", "--width", 1, "--epochs", 1).err
    assert "Training ..." in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("train", "resnet", "digits"), "'resnet' is no method; use rotnet or simclr."),
        (("train", "rotnet", "mnits"), "'mnits' is no data set; there are cifar10, digits, mnist, mnist-1-vs-7, "),
        (("train", "rotnet", "digits", "--temperature", 1), "--temperature does not apply to rotnet; leave it out."),
        (("train", "simclr", "digits", "--blocks", 4), "--blocks does not apply to simclr; leave it out."),
        (("train", "rotnet", "digits", "--epochs", 0), "--epochs must be at least 1; got 0."),
        (("train", "rotnet", "digits", "--batches", 1), "batches are those of cifar10; digits has none."),
        (("train", "rotnet", "cifar10", "--batches", "a"), "--batches must be numbers with commas between them"),
        (("train", "rotnet", "flat"), "flat holds features, not images; name a data set of images, such as mnist."),
        (("extract", "none.pt", "digits", "--out", "x.npz"), "none.pt does not exist; give the path of a checkpoint."),
        (("extract", "none.pt", "digits", "--out", "x.npy"), "--out x.npy must end in .npz, such as x.npz."),
        (("train", "rotnet", "digits", "--out", "no/x.pt"), "--out no/x.pt: the folder no does not exist"),
        (("train", "rotnet", "digits", "--out", "."), "--out . is a folder; name the file to write."),
    ],
)
def test_wrong_commands_are_told_in_a_sentence(refused, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FLIPCERT_DATA", str(tmp_path))
    np.savez("flat.npz", x_train=np.ones((2, 3)), y_train=[0, 1], x_test=np.ones((1, 3)), y_test=[0])
    before = sorted(tmp_path.iterdir())
    out = () if "--out" in arguments else ("--out", "x.pt")
    assert refused("features", *arguments, *out, "--quiet").startswith(said)
    assert sorted(tmp_path.iterdir()) == before

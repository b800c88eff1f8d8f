"""Training and extracting from the command line, and named data sets as arguments of it."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from flipcert import features
from flipcert.cli import app
from flipcert.datasets import load
from flipcert.features import RotNet, train


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def refusal(*arguments):
    """The one sentence that a wrong command ends with."""
    outcome = run(*arguments)
    assert outcome.exit_code == 2, outcome.output
    said = " ".join(outcome.stderr.split())
    assert said.count("Error:") == 1
    return said[said.index("Error:") + 7 :]


TINY = ("--width", 4, "--epochs", 1, "--quiet")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    path = tmp_path_factory.mktemp("trained") / "rotnet.pt"
    outcome = run("features", "train", "rotnet", "digits", "--out", path, *TINY)
    assert outcome.exit_code == 0, outcome.output
    assert f"Checkpoint: {path}" in outcome.output
    return path


def test_the_command_trains_what_the_function_trains(checkpoint):
    digits = load("digits").train
    encoder = train(RotNet(width=4, epochs=1), digits.X, image_shape=digits.image_shape)
    for ours, theirs in zip(
        encoder.network.state_dict().values(), features.load(checkpoint).network.state_dict().values(), strict=True
    ):
        assert torch.equal(ours, theirs)


def test_from_images_to_certificates_by_name(checkpoint, tmp_path, monkeypatch):
    monkeypatch.setenv("FLIPCERT_DATA", str(tmp_path))
    outcome = run("features", "extract", checkpoint, "digits", "--out", tmp_path / "digits-rotnet.npz", "--quiet")
    assert outcome.exit_code == 0, outcome.output
    assert "16 features (4 x 2 x 2) of 1,438 and 359 images" in outcome.output
    np.testing.assert_array_equal(
        load("digits-rotnet").test.X, features.load(checkpoint).features(load("digits").test.X)
    )
    command = ("certify", "digits-rotnet:train", "digits-rotnet:test", "--model", "ridge", "--scale", "standard")
    outcome = run(*command, "--out", tmp_path / "run", "--quiet", "--json")
    assert outcome.exit_code == 0, outcome.output
    assert json.loads(outcome.stdout)["metrics"]["accuracy"] > 0.3
    # Other contents under the same name are another run.
    content = dict(np.load(tmp_path / "digits-rotnet.npz"))
    np.savez(tmp_path / "digits-rotnet.npz", **(content | {"x_test": content["x_test"] + 1}))
    said = refusal(*command, "--out", tmp_path / "run", "--quiet")
    assert str(tmp_path / "run") in said


def test_a_finished_training_is_shown_again_and_another_refused(checkpoint):
    before = checkpoint.read_bytes()
    again = run("features", "train", "rotnet", "digits", "--out", checkpoint, *TINY)
    assert again.exit_code == 0
    assert "Loss: " in again.output
    said = refusal("features", "train", "rotnet", "digits", "--out", checkpoint, "--width", 4, "--epochs", 2, "-q")
    assert said == f"{checkpoint} holds a training with epochs 1, not 2; name another file."
    assert checkpoint.read_bytes() == before


def test_progress_is_shown(tmp_path):
    outcome = run("features", "train", "simclr", "digits", "--out", tmp_path / "s.pt", "--width", 1, "--epochs", 1)
    assert outcome.exit_code == 0, outcome.output
    assert "Training ..." in outcome.stderr


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
def test_wrong_commands_are_told_in_a_sentence(tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FLIPCERT_DATA", str(tmp_path))
    np.savez("flat.npz", x_train=np.ones((2, 3)), y_train=[0, 1], x_test=np.ones((1, 3)), y_test=[0])
    before = sorted(tmp_path.iterdir())
    out = () if "--out" in arguments else ("--out", "x.pt")
    assert refusal("features", *arguments, *out, "--quiet").startswith(said)
    assert sorted(tmp_path.iterdir()) == before


def test_trusted_labels_need_a_file():
    said = refusal("certify", "digits:train", "digits:test", "--trusted", "mine", "--quiet")
    assert said == "digits:train cannot say which labels are trusted; put the data into one .npz file."

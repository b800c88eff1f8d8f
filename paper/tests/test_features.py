"""Features without labels: what the networks see, what they learn, and that a stopped training ends the same."""

from __future__ import annotations

import inspect
import math
import os
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from paper import features
from paper.data import load, names
from paper.features import RotNet, SimCLR, extract, train
from paper.features import checkpoint as checkpoints
from paper.features.resnet import resnet18
from paper.features.rotnet import turn_accuracy, turns

DIGITS = load("digits")
IMAGES = DIGITS.train.X.reshape(-1, 1, 8, 8)
TINY_ROTNET = RotNet(width=4, epochs=3, batch_size=16)
TINY_SIMCLR = SimCLR(width=2, projection=8, epochs=3, batch_size=16)


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    # Tests run beside each other, and threads of tiny networks mostly wait for each other.
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def same_weights(first, second):
    states = [encoder.network.state_dict() for encoder in (first, second)]
    return states[0].keys() == states[1].keys() and all(
        torch.equal(states[0][key], states[1][key]) for key in states[0]
    )


def test_turns_are_exactly_the_four_rotations():
    images = torch.arange(2 * 3 * 5 * 5.0).reshape(2, 3, 5, 5)
    turned = turns(images)
    assert turned.shape == (8, 3, 5, 5)
    side = 5
    for quarter in range(4):
        for image in range(2):
            for row in range(side):
                for column in range(side):
                    # Counterclockwise: the pixel at (r, c) of a turned image was at (c, side - 1 - r) before the turn.
                    r, c = row, column
                    for _ in range(quarter):
                        r, c = c, side - 1 - r
                    assert torch.equal(turned[2 * quarter + image, :, row, column], images[image, :, r, c])


def test_resnet18_has_its_parameters():
    # 11,173,962 with ten classes in published counts for 32 x 32; the classifier is 5,130 of them.
    assert sum(part.numel() for part in resnet18(3, 64).parameters()) == 11_173_962 - 5_130


def test_rotnet_maps_are_a_quarter_of_the_image():
    for side, quarter in ((28, 7), (32, 8), (9, 3)):
        network = RotNet(width=4).network((1, side, side)).eval()
        assert network["body"](torch.zeros(1, 1, side, side)).shape == (1, 4, quarter, quarter)
        assert RotNet(width=4).feature_shape((1, side, side)) == (4, quarter, quarter)
    with pytest.raises(ValueError, match="rotnet turns images, so they must be square; these are 8 x 9"):
        RotNet().network((1, 8, 9))


EASY = SimCLR(width=4, projection=8, epochs=8, batch_size=32, learning_rate=0.003, crop=0.7, colour=0.0)


@pytest.mark.parametrize(
    ("method", "chance"), [(RotNet(width=8, epochs=4), math.log(4)), (EASY, math.log(2 * EASY.batch_size - 1))]
)
def test_the_loss_falls_below_that_of_guessing(method, chance):
    losses = train(method, IMAGES[:320]).losses
    assert len(losses) == method.epochs
    assert losses[-1] < 0.9 * chance
    assert losses[-1] < 0.9 * losses[0]


def test_rotnet_names_turns_of_images_it_never_saw():
    encoder = train(RotNet(width=8, epochs=2), IMAGES)
    assert turn_accuracy(encoder, DIGITS.test.X) > 0.6


class Stopped(Exception):
    pass


def stop_at(step):
    """Kills a training after so many steps."""

    def stop(done, n_steps):
        if done > step:
            raise Stopped

    return stop


@pytest.mark.parametrize("method", [TINY_ROTNET, TINY_SIMCLR])
@pytest.mark.parametrize("stops", [(1,), (4, 6), (11,)])
def test_a_stopped_training_ends_with_the_same_bits(tmp_path, method, stops):
    images, path = IMAGES[:70], tmp_path / "state.pt"
    whole = train(method, images)
    for stop in stops:
        with pytest.raises(Stopped):
            train(method, images, checkpoint=path, seconds_between=0, on_step=stop_at(stop))
    resumed = train(method, images, checkpoint=path, seconds_between=1e9)
    assert same_weights(whole, resumed)
    assert whole.losses == resumed.losses
    loaded = features.load(path)
    assert same_weights(whole, loaded)
    np.testing.assert_array_equal(loaded.features(images), whole.features(images))
    assert loaded.method == method


def test_a_stopped_training_went_on_and_did_not_begin_again(tmp_path):
    path = tmp_path / "state.pt"
    with pytest.raises(Stopped):
        train(TINY_ROTNET, IMAGES[:64], checkpoint=path, seconds_between=0, on_step=stop_at(5))
    seen = []
    train(TINY_ROTNET, IMAGES[:64], checkpoint=path, on_step=lambda done, n_steps: seen.append((done, n_steps)))
    # The step in which it was stopped was done, but not kept.
    assert seen == [(step, 12) for step in range(6, 13)]


def test_seeds_decide(tmp_path):
    first, same, other = (train(replace(TINY_SIMCLR, epochs=1, seed=seed), IMAGES[:64]) for seed in (0, 0, 1))
    assert same_weights(first, same)
    assert not same_weights(first, other)


def test_training_leaves_the_global_generator_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    train(replace(TINY_SIMCLR, epochs=1), IMAGES[:32])
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(
    ("method", "images", "said"),
    [
        (replace(TINY_ROTNET, epochs=4), IMAGES[:64], "holds a training with epochs 3, not 4; name another file"),
        (replace(TINY_ROTNET, seed=1), IMAGES[:64], "holds a training with seed 0, not 1; name another file"),
        (TINY_SIMCLR, IMAGES[:64], "holds a training with method rotnet, not simclr; name another file"),
        (TINY_ROTNET, IMAGES[64:128], "holds a training with other images; name another file"),
        (TINY_ROTNET, IMAGES[:60], "holds a training with n_images 64, not 60; name another file"),
    ],
)
@pytest.mark.parametrize("finished", [False, True])
def test_another_training_is_not_overwritten(tmp_path, method, images, said, finished):
    path = tmp_path / "state.pt"
    if finished:
        train(TINY_ROTNET, IMAGES[:64], checkpoint=path)
    else:
        with pytest.raises(Stopped):
            train(TINY_ROTNET, IMAGES[:64], checkpoint=path, seconds_between=0, on_step=stop_at(2))
    before = path.read_bytes()
    with pytest.raises(ValueError, match=said):
        train(method, images, checkpoint=path)
    assert path.read_bytes() == before


def without(state, *path):
    """The same nested dict without one entry."""
    if len(path) == 1:
        return {key: value for key, value in state.items() if key != path[0]}
    return {**state, path[0]: without(state[path[0]], *path[1:])}


def test_checkpoints_that_lack_something_are_named(tmp_path):
    method, images = RotNet(width=4, epochs=1), np.random.default_rng(0).integers(0, 256, (32, 1, 8, 8))
    train(method, images, checkpoint=tmp_path / "whole.pt")
    whole = torch.load(tmp_path / "whole.pt", weights_only=True)
    weights = next(iter(whole["network"]))
    lacking = [
        *(without(whole, part) for part in whole),
        *(without(whole, "identity", part) for part in whole["identity"]),
        without(whole, "network", weights),
        {**whole, "identity": None},
        {**whole, "identity": {**whole["identity"], "settings": None}},
        {**whole, "identity": {**whole["identity"], "settings": {"width": 4, "more": 1}}},
        {**whole, "identity": {**whole["identity"], "method": "other"}},
        {**whole, "network": {**whole["network"], weights: torch.zeros(3)}},
        {**whole, "progress": {"steps": 3}},
        {**whole, "pixels": []},
        [whole],
    ]
    said = "(is no checkpoint of these networks, or only a part of one|holds a training with .*); name another"
    for state in lacking:
        torch.save(state, tmp_path / "state.pt")
        with pytest.raises(ValueError, match=r"state\.pt is no checkpoint of these networks, or only a part of one"):
            features.load(tmp_path / "state.pt")
        if not isinstance(state, dict) or state.get("pixels"):
            with pytest.raises(ValueError, match=said):
                train(method, images, checkpoint=tmp_path / "state.pt")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes on this system")
def test_pipes_are_no_checkpoints(tmp_path):
    os.mkfifo(tmp_path / "pipe.pt")
    with pytest.raises(ValueError, match="is no checkpoint of these networks"):
        features.load(tmp_path / "pipe.pt")
    os.mkfifo(tmp_path / "pipe.npz")
    assert "pipe" not in names(tmp_path)


def test_files_that_are_no_checkpoints_are_named(tmp_path):
    path = tmp_path / "state.pt"
    with pytest.raises(ValueError, match=r"state.pt does not exist; give the path of a checkpoint\.$"):
        features.load(path)
    train(replace(TINY_ROTNET, epochs=1), IMAGES[:32], checkpoint=path)
    whole = path.read_bytes()
    for content in (b"", b"text", whole[: len(whole) // 2]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"state.pt is no checkpoint of these networks, or only a part of one"):
            features.load(path)
        with pytest.raises(ValueError, match=r"state.pt is no checkpoint of these networks, or only a part of one"):
            train(replace(TINY_ROTNET, epochs=1), IMAGES[:32], checkpoint=path)
    torch.save({"weights": torch.zeros(3)}, path)
    with pytest.raises(ValueError, match="is no checkpoint of these networks"):
        features.load(path)


class Malice:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_nothing_is_unpickled(tmp_path):
    torch.save({"format": 1, "identity": Malice(str(tmp_path / "made"))}, tmp_path / "state.pt")
    with pytest.raises(ValueError, match="is no checkpoint of these networks"):
        features.load(tmp_path / "state.pt")
    assert not (tmp_path / "made").exists()


def test_an_unfinished_training_is_not_used(tmp_path):
    path = tmp_path / "state.pt"
    with pytest.raises(Stopped):
        train(TINY_ROTNET, IMAGES[:64], checkpoint=path, seconds_between=0, on_step=stop_at(2))
    with pytest.raises(ValueError, match="holds a training that is not finished"):
        features.load(path)


@pytest.mark.parametrize("method", [TINY_ROTNET, TINY_SIMCLR])
def test_features_do_not_depend_on_neighbours(method, monkeypatch):
    encoder = train(replace(method, epochs=1), IMAGES[:64])
    together = encoder.features(IMAGES[:50])
    assert together.dtype == np.float32
    assert together.shape == (50, math.prod(encoder.feature_shape))
    for size in (1, 7):
        monkeypatch.setattr("paper.features.encoder._TOGETHER", size)
        np.testing.assert_allclose(encoder.features(IMAGES[:50]), together, atol=1e-5, rtol=1e-4)
    np.testing.assert_array_equal(encoder.features(IMAGES[:50].reshape(50, 64)), encoder.features(IMAGES[:50]))


def test_maps_are_flattened_channels_first():
    encoder = train(replace(TINY_ROTNET, epochs=1), IMAGES[:64])
    (_, maps), *_ = encoder.outputs(IMAGES[:5], "body")
    assert maps.shape == (5, 4, 2, 2)
    found = encoder.features(IMAGES[:5])
    for channel in range(4):
        for row in range(2):
            for column in range(2):
                expected = maps[:, channel, row, column].numpy()
                np.testing.assert_array_equal(found[:, 4 * channel + 2 * row + column], expected)


def test_labels_cannot_enter():
    for function in (train, features.Encoder.features, RotNet.loss, SimCLR.loss, *checkpoints.METHODS.values()):
        parameters = set(inspect.signature(function).parameters)
        assert not parameters & {"y", "labels", "targets", "dataset", "table"}, function
    for method in (TINY_ROTNET, TINY_SIMCLR):
        with pytest.raises(TypeError):
            train(method, IMAGES[:64], DIGITS.train.y[:64])


def test_extraction_carries_labels_along(tmp_path):
    encoder = train(replace(TINY_ROTNET, epochs=1), IMAGES[:64])
    found = extract(encoder, DIGITS, tmp_path / "digits-rotnet.npz")
    stored = load("digits-rotnet", tmp_path)
    for ours, read, images in ((found.train, stored.train, DIGITS.train), (found.test, stored.test, DIGITS.test)):
        np.testing.assert_array_equal(ours.X, encoder.features(images.X))
        np.testing.assert_array_equal(read.X, ours.X)
        np.testing.assert_array_equal(read.y, images.y)
    assert stored.image_shape == found.image_shape == (4, 2, 2)
    assert extract(train(replace(TINY_SIMCLR, epochs=1), IMAGES[:64]), DIGITS).image_shape is None


def test_white_is_white_at_every_scale():
    # Digits count from 0 to 16; the same images from 0 to 1 give the same network, up to rounding.
    whole, shares = (train(replace(TINY_ROTNET, epochs=1), images) for images in (IMAGES[:64], IMAGES[:64] / 16))
    np.testing.assert_allclose(whole.features(IMAGES[:9]), shares.features(IMAGES[:9] / 16), atol=1e-4)


@pytest.mark.parametrize(
    ("images", "said"),
    [
        (np.zeros((3, 8)), r"images must have shape \(n, channels, height, width\); got \(3, 8\)"),
        (np.zeros((3, 1, 0, 0)), r"images must hold at least one pixel; got shape \(3, 1, 0, 0\)"),
        (np.full((3, 1, 8, 8), -1.0), "images must hold finite pixels that are not negative"),
        (np.full((3, 1, 8, 8), np.nan), "images must hold finite pixels that are not negative"),
        (np.full((3, 1, 8, 8), "a"), "images must be numbers; got values of type <U1"),
        (np.zeros((1, 1, 8, 8)), "training needs at least two images; got 1"),
    ],
)
def test_wrong_images_are_refused(images, said):
    with pytest.raises(ValueError, match=said):
        train(TINY_ROTNET, images)


def test_images_of_another_shape_are_refused():
    encoder = train(replace(TINY_ROTNET, epochs=1), IMAGES[:64])
    with pytest.raises(ValueError, match=r"images must have shape \(n, 1, 8, 8\); got \(3, 1, 9, 9\)"):
        encoder.features(np.zeros((3, 1, 9, 9)))


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"width": 1}, ValueError, "width must be at least 2; got 1"),
        ({"blocks": 2}, ValueError, "blocks must be at least 3; got 2"),
        ({"epochs": 0}, ValueError, "epochs must be at least 1; got 0"),
        ({"epochs": 1.5}, TypeError, "epochs must be a whole number; got 1.5"),
        ({"learning_rate": math.nan}, ValueError, "learning_rate must be at least 0; got nan"),
        ({"learning_rate": "fast"}, TypeError, "learning_rate must be a number; got 'fast'"),
        ({"seed": -1}, ValueError, "seed must be at least 0; got -1"),
    ],
)
def test_wrong_settings_are_refused(settings, error, said):
    with pytest.raises(error, match=said):
        RotNet(**settings)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"crop": 0.0}, "crop must be above 0 and at most 1; got 0.0"),
        ({"colour": 2.0}, "colour must be between 0 and 1; got 2.0"),
        ({"temperature": 0.0}, "temperature must be at least 0.001; got 0.0"),
        ({"batch_size": 1}, "batch_size must be at least 2; got 1"),
    ],
)
def test_wrong_settings_of_simclr_are_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        SimCLR(**settings)


def test_divergence_is_said():
    with pytest.raises(ValueError, match=r"training diverged in step \d+; use a smaller learning_rate than 1e\+30"):
        train(replace(TINY_ROTNET, learning_rate=1e30, epochs=20), IMAGES[:64])


def test_without_torch_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        ImportError, match=r'Learning features needs torch. Install with: pip install "flipcert\[torch\]"'
    ):
        train(TINY_ROTNET, IMAGES[:64])

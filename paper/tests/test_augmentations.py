"""What SimCLR learns from: random views of images, and the loss that tells partners from strangers."""

from __future__ import annotations

import colorsys
import math

import numpy as np
import pytest
import torch

from paper.features.augment import augmented, cropped, grey, jittered, mirrored, turned_hue
from paper.features.simclr import nt_xent


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def colours(n=12, side=8, seed=0):
    return torch.rand((n, 3, side, side), generator=generator(seed))


def test_nt_xent_is_its_formula():
    rows = np.random.default_rng(0).standard_normal((10, 6))
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    total = 0.0
    for i in range(10):
        partner = (i + 5) % 10
        weights = [math.exp(float(unit[i] @ unit[k]) / 0.3) if k != i else 0.0 for k in range(10)]
        total -= math.log(weights[partner] / sum(weights))
    assert float(nt_xent(torch.from_numpy(rows), 0.3)) == pytest.approx(total / 10, rel=1e-12)


def test_nt_xent_is_least_where_partners_agree():
    apart = torch.eye(4)
    assert nt_xent(torch.cat([apart, apart]), 0.1) < nt_xent(torch.cat([apart, apart.roll(1, 0)]), 0.1)


@pytest.mark.parametrize("channels", [1, 3])
def test_augmentations_keep_shape_and_range_and_are_seeded(channels):
    images = torch.rand((20, channels, 9, 9), generator=generator())
    changed, same, other = (augmented(images, generator(seed), 0.2, 1.0) for seed in (1, 1, 2))
    assert changed.shape == images.shape
    assert changed.dtype == torch.float32
    assert 0 <= changed.min() < changed.max() <= 1
    assert torch.equal(changed, same)
    assert not torch.equal(changed, other)
    # Not all images are changed in the same way.
    twins = augmented(images[:1].expand(20, -1, -1, -1), generator(3), 0.2, 1.0)
    assert len({image.numpy().tobytes() for image in twins}) == 20


def test_crops_are_where_chance_says(monkeypatch):
    images = colours()
    # Every draw is the middle of its interval: no stretch, and the centre of the image.
    monkeypatch.setattr(torch, "rand", lambda n, generator: torch.full((n,), 0.5))
    torch.testing.assert_close(cropped(images, None, 1.0), images, atol=1e-5, rtol=0)
    # Half of the height and width, enlarged: new pixels lie a quarter of the way between old ones.
    found = cropped(images, None, -0.5)
    inner = images[0, 0].numpy()
    for row in range(8):
        for column in range(8):
            y, x = (1.75 + 0.5 * place for place in (row, column))
            top, left = int(y), int(x)
            above, beside = y - top, x - left
            rows = [inner[r, left] * (1 - beside) + inner[r, left + 1] * beside for r in (top, top + 1)]
            assert float(found[0, 0, row, column]) == pytest.approx(rows[0] * (1 - above) + rows[1] * above, abs=1e-5)


def test_crops_lie_inside_the_image():
    # Pixels hold their own position, so a crop shows where it is from.
    place = (torch.arange(16) + 0.5) / 16
    images = place.expand(200, 1, 16, 16).contiguous()
    found = cropped(images, generator(), 0.1)
    assert found.min() >= place[0] - 1e-6
    assert found.max() <= place[-1] + 1e-6
    widths = found[:, 0, 0, -1] - found[:, 0, 0, 0]
    assert (widths > 0).all()
    assert widths.min() < 0.5 < 0.85 < widths.max()


def test_half_of_the_images_are_mirrored():
    images = colours(400)
    found = mirrored(images, generator())
    kept = [torch.equal(*pair) for pair in zip(found, images, strict=True)]
    flipped = [torch.equal(*pair) for pair in zip(found, images.flip(3), strict=True)]
    assert all(a != b for a, b in zip(kept, flipped, strict=True))
    assert 150 < sum(kept) < 250


def test_hue_is_turned_as_in_hsv():
    images = torch.cat([colours(2, 3), torch.tensor([0.0, 0.5, 1.0]).expand(3, 3).expand(1, 3, 3, 3)])
    shifts = torch.tensor([0.3, -0.45, 0.1])
    found = turned_hue(images, shifts)
    for image, shift, new in zip(images, shifts, found, strict=True):
        for pixel, changed in zip(image.flatten(1).T.tolist(), new.flatten(1).T.tolist(), strict=True):
            hue, saturation, value = colorsys.rgb_to_hsv(*pixel)
            assert changed == pytest.approx(colorsys.hsv_to_rgb((hue + float(shift)) % 1, saturation, value), abs=1e-5)


def test_without_strength_colours_stay():
    images = colours()
    torch.testing.assert_close(jittered(images, generator(), 0.0, 0.0), images, atol=1e-5, rtol=0)


def test_grey_images_have_no_colours():
    found = grey(colours())
    assert torch.equal(found[:, 0], found[:, 1])
    assert torch.equal(found[:, 0], found[:, 2])
    white = torch.ones(1, 3, 2, 2)
    torch.testing.assert_close(grey(white), white)

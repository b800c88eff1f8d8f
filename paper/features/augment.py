"""Random changes of images that keep what they show: crops, mirror images, other colours. A whole batch at a time.

Pixels are shares of white, between 0 and 1, and stay there. All chance comes from the generator that is handed over.
"""

from __future__ import annotations

import math
from typing import Any

from paper.features.method import load_torch

# Weights of red, green and blue in brightness (ITU-R BT.601).
_BRIGHTNESS = (0.299, 0.587, 0.114)


def augmented(images: Any, generator: Any, crop: float, colour: float) -> Any:
    """All changes of SimCLR for small images, one after the other.

    Parameters
    ----------
    images : tensor of shape (n, channels, height, width)
        Shares of white.
    generator : torch.Generator
        Source of chance.
    crop : float
        Smallest share of the area that a crop keeps.
    colour : float
        Strength of the change of colours; 0 leaves them, and greyscale, out.
    """
    images = mirrored(cropped(images, generator, crop), generator)
    if colour > 0:
        changed = jittered(images, generator, 0.8 * colour, 0.2 * colour)
        images = _where(_chance(images, generator, 0.8), changed, images)
        images = _where(_chance(images, generator, 0.2), grey(images), images)
    return images


def cropped(images: Any, generator: Any, smallest: float) -> Any:
    """Random parts, of between ``smallest`` and 1 of the area and of 3:4 to 4:3 in shape, resized to the whole."""
    torch = load_torch()
    n = len(images)
    area = _between(smallest, 1.0, n, generator)
    stretch = _between(math.log(3 / 4), math.log(4 / 3), n, generator).mul(0.5).exp()
    wide, high = ((area.sqrt() * factor).clamp(max=1.0) for factor in (stretch, 1 / stretch))
    # Positions run from -1 to 1; the centre may be anywhere where the part does not leave the image.
    right, down = (_between(-1.0, 1.0, n, generator) * (1 - size) for size in (wide, high))
    none = torch.zeros(n)
    maps = torch.stack([torch.stack([wide, none, right], 1), torch.stack([none, high, down], 1)], 1)
    functional = torch.nn.functional
    grid = functional.affine_grid(maps, list(images.shape), align_corners=False)
    # Weights of bilinear interpolation add up to 1 only up to rounding.
    return functional.grid_sample(images, grid, padding_mode="border", align_corners=False).clamp(0.0, 1.0)


def mirrored(images: Any, generator: Any) -> Any:
    """Half of the images, left and right exchanged."""
    return _where(_chance(images, generator, 0.5), images.flip(3), images)


def jittered(images: Any, generator: Any, strength: float, hue: float) -> Any:
    """Brightness, contrast and saturation times ``1 - strength`` to ``1 + strength``, the hue turned by up to ``hue``.

    Without three channels there are no colours; only brightness and contrast change then.
    """
    factors = [
        _between(max(0.0, 1 - strength), 1 + strength, len(images), generator).view(-1, 1, 1, 1) for _ in range(3)
    ]
    images = (images * factors[0]).clamp(0.0, 1.0)
    middle = _brightness(images).mean((1, 2, 3), keepdim=True)
    images = (middle + (images - middle) * factors[1]).clamp(0.0, 1.0)
    if images.shape[1] != 3:
        return images
    light = _brightness(images)
    images = (light + (images - light) * factors[2]).clamp(0.0, 1.0)
    return turned_hue(images, _between(-hue, hue, len(images), generator))


def turned_hue(images: Any, turns: Any) -> Any:
    """Red, green and blue with the hue turned by a share of the colour wheel, as in the HSV model."""
    torch = load_torch()
    top, bottom = images.amax(1), images.amin(1)
    spread = top - bottom
    red, green, blue = images.unbind(1)
    safe = torch.where(spread > 0, spread, torch.ones_like(spread))
    sixth = torch.where(
        top == red, (green - blue) / safe, torch.where(top == green, 2 + (blue - red) / safe, 4 + (red - green) / safe)
    )
    sixth = sixth + 6 * turns.view(-1, 1, 1)
    # Each channel falls from the top to the bottom with the distance of its own hue from this one.
    channels = []
    for own in (5.0, 3.0, 1.0):
        place = (sixth + own).remainder(6)
        channels.append(top - spread * torch.minimum(place, 4 - place).clamp(0.0, 1.0))
    return torch.stack(channels, 1)


def grey(images: Any) -> Any:
    """Without colours."""
    return _brightness(images).expand_as(images)


def _brightness(images: Any) -> Any:
    if images.shape[1] != 3:
        return images.mean(1, keepdim=True)
    weights = load_torch().tensor(_BRIGHTNESS).view(1, 3, 1, 1)
    return (images * weights).sum(1, keepdim=True)


def _between(low: float, high: float, n: int, generator: Any) -> Any:
    """Independent uniform numbers."""
    return low + (high - low) * load_torch().rand(n, generator=generator)


def _chance(images: Any, generator: Any, probability: float) -> Any:
    return load_torch().rand(len(images), generator=generator) < probability


def _where(chosen: Any, these: Any, others: Any) -> Any:
    return load_torch().where(chosen.view(-1, 1, 1, 1), these, others)

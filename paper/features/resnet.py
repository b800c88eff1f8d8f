"""The residual network ResNet-18, with a stem for small images."""

from __future__ import annotations

from typing import Any

from paper.features.method import load_torch


def resnet18(channels: int, width: int) -> Any:
    """The layers up to the average over all positions: ``8 * width`` numbers an image.

    Images of 32 x 32 are too small for the stem of ImageNet networks; here it is one convolution of size 3 x 3,
    without max-pooling. Four stages of two blocks follow, each stage but the first halving height and width and
    doubling the channels.
    """
    nn = load_torch().nn
    layers = [nn.Conv2d(channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
    before = width
    for stage in range(4):
        after = width * 2**stage
        layers += [_residual(before, after, 1 if stage == 0 else 2), _residual(after, after, 1)]
        before = after
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def _residual(before: int, after: int, stride: int) -> Any:
    """Two convolutions beside a short cut, which is a 1 x 1 convolution where the shape changes."""
    nn = load_torch().nn

    class Residual(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.long = nn.Sequential(
                nn.Conv2d(before, after, 3, stride, padding=1, bias=False),
                nn.BatchNorm2d(after),
                nn.ReLU(inplace=True),
                nn.Conv2d(after, after, 3, padding=1, bias=False),
                nn.BatchNorm2d(after),
            )
            self.short = (
                nn.Identity()
                if before == after and stride == 1
                else nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))
            )

        def forward(self, values: Any) -> Any:
            return nn.functional.relu(self.long(values) + self.short(values))

    return Residual()

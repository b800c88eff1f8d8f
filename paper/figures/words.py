"""Settings as a reader would say them."""

from __future__ import annotations

from typing import Any

_WORDS = {
    "none": "features as given",
    "centre": "centred",
    "standard": "standardised",
    "unit": "rows of length one",
    "svm": "SVM",
    "ridge": "ridge",
    "smoothed": "smoothed regression",
    "network": "gradient bounding",
    "cifar10": "CIFAR-10",
    "mnist": "MNIST",
    "mnist-1-vs-7": "MNIST 1-vs-7",
    "linear": "linear",
    "relu": "ReLU",
    "published": "as published",
    "auto": "flipcert's default",
    # As tables name them.
    "second block of a RotNet trained by flipcert": "second block of a RotNet that was trained by flipcert to name "
    "rotations of the training images, and saw no label of theirs",
}
_SYMBOLS = {"partitions": "N", "flip_probability": "q", "reg": "reg", "clip": "clip"}


def in_words(name: str, value: Any) -> str:
    """A setting in words.

    >>> in_words("scale", "centre"), in_words("partitions", 10)
    ('centred', 'N = 10')
    """
    if name == "size":
        return f"{value} samples"
    if name in _SYMBOLS:
        return f"{_SYMBOLS[name]} = {value:g}"
    return _WORDS.get(value, str(value))

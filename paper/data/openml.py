"""MNIST and CIFAR-10 from OpenML, through scikit-learn, in their published order. Nothing is unpickled."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Name there, images, pixels of an image, and how often each label occurs among the published training images, which
# come first: that tells whether the order is the published one.
_SETS = {
    "mnist": ("mnist_784", 70_000, 784, (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949)),
    "cifar10": ("CIFAR_10", 60_000, 3072, (5000,) * 10),
}


def fetched(name: str, otherwise: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Images and labels, the training set first.

    Parameters
    ----------
    name : {"mnist", "cifar10"}
        What to fetch.
    otherwise : str
        What to do if that fails, for the message.
    """
    from sklearn.datasets import fetch_openml

    title, n_images, n_pixels, counts = _SETS[name]
    try:
        with warnings.catch_warnings():
            # It announces every attempt; what counts is how it ends.
            warnings.simplefilter("ignore")
            # The files are text, which pandas parses much faster.
            parser = "pandas" if find_spec("pandas") else "liac-arff"
            found: Any = fetch_openml(title, version=1, as_frame=False, parser=parser, cache=False)
    except (OSError, ValueError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise ValueError(f"{otherwise}, for it could not be fetched from OpenML ({reason}).") from error
    X, y = np.asarray(found.data), np.asarray(found.target).astype(np.int64)
    if X.shape != (n_images, n_pixels) or y.shape != (n_images,) or X.min() < 0 or X.max() > 255:
        raise ValueError(f"{otherwise}, for {title} of OpenML has another form.")
    images, labels = X.astype(np.uint8), y.astype(np.uint8)
    if not (images == X).all() or tuple(np.bincount(y[: sum(counts)], minlength=10)) != counts:
        raise ValueError(f"{otherwise}, for {title} of OpenML is not in the published order.")
    return images, labels

"""Features of a data set, kept in a file that can be loaded by name."""

from __future__ import annotations

import os
from dataclasses import replace

from paper.data import Dataset, Table
from paper.data.feature_file import write_features
from paper.features.encoder import Encoder


def extract(encoder: Encoder, dataset: Dataset, path: str | os.PathLike[str] | None = None) -> Dataset:
    """Replace the images of a data set by their features. Labels are only carried along.

    Parameters
    ----------
    encoder : Encoder
        Trained network.
    dataset : Dataset
        Images of the kind that it was trained on.
    path : path-like, optional
        Feature file to write; ``paper.data.load`` finds ``NAME.npz`` in the data folder by its name.

    Returns
    -------
    Dataset
        Features in float32. Where they are maps, ``image_shape`` is theirs.

    Examples
    --------
    >>> from paper.data import load
    >>> from paper.features import RotNet, train
    >>> digits = load("digits")
    >>> encoder = train(RotNet(width=4, epochs=1), digits.train.X[:64], image_shape=digits.image_shape)
    >>> extract(encoder, digits).image_shape
    (4, 2, 2)
    """
    shape = encoder.feature_shape if len(encoder.feature_shape) == 3 else None

    def of(table: Table) -> Table:
        return replace(table, X=encoder.features(table.X), image_shape=shape)

    found = Dataset(dataset.name, of(dataset.train), of(dataset.test))
    if path is not None:
        write_features(path, found.train, found.test)
    return found

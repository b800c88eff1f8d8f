"""Looks inside models that several tests share."""

from __future__ import annotations

import numpy as np

import flipcert
from flipcert.engine.blocks import map_blocks


def weights_of(model, X):
    """Weights of all training samples for each row, as ``certify`` sees them."""
    formed = model.label_linear_.weights
    weights = np.empty((len(X), formed.n_samples), formed.dtype)
    formed.form(np.ascontiguousarray(X, formed.dtype), weights)
    return weights


def votes_of(model, X):
    """Class index that each base classifier votes for."""
    return np.stack([np.searchsorted(model.classes_, e.predict(X)) for e in model.estimators_], axis=1)


def all_costs(model, X, bound):
    """Votes and flip costs of every base classifier, from the very weights that the ensemble certifies."""
    electorate = model.electorate_
    n_classes, n_labels = model.classes_.size, model.partition_.size

    def block(rows, n_rows):
        weights, _ = electorate._weigh(rows, n_rows, np.empty((len(rows), n_labels), electorate._dtype))
        columns = [weights[:, electorate._columns(i)] for i in range(model.n_partitions)]
        costs = [
            flipcert.flip_costs(own, labels.codes, n_classes, bound=bound)
            for own, labels in zip(columns, electorate._labels, strict=True)
        ]
        votes = np.stack([own.argmin(axis=1) for own in costs], axis=1)
        lifted = [np.where(own > c.shape[1], n_labels + 1, own) for own, c in zip(costs, columns, strict=True)]
        return votes, np.stack(lifted, axis=1)

    ((votes, costs),) = map_blocks(block, np.ascontiguousarray(X), electorate.bytes_per_row, 1)
    return votes, costs

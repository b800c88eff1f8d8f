"""Looks inside models that several tests share."""

from __future__ import annotations

import numpy as np

import flipcert
from flipcert.ensemble.formed_weights import formed_weights


def weights_of(model, X):
    """Weights of all training samples for each row, as ``certify`` sees them."""
    formed = model.label_linear_.weights
    weights = np.empty((len(X), formed.n_samples), formed.dtype)
    formed.form(formed.features(np.ascontiguousarray(X, formed.dtype)), weights)
    return weights


def votes_of(model, X):
    """Class index that each base classifier votes for."""
    return np.stack([np.searchsorted(model.classes_, e.predict(X)) for e in model.estimators_], axis=1)


def all_costs(model, X, bound):
    """Votes and flip costs of every base classifier, from the very weights that the ensemble certifies."""
    n_classes, n_labels = model.classes_.size, model.partition_.size
    codes = model.electorate_.labels.codes
    votes, costs = [], []
    for members, weights in formed_weights(model, X, np.arange(len(X))):
        own = flipcert.flip_costs(weights, codes[members], n_classes, bound=bound)
        votes.append(own.argmin(axis=1))
        costs.append(np.where(own > members.size, n_labels + 1, own))
    return np.stack(votes, axis=1), np.stack(costs, axis=1)

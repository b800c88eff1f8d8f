"""The weights behind the votes of a fitted model, for some rows of a job: the very numbers that the job used."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.classifiers.certified_by_weights import CertifiedByWeights
from flipcert.engine.sparse import of_type
from flipcert.ensemble.assembly import Assembly
from flipcert.ensemble.partition_ensemble import PartitionEnsemble
from flipcert.ensemble.white_box import WhiteBox


def formed_weights(
    model: Any, X: NDArray[Any], rows: NDArray[np.int64]
) -> list[tuple[NDArray[np.int64], NDArray[Any]]] | None:
    """Weights that ``model.certify(X)`` uses for some rows of X, voter by voter; one model is one voter.

    Parameters
    ----------
    model : estimator
        Fitted.
    X : ndarray of shape (n_test, n_features)
        All test inputs of the job.
    rows : ndarray of int64
        The rows that are wanted.

    Returns
    -------
    list of (ndarray, ndarray), or None
        Training rows of each voter, and its weights, of shape (n_rows, n_members). None where scores are not sums of
        weights, or voters do not tell them.
    """
    if isinstance(model, CertifiedByWeights):
        linear = model.label_linear_
        return [(np.arange(linear.labels.n_labels), linear.formed(X, rows))]
    asked = model.electorate_ if isinstance(model, PartitionEnsemble) else None
    electorate = asked.inner if isinstance(asked, Assembly) else asked
    if asked is None or not isinstance(electorate, WhiteBox):
        return None
    weights = electorate.weights.formed(of_type(X, model.dtype_), rows, asked.bytes_per_row)
    return [(voter.members, own) for voter, own in zip(electorate.voters, weights, strict=True)]

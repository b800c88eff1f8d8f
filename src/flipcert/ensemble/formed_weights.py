"""The weights behind the votes of a fitted model, for some rows of a job: the very numbers that the job used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.classifiers.label_linear import LabelLinearClassifier
from flipcert.engine.blocks import SMALLEST_BLOCK, block_rows, filled, one_blas_thread
from flipcert.engine.tiles import tiles
from flipcert.ensemble.partition_ensemble import PartitionEnsemble
from flipcert.ensemble.white_box import WhiteBox


def formed_weights(
    model: Any, X: NDArray[Any], rows: NDArray[np.int64]
) -> list[tuple[NDArray[np.int64], NDArray[Any]]] | None:
    """Weights that ``model.certify(X)`` uses for some rows of X, voter by voter; one model is one voter.

    A product may round differently in another block, so whole blocks of the job are formed.

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
    if isinstance(model, PartitionEnsemble):
        source = model._electorate
        if not isinstance(source, WhiteBox):
            return None
        members = [voter.members for voter in source.voters]
        height = block_rows(X.shape[0], source.bytes_per_row)
    elif isinstance(model, LabelLinearClassifier):
        source = model
        members = [np.arange(model._labels.n_labels)]
        height = _height(model, X.shape[0])
    else:
        return None
    ends = np.cumsum([0] + [own.size for own in members])
    weights = np.empty((rows.size, int(ends[-1])), source._dtype)
    for start in np.unique(rows // height * height).tolist():
        block = filled(np.ascontiguousarray(X[start : start + height], model._dtype), height)
        asked = np.flatnonzero((rows >= start) & (rows < start + height))
        with one_blas_thread:
            for columns, formed in _pieces(source, block):
                weights[asked, columns] = formed[rows[asked] - start]
    return [(own, weights[:, ends[i] : ends[i + 1]]) for i, own in enumerate(members)]


def _pieces(source: WhiteBox | LabelLinearClassifier, block: NDArray[Any]) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Weights of all rows of a block: some columns, or all of them, at a time."""

    def room(n_columns: int) -> NDArray[Any]:
        return np.empty((block.shape[0], n_columns), source._dtype)

    if isinstance(source, WhiteBox):
        yield slice(None), source._weigh(block, block.shape[0], room(int(source._bounds[-1])))[0]
    elif source._comes_in_tiles:
        write = source._tile_writer(block)
        for samples in tiles(source._labels.n_labels):
            write(samples, out := room(samples.stop - samples.start))
            yield samples, out
    else:
        source._weights(block, out := room(source._labels.n_labels))
        yield slice(None), out


def _height(model: LabelLinearClassifier, n_rows: int) -> int:
    """Rows of a block, as in ``LabelLinearClassifier``: where whole rows are too long, tiles of them are held."""
    whole = model._bytes_per_row()
    tile = tiles(model._labels.n_labels)[0].stop * np.dtype(model._dtype).itemsize
    streamed = model._comes_in_tiles and tile < whole and block_rows(1, whole) < SMALLEST_BLOCK
    return block_rows(n_rows, tile if streamed else whole)

"""Weights of all voters that are label-linear: one array a block, formed by one product where that is possible."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.blocks import block_height, filled, one_blas_thread
from flipcert.engine.buffers import Buffers
from flipcert.engine.magnitude import BY_FEATURES, refuse_underflow
from flipcert.engine.rounding import SAFETY
from flipcert.engine.sparse import dense
from flipcert.ensemble.voters import Voter
from flipcert.linear.product import Product
from flipcert.linear.shared_rows import SharedRows, Shares
from flipcert.linear.weights import Weights


class VoterWeights:
    """How inputs become weights of all voters: the columns ``bounds[i]:bounds[i + 1]`` of a row belong to voter i.

    Attributes
    ----------
    labels : list of Labels
        Labels of each voter, with their sources.
    bounds : ndarray
    """

    def __init__(self, voters: list[Voter], pairwise: bool) -> None:
        self._voters = voters
        self._pairwise = pairwise
        self.labels = [voter.label_linear.labels for voter in voters]
        self.bounds = np.cumsum([0] + [labels.n_labels for labels in self.labels])
        self._dtype = np.result_type(*(voter.label_linear.weights.dtype for voter in voters))
        weights = [voter.label_linear.weights for voter in voters]
        # Where rows have several labels, the product is one for the rows.
        has_shares = any(isinstance(own, SharedRows) for own in weights)
        self._shares = Shares.join([Shares.of(own) for own in weights]) if has_shares else None
        self._product = self._join_products()
        self._buffers = Buffers()

    def _join_products(self) -> Product | None:
        """One product for all voters, if each is one of the same inputs."""
        products = [
            None if voter.transforms else _of_rows(voter.label_linear.weights).product for voter in self._voters
        ]
        return None if None in products else Product.join([product for product in products if product is not None])

    def slim(self) -> VoterWeights:
        """The same without the classifiers, if one product stands for them."""
        if self._product is None:
            return self
        slim = copy(self)
        slim._voters = []
        return slim

    def release(self) -> None:
        """Give up the memory of the weights."""
        self._buffers.close()

    @property
    def bytes_per_row(self) -> int:
        """Memory of the weights, and of those of the rows where these are shared."""
        of_rows = 0 if self._shares is None else self._shares.n_rows
        return (int(self.bounds[-1]) + of_rows) * self._dtype.itemsize

    def of(self, i: int) -> slice:
        """Columns of one voter."""
        return slice(int(self.bounds[i]), int(self.bounds[i + 1]))

    @contextmanager
    def lent(self, X: NDArray[Any], n_rows: int) -> Iterator[tuple[NDArray[Any], NDArray[np.float64]]]:
        """Weights of a block, and how far rounding could move the sums of each row and voter; the memory is lent."""
        with self._buffers.borrow((X.shape[0], int(self.bounds[-1])), self._dtype) as buffer:
            yield self._form(X, n_rows, buffer)

    def formed(self, X: NDArray[Any], rows: NDArray[np.int64], bytes_per_row: int | None = None) -> list[NDArray[Any]]:
        """The very weights that a job on all of X uses for some of its rows: those of each voter.

        A product may round differently in another block, so whole blocks of the job are formed; ``bytes_per_row`` are
        those of the job, if it holds more than weights.
        """
        height = block_height(X, bytes_per_row or self.bytes_per_row)
        weights = np.empty((rows.size, int(self.bounds[-1])), self._dtype)
        for start in np.unique(rows // height * height).tolist():
            asked = np.flatnonzero((rows >= start) & (rows < start + height))
            block = filled(np.ascontiguousarray(dense(X[start : start + height])), height)
            with one_blas_thread:
                formed, _ = self._form(block, height, np.empty((height, weights.shape[1]), self._dtype))
            weights[asked] = formed[rows[asked] - start]
        return [weights[:, self.of(i)] for i in range(len(self.labels))]

    def why(self, X: NDArray[Any], small: bool) -> str:
        """What in some voter makes weights so small, or so large."""
        for voter in self._voters:
            inputs = voter.model_inputs(X[:, voter.rows] if self._pairwise else X)
            reason = voter.label_linear.weights.why(inputs, small)
            if reason != BY_FEATURES:
                return reason
        return BY_FEATURES

    def _form(self, X: NDArray[Any], n_rows: int, weights: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Weights of all voters in the given array, and how far rounding could move the sums of each row and voter."""
        if self._product is not None:
            features = self._product.features(X)
            refuse_underflow(self._product.lost(features[:n_rows]))
            rounding = self._product.rounding(features[:n_rows])
            if self._shares is None:
                self._product.weights(features, weights)
                return weights[:n_rows], SAFETY * rounding
            with self._buffers.borrow((X.shape[0], self._shares.n_rows), self._dtype) as of_rows:
                self._shares.write(self._product.weights(features, of_rows), weights)
            return weights[:n_rows], SAFETY * self._shares.rounding(rounding)
        tolerance = np.empty((n_rows, len(self._voters)))
        for i, voter in enumerate(self._voters):
            formed = voter.label_linear.weights
            inputs = formed.features(voter.model_inputs(X[:, voter.rows] if self._pairwise else X))
            own = np.empty((X.shape[0], voter.members.size), formed.dtype)
            formed.form(inputs, own)
            refuse_underflow(formed.lost(inputs[:n_rows], partial(_largest_of_rows, own[:n_rows])))
            weights[:, self.of(i)] = own
            tolerance[:, i] = SAFETY * formed.rounding(inputs[:n_rows], own[:n_rows])
        return weights[:n_rows], tolerance


def _of_rows(weights: Weights) -> Weights:
    """Weights of the rows, if they are shared by several labels each."""
    return weights.of_rows if isinstance(weights, SharedRows) else weights


def _largest_of_rows(weights: NDArray[Any]) -> NDArray[Any]:
    return np.abs(weights).max(axis=1)

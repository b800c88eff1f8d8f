r"""Predictions of weights that are a product, without the weights: scores from sums of the right factor by class.

The score of class c is the exact sum of the *stored* weights :math:`\mathrm{fl}(x \cdot r_i)` of its samples. The
product of x with :math:`g_c = \sum_i r_i` is near it, by no more than a bound that all roundings are in:

- each weight errs by :math:`\gamma_d\, |x| \cdot |r_i|` at most, in whatever order BLAS adds up, in the unit roundoff
  of the weights; together that is :math:`\gamma_d\, |x| \cdot a_c` with :math:`a_c = \sum_i |r_i|`;
- class sums and products with them are rounded too, in double precision: a share of :math:`|x| \cdot a_c` again;
- what underflows errs by the smallest normal number at most, for each product and each sum.

Scores that are farther apart than their bounds are in the order that they have; ties and near ties stay undecided.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from flipcert.engine.mapped import row_pieces
from flipcert.engine.rounding import row_norms
from flipcert.flips._jit.ladder import UNDECIDED, UNIT_ROUNDOFF
from flipcert.labels.labels import Labels
from flipcert.linear.product import Product
from flipcert.linear.weights import Weights

# What a kernel of BLAS may round beside one product and one sum for each feature.
_MORE_ROUNDINGS = 16
# More terms than this are not looked into: bounds below count on (terms * unit roundoff) being small.
_MOST_TERMS = 2**28
# Bounds are rounded themselves, by less than this.
_ROUNDED_UP = 1.0 + 2.0**-20


def in_their_places(rows: NDArray[np.int64], height: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which rows to form, in blocks, so that some rows of a job have their places in as few blocks as that takes.

    Bits of a product hang on its shape and on the place of a row there, not on what the other rows hold: here, these
    are copies of the first. Also returns where each of the rows is then.

    >>> [part.tolist() for part in in_their_places(np.array([1, 6, 9, 11]), height=4)]
    [[1, 1, 6, 11, 1, 9], [1, 2, 5, 3]]
    """
    places = rows % height
    in_order = np.argsort(places, kind="stable")
    where = np.empty_like(rows)
    # Of rows with the same place, each is in another block.
    before = np.searchsorted(places[in_order], places[in_order])
    where[in_order] = (np.arange(rows.size) - before) * height + places[in_order]
    held = np.full(int(where.max()) + 1, rows[0])
    held[where] = rows
    return held, where


class ClassSums:
    """Predictions of one model by sums of the right factor of its product.

    Parameters
    ----------
    labels : Labels
        Training labels.
    product : Product
        Of one model.
    """

    def __init__(self, labels: Labels, product: Product) -> None:
        self._labels = labels
        self._product = product

    @classmethod
    def of(cls, labels: Labels, weights: Weights) -> ClassSums | None:
        """Those of a model whose weights are nothing but a product; None for any other."""
        return None if weights.product is None or weights.has_offset else cls(labels, weights.product)

    def ready(self) -> ClassSums:
        """The same with all sums there, so that no two threads add them up."""
        assert self._sums is not None
        return self

    def predict(self, left: NDArray[Any]) -> NDArray[np.int64]:
        """The class of each row of the left factor, as its stored weights give it; UNDECIDED where that is close."""
        plain, magnitudes = self._sums
        rows = left.astype(np.float64, copy=False)
        with np.errstate(over="ignore", invalid="ignore"):
            scores = rows @ plain
            error = self._relative_error * (np.abs(rows) @ magnitudes) + self._underflow
            winner, n_rows = scores.argmax(axis=1), np.arange(rows.shape[0])
            ahead = scores[n_rows, winner][:, None] - scores
            decided = ahead > (error + error[n_rows, winner][:, None]) * _ROUNDED_UP
            decided[n_rows, winner] = True
            # Weights that overflow have no sum.
            finite = row_norms(left) * self._product.factors[0].largest_norm < np.finfo(left.dtype).max / 4
        return np.where(decided.all(axis=1) & finite, winner, UNDECIDED)

    @cached_property
    def _sums(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Sums of the right factor by class, and of its magnitudes, of shape (n_features, n_classes)."""
        right, codes, n_classes = self._product.right, self._labels.codes, self._labels.n_classes
        plain, magnitudes = np.zeros((2, n_classes, right.shape[1]))
        with np.errstate(over="ignore", invalid="ignore"):
            for place, rows in row_pieces(right):
                ones = np.ones(rows.shape[0])
                by_class = csc_array((ones, codes[place], np.arange(ones.size + 1)), shape=(n_classes, ones.size))
                wide = rows.astype(np.float64)
                plain += by_class @ wide
                magnitudes += by_class @ np.abs(wide, out=wide)
        return np.ascontiguousarray(plain.T), np.ascontiguousarray(magnitudes.T)

    @property
    def _relative_error(self) -> float:
        """All roundings but underflow, as a share of the product of magnitudes."""
        n_samples, n_features = self._product.right.shape
        unit = float(np.finfo(self._product.right.dtype).eps) / 2
        terms, of_weights = 2 * n_samples + n_features, (n_features + _MORE_ROUNDINGS) * unit
        if terms > _MOST_TERMS or of_weights > 0.25:
            return np.inf
        return of_weights / (1.0 - of_weights) + 4.0 * (terms + _MORE_ROUNDINGS) * UNIT_ROUNDOFF

    @property
    def _underflow(self) -> float:
        """What underflow of all products and sums of a row can come to."""
        n_samples, n_features = self._product.right.shape
        return 4.0 * (n_samples + 1) * (n_features + 1) * float(np.finfo(self._product.right.dtype).tiny)

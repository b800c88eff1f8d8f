"""Label spreading once more: neighbours row by row, and the polynomial from samples of the function it stands for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

# Share of its norm that the polynomial leaves out of the inverse.
_LEFT_OUT = 1e-6
# Rows whose distances are looked at together.
_ROWS = 256


def spread_plainly(X: NDArray[Any], x: NDArray[Any], n_neighbors: int, alpha: float) -> NDArray[np.float64]:
    """Weights of the training inputs X for each row of x, of shape (n_rows, n_samples).

    ``alpha`` and ``n_neighbors`` are those of :class:`flipcert.LabelSpreading`.
    """
    n = X.shape[0]
    unit = int(np.frexp(np.abs(X).max())[1])  # squares stay in range
    X, x = (np.ldexp(rows.astype(np.float64), -unit) for rows in (X, x))
    joined = _joined(list(_nearest(X, X, min(n_neighbors, n - 1), others=True)), n)
    edges = ((joined + joined.T) > 0).astype(np.float64)
    root = 1 / np.sqrt(np.maximum(edges.sum(axis=1), 1))
    S = diags_array(root) @ edges @ diags_array(root)
    point = root[:, None] * _joined(list(_nearest(x, X, min(n_neighbors, n))), n).T.toarray()
    coefficients = _coefficients(alpha)
    before, now = point, S @ point
    total = coefficients[0] * before + coefficients[1] * now
    for coefficient in coefficients[2:]:
        before, now = now, 2 * (S @ now) - before
        total += coefficient * now
    return np.maximum(total, 0).T


def _nearest(x: NDArray[Any], X: NDArray[Any], count: int, others: bool = False) -> Iterator[NDArray[np.int64]]:
    """The nearest rows of X for each row of x, with all that tie for the last place; or without the row itself."""
    squares = (X**2).sum(axis=1)
    for start in range(0, x.shape[0], _ROWS):
        rows = x[start : start + _ROWS]
        own = (rows**2).sum(axis=1)
        rough = squares + own[:, None] - 2 * (rows @ X.T)
        for t, row in enumerate(rows):
            if others:
                rough[t, start + t] = np.inf
            if count == 0:
                yield np.zeros(0, np.int64)
                continue
            reach = np.partition(rough[t], count - 1)[count - 1] + 1e-9 * (squares.max() + own[t])
            some = np.flatnonzero(rough[t] <= reach)
            distance = np.cumsum((X[some] - row) ** 2, axis=1)[:, -1]  # feature after feature, as ties are defined
            yield some[distance <= np.sort(distance)[count - 1]]


def _joined(near: list[NDArray[np.int64]], n_columns: int) -> csr_array:
    """A matrix of ones where rows are joined."""
    begins = np.cumsum([0, *(own.size for own in near)])
    return csr_array((np.ones(begins[-1]), np.concatenate(near), begins), shape=(len(near), n_columns))


def _coefficients(alpha: float) -> NDArray[np.float64]:
    """Chebyshev coefficients of 1 / (1 - alpha x), by a cosine transform, until those left out add up to little."""
    n_samples = 2 ** int(np.ceil(np.log2(64 / np.sqrt(1 - alpha) + 64)))
    samples = 1 / (1 - alpha * np.cos(2 * np.pi * np.arange(n_samples) / n_samples))
    coefficients = 2 * np.fft.rfft(samples).real / n_samples
    coefficients[0] /= 2
    left_out = np.cumsum(coefficients[::-1])[::-1]
    first = int(np.argmax(left_out[1:] <= _LEFT_OUT / (1 - alpha))) + 1
    return np.asarray(coefficients[: max(first, 2)])

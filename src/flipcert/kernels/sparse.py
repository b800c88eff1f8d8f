"""Kernels of inputs that are mostly zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from flipcert.engine.mapped import row_pieces
from flipcert.engine.sparse import SparseRows, training_rows
from flipcert.kernels.base import Kernel
from flipcert.labels.validation import check_inputs


def any_sparse(*inputs: Any) -> bool:
    """Whether some of the inputs of a kernel are sparse."""
    return any(issparse(X) or isinstance(X, SparseRows) for X in inputs)


def sparse_kernel(kernel: Kernel, X: Any, Z: Any | None) -> NDArray[Any]:
    """Kernel matrix of X with Z, either of which may be sparse; of X with itself, one half of it twice."""
    inputs = check_inputs(X, sparse=kernel.takes_sparse)
    other = inputs if Z is None else check_inputs(Z, sparse=kernel.takes_sparse)
    others = training_rows(other.astype(inputs.dtype, copy=False))
    values = np.empty((inputs.shape[0], others.shape[0]), inputs.dtype)
    for place, rows in row_pieces(inputs):
        kernel.write(rows, others, values[place])
    return np.tril(values) + np.tril(values, -1).T if Z is None else values


def takes_sparse_inputs(kernel: Any) -> bool:
    """Whether ``kernel=`` of an estimator names a kernel of this package that takes sparse inputs.

    Who derives another from it may do more with inputs than multiply them.
    """
    from flipcert.kernels import NAMED

    named = NAMED.get(kernel) if isinstance(kernel, str) else type(NAMED["ntk"]() if kernel is None else kernel)
    kinds: list[type[Kernel]] = list(NAMED.values())
    return any(named is kind and kind.takes_sparse for kind in kinds)

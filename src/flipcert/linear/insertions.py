"""Rows that an attacker adds to a training set: how much they can weigh, and how many leave a machine what it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from flipcert.engine.mapped import row_pieces
from flipcert.engine.rounding import row_norms
from flipcert.engine.sparse import SparseRows
from flipcert.flips.new_rows import NewRows
from flipcert.kernels.base import Bounded, Kernel
from flipcert.kernels.linear import Linear
from flipcert.kernels.norms import norm_rounding
from flipcert.labels.threats import DELETIONS, REPLACEMENTS, Threat
from flipcert.linear.kernel_rows import is_own_kernel, svm_weights

# Test rows whose inserted inputs are weighed together: each meets those of the others for nothing.
_TOGETHER = 32


@dataclass(frozen=True)
class Insertions:
    """What rows can be added to the training set of a kernel machine whose weights are its kernel.

    Attributes
    ----------
    kernel : Kernel or None
        None if inputs are rows of a kernel matrix.
    X : ndarray of shape (n_samples, n_features)
        Training inputs.
    max_norm : float or None
        The largest norm of an input.
    C : float or None
        The machine's C; None if it is as small as need be.
    """

    kernel: Kernel | None
    X: NDArray[Any]
    max_norm: float | None = None
    C: float | None = None

    def refusal(self, threat: Threat) -> str | None:
        """Why nothing is proven against a threat, in words that end a sentence; None where there are proofs."""
        if threat is DELETIONS:
            return None
        if self.kernel is None or not is_own_kernel(self.kernel) or self.kernel.bounded_by is Bounded.NOTHING:
            named = "precomputed" if self.kernel is None else type(self.kernel).__name__
            return f'no bound is known on what a new row may weigh with this kernel ({named}); "deletions" are proven'
        if self.kernel.bounded_by is Bounded.NORM and self.max_norm is None:
            return (
                f"with this kernel ({type(self.kernel).__name__}) a new row may weigh as much as it is long; bound the "
                "norm of inputs with max_norm=..."
            )
        return None

    def refuse_long_inputs(self) -> None:
        """Raise ValueError if a training input is longer than inputs may be."""
        if self.max_norm is None or self.kernel is None:
            return
        # Inputs that were scaled to this norm are accepted, however that was rounded.
        pieces = [SparseRows(self.X)] if issparse(self.X) else (rows for _, rows in row_pieces(self.X))
        longest = max(float(row_norms(rows).max(initial=0.0)) for rows in pieces)
        if longest > self.max_norm * (1.0 + norm_rounding(self.X.shape[1], self.X.dtype)):
            raise ValueError(
                f"max_norm={self.max_norm:g} is smaller than the norm of a training input ({longest:.6g}); take a "
                "larger one, or rescale the features."
            )

    def new_rows(self, threat: Threat, X: NDArray[Any]) -> NewRows:
        """How far an attacker gets with one new row, for each row of X."""
        n_rows = X.shape[0]
        if threat is DELETIONS:
            return NewRows(np.zeros(n_rows), np.zeros(n_rows), X[:0], self.X.shape[0])
        assert self.kernel is not None, "refused before"
        inputs = self.kernel.most_alike(X, self.max_norm)
        most = self._unscaled.largest(X, self.max_norm)
        # Products change their sign with an input, to the last bit.
        odd = self.kernel.product_scale(self.X.shape[1]) is not None
        return NewRows(most, self.weights_of(X, inputs), inputs, self.within(threat), odd)

    def within(self, threat: Threat) -> int:
        """How many operations are sure to leave all dual variables at C; the number of rows if any do.

        With so many new rows, each row sum of the kernel, those of new rows among them, is at most what new rows add
        and what the kernel of any input with each old row can be.
        """
        n_samples = self.X.shape[0]
        if self.C is None or threat is DELETIONS:
            return n_samples
        assert self.kernel is not None, "refused before"
        own = np.sort(np.concatenate([self.kernel.largest(rows, self.max_norm) for _, rows in row_pieces(self.X)]))
        longest = np.zeros((1, self.X.shape[1]), self.X.dtype)
        longest[0, 0] = 0.0 if self.max_norm is None else self.max_norm
        new = float(max(self.kernel.largest(longest, self.max_norm)[0], own[-1]))
        counts = np.arange(1, n_samples + 1)
        # Of the rows that are replaced, those go that the kernel is smallest with.
        gone = np.cumsum(own) if threat is REPLACEMENTS else np.zeros(n_samples)
        rounding = 4.0 * n_samples * float(np.finfo(np.float64).eps)
        with np.errstate(over="ignore", invalid="ignore"):
            most = (np.sum(own) + counts * new) * (1.0 + rounding) - gone * (1.0 - rounding)
            fits = self.C * most * (1.0 + rounding) <= 1.0
        return n_samples if fits.all() else int(np.argmin(fits))

    @property
    def _unscaled(self) -> Kernel:
        """The kernel in the unit of the weights, of which a scale is left out if that is all the kernel does."""
        assert self.kernel is not None, "refused before"
        return self.kernel if self.kernel.product_scale(self.X.shape[1]) is None else Linear()

    def weights_of(self, X: NDArray[Any], inputs: NDArray[Any]) -> NDArray[np.float64]:
        """What each of the inputs really weighs for its own row of X."""
        real = np.empty(X.shape[0])
        for start in range(0, X.shape[0], _TOGETHER):
            rows, new = X[start : start + _TOGETHER], np.ascontiguousarray(inputs[start : start + _TOGETHER])
            # Where training inputs are sparse, so is a new one: its weight is the same to the last bit.
            new = csr_array(new) if issparse(self.X) else new
            weights = svm_weights(self.kernel, new)
            weights.form(weights.features(rows), formed := np.empty((rows.shape[0], new.shape[0]), self.X.dtype))
            real[start : start + _TOGETHER] = np.diagonal(formed)
        return real

"""Weights of a ridge regression whose kernel has no finite features: a system as large as the training set."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.cholesky import Cholesky, triangle_bytes
from flipcert.engine.magnitude import finite_sum, smallest_whole
from flipcert.engine.memory import available_memory
from flipcert.linear.kernel_rows import KernelRows
from flipcert.linear.ridge_features import why_of_regularisation
from flipcert.linear.weights import Weights

# Beyond the system itself: blocks of test rows, and what else runs on the machine.
_SPARE = 1.1


class SolvedSystem(Weights):
    r"""Weights :math:`w(t) = (Q + \lambda I)^{-1} Q(:, t)`.

    Parameters
    ----------
    rows : KernelRows
        The kernel with the training inputs.
    reg : float
        Regularisation.
    n_jobs : int or None
        Threads of the factorisation.
    """

    def __init__(self, rows: KernelRows, reg: float, n_jobs: int | None) -> None:
        self._rows = rows
        self._reg = reg
        self.n_samples, self.dtype = rows.n_samples, rows.dtype
        self.precision = widest_precision(rows.n_samples)
        self._cholesky = Cholesky(rows.n_samples, self.precision)
        tile = _symmetric_tile(rows.X) if rows.kernel is None else self._kernel_tile
        self.spread = finite_sum(self._cholesky.fill(tile, n_jobs).max())
        self._cholesky.factorise(reg, n_jobs)

    def _kernel_tile(self, rows: slice, columns: slice) -> NDArray[Any]:
        """A tile of the training kernel; on the diagonal, the kernel is told that it sees the same inputs twice."""
        kernel, X = self._rows.kernel, self._rows.X
        assert kernel is not None
        return kernel(X[rows]) if rows == columns else kernel(X[rows], X[columns])

    def form(self, X: NDArray[Any], out: NDArray[Any]) -> None:
        """Write the weights of all training samples for each row of X to ``out``."""
        self._rows.form(X, out)
        rows = out if out.dtype == self.precision else out.astype(self.precision)
        self._cholesky.solve(rows)
        if rows is not out:
            out[:] = rows

    @property
    def bytes_per_row(self) -> int:
        """Where a system is solved in another precision than that of the weights, both are there at the same time."""
        other = 0 if self.dtype == self.precision else self.n_samples
        return super().bytes_per_row + other * np.dtype(self.precision).itemsize

    def rounding(self, X: NDArray[Any], formed: NDArray[Any] | None) -> NDArray[np.float64]:
        """Rounding of the kernel rows, magnified by the solve at most 1/reg times, and that of the solve itself."""
        assert formed is not None
        condition = (self.spread + self._reg) / self._reg
        unit = float(np.finfo(self.precision).eps) / 2
        sizes = np.sqrt(np.einsum("ij,ij->i", formed, formed, dtype=np.float64))
        solve = unit * condition * np.sqrt(formed.shape[1]) * sizes
        stored = float(np.finfo(formed.dtype).eps) / 2 * np.sqrt(formed.shape[1]) * sizes
        with np.errstate(over="ignore"):  # then all of them are sensitive
            return self._rows.rounding(X) / self._reg + solve + stored

    def lost(self, X: NDArray[Any], sizes: Callable[[], NDArray[Any]]) -> NDArray[np.bool_]:
        """Rows whose kernel underflowed, and those that the regularisation made as small; zeros were zeros before."""
        lost = self._rows.lost(X, sizes)
        least = max(smallest_whole(self.dtype), smallest_whole(self.precision))
        for t in np.flatnonzero(~lost & (sizes() < least)):
            lost[t] = self._kernel_row(X[t : t + 1]).any()
        return lost

    def why(self, X: NDArray[Any], small: bool) -> str:
        """The kernel, or else the regularisation."""
        for t in range(X.shape[0]):
            largest = np.abs(self._kernel_row(X[t : t + 1])).max(axis=1)
            too_small = small and self._rows.lost(X[t : t + 1], partial(np.copy, largest)).any()
            if too_small or not np.isfinite(largest).all():
                return self._rows.why(X, small)
        return why_of_regularisation(self._reg, small)

    def _kernel_row(self, row: NDArray[Any]) -> NDArray[Any]:
        """The kernel of one row with all training inputs."""
        return row if self._rows.kernel is None else self._rows.kernel(row, self._rows.X)


def _symmetric_tile(kernel: NDArray[Any]) -> Callable[[slice, slice], NDArray[Any]]:
    """Tiles of a matrix given as numbers, each compared with its mirror image."""
    tolerance = 1e-8 * max(kernel.max(), -kernel.min())

    def tile(rows: slice, columns: slice) -> NDArray[Any]:
        values = kernel[rows, columns]
        if not np.allclose(values, kernel[columns, rows].T, rtol=1e-5, atol=tolerance):
            raise ValueError('X must be symmetric with kernel="precomputed" (the kernel of the training set).')
        return values

    return tile


def widest_precision(n_samples: int) -> str:
    """Double precision if the system of the samples fits the memory, else single."""
    if n_samples <= 1024:
        return "float64"  # a few megabytes; asking takes longer than a small fit
    available = available_memory()
    for precision in ("float64", "float32"):
        needed = _SPARE * triangle_bytes(n_samples, precision)
        if needed <= available:
            return precision
    raise ValueError(
        f"the kernel of {n_samples} samples needs {needed / 1e9:.1f} GB of memory in single precision, but "
        f"{available / 1e9:.1f} GB are available; use PartitionEnsemble or a kernel with finite features."
    )

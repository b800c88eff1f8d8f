"""How far one new row gets: what it can weigh at most, and what the best input that is known weighs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class NewRows:
    """New rows of the training set, as each test row sees them.

    Attributes
    ----------
    most : ndarray of shape (n_rows,)
        No new input weighs more, in either direction: what proofs count on.
    real : ndarray of shape (n_rows,)
        What the inputs below weigh: what attacks count on.
    inputs : ndarray of shape (n_rows, n_features)
        For each test row, the input to insert.
    within : int
        Operations that are known to leave the model one whose weights do not depend on each other.
    odd : bool
        Whether the opposite of an input weighs exactly as much in the other direction.
    """

    most: NDArray[np.float64]
    real: NDArray[np.float64]
    inputs: NDArray[Any]
    within: int
    odd: bool = False

    def of(self, rows: slice) -> NewRows:
        """The same for some of the rows."""
        return NewRows(self.most[rows], self.real[rows], self.inputs[rows], self.within, self.odd)

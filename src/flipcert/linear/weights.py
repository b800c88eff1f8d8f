"""How inputs become weights: what each training label adds to the score of its class. Labels never enter."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.magnitude import BY_FEATURES

if TYPE_CHECKING:
    from flipcert.linear.product import Product


class Weights(ABC):
    """Weights of all training samples, for any test inputs.

    Attributes
    ----------
    n_samples : int
        Number of training samples.
    dtype : dtype
        Type of the weights, and of the inputs they are formed from.
    comes_in_tiles : bool
        Whether the weights of some training samples can be formed without those of the others.
    product : Product or None
        The same as one matrix product, if that is what they are. Those of several models can be joined.
    has_offset : bool
        Whether scores have a part that no label adds to.
    """

    n_samples: int
    dtype: np.dtype[Any]
    comes_in_tiles: bool = False
    product: Product | None = None
    has_offset: bool = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "offset" in vars(cls):
            cls.has_offset = True

    def features(self, X: NDArray[Any]) -> NDArray[Any]:
        """What all methods below take for the rows of X; computed once for a block of them."""
        return X

    @abstractmethod
    def form(self, X: NDArray[Any], out: NDArray[Any]) -> None:
        """Write the weights of all training samples for each row of X to ``out``."""

    def tile_writer(self, X: NDArray[Any]) -> Callable[[slice, NDArray[Any]], None]:
        """Where weights come in tiles: what writes those of some training samples, for each row of X, to an array."""
        raise TypeError(f"{type(self).__name__} forms the weights of all training samples at once.")

    @abstractmethod
    def rounding(self, X: NDArray[Any], formed: NDArray[Any] | None) -> NDArray[np.float64]:
        """Estimate by how much another rounding could move each row of weights (see ``flipcert.engine.rounding``).

        Weights that come in tiles are not there.
        """

    def lost(self, X: NDArray[Any], sizes: Callable[[], NDArray[Any]]) -> NDArray[np.bool_]:
        """Rows whose weights underflowed; ``sizes()`` tells how large each row of them is."""
        return np.zeros(X.shape[0], np.bool_)

    def why(self, X: NDArray[Any], small: bool) -> str:
        """Say what makes weights of rows of X so small, or so large, that they are out of range, and what to do."""
        return BY_FEATURES

    def offset(self, X: NDArray[Any], n_classes: int) -> NDArray[np.float64]:
        """Label-independent part of the scores; none by default."""
        return np.zeros((X.shape[0], n_classes))

    def in_unit_of_users(self, scores: NDArray[np.float64], formed: NDArray[Any] | None) -> NDArray[np.float64]:
        """Scores as users see them, which may be a positive factor for each row away from sums of the weights."""
        return scores

    @property
    def bytes_per_row(self) -> int:
        """Memory that the weights of one row take while they are formed."""
        return self.n_samples * np.dtype(self.dtype).itemsize

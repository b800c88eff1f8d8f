"""Weighted nearest neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags

from flipcert.classifiers.certified_by_weights import CertifiedByWeights
from flipcert.engine.words import plural
from flipcert.kernels.base import Kernel, as_kernel
from flipcert.kernels.sparse import takes_sparse_inputs
from flipcert.linear.nearest import NearestWeights
from flipcert.linear.weights import Weights


class WeightedNeighbors(CertifiedByWeights):
    """Nearest neighbours in Euclidean distance, each with a weight; the class with the largest sum is the prediction.

    Neighbours are found from the inputs alone. Points that tie for the last places share them equally, so neither the
    labels nor the order of the training rows ever breaks a tie.

    Parameters
    ----------
    n_neighbors : int or None, default=5
        Number of neighbours; None takes all training points.
    weights : {"uniform", "distance"}, kernel object or callable, default="uniform"
        Equal weights, one over the distance (a neighbour at distance zero outweighs all others), or a kernel
        ``k(X, Z)``.
    classes : array-like, optional
        The whole label space, a set. Give it where you know it: read from ``y`` by default, it is in the hands of an
        attacker, who can remove one of three or more classes by flipping all its labels: certificates end there.
    n_jobs : int, optional
        Threads; all cores by default.

    Attributes
    ----------
    classes_ : ndarray
        The label space, sorted; ties go to the class that comes first.

    See Also
    --------
    LabelSpreading : Neighbours of neighbours, and theirs.
    KernelRidge : Ridge regression, as exact.

    References
    ----------
    Jia, Liu, Cao and Gong, *Certified Robustness of Nearest Neighbors against Data Poisoning and Backdoor
    Attacks*, 2022.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import flipcert
    >>> X, y = load_iris(return_X_y=True)
    >>> model = flipcert.WeightedNeighbors(n_neighbors=9).fit(X[::2], y[::2])
    >>> model.certify(X[1::2]).radius[:5]
    array([4, 4, 4, 4, 4])
    """

    _why_rows_must_stay = "who is among the nearest changes when a row comes or goes"

    def __init__(
        self,
        n_neighbors: int | None = 5,
        weights: Any = "uniform",
        classes: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.classes = classes
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Tags:
        """Tell who asks whether X may be sparse."""
        tags = super().__sklearn_tags__()
        named = isinstance(self.weights, str) and self.weights in ("uniform", "distance")
        tags.input_tags.sparse = named or takes_sparse_inputs(self.weights)
        return tags

    def _make_weights(self, X: NDArray[Any]) -> Weights:
        if isinstance(self.weights, str) and self.weights in ("uniform", "distance"):
            by: str | Kernel = self.weights
        elif self.weights is None or isinstance(self.weights, str) or not callable(self.weights):
            raise ValueError(f'weights must be "uniform", "distance" or a kernel object; got {self.weights!r}.')
        else:
            by = as_kernel(self.weights)
        count = X.shape[0]
        if self.n_neighbors is not None:
            whole = isinstance(self.n_neighbors, (int, np.integer)) and not isinstance(self.n_neighbors, bool)
            if not whole or not self.n_neighbors >= 1:
                raise ValueError(f"n_neighbors must be a positive whole number or None; got {self.n_neighbors!r}.")
            if self.n_neighbors > X.shape[0]:
                raise ValueError(
                    f"n_neighbors={self.n_neighbors} is more than the {plural(X.shape[0], 'training sample')}; "
                    "use fewer, or None for all."
                )
            count = int(self.n_neighbors)
        self.X_fit_ = X
        return NearestWeights(X, count, by)
